// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unloads an application by name, wherever it runs, or forgets one that was not restored. The state folder is
//! marked before the application ends, so that the next host does not load it again, however this one ends.

use crate::isolated::Isolated;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::ops::load::is_live;
use crate::ops::state::ServerState;
use crate::protocol::{Failed, REQUEST_TIMEOUT_S, Unloaded};
use std::io;
use std::time::Duration;

/// Unloads the application of this name: ends it immediately (`now`), or drains it within the timeout `timeout`.
pub fn unload_by_name(
    served: &ServerState,
    name: String,
    now: bool,
    timeout: Duration,
) -> Result<Unloaded, Failed> {
    let memory = served.store.as_ref();
    let is_here = || served.isolated.find(&name).is_some() || served.host.find(&name).is_ok();
    let forgotten = memory
        .filter(|_| !is_here())
        .map(|m| m.forget_unrestored(&name));
    match forgotten {
        Some(Ok(true)) => {
            served.pending.clear_due(&name);
            return Ok(Unloaded::never_ran(name));
        }
        Some(Err(e)) => {
            served.pending.clear_due(&name);
            return Err(not_saved(&name, &e));
        }
        Some(Ok(false)) | None => {}
    }
    // An immediate end need not wait for its start.
    let timeout = if now {
        timeout
    } else {
        let lives = || is_live(served, &name);
        served.pending.wait(&name, timeout, lives)?
    };
    if let Some(isolated) = served.isolated.find(&name) {
        return unload_isolated(served, &isolated, now, timeout);
    }
    let (mut numbers, mut marked) = (Vec::new(), Ok(()));
    let goes = |number| {
        numbers.push(number);
        if let (Some(memory), true) = (memory, marked.is_ok()) {
            marked = memory.mark_unloading(&name, number);
        }
    };
    let ended = served.host.unload(&name, now, timeout, goes);
    let ended = ended.map_err(|refusal| not_marked(refusal.into(), &marked))?;
    let mut saved = Ok(());
    for number in numbers.into_iter().chain([ended.number]) {
        if let Some(memory) = memory {
            saved = memory.forget(&name, number).and(saved);
        }
    }
    saved.map_err(|e| not_saved(&name, &e))?;
    Ok(Unloaded::new(name, ended))
}

/// The error if the application is unloaded, but the state folder could not be updated.
fn not_saved(name: &str, why: &io::Error) -> Failed {
    let what = format!(
        "{name} is unloaded, but that could not be saved: {why}; the next host would load it again"
    );
    Refusal::new(Kind::NotSaved, what)
        .help("it is tried again with each change, and when this host ends")
        .into()
}

/// The error if the application is ending, but the state folder could not be marked.
fn not_marked(failed: Failed, marked: &io::Result<()>) -> Failed {
    match marked {
        Ok(()) => failed,
        Err(e) => Failed {
            error: format!(
                "{}; and it could not be saved that it is to end: {e}",
                failed.error
            ),
            ..failed
        },
    }
}

/// Unloads all applications that have ended or failed.
pub fn unload_ended(served: &ServerState) -> Result<Vec<Unloaded>, Failed> {
    let timeout = Duration::from_secs_f64(REQUEST_TIMEOUT_S);
    let (mut gone, mut failed) = (Vec::new(), None);
    for (name, ended) in served.host.unload_ended() {
        if let Some(memory) = &served.store
            && let Err(e) = memory.forget(&name, ended.number)
        {
            failed.get_or_insert(not_saved(&name, &e));
        }
        gone.push(Unloaded::new(name, ended));
    }
    for isolated in served.isolated.list() {
        if isolated.lives() {
            continue; // a request for its state could take long
        }
        let state = isolated.details().application.state;
        if matches!(state, State::Ended | State::Failed) {
            match unload_isolated(served, &isolated, true, timeout) {
                Ok(unloaded) => gone.push(unloaded),
                Err(why) if why.kind == Some(Kind::NotSaved) => drop(failed.get_or_insert(why)),
                // It was unloaded by another request, which reports it.
                Err(_) => {}
            }
        }
    }
    failed.map_or(Ok(gone), Err)
}

fn unload_isolated(
    served: &ServerState,
    isolated: &Isolated,
    now: bool,
    timeout: Duration,
) -> Result<Unloaded, Failed> {
    let (name, number) = (isolated.name.as_str(), isolated.number);
    let memory = served.store.as_ref();
    let marked = memory.map_or(Ok(()), |memory| memory.mark_unloading(name, number));
    let events = served.host.events();
    let unloaded = served.isolated.unload(isolated, now, timeout, events);
    let unloaded = unloaded.inspect_err(|_| {
        let state = isolated.details().application.state;
        if let Some(memory) = memory
            && !matches!(state, State::Draining | State::Ending)
        {
            memory.clear_unloading(name, number);
        }
    });
    let unloaded = unloaded.map_err(|failed| not_marked(failed, &marked))?;
    let saved = memory.map_or(Ok(()), |memory| memory.forget(name, number));
    saved.map_err(|e| not_saved(name, &e))?;
    Ok(unloaded)
}
