// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control of a loaded application: pause, resume, move an actor; and core reservations for other processes.

use crate::app::HostedApp;
use crate::context::message::MonitorMessage;
use crate::host::Host;
use crate::limits::enforce;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::EventKind;
use crate::util::deadline::deadline;
use levada_sys::Status;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The error of a pause if the last firing has not ended.
fn still_running(hosted: &HostedApp, timeout: Duration) -> Refusal {
    let name = &hosted.name;
    let (what, help) = if hosted.app.network().is_program() {
        (
            "it has not come to where it can be held",
            format!(
                "it is held when it waits for Levada, or is back in its own code; levada unload {name} --now ends it"
            ),
        )
    } else {
        (
            "a firing of it has not ended",
            format!(
                "nothing more of it begins; levada unload {name} --now, or levada host --action-time-limit, ends an \
                 action that does not end"
            ),
        )
    };
    let why = hosted.app.wait_report();
    let runs: Vec<&str> = why.lines().skip(1).map(str::trim).collect();
    let runs = if runs.is_empty() {
        String::new()
    } else {
        format!(": {}", runs.join("; "))
    };
    let what = format!("{name} is paused, but {what} within {timeout:?}{runs}");
    Refusal::new(Kind::Timeout, what).help(help)
}

impl Host {
    /// Pauses an application: no actor runs when this returns, and channels keep their contents. If a firing, or a
    /// turn of a C program, lasts longer than `timeout`, an error is returned; that firing is the last one, and the
    /// application is paused.
    pub fn pause(&self, name: &str, timeout: Duration) -> Result<(), Refusal> {
        let until = deadline(timeout);
        let hosted = self.live(name)?;
        let _hand = hosted.lock_control(until)?;
        let mut held = hosted.lock_limited();
        // An application that has not started cannot be paused; the runtime returns the error.
        let begun = hosted.app.pause(Duration::ZERO);
        if !matches!(&begun, Err(e) if e.status == Status::TIMEOUT) {
            self.check_done(begun, &hosted, name, "paused")?;
        }
        // Before the wait, so that queries see the new state meanwhile.
        if self.set_state(hosted.number, State::Paused) {
            enforce::on_pause(&hosted, *held);
            self.shared.events.emit(EventKind::Paused, name, "");
        }
        *held = false;
        hosted.recent.rate_missed.store(false, Ordering::Relaxed);
        let left = until.saturating_duration_since(Instant::now());
        match hosted.app.pause(left) {
            Err(e) if e.status == Status::TIMEOUT => Err(still_running(&hosted, timeout)),
            // It has ended meanwhile.
            Err(e) if e.status == Status::STATE => Ok(()),
            done => self.check_done(done, &hosted, name, "paused"),
        }
    }

    /// Resumes an application. A running one is left as it is. A paused one continues as soon as its limits allow.
    pub fn resume(&self, name: &str, timeout: Duration) -> Result<(), Refusal> {
        let hosted = self.live(name)?;
        let hand = hosted.lock_control(deadline(timeout))?;
        let mut held = hosted.lock_limited();
        match self.shared.state(hosted.number) {
            // It was loaded paused.
            Some(State::Loaded) => {
                drop(held);
                self.start(&hosted)?;
                self.shared.events.emit(EventKind::Resumed, name, "");
                return Ok(());
            }
            Some(State::Running | State::Draining) if !hosted.app.is_ending() => return Ok(()),
            _ => {}
        }
        let waits = enforce::on_resume(&hosted) && !hosted.app.is_ending();
        if !waits {
            self.check_done(hosted.app.resume(), &hosted, name, "resumed")?;
        }
        *held = waits;
        // A draining application continues to drain.
        self.set_state(
            hosted.number,
            if hosted.control.draining.load(Ordering::Relaxed) {
                State::Draining
            } else {
                State::Running
            },
        );
        drop(held);
        drop(hand);
        self.shared.events.emit(EventKind::Resumed, name, "");
        self.shared.send(MonitorMessage::Changed);
        Ok(())
    }

    fn check_done(
        &self,
        done: Result<(), levada_sys::Error>,
        hosted: &HostedApp,
        subject: &str,
        what: &str,
    ) -> Result<(), Refusal> {
        done.map_err(|e| {
            let name = &hosted.name;
            let begun = self.shared.state(hosted.number) != Some(State::Loaded);
            let (why, help) = match (e.status, hosted.app.is_ending(), begun) {
                (Status::STATE, true, _) => (format!("{name} has ended, or is about to"), None),
                (Status::STATE, _, false) => {
                    let help = format!("levada resume {name} starts it");
                    (format!("{name} has not started yet"), Some(help))
                }
                _ => (e.to_string(), None),
            };
            let refusal =
                Refusal::new(Kind::Conflict, format!("{subject} cannot be {what}: {why}"));
            match help {
                Some(help) => refusal.help(help),
                None => refusal,
            }
        })
    }

    /// Moves an actor to a worker and pins it there; without a worker, unpins it.
    pub fn move_actor(&self, name: &str, actor: &str, worker: Option<u32>) -> Result<(), Refusal> {
        let hosted = self.live(name)?;
        let names = hosted.app.network().actor_names();
        let Some(index) = names.iter().position(|n| n == actor) else {
            let what = format!("{name} has no actor {actor}");
            let help = format!("see levada show {name}");
            return Err(Refusal::new(Kind::Unknown, what).help(help));
        };
        // Pinned before it is moved, so that a concurrent sample does not move it back.
        let before = hosted.placement.pin(index, worker);
        if let Some(worker) = worker {
            let seated = self.place_actor(&hosted, actor, index, worker);
            if seated.is_err() {
                hosted.placement.pin(index, before);
            }
            seated?;
        }
        self.shared.send(MonitorMessage::Changed);
        Ok(())
    }

    /// Why a worker's core is reserved, as text.
    fn reservation_text(&self, worker: u32) -> String {
        let table = self.shared.lock_registry();
        let mut all = table.apps.values().filter_map(|a| a.hosted.as_ref());
        match all.find(|h| h.exclusive == Some(worker)) {
            Some(has) => format!("worker {worker} is exclusive to {}", has.name),
            None => format!("worker {worker} has left its core to another program"),
        }
    }

    /// Refuses to move an actor to a worker with a reserved core.
    pub(crate) fn check_not_reserved(&self, worker: u32, actor: &str) -> Result<(), Refusal> {
        let workers = self.shared.machine.workers();
        if worker as usize >= workers || self.shared.runtime.available_workers().contains(&worker) {
            return Ok(());
        }
        let what = format!("{actor} cannot be moved: {}", self.reservation_text(worker));
        Err(Refusal::new(Kind::Conflict, what).help("see levada map"))
    }

    fn place_actor(
        &self,
        hosted: &HostedApp,
        actor: &str,
        index: usize,
        worker: u32,
    ) -> Result<(), Refusal> {
        let workers = self.shared.machine.workers();
        if worker as usize >= workers {
            let what = format!("there is no worker {worker}");
            let help = format!("workers are numbered from 0 to {}", workers - 1);
            return Err(Refusal::new(Kind::Unknown, what).help(help));
        }
        let seated = hosted.move_actor(&self.shared.events, index, worker);
        if seated.is_err() {
            self.check_not_reserved(worker, actor)?;
        }
        self.check_done(seated.map(drop), hosted, actor, "moved")
    }

    /// Reserves the core of `worker`: nothing of the host runs there when this returns, until [`Host::return_core`].
    /// If the core stays occupied for longer than `timeout`, nothing has changed.
    pub fn vacate_core(&self, worker: u32, timeout: Duration) -> Result<(), Refusal> {
        self.shared.vacate_core(worker, timeout)
    }

    pub fn return_core(&self, worker: u32) {
        self.shared.return_core(worker);
    }
}
