// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The supervisor thread of an isolated application: starts the child process (the kernel ties its life to this
//! thread), follows its events, and records its end.

use crate::client::Client;
use crate::context::HostContext;
use crate::isolated::core_exclusion::CoreExclusion;
use crate::isolated::memory::with_crash_record;
use crate::isolated::neighbor_updates::NeighborUpdates;
use crate::isolated::process::{LaunchConfig, SocketDir, await_end, exit_text};
use crate::isolated::{GUARD_TIMEOUT, Isolated, ProcessRecord, REPLY_TIMEOUT, process};
use crate::model::app_state::State;
use crate::model::events::{EventKind, Events};
use crate::model::outcome::Outcome;
use crate::model::unconsumed::{self, Unconsumed};
use crate::persist::partial_outputs;
use crate::protocol::Details;
use serde::Deserialize;
use std::io;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::Duration;

/// The known part of an event.
#[derive(Deserialize)]
struct ChildEvent {
    number: u64,
    event: EventKind,
    #[serde(default)]
    detail: String,
    #[serde(flatten)]
    unconsumed: Unconsumed,
    #[serde(default)]
    actor: Option<String>,
    #[serde(default)]
    from: Option<u32>,
    #[serde(default)]
    to: Option<u32>,
}

/// The end of the application: the event, and the outcome as text.
struct AppEnd {
    event: EventKind,
    how: String,
    unconsumed: Unconsumed,
}

/// Interval for repeating a notification to a busy listener.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(2);

impl Isolated {
    /// Handles an event of the child; an end is returned, to be examined.
    fn handle_event(&self, told: ChildEvent, events: &Events) -> Option<AppEnd> {
        match told.event {
            event @ (EventKind::Ended | EventKind::Failed) => {
                let mut unconsumed = told.unconsumed;
                unconsumed::cut(&mut unconsumed.channels, &mut unconsumed.omitted);
                return Some(AppEnd {
                    event,
                    how: told.detail,
                    unconsumed,
                });
            }
            EventKind::Loaded | EventKind::Unloaded => {}
            // It was loaded paused.
            EventKind::Resumed if std::mem::take(&mut self.record().starting) => {}
            EventKind::Moved => {
                let (from, to) = (told.from.unwrap_or(0), told.to.unwrap_or(0));
                events.emit_moved(&self.name, &told.actor.unwrap_or_default(), from, to);
            }
            other => events.emit(other, &self.name, told.detail),
        }
        None
    }

    /// Follows the child's events until its application has ended or the connection is lost. Returns whether the child
    /// has reported the end.
    fn follow(&self, events: &Events) -> bool {
        let mut since = 0;
        loop {
            let mut end = None;
            let address = format!("/events?follow=true&since={since}");
            let _ = self.client.lines(&address, |line| {
                // A line about missed events is ignored.
                if let Ok(told) = serde_json::from_str::<ChildEvent>(line) {
                    since = told.number;
                    end = self.handle_event(told, events);
                }
                end.is_none()
            });
            let Some(mut end) = end else {
                return false;
            };
            // Between the end of the old version and the start of the new one.
            self.wait_replaced();
            let client = self.client.clone().timeout(REPLY_TIMEOUT);
            let befores = self.befores();
            let said = client.get::<Details>(&self.address(""));
            let says = said.is_ok();
            if let Ok(details) = said {
                let state = self.record_answer(details, befores).application.state;
                if !matches!(state, State::Ended | State::Failed | State::Ending) {
                    continue; // a new version is in its place
                }
            }
            if end.event == EventKind::Failed {
                end.how = self.with_memory_note(end.how);
            }
            self.record_end(end, says, events);
            return true;
        }
    }

    /// Records the end; the first report counts. `says`: the child has just reported its final status.
    fn record_end(&self, end: AppEnd, says: bool, events: &Events) {
        let mut forgotten = false;
        let mut known = loop {
            let known = self.record();
            if known.outcome.is_some() {
                return;
            }
            // An application that was never loaded has not ended.
            if forgotten || !known.announced {
                break known;
            }
            // A slow state folder does not delay status requests.
            drop(known);
            if let Some(host) = self.exclusion.host() {
                while !host.notify_ended(&self.name, self.number) {
                    std::thread::sleep(NOTIFY_INTERVAL);
                }
            }
            forgotten = true;
        };
        let silent = known.answered_at.elapsed();
        let application = &mut known.last.application;
        if !says {
            application.mark_silent(silent);
        }
        application.state = match end.event {
            EventKind::Failed => State::Failed,
            _ => State::Ended,
        };
        application.outcome = Some(end.how.clone());
        application.unconsumed = end.unconsumed.channels.clone();
        application.unconsumed_omitted = end.unconsumed.omitted;
        application.memory = 0;
        known.outcome = Some(end.how.clone());
        let told = known.announced;
        drop(known);
        if told {
            events.emit_end(end.event, &self.name, end.how, end.unconsumed);
        }
        self.changed.notify_all();
    }
}

/// Body of the supervisor thread: from the start of the child in this folder to its end. `known` is the initial
/// record.
pub(crate) fn supervise(
    starts: &LaunchConfig,
    folder: &Path,
    of: Weak<HostContext>,
    mut known: ProcessRecord,
    events: &Events,
    begun: &Sender<io::Result<Arc<Isolated>>>,
) {
    let place = SocketDir::new();
    let bound = place.and_then(|place| {
        let listener = UnixListener::bind(place.socket())?;
        let child = process::start(starts, folder, &listener)?;
        Ok((place, child))
    });
    let (place, (child, process)) = match bound {
        Ok(bound) => bound,
        Err(e) => return drop(begun.send(Err(e))),
    };
    let guard = child.id();
    known.child = Some(child);
    let application = &mut known.last.application;
    let client = Client::new(&place.socket()).of_application(&application.name);
    application.isolated = Some(process);
    let isolated = Arc::new(Isolated {
        name: application.name.clone(),
        number: application.number,
        process,
        client,
        exclusion: CoreExclusion::new(of.clone()),
        neighbor_updates: NeighborUpdates::default(),
        record: Mutex::new(known),
        changed: Condvar::new(),
    });
    let _ = begun.send(Ok(isolated.clone()));
    if !isolated.follow(events) {
        // The child may have been told to end; its exit is awaited.
        await_end(guard, Some(starts.timeout + REPLY_TIMEOUT));
    }
    // A child without an application, or one that reports nothing and stays, is killed.
    isolated.kill();
    await_end(guard, Some(GUARD_TIMEOUT));
    isolated.kill_guard();
    await_end(guard, None);
    let mut known = isolated.record();
    let status = known.child.take().and_then(|mut child| child.wait().ok());
    let requested = RequestedEnds {
        killed: known.killed,
        told_to_end: known.told_to_end,
    };
    drop(known);
    let (event, how) = outcome_of(status, requested);
    let how = match event {
        EventKind::Failed => with_crash_record(how, &place.crash_record_path()),
        _ => how,
    };
    let end = AppEnd {
        event,
        how,
        unconsumed: Unconsumed::default(),
    };
    isolated.record_end(end, false, events);
    // A process that ended while it was writing has left a partial output.
    let out = isolated.outputs().into_iter().map(PathBuf::from);
    partial_outputs::remove_all_soon(out.filter_map(partial_outputs::output).collect());
    // The other children have one neighbor less.
    if let Some(shared) = of.upgrade()
        && let Some(processes) = shared.isolated_processes()
    {
        processes.notify_cores_and_neighbors();
    }
}

/// The ends of the process that this host has requested.
#[derive(Clone, Copy, Default)]
struct RequestedEnds {
    /// By SIGKILL, for an unload.
    killed: bool,
    /// By SIGTERM, because the host ends.
    told_to_end: bool,
}

/// The event and the outcome of the process's end.
fn outcome_of(status: Option<ExitStatus>, requested: RequestedEnds) -> (EventKind, String) {
    let Some(status) = status else {
        return (EventKind::Failed, "its process has ended".to_string());
    };
    let was_requested = match status.signal() {
        Some(libc::SIGKILL) => requested.killed,
        Some(libc::SIGTERM) => requested.told_to_end,
        _ => false,
    };
    if was_requested {
        (EventKind::Ended, Outcome::Stopped.text())
    } else {
        (EventKind::Failed, exit_text(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_ends_are_no_failures_and_all_others_are() {
        let ended =
            |signal: i32, requested| outcome_of(Some(ExitStatus::from_raw(signal)), requested);
        let killed = RequestedEnds {
            killed: true,
            ..RequestedEnds::default()
        };
        let told_to_end = RequestedEnds {
            told_to_end: true,
            ..RequestedEnds::default()
        };
        for (signal, requested) in [(libc::SIGKILL, killed), (libc::SIGTERM, told_to_end)] {
            assert_eq!(
                ended(signal, requested),
                (EventKind::Ended, "stopped".to_string())
            );
        }
        // Killed by another program, or by the kernel for its memory; or it has ended before it was killed.
        for (signal, requested) in [
            (libc::SIGKILL, RequestedEnds::default()),
            (libc::SIGKILL, told_to_end),
            (libc::SIGTERM, RequestedEnds::default()),
            (libc::SIGSEGV, killed),
        ] {
            let (event, how) = ended(signal, requested);
            assert_eq!(event, EventKind::Failed);
            assert!(how.contains(&format!("signal {signal} (")), "{how}");
        }
        assert_eq!(outcome_of(None, killed).0, EventKind::Failed);
    }
}
