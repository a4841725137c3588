// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Live upgrade: a new version of an application takes over between two firings.
//!
//! The new version is loaded while the old one runs. Then the old one is paused, and state that both have in common
//! is transferred: actor variables, channel contents, persistent data of natives. If this moment is not possible,
//! the old version continues and the transfer is tried again. A C program chooses the moment itself: it is asked to
//! exit, and leaves persistent data.

use crate::app::{AppEntry, HostedApp};
use crate::host::Host;
use crate::lifecycle::next_version::Next;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::EventKind;
use crate::model::outcome::Outcome;
use crate::util::deadline::deadline;
use levada_sys::{Counters, Network, Status};
use std::sync::{Arc, MutexGuard, atomic::Ordering};
use std::time::{Duration, Instant};

/// Timeout for the end of a stopped application.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Initially sources are held, or run, for this number of attempts in a row. While they are held, elements in flight
/// are processed.
const ATTEMPTS_MIN: u32 = 16;
/// Pause between two attempts.
const RETRY_PAUSE_MIN: Duration = Duration::from_micros(200);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(5);

impl Host {
    /// Replaces `old` by `new`; on failure `old` continues. `new` does not start if `old` is paused or `paused` is
    /// set. `kept` is called before `new` starts, when `old` has ended or takes too long to end; its argument says
    /// whether `new` stays paused.
    pub(crate) fn replace(
        &self,
        Next { old, new }: Next,
        paused: bool,
        timeout: Duration,
        kept: impl FnOnce(&HostedApp, bool),
    ) -> Result<Arc<HostedApp>, Refusal> {
        let (name, until) = (new.name.clone(), deadline(timeout));
        let given_up = |why: Refusal| {
            old.app.discard_data();
            self.remove_number(new.number);
            Err(why)
        };
        let hand = match old.lock_control(until) {
            Ok(hand) => hand,
            Err(why) => return given_up(why),
        };
        let state = self.shared.state(old.number);
        let program = old.app.network().is_program();
        let done = match state {
            Some(State::Loaded | State::Running | State::Paused) if program => {
                self.request_exit(&old, &new, hand, until, timeout)
            }
            Some(State::Loaded | State::Running | State::Paused) => {
                let done = self.transfer_state(&old, &new, until, timeout);
                drop(hand);
                done
            }
            _ => {
                drop(hand);
                Err(ended_before(&name))
            }
        };
        if let Err(why) = done {
            return given_up(why);
        }
        let ended = self.wait_ended(old.number, deadline(STOP_TIMEOUT));
        new.continue_counters(&old);
        let Some(ended) = ended else {
            // It was unloaded meanwhile.
            if !self.lives(old.number) {
                return given_up(ended_before(&name));
            }
            self.emit_loaded(&new);
            kept(&new, true);
            return Err(still_ending(&name, program));
        };
        if ended.outcome == Outcome::Stopped {
            return given_up(ended_before(&name));
        }
        if ended.outcome != Outcome::Done {
            let what = format!("{name} has failed as it ended: {}", ended.outcome.text());
            return given_up(Refusal::new(Kind::Conflict, what));
        }
        self.shared.lock_registry().apps.remove(&old.number);
        let held = paused || state != Some(State::Running);
        kept(&new, held);
        // The unload does the rest.
        if new.is_unloading() {
            let what = format!("{name} was unloaded before it started");
            return Err(Refusal::new(Kind::Conflict, what));
        }
        self.emit_loaded(&new);
        if !held {
            self.start(&new)?;
        }
        self.events().emit(
            EventKind::Replaced,
            &name,
            format!("by {}", new.network_class),
        );
        Ok(new)
    }

    /// Transfers the state of `old` to `new` and lets `old` exit. On an error `old` continues.
    fn transfer_state(
        &self,
        old: &HostedApp,
        new: &HostedApp,
        until: Instant,
        timeout: Duration,
    ) -> Result<(), Refusal> {
        let state = self.shared.state(old.number);
        let (mut rests, mut reason) = (SourceHold::default(), None);
        old.versions.upgrade_pending.store(true, Ordering::Relaxed);
        for tries in 0.. {
            // Between two attempts its limits are enforced as usual.
            let mut held = old.lock_limited();
            let mut done = try_transfer(old, new, state, until);
            // If the last pause had no time left, the reason of the attempt before it is reported.
            match (&mut done, &reason) {
                (Err(TransferError::Now(why)), Some(reason)) if Instant::now() >= until => {
                    why.clone_from(reason)
                }
                (Err(TransferError::Now(why)), _) => reason = Some(why.clone()),
                _ => {}
            }
            let last = match &done {
                Ok(()) => true,
                Err(not) => !matches!(not, TransferError::Now(_)) || Instant::now() >= until,
            };
            if last {
                old.versions.upgrade_pending.store(false, Ordering::Relaxed);
            }
            if done.is_err() {
                drop(old.app.hold_sources(!last && rests.sample(old, *held)));
                let stays = *held || last && state == Some(State::Paused);
                if !stays {
                    drop(old.app.resume());
                }
            }
            if last {
                // An application that was paused by a user, or has transferred its state, is not resumed by its
                // limits.
                *held &= done.is_err() && state != Some(State::Paused);
                return done.map_err(|not| not.refusal(&old.name, timeout));
            }
            drop(held);
            let pause = RETRY_PAUSE_MIN * (tries % ATTEMPTS_MIN + 1);
            std::thread::sleep(pause.min(RETRY_PAUSE_MAX));
        }
        Ok(())
    }

    /// Asks a C program to leave its state to `new` and exit; it has exited, or has noticed the request, when this
    /// returns. On an error it continues. Its limits are enforced until it has exited.
    fn request_exit(
        &self,
        old: &HostedApp,
        new: &HostedApp,
        hand: MutexGuard<'_, ()>,
        until: Instant,
        timeout: Duration,
    ) -> Result<(), Refusal> {
        let name = &old.name;
        let state = self.shared.state(old.number);
        if state == Some(State::Paused) {
            let what = format!("{name} is paused, and a C program has to run to come to its end");
            return Err(Refusal::new(Kind::Conflict, what).help("resume it first"));
        }
        keep_code(old, new);
        let asked = new
            .app
            .set_data_successor(&old.app)
            .and_then(|()| match state {
                Some(State::Loaded) => {
                    old.app.exit();
                    Ok(())
                }
                _ => old.app.drain(),
            });
        if asked.is_err() {
            return Err(ended_before(name));
        }
        if state == Some(State::Loaded) {
            return Ok(());
        }
        old.control.draining.store(true, Ordering::Relaxed);
        self.set_state(old.number, State::Draining);
        drop(hand);
        let ended = self.wait_ended(old.number, until).is_some() || !self.lives(old.number);
        if ended || old.app.cancel_drain().is_err() {
            return Ok(());
        }
        old.control.draining.store(false, Ordering::Relaxed);
        if self.shared.state(old.number) == Some(State::Draining) {
            self.set_state(old.number, State::Running);
        }
        let what = format!(
            "{name} continues unchanged: it was not replaced within {timeout:?}: it has not asked whether it is to end"
        );
        Err(Refusal::new(Kind::Timeout, what).help(
            "a C program that can be replaced asks lvd_app_is_draining, or waits in lvd_wait_input_restartable \
             (<levada/native.h>)",
        ))
    }

    /// Waits for an end; none if it has not ended until then, or is not in the registry any more.
    pub(crate) fn wait_ended(
        &self,
        number: u64,
        until: Instant,
    ) -> Option<Arc<crate::model::outcome::Ended>> {
        let shared = &*self.shared;
        let mut table = shared.lock_registry();
        loop {
            match table.apps.get(&number) {
                Some(AppEntry { ended: None, .. }) => {}
                Some(seen) => return seen.ended.clone(),
                None => return None,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            table = shared.wait_for_change(table, left);
        }
    }

    /// Removes an application after a failed load, unless it is being unloaded already.
    pub(crate) fn discard(&self, hosted: &HostedApp) {
        if hosted.is_unloading() {
            return;
        }
        if self.remove_number(hosted.number) {
            self.events().emit(EventKind::Unloaded, &hosted.name, "");
        }
    }

    /// Removes exactly this application; false: it was already removed.
    fn remove_number(&self, number: u64) -> bool {
        let seen = self.shared.lock_registry().apps.get(&number).cloned();
        if let Some(hosted) = seen.and_then(|s| s.hosted) {
            let _ = hosted.app.stop_timeout(Some(Duration::ZERO));
        }
        self.wait_ended(number, deadline(STOP_TIMEOUT));
        self.shared.lock_registry().apps.remove(&number).is_some()
    }
}

/// Why a transfer was not possible.
enum TransferError {
    /// To be tried again.
    Now(String),
    /// It has ended.
    Ended,
    Ever(String),
}

impl TransferError {
    fn refusal(self, name: &str, timeout: Duration) -> Refusal {
        let (kind, what) = match self {
            TransferError::Ended => return ended_before(name),
            TransferError::Ever(why) => {
                (Kind::Conflict, format!("{name} continues unchanged: {why}"))
            }
            TransferError::Now(why) => (
                Kind::Timeout,
                format!(
                    "{name} continues unchanged: it was not replaced within {timeout:?}: {why}"
                ),
            ),
        };
        Refusal::new(kind, what)
            .help("try again, wait longer (--timeout), or unload it and load the new version")
    }
}

/// Pauses `old` and transfers its state if possible; then `old` exits.
fn try_transfer(
    old: &HostedApp,
    new: &HostedApp,
    state: Option<State>,
    until: Instant,
) -> Result<(), TransferError> {
    if state != Some(State::Loaded) {
        let left = until.saturating_duration_since(Instant::now());
        old.app.pause(left).map_err(|e| match e.status {
            Status::TIMEOUT => TransferError::Now("a firing lasts".to_string()),
            _ => TransferError::Ended,
        })?;
    }
    new.app.upgrade_from(&old.app).map_err(|e| match e.status {
        Status::STATE => TransferError::Now(e.why),
        _ => TransferError::Ever(e.why),
    })?;
    // The state is transferred, and the transfer cannot be repeated.
    transfer_core(old, new)
        .map_err(|e| TransferError::Ever(format!("its core cannot be handed on: {e}")))?;
    keep_code(old, new);
    old.app.exit();
    Ok(())
}

/// Decides when sources are held, so that elements in flight are processed: alternately with running, each hold twice
/// as long as the last one, since an application with a limited rate may take long. A hold ends early when nothing
/// fires any more. The consumer of the output may be slow.
struct SourceHold {
    holding: bool,
    attempts: u32,
    attempts_max: u32,
    firings: u64,
    /// Number of attempts in a row in which nothing has fired, although it could.
    attempts_without_firing: u32,
}

impl Default for SourceHold {
    fn default() -> SourceHold {
        SourceHold {
            holding: false,
            attempts: 0,
            attempts_max: ATTEMPTS_MIN,
            firings: 0,
            attempts_without_firing: 0,
        }
    }
}

/// The error of a replacement if the old version has not ended within [`STOP_TIMEOUT`].
fn still_ending(name: &str, program: bool) -> Refusal {
    let what = if program {
        format!("{name} was asked to exit and is still running after {STOP_TIMEOUT:?}")
    } else {
        format!("the old version of {name} still has open files or calls after {STOP_TIMEOUT:?}")
    };
    Refusal {
        pending: true,
        ..Refusal::new(Kind::Timeout, what)
            .help("its new version is loaded: resume it when the old one has ended")
    }
}

impl SourceHold {
    /// Records one more attempt, in which the application was paused by its limits or not. Returns whether sources are
    /// held until the next attempt.
    fn sample(&mut self, old: &HostedApp, held: bool) -> bool {
        let counters = old.app.counters().unwrap_or_default();
        let firings = counters.actors.iter().map(|a| a.firings).sum();
        self.next(
            firings,
            held || waits_for_output(old.app.network(), &counters),
        )
    }

    /// `held`: limits or the consumer of the output prevent firings.
    fn next(&mut self, firings: u64, held: bool) -> bool {
        self.attempts += 1;
        if firings != self.firings {
            self.attempts_without_firing = 0;
        } else if !held {
            self.attempts_without_firing += 1;
        }
        self.firings = firings;
        let out = self.holding && self.attempts_without_firing >= ATTEMPTS_MIN;
        if self.attempts >= self.attempts_max || out {
            if out {
                self.attempts_max = ATTEMPTS_MIN;
            } else if self.holding {
                self.attempts_max = self.attempts_max.saturating_mul(2);
            }
            self.holding = !self.holding;
            (self.attempts, self.attempts_without_firing) = (0, 0);
        }
        self.holding
    }
}

/// Whether an actor is within a firing, has inputs, and waits for something outside: the consumer of the output, not
/// what sources would produce.
fn waits_for_output(network: &Network, counters: &Counters) -> bool {
    let links = network.links();
    let mut all = counters.actors.iter().enumerate();
    all.any(|(i, actor)| actor.waits_external && links.iter().any(|(_, to, _)| *to as usize == i))
}

/// Passes on the reserved core of `old`, if `new` is to have it.
fn transfer_core(old: &HostedApp, new: &HostedApp) -> Result<(), levada_sys::Error> {
    if let Some(worker) = new.exclusive.filter(|_| new.exclusive == old.exclusive) {
        new.app.reserve_core(worker)?;
        old.versions.core_passed.store(true, Ordering::Relaxed);
        for actor in 0..new.app.network().actors() {
            new.move_actor_silently(actor, worker)?;
        }
    }
    Ok(())
}

fn keep_code(old: &HostedApp, new: &HostedApp) {
    let left = old.app.has_unclaimed_data();
    new.versions
        .keep_code(&old.versions, old.app.network_arc(), left);
}

fn ended_before(name: &str) -> Refusal {
    Refusal::new(
        Kind::Conflict,
        format!("{name} has ended before it was replaced"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For how many attempts sources alternately run and are held, with `firings` and `held` of each attempt.
    fn turns(most: u32, look: impl Fn(u32) -> (u64, bool)) -> Vec<u32> {
        let (mut rests, mut turns, mut before) = (SourceHold::default(), vec![0], false);
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
        let t = ATTEMPTS_MIN;
        let always = turns(1000, |tries| (u64::from(tries), false));
        assert_eq!(always[..6], [t, t, 2 * t, 2 * t, 4 * t, 4 * t]);
        // It does nothing, because its limits pause it.
        let held = turns(1000, |_| (0, true));
        assert_eq!(held[..6], always[..6]);
        // It does nothing although it could: holding its sources makes no difference.
        let quiet = turns(1000, |_| (0, false));
        assert!(quiet.iter().all(|turn| *turn == t));
    }
}
