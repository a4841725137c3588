// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread that watches: it hears of every end, and takes samples of all applications as one graph,
//! which the mapper places.
//!
//! Often at first, when a placement is a guess; seldom when nothing happens; never when nothing could
//! be moved. What the mapper computes holds up no application: the table is in hand only to be read.

use crate::graph::{append, graph_between};
use crate::hosted::{Hosted, State};
use crate::mapping;
use crate::pace::{self, Pace};
use crate::starved::{Again, Turns};
use crate::table::Shared;
use levada_map::{Balancer, Found, Graph, Placement, Sample, Search};
use levada_sys::{ActorCounters, Counters};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What the thread is told.
pub enum Note {
    /// This application has ended.
    Ended(u64),
    /// Something has been started, resumed or moved.
    Changed,
    /// Where the mapper puts all that ran at this count of changes.
    Mapped(u64, Placement),
    /// What a search for a better placement has found, for what was so then, and how long it took.
    Found(u64, Found, Duration),
    Quit,
}

struct Watched {
    hosted: Arc<Hosted>,
    before: Counters,
    /// Its first actor in the graph of all that share cores; beyond all of it for who has one alone.
    first: usize,
    pace: Pace,
    turns: Turns,
}

struct Watch<'a> {
    shared: &'a Shared,
    /// Those that share cores come first.
    all: Vec<Watched>,
    /// The workers whose core is for all.
    open: Vec<u32>,
    balancer: Option<Balancer>,
    /// When the last sample was taken, and when something last changed.
    at: Instant,
    changed: Instant,
    /// Looks so far.
    count: u64,
    /// For how long something had run on each worker, and what of that was lost to other programs.
    ran: Vec<[u64; 2]>,
    /// How often in a row nothing had fired.
    quiet: u32,
    /// What workers had done when that was last asked.
    done: u64,
    /// How often what runs has changed; whether a mapper is at work; whether it works on what is past.
    changes: u64,
    maps: bool,
    stale: bool,
    /// The looks that were taken since then; none: what runs has been given to the mapper.
    unmapped: Option<u32>,
    /// Whether a search for something better is at work; when the next one may begin.
    searches: bool,
    search_from: Instant,
    again: Again,
    /// When actors that must stay where they are not may be sent there the next time.
    pins_from: Instant,
    /// Those that are about to have ended: their natives finish files still, which may take long.
    ending: Vec<u64>,
}

/// They are looked at so often.
const SOON: Duration = Duration::from_millis(2);

/// With less than this part of a core, all of them do next to nothing; and in the first look after a change that they
/// begin is seen, which is no more.
const SOMETHING: f64 = 0.02;
const BEGUN: u32 = 1;

/// With no more actors than that a search takes no longer than a look.
const FEW: usize = 64;
/// Of the time of a core, searches take no more than this part.
const SEARCHES: u32 = 20;

/// What others left of the cores for longer than this ago says nothing of now.
const LATELY: Duration = Duration::from_secs(2);

/// Who wants less of a core than this does not show what others leave of it.
const TELLS: f64 = 0.05;

/// Actors are sent where they must stay no more often: an action there that lasts sends them away again.
const HOME_AGAIN: Duration = Duration::from_secs(1);

pub fn watch(shared: &Shared, notes: &Receiver<Note>) {
    let mut watch = Watch {
        shared,
        all: Vec::new(),
        open: Vec::new(),
        balancer: None,
        at: Instant::now(),
        changed: Instant::now(),
        count: 0,
        ran: Vec::new(),
        quiet: 0,
        done: 0,
        changes: 0,
        maps: false,
        stale: false,
        unmapped: None,
        searches: false,
        search_from: Instant::now(),
        again: Again::new(),
        pins_from: Instant::now(),
        ending: Vec::new(),
    };
    loop {
        let before = watch.ending.len();
        watch.ending.retain(|number| !shared.ended(*number));
        if watch.ending.len() < before {
            watch.begin();
        }
        let heard = match watch.pause() {
            Some(pause) => notes.recv_timeout(pause),
            None => notes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match heard {
            Err(RecvTimeoutError::Timeout) => {
                if watch.due() {
                    watch.look();
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(first) => {
                let mut changed = false;
                for note in std::iter::once(first).chain(notes.try_iter()) {
                    match note {
                        Note::Ended(number) => {
                            // Ours goes first, so that the last who has it is the one that frees it.
                            watch.all.retain(|w| w.hosted.number != number);
                            if !shared.ended(number) {
                                watch.ending.push(number);
                            }
                        }
                        Note::Changed => {}
                        Note::Mapped(changes, placement) => {
                            watch.mapped(changes, placement);
                            continue;
                        }
                        Note::Found(changes, found, took) => {
                            watch.searches = false;
                            watch.search_from = Instant::now() + took * SEARCHES;
                            watch.found(changes, found);
                            continue;
                        }
                        Note::Quit => return,
                    }
                    changed = true;
                }
                if changed {
                    watch.begin();
                }
            }
        }
    }
}

impl Watch<'_> {
    /// How long to sleep; none: until something changes.
    fn pause(&self) -> Option<Duration> {
        let look = self.until_look();
        match self.ending.is_empty() {
            true => look,
            false => Some(look.map_or(SOON, |look| look.min(SOON))),
        }
    }

    /// Whether it was the time for a look that has woken us, and no end that is waited for.
    fn due(&self) -> bool {
        let slept = self.at.elapsed();
        self.until_look()
            .is_some_and(|look| self.ending.is_empty() || slept >= look)
    }

    /// How long until the next look.
    fn until_look(&self) -> Option<Duration> {
        if self.all.is_empty() {
            return None;
        }
        Some(match self.changed.elapsed().as_millis() {
            _ if self.quiet > 4 => Duration::from_millis(1000),
            _ if self.balancer.is_none() => Duration::from_millis(500),
            0..20 => Duration::from_millis(4),
            20..100 => Duration::from_millis(10),
            100..1000 => Duration::from_millis(50),
            // Not in step with an input that comes so many times a second: it would be seen at work always.
            _ => Duration::from_millis(150 + self.count * 61 % 100),
        })
    }

    /// Those in one of these states that are not about to have ended.
    fn living(&self, wanted: impl Fn(State) -> bool) -> Vec<Arc<Hosted>> {
        let table = self.shared.table();
        let all = table.apps.values().filter(|a| wanted(a.state));
        let all = all.filter_map(|a| a.hosted.clone());
        all.filter(|h| !h.app.is_ending()).collect()
    }

    /// What runs has changed, or where it may: all are looked at anew, from where they are now.
    fn begin(&mut self) {
        self.begin_from_here();
        if let Some(beside) = self.shared.beside() {
            beside.tell();
        }
        // A core may have been taken away, also from who is paused.
        for hosted in self.living(|_| true) {
            hosted.tell_moves(&self.shared.events);
        }
    }

    fn begin_from_here(&mut self) {
        self.all.clear();
        // What was seen of others is so still, unless that was long ago.
        let lately = self.quiet <= 4 && self.at.elapsed() < LATELY;
        let before = self.balancer.take().filter(|_| lately);
        let running = |state| matches!(state, State::Running | State::Draining);
        let all = self.living(running);
        self.open = self.shared.runtime.open();
        let (alone, mut all): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|h: &Arc<Hosted>| h.exclusive.is_some());
        let sharing = all.len();
        all.extend(alone);
        // One application alone on one worker has nothing to be measured for.
        let promised = all.iter().any(|h| h.limits.rate.is_some());
        if !self.shared.balance && all.len() < 2 && !promised {
            return;
        }
        let mut placement = Vec::new();
        for (i, hosted) in all.into_iter().enumerate() {
            let before = hosted.app.counters().unwrap_or_default();
            let first = match i < sharing {
                true => placement.len(),
                false => usize::MAX,
            };
            if i < sharing {
                placement.extend(before.actors.iter().map(|a| a.target));
            }
            self.all.push(Watched {
                pace: Pace::of(&hosted),
                turns: Turns::new(before.actors.len()),
                hosted,
                before,
                first,
            });
        }
        if self.shared.balance {
            // Beside others that have been placed well, one that was placed by a guess can wait.
            let guessed = matches!(self.sharing(), [one] if one.hosted.known.is_none());
            let balancer = self.balancer_of(placement, before.as_ref());
            self.balancer = Some(match guessed {
                true => balancer,
                false => balancer.trusting(),
            });
        }
        self.at = Instant::now();
        self.changed = self.at;
        self.quiet = 0;
        self.changes += 1;
        self.again = Again::new();
        self.keep_pins();
        // Where nothing is done a placement is as good as any: many that wait are loaded at no more cost than few.
        self.unmapped = Some(0);
    }

    fn sharing(&self) -> &[Watched] {
        let sharing = self.all.partition_point(|w| w.first < usize::MAX);
        &self.all[..sharing]
    }

    fn balancer_of(&self, placement: Placement, before: Option<&Balancer>) -> Balancer {
        let balancer = Balancer::new(self.shared.machine.clone(), placement);
        let balancer = balancer.among(self.open.clone());
        let balancer = balancer.beside(&self.shared.left_beside(false));
        match before {
            Some(before) => balancer.after(before),
            None => balancer,
        }
    }

    /// Asks the mapper where all of them should be, now that others run than before.
    fn map(&mut self) {
        if !self.shared.balance || self.sharing().len() < 2 {
            return;
        }
        self.unmapped = None;
        if self.maps {
            self.stale = true;
            return;
        }
        let machine = &self.shared.machine;
        let left = self.balancer.as_ref().map(|b| b.left(machine.workers()));
        let machine = machine.left(&left.unwrap_or_default());
        let all = self.sharing().iter().map(|w| (&*w.hosted, &w.before));
        self.maps = mapping::remap(self.shared, machine, self.changes, all);
    }

    /// The mapper has answered.
    fn mapped(&mut self, changes: u64, placement: Placement) {
        self.maps = false;
        if std::mem::take(&mut self.stale) || changes != self.changes {
            if self.unmapped.is_none() {
                self.map();
            }
            return;
        }
        let there = self.balancer.as_ref().map(|b| b.placement().to_vec());
        let Some(there) = there.filter(|t| t.len() == placement.len()) else {
            return;
        };
        let all = placement.iter().zip(&there).enumerate();
        let moves: Vec<(usize, u32)> = all
            .filter(|(_, (new, old))| new != old)
            .map(|(actor, (new, _))| (actor, *new))
            .collect();
        if !moves.is_empty() {
            self.make(moves);
            let balancer = self.balancer_of(placement, self.balancer.as_ref());
            self.balancer = Some(balancer.trusting());
        }
    }

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

    /// Takes a sample and makes the moves that the mapper asks for.
    fn look(&mut self) {
        if !self.anything() && self.quiet > 4 {
            self.at = Instant::now();
            // Whoever is to have more waits for its input, or for who takes its output.
            let all = self.all.iter();
            all.for_each(|w| w.hosted.is_late.store(false, Ordering::Relaxed));
            return;
        }
        let elapsed = self.at.elapsed();
        self.at += elapsed;
        self.count += 1;
        let (mut graph, mut long, mut starved) = (Graph::default(), Vec::new(), false);
        let mut fibers = false;
        for watched in &mut self.all {
            let Ok(now) = watched.hosted.app.counters() else {
                return;
            };
            let network = watched.hosted.app.network();
            let mut did = graph_between(network, &watched.before, &now);
            did.pins = watched.hosted.seats.pins();
            watched.pace.seen(&now);
            if watched.first < usize::MAX {
                long.extend(now.actors.iter().map(fires_for_long));
                // Who pauses it has that in hand.
                let held = watched.hosted.held.try_lock().map_or(true, |held| *held);
                starved |= watched.turns.look(&watched.before, &now, held);
            }
            fibers |= pace::remember_fibers(&watched.hosted, &watched.before, &now, elapsed);
            watched.before = now;
            pace::remember(&watched.hosted, &did, elapsed);
            if watched.first < usize::MAX {
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
        let late = self.sharing().iter().any(|w| w.hosted.is_late());
        if (starved || late) && self.again.may() {
            self.map();
        }
        let took = graph.busy.iter().sum::<f64>() / elapsed.as_nanos().max(1) as f64;
        match &mut self.unmapped {
            Some(looks) if *looks < BEGUN => *looks += 1,
            Some(_) if fibers || took >= SOMETHING => self.map(),
            _ => {}
        }
        let fired = fibers || graph.busy.iter().any(|b| *b > 0.0);
        self.quiet = if fired { 0 } else { self.quiet + 1 };
        let had = self.had(elapsed);
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
            long,
            had,
            left: self.shared.left_beside(false),
        });
        self.shared
            .see_left(balancer.left(self.shared.machine.workers()));
        if let Some(search) = search {
            self.search(search);
        }
    }

    /// Looks for a better placement: here, or aside where that may take long, while the next samples are taken.
    fn search(&mut self, search: Search) {
        if search.actors() <= FEW {
            let found = search.run();
            self.found(self.changes, found);
        } else if !self.searches && self.search_from <= Instant::now() {
            self.searches = mapping::search(self.shared, self.changes, search);
        }
    }

    /// Where something is promised the mapper has the last word, which knows promises: even loads may break one.
    fn found(&mut self, changes: u64, found: Found) {
        let promised = |w: &Watched| w.hosted.limits.rate.is_some();
        let ask = self.sharing().len() > 1 && self.sharing().iter().any(promised);
        let Some(balancer) = self.balancer.as_mut().filter(|_| changes == self.changes) else {
            return;
        };
        if !ask {
            let moves = balancer.moves(found);
            self.make(moves);
        } else if balancer.gains(&found) && self.again.may() {
            self.map();
        }
    }

    /// What waited behind an action that did not end was given to other workers by the runtime.
    fn follow(&mut self) {
        let actors = |w: &Watched| w.before.actors.iter().map(|a| a.target).collect::<Vec<_>>();
        let placement: Placement = self.sharing().iter().flat_map(actors).collect();
        let Some(balancer) = &mut self.balancer else {
            return;
        };
        if placement == balancer.placement() {
            return;
        }
        let sharing = self.all.partition_point(|w| w.first < usize::MAX);
        for watched in &self.all[..sharing] {
            watched.hosted.tell_moves(&self.shared.events);
        }
        balancer.found(placement);
    }

    /// Who must stay on a worker and is elsewhere, since that was away or an action there did not end, goes back.
    fn keep_pins(&mut self) {
        let mut moves = Vec::new();
        for watched in self.sharing() {
            let actors = watched
                .before
                .actors
                .iter()
                .zip(watched.hosted.seats.pins());
            let away = actors.enumerate().filter_map(|(i, (actor, pin))| {
                let home = pin.filter(|pin| *pin != actor.target && self.open.contains(pin))?;
                Some((watched.first + i, home))
            });
            moves.extend(away);
        }
        if !moves.is_empty() {
            self.pins_from = Instant::now() + HOME_AGAIN;
            self.make(moves);
        }
    }

    fn make(&mut self, moves: Vec<(usize, u32)>) {
        for (actor, worker) in moves {
            let at = self.all.partition_point(|w| w.first <= actor);
            let Some(watched) = at.checked_sub(1).map(|i| &self.all[i]) else {
                continue;
            };
            let index = actor - watched.first;
            let hosted = &watched.hosted;
            if hosted.seat(&self.shared.events, index, worker) == Ok(true) {
                hosted.count_move();
            }
        }
    }
}

/// Do its activations last about as long as others are kept waiting (`STUCK_MS`), as a rule?
fn fires_for_long(actor: &ActorCounters) -> bool {
    const LONG: Duration = Duration::from_millis(50);
    let times = actor.activations as f64 + 1.0;
    actor.longest >= 2 * LONG && actor.busy.as_secs_f64() >= times * LONG.as_secs_f64()
}
