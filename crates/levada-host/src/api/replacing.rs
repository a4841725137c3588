// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing: from a request to a new version in the place of an application, in this process or in its own.

use super::isolated::Isolated;
use super::loading::is_live;
use super::prepare::Client;
use super::ready::{fits, make_ready, pins};
use super::restoring::until_there;
use super::types::{Details, Failed, LoadRequest, ReplaceRequest};
use super::{Served, USUAL, limit, output};
use crate::hosted::State;
use crate::keep::Limits;
use crate::load::Load;
use crate::refusal::{Kind, Refusal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub fn replace_now(
    served: &Served,
    name: &str,
    request: ReplaceRequest,
    client: Option<&Client>,
) -> Result<Details, Failed> {
    let within = limit(request.within, USUAL)?;
    if let Some(other) = request.load.name.as_ref().filter(|other| *other != name) {
        let what = format!("a new version has the name of the old one: {name}, and not {other}");
        return Err(Refusal::new(Kind::Wrong, what)
            .help("leave out the name")
            .into());
    }
    let within = until_there(served, name, within)?;
    if let Some(isolated) = served.isolated.find(name) {
        return replace_isolated(served, &isolated, request, within, client);
    }
    let host = &served.host;
    let old = host.live(name)?;
    let mut load = request.load;
    if load.isolate {
        let what = format!("{name} has no process of its own, so its new version can have none");
        return Err(Refusal::new(Kind::Wrong, what)
            .help("unload it, and load the new version with --isolate")
            .into());
    }
    goes_on(&mut load, name, |what| old.option(what));
    stays_so(&mut load, old.limits, old.priority);
    load.exclusive |= old.exclusive.is_some();
    drop(old);
    let mut ready = make_ready(served, load, client)?;
    fits(host, std::slice::from_ref(&ready))?;
    output::differs(served, std::slice::from_ref(&ready), Some(name))?;
    let Some(load) = ready.load.clone() else {
        return Err(Refusal::new(Kind::Wrong, "it cannot be isolated").into());
    };
    let load = Load {
        name: name.to_string(),
        pins: pins(served, name, &ready.request, &load)?,
        ..load
    };
    let (_coming, within) = served
        .coming
        .replaces(name, within, || is_live(served, name))?;
    let (mut kept, mut entered) = (Ok(()), Ok(()));
    let paused = ready.request.paused;
    let journal = served.memory.as_ref().map(|memory| memory.journal());
    if let Some(journal) = journal {
        journal.begins(name);
    }
    let replaces = served.memory.as_ref().map(|memory| memory.replaces(name));
    let new = host.replace(load, paused, within, |new, held| {
        ready.request.paused = held;
        // What its code opens is found from there, as with a load, where it has the process to itself.
        if host.is_isolated() {
            entered = std::env::set_current_dir(&ready.request.directory);
        }
        if let Some(memory) = &served.memory {
            kept = memory.keep(name, new.number, &ready.request);
            // Who has unloaded it before had nothing to forget.
            if new.goes() {
                memory.forget(name, new.number);
            }
        }
    });
    drop(replaces);
    if let Some(journal) = journal {
        match &new {
            Ok(_) => journal.runs(name),
            Err(_) => journal.does_not_run(name),
        }
    }
    let new = new?;
    kept.map_err(not_kept)?;
    entered.map_err(|e| not_entered(&ready.request.directory, &e))?;
    let (number, admission) = (new.number, new.admission.clone());
    let anew = new.lineage.anew.get().cloned().unwrap_or_default();
    drop(new);
    let seen = host.list().into_iter().find(|a| a.number == number);
    let seen =
        seen.ok_or_else(|| Refusal::new(Kind::Unknown, format!("{name} has been unloaded")))?;
    Ok(Details {
        diagnostics: ready.prepared.diagnostics,
        text: ready.prepared.text,
        admission,
        anew,
        ..Details::from(&seen)
    })
}

/// Does nothing of it run, as the next host is to know?
fn is_held(state: State) -> bool {
    matches!(state, State::Paused | State::Loaded)
}

/// The new version goes on where the old one is, in the same process.
fn replace_isolated(
    served: &Served,
    isolated: &Arc<Isolated>,
    request: ReplaceRequest,
    within: Duration,
    client: Option<&Client>,
) -> Result<Details, Failed> {
    let mut load = request.load;
    goes_on(&mut load, &isolated.name, |what| isolated.option(what));
    // Its process knows that by itself; the next host, which loads what is remembered, does not.
    let old = isolated.details().application;
    let limits = Limits {
        rate: old.promised,
        share: old.share,
    };
    stays_so(&mut load, limits, old.priority);
    load.isolate = true;
    let ready = make_ready(served, load, client)?;
    let name = isolated.name.as_str();
    output::differs(served, std::slice::from_ref(&ready), Some(name))?;
    let (_coming, within) = served
        .coming
        .replaces(name, within, || is_live(served, name))?;
    isolated.begin_replacing(&ready.prepared.options)?;
    let (memory, of, mut request) = (served.memory.clone(), isolated.clone(), ready.request);
    let asked = request.clone();
    let remembered = move |replace: &dyn Fn() -> Result<Details, Failed>| {
        // Until it is remembered: the new version may end at once.
        let _replaces = memory.as_ref().map(|memory| memory.replaces(&of.name));
        let details = replace()?;
        request.paused = is_held(details.application.state);
        if let Some(memory) = &memory {
            let kept = memory.keep(&of.name, of.number, &request);
            kept.map_err(not_kept)?;
        }
        Ok(details)
    };
    let details = isolated.replace(&asked, within, remembered)?;
    Ok(Details {
        diagnostics: ready.prepared.diagnostics,
        text: ready.prepared.text,
        ..details
    })
}

/// A new version has the name of the old one, and its input and output if it names none.
fn goes_on<S: AsRef<str>>(load: &mut LoadRequest, name: &str, of: impl Fn(&str) -> Option<S>) {
    let of = |what| of(what).map(|s| s.as_ref().to_string());
    load.input = load.input.take().or_else(|| of("in"));
    load.output = load.output.take().or_else(|| of("out"));
    load.name = Some(name.to_string());
}

/// What it was promised and allowed stays so, unless something else is said.
fn stays_so(load: &mut LoadRequest, limits: Limits, priority: i32) {
    load.rate = load.rate.or(limits.rate);
    load.share = load.share.or(limits.share);
    if load.priority == 0 {
        load.priority = priority;
    }
}

fn not_entered(folder: &Path, e: &std::io::Error) -> Refusal {
    let what = format!("it runs, but not in {}: {e}", folder.display());
    Refusal::new(Kind::Limit, what)
}

fn not_kept(e: std::io::Error) -> Refusal {
    Refusal::new(
        Kind::Limit,
        format!("it runs, but what the next host knows is the version before it: {e}"),
    )
}
