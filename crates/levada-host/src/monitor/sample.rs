// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A sample of all running applications: updates the measurements of each, and passes the sample to the balancer.

use crate::app::HostedApp;
use crate::context::HostContext;
use crate::limits::rate;
use crate::mapping::graph::{append, graph_between};
use crate::mapping::overrun::overrunning;
use crate::model::app_state::State;
use crate::monitor::{Monitor, MonitoredApp};
use crate::util::lock::lock;
use levada_map::{Graph, Sample};
use levada_sys::ActorCounters;
use levada_sys::leases::Leases;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Less usage than this fraction of a core is next to nothing; and the first sample after a change only shows that
/// applications start.
const ACTIVE_CORES_MIN: f64 = 0.02;
const START_SAMPLES: u32 = 1;

/// A worker that demands a smaller fraction of its core does not show what others leave.
const DEMAND_FRACTION_MIN: f64 = 0.05;

impl Monitor<'_> {
    /// Whether any worker has done anything since the last call.
    fn has_worked(&mut self) -> bool {
        let runtime = &self.shared.runtime;
        // A running activation counts, too.
        let done = (0..runtime.workers())
            .filter_map(|w| runtime.worker_counters(w).ok())
            .map(|c| c.activations.wrapping_add(c.busy_ns))
            .fold(0u64, u64::wrapping_add);
        std::mem::replace(&mut self.work_counter, done) != done
    }

    /// The fraction of its core that each worker has received since the last call, if it demanded enough to tell.
    fn core_shares(&mut self, elapsed: Duration) -> Vec<Option<f64>> {
        let runtime = &self.shared.runtime;
        let ran = (0..runtime.workers()).map(|worker| {
            let read = runtime.worker_counters(worker).unwrap_or_default();
            [read.busy_ns, read.preempted_ns]
        });
        let before = std::mem::replace(&mut self.worker_times_ns, ran.collect());
        let both = self.worker_times_ns.iter().zip(&before);
        let had = both.map(|(now, before)| {
            let [busy, lost] = [0, 1].map(|i| now[i].saturating_sub(before[i]) as f64 / 1e9);
            (busy + lost > elapsed.as_secs_f64() * DEMAND_FRACTION_MIN)
                .then(|| busy / (busy + lost))
        });
        had.collect()
    }

    /// Samples the waits for leases.
    fn sample_lease_waits(&mut self) {
        let all = Leases::read().into_iter().map(|l| (l.waits, l.waited_ns));
        let all = all.reduce(|a, b| (a.0 + b.0, a.1 + b.1));
        self.lease_waits.sample(all.unwrap_or_default());
    }

    /// Updates the overrunning actors of applications that share cores.
    pub(crate) fn sample_overruns(&mut self) {
        let of = |w: &MonitoredApp| {
            let first = w.first_actor;
            let all = overrunning(&w.before).map(|(actor, worker)| (first + actor, worker));
            all.collect::<Vec<_>>()
        };
        let stuck: Vec<(usize, u32)> = self.sharing().iter().flat_map(of).collect();
        if stuck == self.overrunning {
            return;
        }
        self.overrunning = stuck;
        // The running mapper does not know of them.
        self.mapping_is_stale |= self.mapping;
        if let Some(balancer) = &mut self.balancer {
            balancer.set_stuck(self.overrunning.iter().copied());
        }
    }

    /// All applications are idle: resets their means. Returns whether each is idle or paused.
    fn settle_idle(&mut self) -> bool {
        let mut all = true;
        for watched in &mut self.apps {
            let (hosted, before) = (&watched.hosted, &watched.before);
            watched.rate_monitor.count_sample(hosted, before);
            // An application that misses its rate now is waiting for its input or output.
            hosted.recent.rate_missed.store(false, Ordering::Relaxed);
            let nothing = || graph_between(hosted.app.network(), before, before);
            let paused = is_paused(self.shared, hosted);
            rate::reset_load(hosted, (!paused).then(nothing));
            let rests = || lock(&hosted.recent.idle).is_idle();
            if !paused && !rests() {
                rate::update_idle(hosted, before);
            }
            all &= paused || rests();
        }
        all
    }

    /// Takes a sample, and applies the moves of the balancer.
    pub(crate) fn take_sample(&mut self) {
        let elapsed = self.sampled_at.elapsed();
        self.sampled_at += elapsed;
        // Before the workers are read: later work sends a message.
        let tells = self.shared.runtime.is_idle();
        if !self.has_worked() && self.quiet_samples > 4 {
            let settled = self.settle_idle();
            self.sleeps_until_wakeup = settled && tells;
            return;
        }
        self.sample_count += 1;
        let (mut graph, mut long, mut starved) = (Graph::default(), Vec::new(), false);
        let mut fibers = false;
        let shared = self.shared;
        for watched in &mut self.apps {
            let Ok(now) = watched.hosted.app.counters() else {
                return;
            };
            watched.hosted.recent.record_busy(&now);
            watched.hosted.emit_growth(&now, &shared.events);
            let network = watched.hosted.app.network();
            let mut did = graph_between(network, &watched.before, &now);
            did.pins = watched.hosted.placement.pins();
            watched.rate_monitor.count_sample(&watched.hosted, &now);
            if watched.first_actor < usize::MAX {
                long.extend(now.actors.iter().map(fires_for_long));
                // While a pause holds the lock, the application counts as limited.
                let held = watched.hosted.control.try_is_limited().unwrap_or(true);
                starved |= watched.turn_tracker.sample(&watched.before, &now, held);
            }
            fibers |= rate::update_fiber_load(&watched.hosted, &watched.before, &now, elapsed);
            watched.before = now;
            let paused = is_paused(shared, &watched.hosted);
            if !paused {
                rate::update_load(&watched.hosted, &did, elapsed);
            }
            if watched.first_actor < usize::MAX {
                self.idle_app_resumed |=
                    !paused && rate::update_idle(&watched.hosted, &watched.before);
                append(&mut graph, did);
            }
        }
        for watched in &mut self.apps {
            let fires = watched.before.actors.iter().any(|a| a.firings > 0);
            watched
                .rate_monitor
                .check(self.shared, &watched.hosted, fires);
        }
        // A core was reserved or returned.
        if self.shared.runtime.available_workers() != self.available_workers {
            self.restart();
            return;
        }
        self.sample_overruns();
        let late = self.sharing().iter().any(|w| w.hosted.is_rate_missed());
        let put_off = self
            .mapping_deferred_until
            .take_if(|until| *until <= Instant::now());
        if put_off.is_some()
            || ((starved || late || self.idle_app_resumed) && self.starvation_backoff.is_due())
        {
            self.map(false);
        }
        let took = graph.busy.iter().sum::<f64>() / elapsed.as_nanos().max(1) as f64;
        match &mut self.samples_unmapped {
            Some(looks) if *looks < START_SAMPLES => *looks += 1,
            Some(_) if fibers || took >= ACTIVE_CORES_MIN => self.map(false),
            _ => {}
        }
        let fired = fibers || graph.busy.iter().any(|b| *b > 0.0);
        self.quiet_samples = if fired { 0 } else { self.quiet_samples + 1 };
        let had = self.core_shares(elapsed);
        self.sample_lease_waits();
        self.follow_runtime_moves();
        if self.pins_from <= Instant::now() {
            self.restore_pins();
        }
        let Some(balancer) = &mut self.balancer else {
            return;
        };
        let search = balancer.sample(&Sample {
            elapsed,
            graph,
            long_firing: long,
            core_share: had,
            available: self.shared.left_by_isolated(false),
        });
        self.shared
            .record_available(balancer.available(self.shared.machine.workers()));
        if let Some(search) = search {
            self.search(search);
        }
    }
}

/// What an application does while it is being paused is not representative.
fn is_paused(shared: &HostContext, hosted: &HostedApp) -> bool {
    shared.state(hosted.number) == Some(State::Paused)
}

/// Whether its activations usually last about as long as the runtime lets others wait (`STUCK_MS`).
fn fires_for_long(actor: &ActorCounters) -> bool {
    const LONG_FIRING: Duration = Duration::from_millis(50);
    let times = actor.activations as f64 + 1.0;
    actor.longest >= 2 * LONG_FIRING
        && actor.busy.as_secs_f64() >= times * LONG_FIRING.as_secs_f64()
}
