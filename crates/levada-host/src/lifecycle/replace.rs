// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing: a new version of an application takes over between two elements.
//!
//! The new one is loaded while the old one runs. Then the old one is paused, what both have in common goes
//! along (what actors remember, what is in channels, what natives hold open), and the new one goes on from
//! there. A moment at which that is not possible is not the right one: the old one goes on, and it is tried
//! again. A C program chooses the moment itself: it is asked to come to its end, and leaves heirlooms.

use crate::app::{Hosted, Seen};
use crate::host::Host;
use crate::lifecycle::next_version::Next;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::What;
use crate::model::outcome::Outcome;
use crate::util::deadline::deadline;
use levada_sys::{Counters, Network, Status};
use std::sync::{Arc, MutexGuard, atomic::Ordering};
use std::time::{Duration, Instant};

/// So long one that is stopped may take until it has ended.
pub(crate) const STOPS: Duration = Duration::from_secs(10);
/// For so many tries in a row sources go on or rest at first, so that all that is on its way comes out.
const TRIES: u32 = 16;
/// From one try to the next.
const SOONEST: Duration = Duration::from_micros(200);
const LATEST: Duration = Duration::from_millis(5);

impl Host {
    /// Puts a new version in the place of the one before it, which goes on as it was if this fails.
    /// It does not begin if that one is paused, or it is to be `paused`. `kept` is called when the old one has ended, or
    /// ends for so long that this is not waited for, before the new one begins, and is told whether it does not.
    pub(crate) fn replace(
        &self,
        Next { old, new }: Next,
        paused: bool,
        within: Duration,
        kept: impl FnOnce(&Hosted, bool),
    ) -> Result<Arc<Hosted>, Refusal> {
        let name = new.name.clone();
        let given_up = |why: Refusal| {
            old.app.leaves_nothing();
            self.drop_number(new.number);
            Err(why)
        };
        let until = deadline(within);
        let hand = match old.in_hand(until) {
            Ok(hand) => hand,
            Err(why) => return given_up(why),
        };
        let state = self.shared.state(old.number);
        let program = old.app.network().is_program();
        let done = match state {
            Some(State::Loaded | State::Running | State::Paused) if program => {
                self.see_off(&old, &new, hand, until, within)
            }
            Some(State::Loaded | State::Running | State::Paused) => {
                let done = self.hand_over(&old, &new, until, within);
                drop(hand);
                done
            }
            _ => {
                drop(hand);
                Err(has_ended(&name))
            }
        };
        if let Err(why) = done {
            return given_up(why);
        }
        let ended = self.until_ended(old.number, deadline(STOPS));
        new.counts_on(&old);
        let Some(ended) = ended else {
            // Somebody has unloaded it.
            if !self.lives(old.number) {
                return given_up(has_ended(&name));
            }
            let what = match program {
                true => format!("{name} has heard that it is to leave, and takes long"),
                false => format!("what {name} holds open takes long to be finished"),
            };
            self.tell_loaded(&new);
            kept(&new, true);
            return Err(Refusal {
                comes: true,
                ..Refusal::new(Kind::Timeout, what)
                    .help("its new version is loaded: resume it when the old one has ended")
            });
        };
        if ended.outcome == Outcome::Stopped {
            return given_up(has_ended(&name));
        }
        if ended.outcome != Outcome::Done {
            let what = format!("{name} has failed as it ended: {}", ended.outcome.text());
            return given_up(Refusal::new(Kind::Conflict, what));
        }
        self.shared.table().apps.remove(&old.number);
        let held = paused || state != Some(State::Running);
        kept(&new, held);
        // Who takes it away sees to the rest.
        if new.goes() {
            let what = format!("{name} has been unloaded before it began");
            return Err(Refusal::new(Kind::Conflict, what));
        }
        self.tell_loaded(&new);
        if !held {
            self.start(&new)?;
        }
        self.events()
            .tell(What::Replaced, &name, format!("by {}", new.class));
        Ok(new)
    }

    /// The old one has left all to the new one, and ends. On an error it goes on as it was.
    fn hand_over(
        &self,
        old: &Hosted,
        new: &Hosted,
        until: Instant,
        within: Duration,
    ) -> Result<(), Refusal> {
        let state = self.shared.state(old.number);
        let (mut rests, mut reason) = (Rests::default(), None);
        old.lineage.sought.store(true, Ordering::Relaxed);
        for tries in 0.. {
            // From one try to the next its limits are kept as ever.
            let mut held = old.held();
            let mut done = try_once(old, new, state, until);
            // A last pause that had no time left says nothing of what was in the way before.
            match (&mut done, &reason) {
                (Err(Not::Now(why)), Some(reason)) if Instant::now() >= until => {
                    why.clone_from(reason)
                }
                (Err(Not::Now(why)), _) => reason = Some(why.clone()),
                _ => {}
            }
            let last = match &done {
                Ok(()) => true,
                Err(not) => !matches!(not, Not::Now(_)) || Instant::now() >= until,
            };
            if last {
                old.lineage.sought.store(false, Ordering::Relaxed);
            }
            if done.is_err() {
                drop(old.app.rest(!last && rests.look(old, *held)));
                let stays = *held || last && state == Some(State::Paused);
                if !stays {
                    drop(old.app.resume());
                }
            }
            if last {
                // What a user has paused its limits do not let go, nor what has left all.
                *held &= done.is_err() && state != Some(State::Paused);
                return done.map_err(|not| not.refusal(&old.name, within));
            }
            drop(held);
            let pause = SOONEST * (tries % TRIES + 1);
            std::thread::sleep(pause.min(LATEST));
        }
        Ok(())
    }

    /// A C program has been asked to leave all to the new one, and has ended, or has heard of it. On an
    /// error it runs. Until it has ended its limits are kept.
    fn see_off(
        &self,
        old: &Hosted,
        new: &Hosted,
        hand: MutexGuard<'_, ()>,
        until: Instant,
        within: Duration,
    ) -> Result<(), Refusal> {
        let name = &old.name;
        let state = self.shared.state(old.number);
        if state == Some(State::Paused) {
            let what = format!("{name} is paused, and a C program has to run to come to its end");
            return Err(Refusal::new(Kind::Conflict, what).help("resume it first"));
        }
        keep_code(old, new);
        let asked = new.app.inherit(&old.app).and_then(|()| match state {
            Some(State::Loaded) => {
                old.app.finish();
                Ok(())
            }
            _ => old.app.drain(),
        });
        if asked.is_err() {
            return Err(has_ended(name));
        }
        if state == Some(State::Loaded) {
            return Ok(());
        }
        old.told.drains.store(true, Ordering::Relaxed);
        self.set_state(old.number, State::Draining);
        drop(hand);
        let ended = self.until_ended(old.number, until).is_some() || !self.lives(old.number);
        if ended || old.app.drain_no_more().is_err() {
            return Ok(());
        }
        old.told.drains.store(false, Ordering::Relaxed);
        if self.shared.state(old.number) == Some(State::Draining) {
            self.set_state(old.number, State::Running);
        }
        let what = format!(
            "{name} goes on as it was, and was not replaced within {within:?}: it has not asked whether it is to end"
        );
        Err(Refusal::new(Kind::Timeout, what).help(
            "a C program that can be replaced asks lvd_app_drains, or waits in lvd_wait_input \
             (<levada/native.h>)",
        ))
    }

    /// What is left of it when it has ended; none if it has not until then, or is not there any more.
    pub(crate) fn until_ended(
        &self,
        number: u64,
        until: Instant,
    ) -> Option<Arc<crate::model::outcome::Ended>> {
        let shared = &*self.shared;
        let mut table = shared.table();
        loop {
            match table.apps.get(&number) {
                Some(Seen { ended: None, .. }) => {}
                Some(seen) => return seen.ended.clone(),
                None => return None,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            table = shared.until_changed(table, left);
        }
    }

    /// Takes one away that is not loaded after all, unless somebody else does already.
    pub(crate) fn take_back(&self, hosted: &Hosted) {
        if hosted.goes() {
            return;
        }
        if self.drop_number(hosted.number) {
            self.events().tell(What::Unloaded, &hosted.name, "");
        }
    }

    /// Takes one away, and no other of its name; false: somebody else has.
    fn drop_number(&self, number: u64) -> bool {
        let seen = self.shared.table().apps.get(&number).cloned();
        if let Some(hosted) = seen.and_then(|s| s.hosted) {
            let _ = hosted.app.stop_within(Some(Duration::ZERO));
        }
        self.until_ended(number, deadline(STOPS));
        self.shared.table().apps.remove(&number).is_some()
    }
}

/// Why one could not take over.
enum Not {
    /// It is to be tried again.
    Now(String),
    /// It has ended.
    Ended,
    Ever(String),
}

impl Not {
    fn refusal(self, name: &str, within: Duration) -> Refusal {
        let (kind, what) = match self {
            Not::Ended => return has_ended(name),
            Not::Ever(why) => (Kind::Conflict, format!("{name} goes on as it was: {why}")),
            Not::Now(why) => (
                Kind::Timeout,
                format!("{name} goes on as it was, and was not replaced within {within:?}: {why}"),
            ),
        };
        Refusal::new(kind, what)
            .help("try again, wait longer (--within), or unload it and load the new version")
    }
}

/// The old one stands still, and has left all to the new one if it can; then it ends.
fn try_once(old: &Hosted, new: &Hosted, state: Option<State>, until: Instant) -> Result<(), Not> {
    if state != Some(State::Loaded) {
        let left = until.saturating_duration_since(Instant::now());
        old.app.pause(left).map_err(|e| match e.status {
            Status::TIME => Not::Now("a firing lasts".to_string()),
            _ => Not::Ended,
        })?;
    }
    new.app.take_over(&old.app).map_err(|e| match e.status {
        Status::STATE => Not::Now(e.why),
        _ => Not::Ever(e.why),
    })?;
    // It has all that was there, and cannot be tried with it again.
    pass_core(old, new).map_err(|e| Not::Ever(format!("its core cannot be handed on: {e}")))?;
    keep_code(old, new);
    old.app.finish();
    Ok(())
}

/// When sources rest, so that all that is on its way comes out: by turns, each time twice as long, since what is
/// held to a rate may take long for it; and no longer than something comes out. Who takes what comes out may do so
/// seldom.
struct Rests {
    rests: bool,
    tries: u32,
    most: u32,
    firings: u64,
    /// For so many tries nothing has fired, though it could.
    still: u32,
}

impl Default for Rests {
    fn default() -> Rests {
        Rests {
            rests: false,
            tries: 0,
            most: TRIES,
            firings: 0,
            still: 0,
        }
    }
}

impl Rests {
    /// It has been tried once more, while its limits held it or not. Whether sources rest until the next try.
    fn look(&mut self, old: &Hosted, held: bool) -> bool {
        let counters = old.app.counters().unwrap_or_default();
        let firings = counters.actors.iter().map(|a| a.firings).sum();
        self.next(firings, held || gives_out(old.app.network(), &counters))
    }

    /// `held`: it fires no more than others let it, its limits or who takes what it gives out.
    fn next(&mut self, firings: u64, held: bool) -> bool {
        self.tries += 1;
        self.still = match firings == self.firings {
            false => 0,
            true if held => self.still,
            true => self.still + 1,
        };
        self.firings = firings;
        let out = self.rests && self.still >= TRIES;
        if self.tries >= self.most || out {
            self.most = match self.rests {
                true if out => TRIES,
                true => self.most.saturating_mul(2),
                false => self.most,
            };
            self.rests = !self.rests;
            (self.tries, self.still) = (0, 0);
        }
        self.rests
    }
}

/// Is somebody in the middle of a firing for which something has come to him? He waits for what is outside, and not
/// for what sources would give.
fn gives_out(network: &Network, counters: &Counters) -> bool {
    let links = network.links();
    let mut all = counters.actors.iter().enumerate();
    all.any(|(i, actor)| actor.outside && links.iter().any(|(_, to, _)| *to as usize == i))
}

/// The core that the old one has to itself, if the new one is to have it.
fn pass_core(old: &Hosted, new: &Hosted) -> Result<(), levada_sys::Error> {
    if let Some(worker) = new.exclusive.filter(|_| new.exclusive == old.exclusive) {
        new.app.take_core(worker)?;
        old.lineage.core_passed.store(true, Ordering::Relaxed);
        for actor in 0..new.app.network().actors() {
            new.seat_unseen(actor, worker)?;
        }
    }
    Ok(())
}

fn keep_code(old: &Hosted, new: &Hosted) {
    let left = old.app.heirlooms_left();
    new.lineage
        .keep_code(&old.lineage, old.app.network_arc(), left);
}

fn has_ended(name: &str) -> Refusal {
    Refusal::new(
        Kind::Conflict,
        format!("{name} has ended before it was replaced"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For how many tries sources go on and rest by turns, as `firings` and `held` say for each try.
    fn turns(most: u32, look: impl Fn(u32) -> (u64, bool)) -> Vec<u32> {
        let (mut rests, mut turns, mut before) = (Rests::default(), vec![0], false);
        for tries in 0..most {
            let (firings, held) = look(tries);
            let now = rests.next(firings, held);
            *turns.last_mut().unwrap() += 1;
            if now != before {
                turns.push(0);
            }
            before = now;
        }
        turns.pop();
        turns
    }

    #[test]
    fn sources_rest_for_as_long_as_something_comes_out() {
        let t = TRIES;
        let always = turns(1000, |tries| (u64::from(tries), false));
        assert_eq!(always[..6], [t, t, 2 * t, 2 * t, 4 * t, 4 * t]);
        // It does nothing, for its limits hold it.
        let held = turns(1000, |_| (0, true));
        assert_eq!(held[..6], always[..6]);
        // It does nothing though it could: it is not kept from what its sources would give.
        let quiet = turns(1000, |_| (0, false));
        assert!(quiet.iter().all(|turn| *turn == t));
    }
}
