// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the host before this one had loaded: it is loaded again when this one begins, if it restores, or when
//! somebody asks for it; and until then, or where it cannot be, whoever names it is told so.

use crate::model::error::{Kind, Refusal};
use crate::model::events::What;
use crate::ops::load::{Cause, is_live, load_them};
use crate::ops::state::Served;
use crate::persist::journal::Journal;
use crate::persist::store::{Memory, Restore};
use crate::protocol::{Failed, LoadRequest};
use levada_text::escaped;
use std::io::Write;
use std::time::Duration;

/// Whom a restore is to load, in this order.
pub struct ToRestore {
    first: Vec<String>,
    /// Those that may have ended the host before this one.
    last: Vec<String>,
}

/// What ran when the host before this one ended, but for what has ended it. Who asks for one of these from now on
/// waits for it.
pub fn to_restore(served: &Served) -> Option<ToRestore> {
    let memory = served.memory.as_ref()?;
    if served.restore == Restore::Nothing {
        return None;
    }
    let all = served.restore == Restore::All;
    let suspects: &[String] = if all { &[] } else { memory.suspects() };
    let wanted = memory.left().into_iter().filter(|name| {
        let held = memory.held(name).filter(|_| !all);
        if let Some(why) = &held {
            tell_left_out(served, What::Held, name, &format!("held back: {why}"));
        }
        held.is_none()
    });
    let (last, first): (Vec<_>, Vec<_>) = wanted.partition(|name| suspects.contains(name));
    for name in first.iter().chain(&last) {
        memory.not_loaded(name, "is to be loaded again");
    }
    served.coming.are_due(first.iter().chain(&last).cloned());
    Some(ToRestore { first, last })
}

/// Loads these. What cannot be loaded any more is told. Those that may have ended the host before this one are begun
/// last, few at a time.
pub fn restore(served: &Served, ToRestore { first, last }: ToRestore) {
    let Some(memory) = &served.memory else {
        return;
    };
    // Meanwhile somebody may have resumed it, forgotten it, or given its name to another.
    let load = |name: &String| {
        let _coming = served.coming.loads_then(name);
        if memory.is_left(name) && !is_live(served, name) {
            drop(load_left(served, memory, name, None));
        }
    };
    first.iter().for_each(load);
    for some in last.chunks(Journal::together(last.len())) {
        // Who ends the host now is one of these.
        memory.journal().await_settled();
        some.iter().for_each(load);
    }
}

/// Who wants it again, and waits.
struct Asks {
    within: Duration,
    /// A restore is to load it in any case.
    due: bool,
}

/// Loads again what the host before this one had loaded.
fn load_left(
    served: &Served,
    memory: &Memory,
    name: &str,
    asks: Option<Asks>,
) -> Result<(), Failed> {
    let journal = memory.journal();
    let load = |mut request: LoadRequest| {
        // The host before this one has admitted it beside all that it had; this one may have promised something since.
        request.anyway |= asks.as_ref().is_none_or(|asks| asks.due);
        let why = match &asks {
            Some(asks) => {
                request.paused = false;
                request.within = Some(asks.within.as_secs_f64());
                Cause::Resumed
            }
            None => {
                // How long its load could take was for who asked then.
                request.within = None;
                Cause::Restored
            }
        };
        let apart = request.isolate;
        load_them(served, vec![request], None, why)?;
        if apart {
            memory.release(name).map_err(|e| {
                let what = format!(
                    "{name} runs, but it could not be saved that it is held back no more: {e}"
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
        // Somebody else has loaded another meanwhile, which may have begun before it was written of this one that it does.
        Err(failed) if is_live(served, name) => {
            journal.runs(name);
            Err(failed)
        }
        Err(failed) => {
            journal.does_not_run(name);
            // Somebody has unloaded it meanwhile: there is nothing to be told.
            if !memory.is_left(name) {
                return Err(failed);
            }
            let why = format!("cannot be loaded again: {}", failed.error);
            memory.not_loaded(name, &why);
            tell_left_out(served, What::Failed, name, &why);
            Err(failed)
        }
    }
}

/// Loads what is kept of the host before this one, since somebody asks for it; false: there is none.
pub fn resume_left(served: &Served, name: &str, within: Duration) -> Result<bool, Failed> {
    let Some(memory) = served.memory.as_ref().filter(|m| m.is_left(name)) else {
        return Ok(false);
    };
    let due = served.coming.is_due(name);
    // Who loads it at this moment is waited for, as for any other.
    let Some(_coming) = served.coming.loads(name) else {
        return Ok(false);
    };
    if !memory.is_left(name) || is_live(served, name) {
        return Ok(false);
    }
    load_left(served, memory, name, Some(Asks { within, due }))?;
    Ok(true)
}

/// For who does something to one by its name: waits until that has begun, or its next version has; what is left of
/// that time then. One that is left of the host before this one is told as such.
pub fn until_there(served: &Served, name: &str, within: Duration) -> Result<Duration, Refusal> {
    let lives = || is_live(served, name);
    let left = served.coming.wait(name, within, lives)?;
    not_loaded(served, name).map_or(Ok(left), Err)
}

/// What is said of one that is left of the host before this one, where there is no other of its name.
pub fn not_loaded(served: &Served, name: &str) -> Option<Refusal> {
    let memory = served.memory.as_ref()?;
    if served.isolated.find(name).is_some() || served.host.find(name).is_ok() {
        return None;
    }
    let why = memory.why_left(name)?;
    let why = why.unwrap_or_else(|| "the last host had loaded it".to_string());
    let what = format!("{name} is not loaded: {why}");
    Some(Refusal::new(Kind::Conflict, what).help(left_help(name)))
}

fn left_help(name: &str) -> String {
    format!("levada resume {name} loads it, levada unload {name} forgets it")
}

/// Says so where whoever looks after the host looks first.
fn tell_left_out(served: &Served, event: What, name: &str, why: &str) {
    served.host.events().tell_followers(event, name, why);
    let line = format!("{name}: {why} ({})\n", left_help(name));
    let _ = std::io::stderr()
        .lock()
        .write_all(escaped(&line).as_bytes());
}
