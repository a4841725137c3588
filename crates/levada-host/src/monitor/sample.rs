// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A look: a sample of all that runs, what it says of each application, and what the balancer makes of it.

use crate::app::Hosted;
use crate::context::Shared;
use crate::limits::rate;
use crate::mapping::graph::{append, graph_between};
use crate::mapping::overrun::stuck;
use crate::model::app_state::State;
use crate::monitor::{Watch, Watched};
use crate::util::lock::lock;
use levada_map::{Graph, Sample};
use levada_sys::ActorCounters;
use levada_sys::leases::Leases;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// With less than this part of a core, all of them do next to nothing; and in the first look after a change that they
/// begin is seen, which is no more.
const SOMETHING: f64 = 0.02;
const BEGUN: u32 = 1;

/// Who wants less of a core than this does not show what others leave of it.
const TELLS: f64 = 0.05;

impl Watch<'_> {
    /// Whether any worker has done anything since the last time that this was asked.
    fn anything(&mut self) -> bool {
        let runtime = &self.shared.runtime;
        // One that goes on is something, too.
        let done = (0..runtime.workers())
            .filter_map(|w| runtime.worker_counters(w).ok())
            .map(|c| c.activations.wrapping_add(c.busy_ns))
            .fold(0u64, u64::wrapping_add);
        std::mem::replace(&mut self.done, done) != done
    }

    /// What part of its core each worker has had since that was last asked, where it wanted enough of it to tell.
    fn had(&mut self, elapsed: Duration) -> Vec<Option<f64>> {
        let runtime = &self.shared.runtime;
        let ran = (0..runtime.workers()).map(|worker| {
            let read = runtime.worker_counters(worker).unwrap_or_default();
            [read.busy_ns, read.lost_ns]
        });
        let before = std::mem::replace(&mut self.ran, ran.collect());
        let both = self.ran.iter().zip(&before);
        let had = both.map(|(now, before)| {
            let [busy, lost] = [0, 1].map(|i| now[i].saturating_sub(before[i]) as f64 / 1e9);
            (busy + lost > elapsed.as_secs_f64() * TELLS).then(|| busy / (busy + lost))
        });
        had.collect()
    }

    /// Looks how long anybody has waited for a core that others have, too.
    fn see_waits(&mut self) {
        let all = Leases::read().into_iter().map(|l| (l.waits, l.waited_ns));
        let all = all.reduce(|a, b| (a.0 + b.0, a.1 + b.1));
        self.waits.look(all.unwrap_or_default());
    }

    /// Looks who is in a firing that seems not to end, of those that share cores.
    pub(crate) fn see_stuck(&mut self) {
        let of = |w: &Watched| {
            let first = w.first;
            let all = stuck(&w.before).map(|(actor, worker)| (first + actor, worker));
            all.collect::<Vec<_>>()
        };
        let stuck: Vec<(usize, u32)> = self.sharing().iter().flat_map(of).collect();
        if stuck == self.stuck {
            return;
        }
        self.stuck = stuck;
        // What is being mapped does not know of it.
        self.stale |= self.maps;
        if let Some(balancer) = &mut self.balancer {
            balancer.set_stuck(self.stuck.iter().copied());
        }
    }

    /// Nobody does anything, and what each did before says nothing of now. Whether each rests, or is paused.
    fn settle(&mut self) -> bool {
        let mut all = true;
        for watched in &mut self.all {
            let (hosted, before) = (&watched.hosted, &watched.before);
            watched.pace.seen(hosted, before);
            // Whoever is to have more waits for its input, or for who takes its output.
            hosted.lately.is_late.store(false, Ordering::Relaxed);
            let nothing = || graph_between(hosted.app.network(), before, before);
            let paused = is_paused(self.shared, hosted);
            rate::forget(hosted, (!paused).then(nothing));
            let rests = || lock(&hosted.lately.resting).is();
            if !paused && !rests() {
                rate::rest(hosted, before);
            }
            all &= paused || rests();
        }
        all
    }

    /// Takes a sample and makes the moves that the mapper asks for.
    pub(crate) fn look(&mut self) {
        let elapsed = self.at.elapsed();
        self.at += elapsed;
        // Before what is asked of the workers: who does something later tells it.
        let tells = self.shared.runtime.rests();
        if !self.anything() && self.quiet > 4 {
            let settled = self.settle();
            self.still = settled && tells;
            return;
        }
        self.count += 1;
        let (mut graph, mut long, mut starved) = (Graph::default(), Vec::new(), false);
        let mut fibers = false;
        let shared = self.shared;
        for watched in &mut self.all {
            let Ok(now) = watched.hosted.app.counters() else {
                return;
            };
            watched.hosted.lately.saw(&now);
            let network = watched.hosted.app.network();
            let mut did = graph_between(network, &watched.before, &now);
            did.pins = watched.hosted.seats.pins();
            watched.pace.seen(&watched.hosted, &now);
            if watched.first < usize::MAX {
                long.extend(now.actors.iter().map(fires_for_long));
                // Who pauses it has that in hand.
                let held = watched.hosted.told.is_held().unwrap_or(true);
                starved |= watched.turns.look(&watched.before, &now, held);
            }
            fibers |= rate::remember_fibers(&watched.hosted, &watched.before, &now, elapsed);
            watched.before = now;
            let paused = is_paused(shared, &watched.hosted);
            if !paused {
                rate::remember(&watched.hosted, &did, elapsed);
            }
            if watched.first < usize::MAX {
                self.woken |= !paused && rate::rest(&watched.hosted, &watched.before);
                append(&mut graph, did);
            }
        }
        for watched in &mut self.all {
            let fires = watched.before.actors.iter().any(|a| a.firings > 0);
            watched.pace.judge(self.shared, &watched.hosted, fires);
        }
        // A core has been taken, or has come back.
        if self.shared.runtime.open() != self.open {
            self.begin();
            return;
        }
        self.see_stuck();
        let late = self.sharing().iter().any(|w| w.hosted.is_late());
        let put_off = self.put_off.take_if(|until| *until <= Instant::now());
        if put_off.is_some() || ((starved || late || self.woken) && self.again.may()) {
            self.map(false);
        }
        let took = graph.busy.iter().sum::<f64>() / elapsed.as_nanos().max(1) as f64;
        match &mut self.unmapped {
            Some(looks) if *looks < BEGUN => *looks += 1,
            Some(_) if fibers || took >= SOMETHING => self.map(false),
            _ => {}
        }
        let fired = fibers || graph.busy.iter().any(|b| *b > 0.0);
        self.quiet = if fired { 0 } else { self.quiet + 1 };
        let had = self.had(elapsed);
        self.see_waits();
        self.follow();
        if self.pins_from <= Instant::now() {
            self.keep_pins();
        }
        let Some(balancer) = &mut self.balancer else {
            return;
        };
        let search = balancer.sample(&Sample {
            elapsed,
            graph,
            long_firing: long,
            core_share: had,
            available: self.shared.left_beside(false),
        });
        self.shared
            .see_left(balancer.available(self.shared.machine.workers()));
        if let Some(search) = search {
            self.search(search);
        }
    }
}

/// What it does while it is paused says nothing of what it will do when it goes on.
fn is_paused(shared: &Shared, hosted: &Hosted) -> bool {
    shared.state(hosted.number) == Some(State::Paused)
}

/// Do its activations last about as long as others are kept waiting (`STUCK_MS`), as a rule?
fn fires_for_long(actor: &ActorCounters) -> bool {
    const LONG: Duration = Duration::from_millis(50);
    let times = actor.activations as f64 + 1.0;
    actor.longest >= 2 * LONG && actor.busy.as_secs_f64() >= times * LONG.as_secs_f64()
}
