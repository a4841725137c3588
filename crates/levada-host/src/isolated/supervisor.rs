// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread that stands by an isolated application: it starts its process (which the kernel ends with the thread that has
//! started it), follows its events, and remembers how it went.

use crate::client::Client;
use crate::context::Shared;
use crate::isolated::core_exclusion::Leaving;
use crate::isolated::memory::with_last_words;
use crate::isolated::neighbor_updates::Telling;
use crate::isolated::process::{Place, Starts, await_end, in_words};
use crate::isolated::{GUARDED, Isolated, Known, SOON, process};
use crate::model::app_state::State;
use crate::model::events::{Events, What};
use crate::model::outcome::Outcome;
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

/// What is understood of an event.
#[derive(Deserialize)]
struct Told {
    number: u64,
    event: What,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    actor: Option<String>,
    #[serde(default)]
    from: Option<u32>,
    #[serde(default)]
    to: Option<u32>,
}

/// So soon whoever was busy is told again of an end.
const BUSY: Duration = Duration::from_millis(2);

impl Isolated {
    /// Something has happened there; an end is given back, to be looked into.
    fn hear(&self, told: Told, events: &Events) -> Option<(What, String)> {
        match told.event {
            What::Ended | What::Failed => return Some((told.event, told.detail)),
            What::Loaded | What::Unloaded => {}
            // It was loaded paused.
            What::Resumed if std::mem::take(&mut self.known().begins) => {}
            What::Moved => {
                let (from, to) = (told.from.unwrap_or(0), told.to.unwrap_or(0));
                events.moved(&self.name, &told.actor.unwrap_or_default(), from, to);
            }
            other => events.tell(other, &self.name, told.detail),
        }
        None
    }

    /// Follows what happens there, until it has ended or nothing is heard any more; whether it has said how it ended.
    fn follow(&self, events: &Events) -> bool {
        let mut since = 0;
        loop {
            let mut end = None;
            let address = format!("/events?follow=true&since={since}");
            let _ = self.client.lines(&address, |line| {
                // Where some were missed, there is nothing to be told of them.
                if let Ok(told) = serde_json::from_str::<Told>(line) {
                    since = told.number;
                    end = self.hear(told, events);
                }
                end.is_none()
            });
            let Some((event, how)) = end else {
                return false;
            };
            // Between the old one's end and the new one's beginning there is a moment.
            self.until_replaced();
            let client = self.client.clone().within(SOON);
            let befores = self.befores();
            let said = client.get::<Details>(&self.address(""));
            let says = said.is_ok();
            if let Ok(details) = said {
                let state = self.seen(details, befores).application.state;
                if !matches!(state, State::Ended | State::Failed | State::Ending) {
                    continue; // a new version is in its place
                }
            }
            let how = match event {
                What::Failed => self.with_memory(how),
                _ => how,
            };
            self.ended(event, how, says, events);
            return true;
        }
    }

    /// The first who says how it ended is believed. `says`: what it has done it has just said.
    fn ended(&self, event: What, how: String, says: bool, events: &Events) {
        let mut forgotten = false;
        let mut known = loop {
            let known = self.known();
            if known.over.is_some() {
                return;
            }
            // What was never loaded has not ended.
            if forgotten || !known.told {
                break known;
            }
            // What is slow to be forgotten keeps nobody waiting who asks how it is.
            drop(known);
            if let Some(host) = self.leaving.host() {
                while !host.is_over(&self.name, self.number) {
                    std::thread::sleep(BUSY);
                }
            }
            forgotten = true;
        };
        let silent = known.said.elapsed();
        let application = &mut known.last.application;
        if !says {
            application.has_been_silent(silent);
        }
        application.state = match event {
            What::Failed => State::Failed,
            _ => State::Ended,
        };
        application.outcome = Some(how.clone());
        application.memory = 0;
        known.over = Some(how.clone());
        let told = known.told;
        drop(known);
        if told {
            events.tell(event, &self.name, how);
        }
        self.changed.notify_all();
    }
}

/// The life of one, from its start in this folder to its end. `known` is what is known before.
pub(crate) fn stand_by(
    starts: &Starts,
    folder: &Path,
    of: Weak<Shared>,
    mut known: Known,
    events: &Events,
    begun: &Sender<io::Result<Arc<Isolated>>>,
) {
    let place = Place::new();
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
        leaving: Leaving::new(of.clone()),
        telling: Telling::default(),
        known: Mutex::new(known),
        changed: Condvar::new(),
    });
    let _ = begun.send(Ok(isolated.clone()));
    if !isolated.follow(events) {
        // Somebody may have told it to end: it stops then, and is seen to have ended by that.
        await_end(guard, Some(starts.within + SOON));
    }
    // What has nothing to run, or tells nothing any more and stays, ends.
    isolated.kill();
    await_end(guard, Some(GUARDED));
    isolated.kill_guard();
    await_end(guard, None);
    let mut known = isolated.known();
    let status = known.child.take().and_then(|mut child| child.wait().ok());
    let asked = Asked {
        killed: known.killed,
        told_to_end: known.told_to_end,
    };
    drop(known);
    let (event, how) = how_it_ended(status, asked);
    let how = match event {
        What::Failed => with_last_words(how, &place.last_words()),
        _ => how,
    };
    isolated.ended(event, how, false, events);
    // A process that has ended in the midst of its output has left half of it.
    let out = isolated.outputs().into_iter().map(PathBuf::from);
    partial_outputs::remove_all_soon(out.filter_map(partial_outputs::output).collect());
    // The others have one less beside them.
    if let Some(shared) = of.upgrade()
        && let Some(beside) = shared.beside()
    {
        beside.tell();
    }
}

/// Which ends of its process this host has asked for.
#[derive(Clone, Copy, Default)]
struct Asked {
    /// By SIGKILL, since it was to be taken away.
    killed: bool,
    /// By SIGTERM, since the host ends.
    told_to_end: bool,
}

/// What is told of its process's end.
fn how_it_ended(status: Option<ExitStatus>, asked: Asked) -> (What, String) {
    let Some(status) = status else {
        return (What::Failed, "its process has ended".to_string());
    };
    let was_asked = match status.signal() {
        Some(libc::SIGKILL) => asked.killed,
        Some(libc::SIGTERM) => asked.told_to_end,
        _ => false,
    };
    if was_asked {
        (What::Ended, Outcome::Stopped.text())
    } else {
        (What::Failed, in_words(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_no_failure_and_all_else_is() {
        let ended = |signal: i32, asked| how_it_ended(Some(ExitStatus::from_raw(signal)), asked);
        let killed = Asked {
            killed: true,
            ..Asked::default()
        };
        let told_to_end = Asked {
            told_to_end: true,
            ..Asked::default()
        };
        for (signal, asked) in [(libc::SIGKILL, killed), (libc::SIGTERM, told_to_end)] {
            assert_eq!(ended(signal, asked), (What::Ended, "stopped".to_string()));
        }
        // Killed by another program, or by the system for its memory; or ended by itself before it was killed.
        for (signal, asked) in [
            (libc::SIGKILL, Asked::default()),
            (libc::SIGKILL, told_to_end),
            (libc::SIGTERM, Asked::default()),
            (libc::SIGSEGV, killed),
        ] {
            let (event, how) = ended(signal, asked);
            assert_eq!(event, What::Failed);
            assert!(how.contains(&format!("signal {signal} (")), "{how}");
        }
        assert_eq!(how_it_ended(None, killed).0, What::Failed);
    }
}
