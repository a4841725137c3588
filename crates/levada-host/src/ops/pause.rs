// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pausing and resuming an application by its name, wherever it runs; and what the next host is to know of that.

use crate::host::Host;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::ops::restore::{resume_left, until_there};
use crate::ops::state::Served;
use crate::protocol::{Application, Failed};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Pause,
    Resume,
}

impl Change {
    /// As it stands behind the name in an address.
    fn word(self) -> &'static str {
        match self {
            Change::Pause => "pause",
            Change::Resume => "resume",
        }
    }

    /// Of one that runs in this process.
    fn make(self, host: &Host, name: &str, within: Duration) -> Result<(), Refusal> {
        match self {
            Change::Pause => host.pause(name, within),
            Change::Resume => host.resume(name, within),
        }
    }

    fn not_remembered(self, why: &std::io::Error) -> Refusal {
        let what = format!("it is {}d, but that is not remembered: {why}", self.word());
        Refusal::new(Kind::NotSaved, what)
            .help("it is tried again with each change, and when this host ends")
    }
}

pub fn change_by_name(
    served: &Served,
    name: &str,
    within: Duration,
    change: Change,
) -> Result<Application, Failed> {
    let resumes = change == Change::Resume;
    if resumes && resume_left(served, name, within)? {
        if let Some(memory) = &served.memory {
            memory
                .set_paused(name, || Some(false))
                .map_err(|e| change.not_remembered(&e))?;
        }
        let mut all = served.applications().into_iter();
        let found = all.find(|a| a.name == name);
        return found
            .ok_or_else(|| Refusal::new(Kind::Unknown, "it has been unloaded at once").into());
    }
    let within = until_there(served, name, within)?;
    let journal = served.memory.as_ref().map(|memory| memory.journal());
    // What was loaded paused begins now.
    let has_not = || served.host.live(name).is_ok_and(|h| !h.has_begun());
    let begins = journal.filter(|_| resumes && has_not());
    if let Some(journal) = begins {
        journal.begins(name);
    }
    let done = match served.isolated.find(name) {
        Some(isolated) => isolated.change(change.word(), within),
        None => change
            .make(&served.host, name, within)
            .and_then(|()| served.host.find(name))
            .map(|seen| Application::from(&seen))
            .map_err(Failed::from),
    };
    if let Some(journal) = begins {
        journal.runs(name);
    }
    if let Some(memory) = &served.memory {
        let told = match &done {
            Ok(application) => Some(application.state),
            Err(_) => state_of_isolated(served, name),
        };
        let is_paused = || {
            let here = served.host.find(name).ok();
            // What is remembered may be its new version already, which waits for its end.
            let next = here.as_ref().and_then(|seen| served.host.next(seen.number));
            let apart = served.isolated.find(name);
            let waits = next.is_some() || apart.is_some_and(|isolated| isolated.has_next());
            stays_paused(resumes && !waits, here.map(|seen| seen.state).or(told)?)
        };
        let kept = memory.set_paused(name, is_paused);
        kept.map_err(|e| change.not_remembered(&e))?;
    }
    done
}

/// What it says of itself, or said last.
fn state_of_isolated(served: &Served, name: &str) -> Option<State> {
    let isolated = served.isolated.find(name)?;
    Some(isolated.details().application.state)
}

/// Whether one that was to be paused, or to go on, is paused where the next host loads it, as it is in this state now;
/// none: as it was before.
fn stays_paused(resumed: bool, state: State) -> Option<bool> {
    match state {
        // What a firing keeps from being paused at once is paused all the same.
        State::Paused => Some(true),
        State::Running => Some(false),
        // It has come to its end when it was paused, or does so now. As long as that lasts it is remembered.
        State::Draining | State::Ending | State::Ended | State::Failed if resumed => Some(false),
        _ => None,
    }
}
