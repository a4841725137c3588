// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread that watches: it hears of every end, and takes samples of all applications as one graph,
//! which the mapper places.
//!
//! Often at first, when a placement is a guess; seldom when nothing happens; never when nothing could
//! be moved, nor while nobody has anything to do. What the mapper computes holds up no application: the table is in
//! hand only to be read.

mod ended;
mod lease_waits;
mod moves;
mod sample;
mod starvation;

use crate::app::Hosted;
use crate::context::Shared;
use crate::context::message::Note;
use crate::limits::rate::Pace;
use crate::model::app_state::State;
use crate::monitor::lease_waits::Waits;
use crate::monitor::starvation::{Again, Turns};
use levada_map::Balancer;
use levada_sys::Counters;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

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
    /// What a wait for a core's lease takes.
    waits: Waits,
    /// How often in a row nothing had fired.
    quiet: u32,
    /// Whether each was seen to have nothing to do, or is paused, and who has something to do from then on tells it: none of
    /// them is looked at until then, so many that wait cost no more than few.
    still: bool,
    /// Who of those that share cores is in a firing that seems not to end, and where.
    stuck: Vec<(usize, u32)>,
    /// What workers had done when that was last asked.
    done: u64,
    /// How often what runs has changed; whether a mapper is at work; whether it works on what is past; whether only since
    /// the balancer has wished so.
    changes: u64,
    maps: bool,
    stale: bool,
    wished: bool,
    /// The looks that were taken since then; none: what runs has been given to the mapper.
    unmapped: Option<u32>,
    /// When what was mapped, and has not been done since it would have come back, is mapped again.
    put_off: Option<Instant>,
    /// Whether a search for something better is at work; when the next one may begin.
    searches: bool,
    search_from: Instant,
    again: Again,
    /// Whether somebody who has rested has begun again since they were mapped.
    woken: bool,
    /// When actors that must stay where they are not may be sent there the next time.
    pins_from: Instant,
    /// Those that are about to have ended: their natives finish files still, which may take long.
    ending: Vec<u64>,
    /// Something has changed since all were looked at anew.
    changing: bool,
    /// When the next look may come: looks at many take a part of a core, and no more than that.
    next_look: Instant,
}

/// After a look, or after all were looked at anew, there is none for so many times the CPU time that it took.
const RESTS: u32 = 9;

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it is this frame's.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// They are looked at so often.
const SOON: Duration = Duration::from_millis(2);

/// What others left of the cores for longer than this ago says nothing of now.
const LATELY: Duration = Duration::from_secs(2);

pub fn watch(shared: &Shared, notes: &Receiver<Note>) {
    shared.runtime.serve();
    let mut watch = Watch::new(shared);
    loop {
        watch.await_ends();
        let heard = match watch.pause() {
            Some(pause) => notes.recv_timeout(pause),
            None => notes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let first = match heard {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => {
                if watch.due_to_begin() {
                    watch.resting_then(Watch::begin);
                } else if watch.due() {
                    watch.resting_then(Watch::look);
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // Many changes at a time are one: all are looked at anew once.
        for note in std::iter::once(first).chain(notes.try_iter()) {
            match note {
                Note::Quit => return,
                Note::Changed => watch.has_changed(),
                Note::Awake => watch.wake(),
                Note::Ended(number) => {
                    watch.ended(number);
                    watch.has_changed();
                }
                Note::Mapped(changes, placement) => watch.mapped(changes, placement),
                Note::Found(changes, found, took) => {
                    watch.searched(took);
                    watch.found(changes, found);
                }
            }
        }
        if watch.due_to_begin() {
            watch.resting_then(Watch::begin);
        }
    }
}

impl Watch<'_> {
    fn new(shared: &Shared) -> Watch<'_> {
        Watch {
            shared,
            all: Vec::new(),
            open: Vec::new(),
            balancer: None,
            at: Instant::now(),
            changed: Instant::now(),
            count: 0,
            ran: Vec::new(),
            waits: Waits::new(),
            quiet: 0,
            still: false,
            stuck: Vec::new(),
            done: 0,
            changes: 0,
            maps: false,
            stale: false,
            wished: false,
            unmapped: None,
            put_off: None,
            searches: false,
            search_from: Instant::now(),
            again: Again::new(),
            woken: false,
            pins_from: Instant::now(),
            ending: Vec::new(),
            changing: false,
            next_look: Instant::now(),
        }
    }

    /// Does something that takes long where there are many, and rests from that.
    fn resting_then(&mut self, what: impl FnOnce(&mut Self)) {
        let before = cpu_time();
        what(self);
        let took = cpu_time().saturating_sub(before);
        self.next_look = Instant::now() + took * RESTS;
    }

    /// All are to be looked at anew; what was found out of what ran until now does not hold any more.
    fn has_changed(&mut self) {
        self.changing = true;
        self.changes += 1;
        self.unmapped = Some(0);
    }

    /// Whether something has changed, and all may be looked at anew.
    fn due_to_begin(&self) -> bool {
        self.changing && self.until_may_look().is_zero()
    }

    fn until_may_look(&self) -> Duration {
        self.next_look.saturating_duration_since(Instant::now())
    }

    /// It has ended, or is about to.
    fn ended(&mut self, number: u64) {
        // Ours goes first, so that the last who has it is the one that frees it.
        self.all.retain(|w| w.hosted.number != number);
        if !self.shared.ended(number) {
            self.ending.push(number);
        }
    }

    /// Those that were about to, and have now, leave room for others.
    fn await_ends(&mut self) {
        let before = self.ending.len();
        let shared = self.shared;
        self.ending.retain(|number| !shared.ended(*number));
        if self.ending.len() < before {
            self.has_changed();
        }
    }

    /// How long to sleep; none: until something changes.
    fn pause(&self) -> Option<Duration> {
        let look = match self.changing {
            true => Some(self.until_may_look()),
            false => self.until_look(),
        };
        match self.ending.is_empty() {
            true => look,
            false => Some(look.map_or(SOON, |look| look.min(SOON))),
        }
    }

    /// Whether it was the time for a look that has woken us, and no end that is waited for.
    fn due(&self) -> bool {
        self.until_look() == Some(Duration::ZERO)
    }

    /// How long until the next look.
    fn until_look(&self) -> Option<Duration> {
        if self.all.is_empty() || self.still {
            return None;
        }
        let period = match self.changed.elapsed().as_millis() {
            _ if self.quiet > 4 => Duration::from_millis(1000),
            _ if self.balancer.is_none() => Duration::from_millis(500),
            0..20 => Duration::from_millis(4),
            20..100 => Duration::from_millis(10),
            100..1000 => Duration::from_millis(50),
            // Not in step with an input that comes so many times a second: it would be seen at work always.
            _ => Duration::from_millis(150 + self.count * 61 % 100),
        };
        let look = period.saturating_sub(self.at.elapsed());
        Some(look.max(self.until_may_look()))
    }

    /// Somebody has something to do again.
    fn wake(&mut self) {
        if std::mem::take(&mut self.still) {
            self.at = Instant::now(); // what nobody did until now says nothing of what they do
        }
    }

    /// Those in one of these states that are not about to have ended.
    fn living(&self, wanted: impl Fn(State) -> bool) -> Vec<Arc<Hosted>> {
        let table = self.shared.table();
        let all = table.seen().into_iter().filter(|a| wanted(a.state));
        let all = all.filter_map(|a| a.hosted.clone());
        all.filter(|h| !h.app.is_ending()).collect()
    }

    /// What runs has changed, or where it may: all are looked at anew, from where they are now.
    fn begin(&mut self) {
        self.changing = false;
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
        // How each keeps its promise, and when each had a turn, is so still, whatever happens to others.
        let seen = self.all.drain(..);
        let mut seen: BTreeMap<u64, (Pace, Turns)> = seen
            .map(|one| (one.hosted.number, (one.pace, one.turns)))
            .collect();
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
            hosted.lately.saw(&before);
            let first = match i < sharing {
                true => placement.len(),
                false => usize::MAX,
            };
            if i < sharing {
                placement.extend(before.actors.iter().map(|a| a.target));
            }
            let anew = || (Pace::of(&hosted), Turns::new(before.actors.len()));
            let (pace, turns) = seen.remove(&hosted.number).unwrap_or_else(anew);
            self.all.push(Watched {
                pace,
                turns,
                hosted,
                before,
                first,
            });
        }
        self.see_stuck();
        if self.shared.balance {
            // Beside others that have been placed well, one that was placed by a guess can wait.
            let guessed = matches!(self.sharing(), [one] if one.hosted.known.is_none());
            let balancer = self.balancer_of(placement, before.as_ref());
            self.balancer = Some(match guessed {
                true => balancer,
                false => balancer.with_measured_placement(),
            });
        }
        self.at = Instant::now();
        self.changed = self.at;
        (self.quiet, self.still) = (0, false);
        self.changes += 1;
        self.again = Again::new();
        self.keep_pins();
        // Where nothing is done a placement is as good as any: many that wait are loaded at no more cost than few.
        self.unmapped = Some(0);
        self.put_off = None;
    }
}
