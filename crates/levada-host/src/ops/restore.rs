// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Restores what the previous host had loaded: when this host starts, or by request. Until an application is
//! restored, or if it cannot be, requests that name it are told so.

use crate::model::error::{Kind, Refusal};
use crate::model::events::EventKind;
use crate::ops::load::{Cause, is_live, load_for};
use crate::ops::state::ServerState;
use crate::persist::journal::Journal;
use crate::persist::store::{Restore, StateStore};
use crate::protocol::{Failed, LoadRequest};
use levada_text::escaped;
use std::io::Write;
use std::time::Duration;

/// Names to restore, in this order.
pub struct ToRestore {
    first: Vec<String>,
    /// Suspects of the previous host's crash.
    last: Vec<String>,
}

/// What ran when the previous host ended, except what is quarantined. Requests for these names wait from now on.
pub fn to_restore(served: &ServerState) -> Option<ToRestore> {
    let memory = served.store.as_ref()?;
    if served.restore == Restore::Nothing {
        return None;
    }
    let all = served.restore == Restore::All;
    let suspects: &[String] = if all { &[] } else { memory.suspects() };
    let wanted = memory.unrestored().into_iter().filter(|name| {
        let held = memory.quarantine_reason(name).filter(|_| !all);
        if let Some(why) = &held {
            emit_not_restored(
                served,
                EventKind::Quarantined,
                name,
                &format!("not restored: {why}"),
            );
        }
        held.is_none()
    });
    let (last, first): (Vec<_>, Vec<_>) = wanted.partition(|name| suspects.contains(name));
    for name in first.iter().chain(&last) {
        memory.set_unrestored_reason(name, "is to be loaded again");
    }
    served.pending.set_due(first.iter().chain(&last).cloned());
    Some(ToRestore { first, last })
}

/// Loads these and reports those that cannot be loaded. Suspects are started last, a few at a time.
pub fn restore(served: &ServerState, ToRestore { first, last }: ToRestore) {
    let Some(memory) = &served.store else {
        return;
    };
    // It may have been resumed or forgotten meanwhile, or its name taken.
    let load = |name: &String| {
        let _coming = served.pending.load_when_free(name);
        if memory.is_unrestored(name) && !is_live(served, name) {
            drop(load_restored(served, memory, name, None));
        }
    };
    first.iter().for_each(load);
    for some in last.chunks(Journal::together(last.len())) {
        // An application that crashes the host now is one of these.
        memory.journal().await_settled();
        some.iter().for_each(load);
    }
}

/// A request to load it, with a client that waits.
struct ResumeRequest {
    timeout: Duration,
    /// A restore would load it in any case.
    due: bool,
}

/// Loads what the previous host had loaded.
fn load_restored(
    served: &ServerState,
    memory: &StateStore,
    name: &str,
    asks: Option<ResumeRequest>,
) -> Result<(), Failed> {
    let journal = memory.journal();
    let load = |mut request: LoadRequest| {
        // The previous host had admitted it; this one may have reserved rates since.
        request.force |= asks.as_ref().is_none_or(|asks| asks.due);
        let why = match &asks {
            Some(asks) => {
                request.paused = false;
                request.timeout = Some(asks.timeout.as_secs_f64());
                Cause::Resumed
            }
            None => {
                // The timeout of the load was for the client of that time.
                request.timeout = None;
                Cause::Restored
            }
        };
        let apart = request.isolate;
        load_for(served, vec![request], None, why)?;
        if apart {
            memory.release_quarantine(name).map_err(|e| {
                let what = format!(
                    "{name} runs, but it could not be saved that it is no longer quarantined: {e}"
                );
                Refusal::new(Kind::NotSaved, what)
                    .help("it is tried again with each change, and when this host ends")
            })?;
        }
        Ok(())
    };
    let read = memory.read(name).map_err(|e| Refusal::new(Kind::Wrong, e));
    let done: Result<(), Failed> = read.map_err(Failed::from).and_then(load);
    match done {
        Ok(()) => Ok(()),
        // Another one of that name was loaded meanwhile; its state may have been written first.
        Err(failed) if is_live(served, name) => {
            journal.record_running(name);
            Err(failed)
        }
        Err(failed) => {
            journal.record_not_started(name);
            // It was unloaded meanwhile.
            if !memory.is_unrestored(name) {
                return Err(failed);
            }
            let why = format!("cannot be loaded again: {}", failed.error);
            memory.set_unrestored_reason(name, &why);
            emit_not_restored(served, EventKind::Failed, name, &why);
            Err(failed)
        }
    }
}

/// Loads an application of the previous host by request; false: there is none.
pub fn resume_not_restored(
    served: &ServerState,
    name: &str,
    timeout: Duration,
) -> Result<bool, Failed> {
    let Some(memory) = served.store.as_ref().filter(|m| m.is_unrestored(name)) else {
        return Ok(false);
    };
    let due = served.pending.is_due(name);
    // A concurrent load is awaited like any other.
    let Some(_coming) = served.pending.try_load(name) else {
        return Ok(false);
    };
    if !memory.is_unrestored(name) || is_live(served, name) {
        return Ok(false);
    }
    load_restored(served, memory, name, Some(ResumeRequest { timeout, due }))?;
    Ok(true)
}

/// For an operation on a name: waits until its load or replacement is done; returns the time that is left. An
/// application that was not restored is an error.
pub fn wait_loaded(
    served: &ServerState,
    name: &str,
    timeout: Duration,
) -> Result<Duration, Refusal> {
    let lives = || is_live(served, name);
    let left = served.pending.wait(name, timeout, lives)?;
    not_restored_error(served, name).map_or(Ok(left), Err)
}

/// The error for an application that was not restored, if there is no other of its name.
pub fn not_restored_error(served: &ServerState, name: &str) -> Option<Refusal> {
    let memory = served.store.as_ref()?;
    if served.isolated.find(name).is_some() || served.host.find(name).is_ok() {
        return None;
    }
    let why = memory.unrestored_reason(name)?;
    let why = why.unwrap_or_else(|| "the last host had loaded it".to_string());
    let what = format!("{name} is not loaded: {why}");
    Some(Refusal::new(Kind::Conflict, what).help(left_help(name)))
}

fn left_help(name: &str) -> String {
    format!("levada resume {name} loads it, levada unload {name} forgets it")
}

/// An event, and a line on standard error, where an administrator looks first.
fn emit_not_restored(served: &ServerState, event: EventKind, name: &str, why: &str) {
    served.host.events().send_to_followers(event, name, why);
    let line = format!("{name}: {why} ({})\n", left_help(name));
    let _ = std::io::stderr()
        .lock()
        .write_all(escaped(&line).as_bytes());
}
