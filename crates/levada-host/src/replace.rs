// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing: a new version of an application takes over between two elements.
//!
//! The new one is loaded while the old one runs. Then the old one is drained: what it has read comes out.
//! What it has not used of its input, and its output, it leaves to the new one, which starts when the old
//! one has ended.

use crate::events::What;
use crate::handover::Handover;
use crate::host::{Host, Hosted, Kind, Load, Outcome, Refusal, Seen, State, deadline};
use levada_sys::Status;
use std::sync::{Arc, PoisonError, atomic::Ordering};
use std::time::{Duration, Instant};

/// So long one that is stopped may take until it has ended.
const STOPS: Duration = Duration::from_secs(10);

impl Host {
    /// Puts a new version in the place of the application of its name; it is as it was if this fails before
    /// the old one drains. After `within` the old one is stopped, which is told as an error. `kept` is
    /// called when the old one has ended, before the new one begins.
    pub fn replace(
        &self,
        load: Load,
        within: Duration,
        kept: impl FnOnce(&Hosted),
    ) -> Result<Arc<Hosted>, Refusal> {
        let name = load.name.clone();
        let old = self.live(&name)?;
        if old.exclusive.is_some() || load.exclusive {
            let what = format!("{name} has a core to itself, or its new version is to have one");
            return Err(Refusal::new(Kind::Wrong, what).help("unload it, and load the new version"));
        }
        let same = |what: &str| {
            let of = |all: &[(String, String)]| {
                let found = all.iter().find(|(name, _)| name == what);
                found.map(|(_, value)| value.clone())
            };
            of(&load.options) == of(&old.options)
        };
        let (input, output) = (same("in"), same("out"));
        let new = self.load_in_place_of(load, Some(&old))?;
        let given_up = |why: Refusal| {
            self.drop_number(new.number);
            Err(why)
        };
        let asked = match Handover::ask(&old.leaves, input, output) {
            Ok(asked) => asked,
            Err(e) => {
                let what = format!("{}: {e}", old.leaves.display());
                return given_up(Refusal::new(Kind::Limit, what));
            }
        };
        let over = |how: &str| {
            let what = format!("{name} has ended before it was replaced: {how}");
            Refusal::new(Kind::Conflict, what)
        };
        // Who ends from here on leaves what it has open; of who was at its end already, nobody knows.
        let late = old.app.is_ending();
        let until = deadline(within);
        if let Err(refused) = self.drain(&old, until) {
            return given_up(refused.help("unload it, and load the new version"));
        }
        let ended = self.until_ended(old.number, until);
        let Some(ended) = ended else {
            if self.shared().state(old.number).is_none() {
                return given_up(over("somebody else has unloaded it"));
            }
            let why = old.why();
            let _ = old.app.stop_within(Some(Duration::ZERO));
            let stopped = self.until_ended(old.number, deadline(STOPS));
            let then = match stopped {
                Some(_) => "it was stopped",
                None => "it is stopped when a firing of it ends, which lasts",
            };
            let what = format!(
                "{name} does not drain within {within:?}: {}; {then}",
                why.trim_end()
            );
            return given_up(Refusal::new(Kind::Conflict, what));
        };
        if late || ended.outcome != Outcome::Done {
            asked.end(ended.outcome == Outcome::Done);
            return given_up(over(&ended.outcome.text()));
        }
        self.shared().table().apps.remove(&old.number);
        *new.handover.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
        kept(&new);
        self.start(&new)?;
        self.events()
            .tell(What::Replaced, &name, format!("by {}", new.class));
        Ok(new)
    }

    /// What is left of it when it has ended; none if it has not until then, or is not there any more.
    fn until_ended(&self, number: u64, until: Instant) -> Option<Arc<crate::Ended>> {
        let shared = self.shared();
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
        let seen = self.shared().table().apps.get(&number).cloned();
        if let Some(hosted) = seen.and_then(|s| s.hosted) {
            let _ = hosted.app.stop_within(Some(Duration::ZERO));
        }
        self.until_ended(number, deadline(STOPS));
        self.shared().table().apps.remove(&number);
    }

    /// Ends its sources; what was paused goes on for that.
    pub(crate) fn drain(&self, hosted: &Hosted, until: Instant) -> Result<(), Refusal> {
        let mut held = hosted.in_hand(until)?;
        match hosted.app.drain().map_err(|e| e.status) {
            Err(Status::UNKNOWN) => {
                let what = format!("{} has no source that could be ended", hosted.name);
                return Err(Refusal::new(Kind::Conflict, what).help("stop it at once with --now"));
            }
            // It has ended meanwhile: all the better.
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
        hosted.drains.store(true, Ordering::Relaxed);
        let state = self.shared().state(hosted.number);
        if self.set_state(hosted.number, State::Draining) {
            self.events().tell(What::Draining, &hosted.name, "");
        }
        if state == Some(State::Paused) || *held {
            let _ = hosted.app.resume();
            *held = false;
        }
        Ok(())
    }
}
