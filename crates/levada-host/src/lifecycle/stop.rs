// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ending applications: at once, or when what is in flight has come out.

use crate::app::{Hosted, Seen};
use crate::host::Host;
use crate::limits::enforce;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::What;
use crate::model::outcome::Ended;
use crate::util::deadline::deadline;
use levada_sys::Status;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Host {
    /// Ends all applications now; what their natives hold open is finished then.
    pub fn stop(&self) {
        self.stop_until(|| None);
    }

    /// The same, but those that have not ended after `within`, as a firing of theirs or on a worker of
    /// theirs lasts, are not waited for any longer: their names.
    pub fn stop_within(&self, within: Duration) -> Vec<String> {
        let until = deadline(within);
        let lasting = self.stop_until(|| Some(until.saturating_duration_since(Instant::now())));
        // The files of all others are finished as soon as who watches them has seen that they have ended.
        let until = deadline(FINISHING);
        let finishing = |a: &Seen| a.hosted.is_some() && !lasting.contains(&a.name);
        while !lasting.is_empty() && Instant::now() < until && self.all().iter().any(finishing) {
            std::thread::sleep(Duration::from_millis(5));
        }
        lasting
    }

    fn stop_until(&self, left: impl Fn() -> Option<Duration>) -> Vec<String> {
        let all = self.all();
        let all = || all.iter().filter_map(|a| Some((a, a.hosted.as_ref()?)));
        // All are told first: none runs on while another is waited for.
        for (_, hosted) in all() {
            let _ = hosted.app.stop_within(Some(Duration::ZERO));
        }
        let lasting = |hosted: &Hosted| {
            let done = hosted.app.stop_within(left());
            done.is_err_and(|e| e.status == Status::TIME)
        };
        all()
            .filter(|(_, hosted)| lasting(hosted))
            .map(|(seen, _)| seen.name.clone())
            .collect()
    }

    /// Takes an application away: at once, or when its sources have ended and what is in flight has
    /// come out. If that lasts longer than `within`, it goes on, and this says so. `goes` is called with its number as soon
    /// as it is sure to go, before that is waited for, and with that of a new version that waits for its end.
    pub fn unload(
        &self,
        name: &str,
        now: bool,
        within: Duration,
        mut goes: impl FnMut(u64),
    ) -> Result<Ended, Refusal> {
        let until = deadline(within);
        let seen = self.find(name)?;
        let new = self.next(seen.number);
        let state = |hosted: &Hosted| self.shared.state(hosted.number);
        let drains = |hosted: &Hosted| !now && state(hosted) != Some(State::Loaded);
        // A new version waits for its moment: neither stays. Where the old one is refused to drain, both do.
        let mut both: Vec<&Arc<Hosted>> = new.iter().chain(&seen.hosted).collect();
        if seen.hosted.as_deref().is_some_and(drains) {
            both.reverse();
        }
        for hosted in both {
            match drains(hosted) {
                true => self.drain(hosted, until)?,
                false => {
                    hosted.told.goes.store(true, Ordering::Release);
                    drop(hosted.app.stop_within(Some(Duration::ZERO)));
                }
            }
            goes(hosted.number);
        }
        // Also those that have been stopped before they began, by an unload that has not waited until the old one had ended.
        let mut numbers = self.shared.table().ended_after(seen.number);
        numbers.extend(new.map(|new| new.number));
        numbers.push(seen.number);
        drop(seen.hosted);
        self.take_ended(name, &numbers, until, within)
    }

    /// Waits until these of that name have ended, and takes them away, with all that was before them. Where the new version
    /// has taken the place of the old one a moment ago, it is told how that ended.
    fn take_ended(
        &self,
        name: &str,
        numbers: &[u64],
        until: Instant,
        within: Duration,
    ) -> Result<Ended, Refusal> {
        for number in numbers {
            self.until_ended(*number, until);
        }
        let mut table = self.shared.table();
        let there = || numbers.iter().filter_map(|n| table.apps.get(n));
        if let Some(running) = there().find_map(|seen| seen.hosted.clone()) {
            // What is asked of an application is asked without the table in hand.
            drop(table);
            return Err(unfinished(name, &running, within));
        }
        let Some(ended) = there().find_map(|seen| seen.ended.clone()) else {
            let what = format!("{name} has been unloaded by somebody else");
            return Err(Refusal::new(Kind::Unknown, what));
        };
        table.forget(name, numbers.iter().copied().max().unwrap_or_default());
        drop(table);
        self.shared.events.tell(What::Unloaded, name, "");
        Ok(ended.as_ref().clone())
    }

    /// Takes away all that have ended or failed; how each did.
    pub fn unload_ended(&self) -> Vec<(String, Ended)> {
        let mut table = self.shared.table();
        let ended = |seen: &Seen| Some((seen.number, seen.name.clone(), seen.ended.clone()?));
        let all: Vec<_> = table.seen().into_iter().filter_map(ended).collect();
        for (number, name, _) in &all {
            table.forget(name, *number);
        }
        drop(table);
        let told = |(_, name, ended): (_, String, Arc<Ended>)| {
            self.shared.events.tell(What::Unloaded, &name, "");
            (name, ended.as_ref().clone())
        };
        all.into_iter().map(told).collect()
    }

    /// The new version that waits for its end.
    pub(crate) fn next(&self, old: u64) -> Option<Arc<Hosted>> {
        let table = self.shared.table();
        table.next(old).and_then(|new| new.hosted.clone())
    }

    /// Ends its sources; what was paused goes on for that.
    pub(crate) fn drain(&self, hosted: &Hosted, until: Instant) -> Result<(), Refusal> {
        let _hand = hosted.in_hand(until)?;
        let mut held = hosted.held();
        match hosted.app.drain().map_err(|e| e.status) {
            Err(Status::UNKNOWN) => {
                let what = format!("{} has no source that could be ended", hosted.name);
                return Err(Refusal::new(Kind::Conflict, what).help("stop it at once with --now"));
            }
            // It has ended meanwhile: all the better.
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
        hosted.told.drains.store(true, Ordering::Relaxed);
        let state = self.shared.state(hosted.number);
        if self.set_state(hosted.number, State::Draining) {
            self.events().tell(What::Draining, &hosted.name, "");
        }
        if state == Some(State::Paused) || *held {
            *held = enforce::goes_on(hosted);
            if !*held {
                let _ = hosted.app.resume();
            }
        }
        Ok(())
    }
}

/// So long files may take to be finished once their application has ended, where the host does not wait
/// for all.
const FINISHING: Duration = Duration::from_secs(2);

/// What an unload has waited for in vain.
fn unfinished(name: &str, hosted: &Hosted, within: Duration) -> Refusal {
    let (what, help) = match hosted.app.is_ending() {
        true => (
            format!(
                "{name} is ending still after {within:?}: a firing of it, or a file that it writes, takes so long"
            ),
            "nothing more of it begins; unload it again when it has ended",
        ),
        false => {
            let why = hosted.why();
            (
                format!(
                    "{name} is draining still after {within:?}: {}",
                    why.trim_end()
                ),
                "wait for it to end, or stop it at once with --now",
            )
        }
    };
    Refusal::new(Kind::Timeout, what).help(help)
}
