// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unloading an application by its name, wherever it runs, or forgetting what the host before this one had loaded.
//! The next host is told that it goes before it has gone: whatever ends this one meanwhile, it is not loaded again.

use super::Served;
use super::isolated::Isolated;
use super::loading::is_live;
use super::types::{Failed, Unloaded, WITHIN};
use crate::hosted::State;
use std::time::Duration;

/// At once (`now`), or when what is in flight has come out.
pub fn unload_by_name(
    served: &Served,
    name: String,
    now: bool,
    within: Duration,
) -> Result<Unloaded, Failed> {
    let memory = served.memory.as_ref();
    let is_here = || served.isolated.find(&name).is_some() || served.host.find(&name).is_ok();
    if !is_here() && memory.is_some_and(|m| m.forget_left(&name)) {
        served.coming.is_not_due(&name);
        return Ok(Unloaded::forgotten(name));
    }
    // What is to end at once need not begin.
    let within = match now {
        true => within,
        false => {
            let lives = || is_live(served, &name);
            served.coming.wait(&name, within, lives)?
        }
    };
    if let Some(isolated) = served.isolated.find(&name) {
        return unload_isolated(served, &isolated, now, within);
    }
    let mut numbers = Vec::new();
    let goes = |number| {
        numbers.push(number);
        if let Some(memory) = memory {
            memory.goes(&name, number);
        }
    };
    let ended = served.host.unload(&name, now, within, goes)?;
    for number in numbers.into_iter().chain([ended.number]) {
        if let Some(memory) = memory {
            memory.forget(&name, number);
        }
    }
    Ok(Unloaded::new(name, ended))
}

/// All that have ended or failed, wherever they ran, and nothing that runs.
pub fn unload_ended(served: &Served) -> Vec<Unloaded> {
    let within = Duration::from_secs_f64(WITHIN);
    let mut gone = Vec::new();
    for (name, ended) in served.host.unload_ended() {
        if let Some(memory) = &served.memory {
            memory.forget(&name, ended.number);
        }
        gone.push(Unloaded::new(name, ended));
    }
    for isolated in served.isolated.list() {
        if isolated.lives() {
            continue; // and may take long to say so
        }
        let state = isolated.details().application.state;
        if matches!(state, State::Ended | State::Failed) {
            // One that somebody else has unloaded meanwhile is theirs to tell.
            gone.extend(unload_isolated(served, &isolated, true, within));
        }
    }
    gone
}

fn unload_isolated(
    served: &Served,
    isolated: &Isolated,
    now: bool,
    within: Duration,
) -> Result<Unloaded, Failed> {
    let (name, number) = (isolated.name.as_str(), isolated.number);
    let memory = served.memory.as_ref();
    if let Some(memory) = memory {
        memory.goes(name, number);
    }
    let events = served.host.events();
    let unloaded = served.isolated.unload(isolated, now, within, events);
    let unloaded = unloaded.inspect_err(|_| {
        let state = isolated.details().application.state;
        if let Some(memory) = memory
            && !matches!(state, State::Draining | State::Ending)
        {
            memory.stays(name, number);
        }
    })?;
    if let Some(memory) = memory {
        memory.forget(name, number);
    }
    Ok(unloaded)
}
