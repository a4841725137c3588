// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing: a new version of an application takes over between two elements.
//!
//! The new one is loaded while the old one runs. Then the old one is paused, what both have in common goes
//! along (what actors remember, what is in channels, what natives hold open), and the new one goes on from
//! there. A moment at which that is not possible is not the right one: the old one goes on, and it is tried
//! again. A C program chooses the moment itself: it is asked to come to its end, and leaves heirlooms.

use crate::events::What;
use crate::host::Host;
use crate::hosted::{Hosted, Outcome, Seen, State};
use crate::load::Load;
use crate::refusal::{Kind, Refusal};
use crate::stop::deadline;
use levada_sys::{Network, Status};
use std::sync::{Arc, MutexGuard, PoisonError, atomic::Ordering};
use std::time::{Duration, Instant};

/// So long one that is stopped may take until it has ended.
const STOPS: Duration = Duration::from_secs(10);
/// For so many tries in a row sources go on or rest, so that all that is on its way comes out.
const TRIES: u32 = 16;
/// From one try to the next.
const SOONEST: Duration = Duration::from_micros(200);
const LATEST: Duration = Duration::from_millis(5);

impl Host {
    /// Puts a new version in the place of the application of its name, which goes on as it was if this fails.
    /// It does not begin if that one is paused, or it is to be `paused`. `kept` is called when the old one has ended, before the new one begins.
    pub fn replace(
        &self,
        load: Load,
        paused: bool,
        within: Duration,
        kept: impl FnOnce(&Hosted),
    ) -> Result<Arc<Hosted>, Refusal> {
        let name = load.name.clone();
        let old = self.live(&name)?;
        can_be_replaced(&old, &load)?;
        let (mut load, mut pins) = (load, Vec::new());
        // Who must stay where he is stays, unless a placement says anew who must.
        if load.pins.is_empty() && !load.exclusive {
            pins = pins_for(&load.network, &old);
            let open = self.shared.runtime.open();
            let there = |pin: &Option<u32>| pin.filter(|core| open.contains(core));
            load.pins = pins.iter().map(there).collect();
        }
        let new = self.load_in_place_of(load, Some(&old))?;
        for (actor, pin) in pins.into_iter().enumerate().filter(|p| p.1.is_some()) {
            new.seats.pin(actor, pin);
        }
        let given_up = |why: Refusal| {
            old.app.leaves_nothing();
            self.drop_number(new.number);
            Err(why)
        };
        let until = deadline(within);
        let mut held = match old.in_hand(until) {
            Ok(held) => held,
            Err(why) => return given_up(why),
        };
        let state = self.shared.state(old.number);
        let program = old.app.network().is_program();
        match state {
            Some(State::Loaded | State::Running | State::Paused) if program => {
                if let Err(why) = self.see_off(&old, &new, held, until, within) {
                    return given_up(why);
                }
            }
            Some(State::Loaded | State::Running | State::Paused) => {
                if let Err(why) = self.hand_over(&old, &new, until, within) {
                    if state == Some(State::Paused) || *held {
                        drop(old.app.pause(Duration::ZERO));
                    }
                    drop(held);
                    return given_up(why);
                }
                *held = false;
                drop(held);
            }
            _ => {
                drop(held);
                return given_up(has_ended(&name));
            }
        }
        let ended = self.until_ended(old.number, deadline(STOPS));
        new.counts_on(&old);
        let Some(ended) = ended else {
            let what = match program {
                true => format!("{name} has heard that it is to leave, and takes long"),
                false => format!("what {name} holds open takes long to be finished"),
            };
            return Err(Refusal::new(Kind::Conflict, what)
                .help("its new version is loaded: resume it when the old one has ended"));
        };
        if ended.outcome != Outcome::Done {
            let what = format!("{name} has failed as it ended: {}", ended.outcome.text());
            return given_up(Refusal::new(Kind::Conflict, what));
        }
        self.shared.table().apps.remove(&old.number);
        kept(&new);
        if state == Some(State::Running) && !paused {
            self.start(&new)?;
        }
        self.events()
            .tell(What::Replaced, &name, format!("by {}", new.class));
        Ok(new)
    }

    /// The old one has left all to the new one, and ends. On an error it runs.
    fn hand_over(
        &self,
        old: &Hosted,
        new: &Hosted,
        until: Instant,
        within: Duration,
    ) -> Result<(), Refusal> {
        let name = &old.name;
        let begun = self.shared.state(old.number) != Some(State::Loaded);
        for tries in 0.. {
            let left = until.saturating_duration_since(Instant::now());
            let paused = match begun {
                true => old.app.pause(left),
                false => Ok(()),
            };
            let done = match paused {
                Ok(()) => new.app.take_over(&old.app).map_err(|e| (e.status, e.why)),
                Err(e) if e.status == Status::TIME => {
                    Err((Status::STATE, "a firing lasts".to_string()))
                }
                Err(_) => return Err(has_ended(name)),
            };
            let (status, why) = match done {
                Ok(()) => break,
                Err(done) => done,
            };
            let last = status != Status::STATE || Instant::now() >= until;
            drop(old.app.rest(!last && tries / TRIES % 2 == 1));
            drop(old.app.resume());
            if last {
                let what = format!(
                    "{name} goes on as it was, and was not replaced within {within:?}: {why}"
                );
                return Err(Refusal::new(Kind::Conflict, what).help(
                    "try again, wait longer (--within), or unload it and load the new version",
                ));
            }
            let pause = SOONEST * (tries % TRIES + 1);
            std::thread::sleep(pause.min(LATEST));
        }
        // It has all that was there, and cannot be tried with it again.
        pass_core(old, new).map_err(|e| {
            drop(old.app.resume());
            let what = format!("{name} goes on as it was: its core cannot be handed on: {e}");
            Refusal::new(Kind::Conflict, what)
        })?;
        keep_code(old, new);
        old.app.finish();
        Ok(())
    }

    /// A C program has been asked to leave all to the new one, and has ended, or has heard of it. On an
    /// error it runs.
    fn see_off(
        &self,
        old: &Hosted,
        new: &Hosted,
        mut held: MutexGuard<'_, bool>,
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
        old.drains.store(true, Ordering::Relaxed);
        self.set_state(old.number, State::Draining);
        if *held {
            let _ = old.app.resume();
            *held = false;
        }
        drop(held);
        let ended = self.until_ended(old.number, until).is_some() || !self.lives(old.number);
        if ended || old.app.drain_no_more().is_err() {
            return Ok(());
        }
        old.drains.store(false, Ordering::Relaxed);
        if self.shared.state(old.number) == Some(State::Draining) {
            self.set_state(old.number, State::Running);
        }
        let what = format!(
            "{name} goes on as it was, and was not replaced within {within:?}: it has not asked whether it is to end"
        );
        Err(Refusal::new(Kind::Conflict, what).help(
            "a C program that can be replaced asks lvd_app_drains, or waits in lvd_wait_input \
             (<levada/native.h>)",
        ))
    }

    /// What is left of it when it has ended; none if it has not until then, or is not there any more.
    fn until_ended(&self, number: u64, until: Instant) -> Option<Arc<crate::Ended>> {
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
            table = match shared.changed.wait_timeout(table, left) {
                Ok((table, _)) => table,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Takes one away that has not been started.
    fn drop_number(&self, number: u64) {
        let seen = self.shared.table().apps.get(&number).cloned();
        if let Some(hosted) = seen.and_then(|s| s.hosted) {
            let _ = hosted.app.stop_within(Some(Duration::ZERO));
        }
        self.until_ended(number, deadline(STOPS));
        self.shared.table().apps.remove(&number);
    }
}

/// Where actors of a new version must stay, since those of the same name must.
fn pins_for(network: &Network, old: &Hosted) -> Vec<Option<u32>> {
    let (pins, names) = (old.seats.pins(), old.app.network().actor_names());
    let pin = |name: String| {
        let actor = names.iter().position(|n| *n == name)?;
        pins.get(actor).copied().flatten()
    };
    match pins.iter().any(Option::is_some) {
        true => network.actor_names().into_iter().map(pin).collect(),
        false => Vec::new(),
    }
}

fn can_be_replaced(old: &Hosted, load: &Load) -> Result<(), Refusal> {
    let name = &old.name;
    let refuse = |kind, what: String| {
        Err(Refusal::new(kind, what).help("unload it, and load the new version"))
    };
    match (old.app.network().is_program(), load.network.is_program()) {
        (true, false) => {
            let what = format!("{name} is a C program, and its new version would be a network");
            return refuse(Kind::Wrong, what);
        }
        (false, true) => {
            let what = format!("{name} is a network, and its new version would be a C program");
            return refuse(Kind::Wrong, what);
        }
        _ => {}
    }
    if old.drains.load(Ordering::Relaxed) {
        return refuse(Kind::Conflict, format!("{name} is draining"));
    }
    Ok(())
}

/// The core that the old one has to itself, if the new one is to have it.
fn pass_core(old: &Hosted, new: &Hosted) -> Result<(), levada_sys::Error> {
    if let Some(worker) = new.exclusive.filter(|_| new.exclusive == old.exclusive) {
        new.app.take_core(worker)?;
        old.core_passed.store(true, Ordering::Relaxed);
        for actor in 0..new.app.network().actors() {
            new.seat_unseen(actor, worker)?;
        }
    }
    Ok(())
}

/// What the old one leaves may be ended by its own code, and that of those before it.
fn keep_code(old: &Hosted, new: &Hosted) {
    let of = |hosted: &Hosted| {
        let before = hosted.before.lock();
        before.unwrap_or_else(PoisonError::into_inner).clone()
    };
    let mut before = match old.app.heirlooms_left() {
        true => of(old),
        false => Vec::new(),
    };
    before.push(old.app.network_arc());
    *new.before.lock().unwrap_or_else(PoisonError::into_inner) = before;
}

fn has_ended(name: &str) -> Refusal {
    Refusal::new(
        Kind::Conflict,
        format!("{name} has ended before it was replaced"),
    )
}
