// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ends applications, immediately or by draining.

use crate::app::{AppEntry, HostedApp};
use crate::host::Host;
use crate::limits::enforce;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::EventKind;
use crate::model::outcome::Ended;
use crate::util::deadline::deadline;
use levada_sys::Status;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Host {
    /// Ends all applications now, and waits until their natives have closed their files.
    pub fn stop(&self) {
        self.stop_until(|| None);
    }

    /// The same with a timeout. Returns the names of those that have not ended, because a firing of theirs, or on one
    /// of their workers, still runs.
    pub fn stop_timeout(&self, timeout: Duration) -> Vec<String> {
        let until = deadline(timeout);
        let lasting = self.stop_until(|| Some(until.saturating_duration_since(Instant::now())));
        // The files of the others are closed when the monitor has seen their end.
        let until = deadline(CLOSE_FILES_TIMEOUT);
        let finishing = |a: &AppEntry| a.hosted.is_some() && !lasting.contains(&a.name);
        while !lasting.is_empty() && Instant::now() < until && self.all().iter().any(finishing) {
            std::thread::sleep(Duration::from_millis(5));
        }
        lasting
    }

    fn stop_until(&self, left: impl Fn() -> Option<Duration>) -> Vec<String> {
        let all = self.all();
        let all = || all.iter().filter_map(|a| Some((a, a.hosted.as_ref()?)));
        // All are told first, so that none runs while another one is awaited.
        for (_, hosted) in all() {
            let _ = hosted.app.stop_timeout(Some(Duration::ZERO));
        }
        let lasting = |hosted: &HostedApp| {
            let done = hosted.app.stop_timeout(left());
            done.is_err_and(|e| e.status == Status::TIMEOUT)
        };
        all()
            .filter(|(_, hosted)| lasting(hosted))
            .map(|(seen, _)| seen.name.clone())
            .collect()
    }

    /// Unloads an application: ends it immediately, or drains it. If draining lasts longer than `timeout`, it continues
    /// and an error is returned. `goes` is called with its number as soon as its end is certain, before the wait, and
    /// with that of a waiting next version.
    pub fn unload(
        &self,
        name: &str,
        now: bool,
        timeout: Duration,
        mut goes: impl FnMut(u64),
    ) -> Result<Ended, Refusal> {
        let until = deadline(timeout);
        let seen = self.find(name)?;
        let new = self.successor(seen.number);
        let state = |hosted: &HostedApp| self.shared.state(hosted.number);
        let drains = |hosted: &HostedApp| !now && state(hosted) != Some(State::Loaded);
        // Neither stays, also not a next version that waits. If the old one cannot be drained, both stay.
        let mut both: Vec<&Arc<HostedApp>> = new.iter().chain(&seen.hosted).collect();
        if seen.hosted.as_deref().is_some_and(drains) {
            both.reverse();
        }
        for hosted in both {
            if drains(hosted) {
                self.drain(hosted, until)?
            } else {
                hosted.control.unloading.store(true, Ordering::Release);
                drop(hosted.app.stop_timeout(Some(Duration::ZERO)));
            }
            goes(hosted.number);
        }
        // Also next versions that were stopped before they started, by an unload that did not wait.
        let mut numbers = self.shared.lock_registry().ended_successors(seen.number);
        numbers.extend(new.map(|new| new.number));
        numbers.push(seen.number);
        drop(seen.hosted);
        self.remove_ended(name, &numbers, until, timeout)
    }

    /// Waits until these have ended, and removes them and earlier ones of that name. If a new version has just taken
    /// over, the outcome of the old one is returned.
    fn remove_ended(
        &self,
        name: &str,
        numbers: &[u64],
        until: Instant,
        timeout: Duration,
    ) -> Result<Ended, Refusal> {
        for number in numbers {
            self.wait_ended(*number, until);
        }
        let mut table = self.shared.lock_registry();
        let there = || numbers.iter().filter_map(|n| table.apps.get(n));
        if let Some(running) = there().find_map(|seen| seen.hosted.clone()) {
            // Queries of an application are made without the registry's lock.
            drop(table);
            return Err(unfinished(name, &running, timeout));
        }
        let Some(ended) = there().find_map(|seen| seen.ended.clone()) else {
            let what = format!("{name} has been unloaded by another request");
            return Err(Refusal::new(Kind::Unknown, what));
        };
        table.forget(name, numbers.iter().copied().max().unwrap_or_default());
        drop(table);
        self.shared.events.emit(EventKind::Unloaded, name, "");
        Ok(ended.as_ref().clone())
    }

    /// Removes all that have ended or failed, and returns their outcomes.
    pub fn unload_ended(&self) -> Vec<(String, Ended)> {
        let mut table = self.shared.lock_registry();
        let ended = |seen: &AppEntry| Some((seen.number, seen.name.clone(), seen.ended.clone()?));
        let all: Vec<_> = table.visible().into_iter().filter_map(ended).collect();
        for (number, name, _) in &all {
            table.forget(name, *number);
        }
        drop(table);
        let told = |(_, name, ended): (_, String, Arc<Ended>)| {
            self.shared.events.emit(EventKind::Unloaded, &name, "");
            (name, ended.as_ref().clone())
        };
        all.into_iter().map(told).collect()
    }

    /// The next version that waits for the end of this one.
    pub(crate) fn successor(&self, old: u64) -> Option<Arc<HostedApp>> {
        let table = self.shared.lock_registry();
        table.successor(old).and_then(|new| new.hosted.clone())
    }

    /// Ends its sources; a paused application is resumed for that.
    pub(crate) fn drain(&self, hosted: &HostedApp, until: Instant) -> Result<(), Refusal> {
        let _hand = hosted.lock_control(until)?;
        let mut held = hosted.lock_limited();
        match hosted.app.drain().map_err(|e| e.status) {
            Err(Status::NOT_FOUND) => {
                let what = format!("{} has no source that could be ended", hosted.name);
                return Err(Refusal::new(Kind::Conflict, what).help("stop it at once with --now"));
            }
            // It has ended meanwhile.
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
        hosted.control.draining.store(true, Ordering::Relaxed);
        let state = self.shared.state(hosted.number);
        if self.set_state(hosted.number, State::Draining) {
            self.events().emit(EventKind::Draining, &hosted.name, "");
        }
        if state == Some(State::Paused) || *held {
            *held = enforce::on_resume(hosted);
            if !*held {
                let _ = hosted.app.resume();
            }
        }
        Ok(())
    }
}

/// Timeout for closing files after the ends of applications, if not all have ended.
const CLOSE_FILES_TIMEOUT: Duration = Duration::from_secs(2);

/// The error of an unload after its timeout.
fn unfinished(name: &str, hosted: &HostedApp, timeout: Duration) -> Refusal {
    let (what, help) = if hosted.app.is_ending() {
        (
            format!(
                "{name} is ending still after {timeout:?}: a firing of it, or a file that it writes, takes longer"
            ),
            "nothing more of it begins; unload it again when it has ended",
        )
    } else {
        let why = hosted.wait_report();
        (
            format!(
                "{name} is draining still after {timeout:?}: {}",
                why.trim_end()
            ),
            "wait for it to end, or stop it at once with --now",
        )
    };
    Refusal::new(Kind::Timeout, what).help(help)
}
