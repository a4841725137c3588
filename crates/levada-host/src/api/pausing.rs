// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pausing and resuming an application by its name, wherever it runs; and what the next host is to know of that.

use super::Served;
use super::restoring::{resume_left, until_there};
use super::types::{Application, Failed};
use crate::host::Host;
use crate::hosted::State;
use crate::refusal::{Kind, Refusal};
use crate::state::Memory;
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
        Refusal::new(Kind::Limit, what)
    }
}

pub fn change_by_name(
    served: &Served,
    name: &str,
    within: Duration,
    change: Change,
) -> Result<Application, Failed> {
    let resumes = change == Change::Resume;
    if resumes && resume_left(served, name)? {
        if let Some(memory) = &served.memory {
            memory
                .set_paused(name, false)
                .map_err(|e| change.not_remembered(&e))?;
        }
        let mut all = served.applications().into_iter();
        let found = all.find(|a| a.name == name);
        return found
            .ok_or_else(|| Refusal::new(Kind::Unknown, "it has been unloaded at once").into());
    }
    let within = until_there(served, name, within)?;
    let journal = served.memory.as_ref().map(Memory::journal);
    // What was loaded paused may begin now.
    let begins = journal.filter(|_| resumes && served.host.live(name).is_ok());
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
    // What a firing keeps from being paused at once is paused all the same.
    let state = match &done {
        Ok(application) => Some(application.state),
        Err(_) => served.host.find(name).ok().map(|seen| seen.state),
    };
    let paused = state == Some(State::Paused);
    if let Some(memory) = &served.memory
        && (paused || state == Some(State::Running))
        && let Err(e) = memory.set_paused(name, paused)
    {
        return Err(change.not_remembered(&e).into());
    }
    done
}
