// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pauses or resumes an application by name, wherever it runs, and persists that.

use crate::host::Host;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::ops::restore::{resume_not_restored, wait_loaded};
use crate::ops::state::ServerState;
use crate::protocol::{Application, Failed};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PauseCommand {
    Pause,
    Resume,
}

impl PauseCommand {
    /// The last part of the path.
    fn word(self) -> &'static str {
        match self {
            PauseCommand::Pause => "pause",
            PauseCommand::Resume => "resume",
        }
    }

    /// For an application of this process.
    fn make(self, host: &Host, name: &str, timeout: Duration) -> Result<(), Refusal> {
        match self {
            PauseCommand::Pause => host.pause(name, timeout),
            PauseCommand::Resume => host.resume(name, timeout),
        }
    }

    fn not_saved(self, why: &std::io::Error) -> Refusal {
        let what = format!("it is {}d, but that cannot be saved: {why}", self.word());
        Refusal::new(Kind::NotSaved, what)
            .help("it is tried again with each change, and when this host ends")
    }
}

pub fn change_by_name(
    served: &ServerState,
    name: &str,
    timeout: Duration,
    change: PauseCommand,
) -> Result<Application, Failed> {
    let resumes = change == PauseCommand::Resume;
    if resumes && resume_not_restored(served, name, timeout)? {
        if let Some(memory) = &served.store {
            memory
                .set_paused(name, || Some(false))
                .map_err(|e| change.not_saved(&e))?;
        }
        let mut all = served.applications().into_iter();
        let found = all.find(|a| a.name == name);
        return found
            .ok_or_else(|| Refusal::new(Kind::Unknown, "it has been unloaded at once").into());
    }
    let timeout = wait_loaded(served, name, timeout)?;
    let journal = served.store.as_ref().map(|memory| memory.journal());
    // An application that was loaded paused starts now.
    let has_not = || served.host.live(name).is_ok_and(|h| !h.has_started());
    let begins = journal.filter(|_| resumes && has_not());
    if let Some(journal) = begins {
        journal.record_start(name);
    }
    let done = match served.isolated.find(name) {
        Some(isolated) => isolated.change(change.word(), timeout),
        None => change
            .make(&served.host, name, timeout)
            .and_then(|()| served.host.find(name))
            .map(|seen| Application::from(&seen))
            .map_err(Failed::from),
    };
    if let Some(journal) = begins {
        journal.record_running(name);
    }
    if let Some(memory) = &served.store {
        let told = match &done {
            Ok(application) => Some(application.state),
            Err(_) => state_of_isolated(served, name),
        };
        let is_paused = || {
            let here = served.host.find(name).ok();
            // The state folder may already describe its new version, which waits for its end.
            let next = here
                .as_ref()
                .and_then(|seen| served.host.successor(seen.number));
            let apart = served.isolated.find(name);
            let waits = next.is_some() || apart.is_some_and(|isolated| isolated.has_next());
            stays_paused(resumes && !waits, here.map(|seen| seen.state).or(told)?)
        };
        let kept = memory.set_paused(name, is_paused);
        kept.map_err(|e| change.not_saved(&e))?;
    }
    done
}

/// The state that it reports, or has last reported.
fn state_of_isolated(served: &ServerState, name: &str) -> Option<State> {
    let isolated = served.isolated.find(name)?;
    Some(isolated.details().application.state)
}

/// Whether the next host loads it paused, after it was to be paused or resumed and is now in this state; none:
/// unchanged.
fn stays_paused(resumed: bool, state: State) -> Option<bool> {
    match state {
        // Also one that is paused except for a running firing.
        State::Paused => Some(true),
        State::Running => Some(false),
        // It has ended when it was paused, or is ending. Until then it stays in the state folder.
        State::Draining | State::Ending | State::Ended | State::Failed if resumed => Some(false),
        _ => None,
    }
}
