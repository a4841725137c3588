// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is done to an application that runs: it is paused, goes on, and its actors are moved.

use crate::app::Hosted;
use crate::context::message::Note;
use crate::host::Host;
use crate::limits::enforce;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::What;
use crate::util::deadline::deadline;
use levada_sys::Status;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// It is paused, and something of it has not come to where it can be held.
fn goes_on(hosted: &Hosted, within: Duration) -> Refusal {
    let name = &hosted.name;
    let (what, help) = match hosted.app.network().is_program() {
        true => (
            "it has not come to where it can be held",
            format!(
                "it is held when it waits for Levada, or is back in its own code; levada unload {name} --now ends it"
            ),
        ),
        false => (
            "a firing of it has not ended",
            format!(
                "nothing more of it begins; levada unload {name} --now, or levada host --time-limit, ends an action \
                 that does not end"
            ),
        ),
    };
    let why = hosted.app.why();
    let runs: Vec<&str> = why.lines().skip(1).map(str::trim).collect();
    let runs = match runs.is_empty() {
        true => String::new(),
        false => format!(": {}", runs.join("; ")),
    };
    let what = format!("{name} is paused, but {what} within {within:?}{runs}");
    Refusal::new(Kind::Timeout, what).help(help)
}

impl Host {
    /// No actor of it runs when this returns; nothing in its channels is lost. A firing that lasts
    /// longer than `within` is told as an error, and is the last: it is paused all the same. So is a turn of a C program.
    pub fn pause(&self, name: &str, within: Duration) -> Result<(), Refusal> {
        let until = deadline(within);
        let hosted = self.live(name)?;
        let _hand = hosted.in_hand(until)?;
        let mut held = hosted.held();
        // What is loaded and does not run yet has nothing to pause; the runtime says so.
        let begun = hosted.app.pause(Duration::ZERO);
        if !matches!(&begun, Err(e) if e.status == Status::TIME) {
            self.say(begun, &hosted, name, "paused")?;
        }
        // Before it is waited for: who asks meanwhile is told what is so.
        if self.set_state(hosted.number, State::Paused) {
            enforce::pauses(&hosted, *held);
            self.shared.events.tell(What::Paused, name, "");
        }
        *held = false;
        hosted.lately.is_late.store(false, Ordering::Relaxed);
        let left = until.saturating_duration_since(Instant::now());
        match hosted.app.pause(left) {
            Err(e) if e.status == Status::TIME => Err(goes_on(&hosted, within)),
            // It has ended meanwhile.
            Err(e) if e.status == Status::STATE => Ok(()),
            done => self.say(done, &hosted, name, "paused"),
        }
    }

    /// What runs already goes on as it is. What is paused goes on as soon as its limits let it.
    pub fn resume(&self, name: &str, within: Duration) -> Result<(), Refusal> {
        let hosted = self.live(name)?;
        let hand = hosted.in_hand(deadline(within))?;
        let mut held = hosted.held();
        match self.shared.state(hosted.number) {
            // It may have been loaded paused.
            Some(State::Loaded) => {
                drop(held);
                self.start(&hosted)?;
                self.shared.events.tell(What::Resumed, name, "");
                return Ok(());
            }
            Some(State::Running | State::Draining) if !hosted.app.is_ending() => return Ok(()),
            _ => {}
        }
        let waits = enforce::goes_on(&hosted) && !hosted.app.is_ending();
        if !waits {
            self.say(hosted.app.resume(), &hosted, name, "resumed")?;
        }
        *held = waits;
        // What drains goes on to drain.
        self.set_state(
            hosted.number,
            match hosted.told.drains.load(Ordering::Relaxed) {
                true => State::Draining,
                false => State::Running,
            },
        );
        drop(held);
        drop(hand);
        self.shared.events.tell(What::Resumed, name, "");
        self.shared.note(Note::Changed);
        Ok(())
    }

    fn say(
        &self,
        done: Result<(), levada_sys::Error>,
        hosted: &Hosted,
        who: &str,
        what: &str,
    ) -> Result<(), Refusal> {
        done.map_err(|e| {
            let name = &hosted.name;
            let begun = self.shared.state(hosted.number) != Some(State::Loaded);
            let (why, help) = match (e.status, hosted.app.is_ending(), begun) {
                (Status::STATE, true, _) => (format!("{name} has ended, or is about to"), None),
                (Status::STATE, _, false) => {
                    let help = format!("levada resume {name} lets it begin");
                    (format!("{name} has not begun yet"), Some(help))
                }
                _ => (e.to_string(), None),
            };
            let refusal = Refusal::new(Kind::Conflict, format!("{who} cannot be {what}: {why}"));
            match help {
                Some(help) => refusal.help(help),
                None => refusal,
            }
        })
    }

    /// Puts an actor on a worker, where it stays; with none, the mapper may move it again.
    pub fn move_actor(&self, name: &str, actor: &str, worker: Option<u32>) -> Result<(), Refusal> {
        let hosted = self.live(name)?;
        let names = hosted.app.network().actor_names();
        let Some(index) = names.iter().position(|n| n == actor) else {
            let what = format!("{name} has no actor {actor}");
            let help = format!("see levada show {name}");
            return Err(Refusal::new(Kind::Unknown, what).help(help));
        };
        // Before it is there: who looks meanwhile lets it stay.
        let before = hosted.seats.pin(index, worker);
        if let Some(worker) = worker {
            let seated = self.seat(&hosted, actor, index, worker);
            if seated.is_err() {
                hosted.seats.pin(index, before);
            }
            seated?;
        }
        self.shared.note(Note::Changed);
        Ok(())
    }

    /// Why a worker is not for all.
    fn whose(&self, worker: u32) -> String {
        let table = self.shared.table();
        let mut all = table.apps.values().filter_map(|a| a.hosted.as_ref());
        match all.find(|h| h.exclusive == Some(worker)) {
            Some(has) => format!("worker {worker} is for {} alone", has.name),
            None => format!("worker {worker} has left its core to another program"),
        }
    }

    /// Refuses to move that actor to a worker whose core is not for all.
    pub(crate) fn is_for_all(&self, worker: u32, actor: &str) -> Result<(), Refusal> {
        let workers = self.shared.machine.workers();
        if worker as usize >= workers || self.shared.runtime.open().contains(&worker) {
            return Ok(());
        }
        let what = format!("{actor} cannot be moved: {}", self.whose(worker));
        Err(Refusal::new(Kind::Conflict, what).help("see levada map"))
    }

    fn seat(&self, hosted: &Hosted, actor: &str, index: usize, worker: u32) -> Result<(), Refusal> {
        let workers = self.shared.machine.workers();
        if worker as usize >= workers {
            let what = format!("there is no worker {worker}");
            let help = format!("workers are numbered from 0 to {}", workers - 1);
            return Err(Refusal::new(Kind::Unknown, what).help(help));
        }
        let seated = hosted.seat(&self.shared.events, index, worker);
        if seated.is_err() {
            self.is_for_all(worker, actor)?;
        }
        self.say(seated.map(drop), hosted, actor, "moved")
    }

    /// Nothing of the host runs on the core of `worker` any more when this returns, until [`Host::come_back`]. Where
    /// something keeps it for longer than `within`, all is as it was.
    pub fn leave_core(&self, worker: u32, within: Duration) -> Result<(), Refusal> {
        self.shared.leave_core(worker, within)
    }

    pub fn come_back(&self, worker: u32) {
        self.shared.come_back(worker);
    }
}
