// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replacing: from a request to a new version in the place of an application, in this process or in its own.

use crate::app::Hosted;
use crate::isolated::Isolated;
use crate::lifecycle::load::Load;
use crate::lifecycle::next_version::Next;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::limits::Limits;
use crate::ops::load::is_live;
use crate::ops::output_conflicts;
use crate::ops::pending::Coming;
use crate::ops::prepare_process::Client;
use crate::ops::ready::{Ready, fits, make_ready, pins};
use crate::ops::restore::until_there;
use crate::ops::state::Served;
use crate::protocol::timeout::limit;
use crate::protocol::{Details, Failed, LoadRequest, ReplaceRequest, WITHIN};
use crate::util::lock::lock;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub fn replace_now(
    served: &Served,
    name: &str,
    request: ReplaceRequest,
    client: Option<&Client>,
) -> Result<Details, Failed> {
    let within = limit(request.within, WITHIN)?;
    if let Some(other) = request.load.name.as_ref().filter(|other| *other != name) {
        let what = format!("a new version has the name of the old one: {name}, and not {other}");
        return Err(Refusal::new(Kind::Wrong, what)
            .help("leave out the name")
            .into());
    }
    let within = until_there(served, name, within)?;
    let asked = Asked {
        served,
        name,
        load: request.load,
        client,
    };
    match served.isolated.find(name) {
        Some(isolated) => asked.replace_isolated(&isolated, within),
        None => asked.replace_here(within),
    }
}

/// A new version as it was asked for.
struct Asked<'a> {
    served: &'a Served,
    name: &'a str,
    load: LoadRequest,
    client: Option<&'a Client>,
}

/// So often it is made ready anew, since another new version has come there meanwhile.
const AGAIN: u32 = 16;

/// What a new version has of the one in whose place it comes, where nothing else is said.
#[derive(PartialEq)]
struct Stays {
    input: Option<String>,
    output: Option<String>,
    limits: Limits,
    priority: i32,
    exclusive: bool,
}

impl<'a> Asked<'a> {
    /// Made ready, and its turn to take that place; what is left of that time then. While it was compiled or waited, another new
    /// version may have come there: then what `stays` is another's.
    fn in_turn(
        &self,
        within: Duration,
        stays: impl Fn() -> Result<Stays, Refusal>,
    ) -> Result<(Ready, Coming<'a>, Duration), Failed> {
        let (served, name) = (self.served, self.name);
        // What is compiled takes none of it.
        let mut left = within;
        for _ in 0..AGAIN {
            let before = stays()?;
            let ready = make_ready(
                served,
                before.in_request(&self.load, name),
                self.client,
                false,
            )?;
            fits(&served.host, std::slice::from_ref(&ready))?;
            let turn = served.coming.replaces(name, left, || is_live(served, name));
            let coming;
            (coming, left) = turn?;
            if stays()? == before {
                return Ok((ready, coming, left));
            }
        }
        let what = format!("{name} has been replaced by others all the time");
        Err(Refusal::new(Kind::Conflict, what).help("try again").into())
    }

    fn replace_here(self, within: Duration) -> Result<Details, Failed> {
        let (served, name) = (self.served, self.name);
        let host = &served.host;
        host.live(name)?;
        if self.load.isolate {
            let what =
                format!("{name} has no process of its own, so its new version can have none");
            return Err(Refusal::new(Kind::Wrong, what)
                .help("unload it, and load the new version with --isolate")
                .into());
        }
        let stays = || {
            let old = host.live(name)?;
            let option = |what| old.option(what).map(str::to_string);
            Ok(Stays {
                input: option("in"),
                output: option("out"),
                limits: old.limits,
                priority: old.priority,
                exclusive: old.exclusive.is_some(),
            })
        };
        let (mut ready, _coming, within) = self.in_turn(within, stays)?;
        let (mut kept, mut entered) = (Ok(()), Ok(()));
        let paused = ready.request.paused;
        let journal = served.memory.as_ref().map(|memory| memory.journal());
        let replaces = served
            .memory
            .as_ref()
            .map(|memory| memory.replaces(name, &ready.request));
        let next = self.load_next(&ready);
        let takes_over = |new: &Hosted, held| {
            ready.request.paused = held;
            // What its code opens is found from there, as with a load, where it has the process to itself.
            if host.is_isolated() {
                entered = std::env::set_current_dir(&ready.request.directory);
            }
            if let Some(memory) = &served.memory {
                kept = memory.keep_version(name, new.number, &ready.request);
                // Who has unloaded it before had nothing to forget, and is told that it goes.
                if new.goes() {
                    let _ = memory.forget(name, new.number);
                }
            }
            // Not before the next host would load it, and not the one before it.
            if let Some(journal) = journal {
                journal.begins(name);
            }
        };
        let new = next.and_then(|next| Ok(host.replace(next, paused, within, takes_over)?));
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

    /// Loads it. Until the host knows it nobody else is given the file that it writes, or what it is promised.
    fn load_next(&self, ready: &Ready) -> Result<Next, Failed> {
        let (served, name) = (self.served, self.name);
        let Some(load) = ready.load.clone() else {
            return Err(Refusal::new(Kind::Wrong, "it cannot be isolated").into());
        };
        let mut load = Load {
            name: name.to_string(),
            pins: pins(served, name, &ready.request, &load)?,
            ..load
        };
        served.host.empty_for_next(&mut load)?;
        let _naming = lock(&served.naming);
        output_conflicts::differs(served, std::slice::from_ref(ready), Some(name))?;
        Ok(served.host.load_next(load)?)
    }

    /// The new version goes on where the old one is, in the same process.
    fn replace_isolated(
        mut self,
        isolated: &Arc<Isolated>,
        within: Duration,
    ) -> Result<Details, Failed> {
        self.load.isolate = true;
        let stays = || {
            // Its process knows that by itself; the next host, which loads what is remembered, does not.
            let given = isolated.given();
            let option = |what| given.option(what).map(str::to_string);
            Ok(Stays {
                input: option("in"),
                output: option("out"),
                limits: given.limits,
                priority: given.priority,
                exclusive: false,
            })
        };
        let (served, name) = (self.served, self.name);
        let (ready, _coming, within) = self.in_turn(within, stays)?;
        let naming = lock(&served.naming);
        output_conflicts::differs(served, std::slice::from_ref(&ready), Some(name))?;
        isolated.begin_replacing(ready.given(), within)?;
        drop(naming);
        let (memory, of, request) = (served.memory.clone(), isolated.clone(), ready.request);
        let asked = request.clone();
        let remembered = move |replace: &dyn Fn() -> Result<Details, Failed>| {
            // Until it is remembered: the new version may end at once.
            let _replaces = memory
                .as_ref()
                .map(|memory| memory.replaces(&of.name, &request));
            let replaced = replace();
            let comes = match &replaced {
                Ok(_) => false,
                Err(failed) if failed.comes => true,
                Err(_) => return replaced,
            };
            // It may have been paused since, or begun. What it says is waited for before anything is held up by that.
            of.details();
            let is_paused = || is_held(of.last_state(), comes);
            let kept = memory.as_ref().map_or(Ok(()), |memory| {
                memory.keep_next(&of.name, of.number, &request, is_paused)
            });
            match (replaced, kept.map_err(not_kept)) {
                (Err(failed), Err(not_kept)) => Err(Failed {
                    error: format!("{}; {}", failed.error, not_kept.what),
                    ..failed
                }),
                (replaced, kept) => kept.map_err(Failed::from).and(replaced),
            }
        };
        let details = isolated.replace(&asked, within, remembered)?;
        Ok(Details {
            diagnostics: ready.prepared.diagnostics,
            text: ready.prepared.text,
            ..details
        })
    }
}

/// Does nothing of it run, as the next host is to know? As long as it only `comes`, an end is that of the old version.
fn is_held(state: State, comes: bool) -> bool {
    match state {
        State::Paused | State::Loaded => true,
        State::Running => false,
        _ => comes,
    }
}

impl Stays {
    /// A new version has the name of the old one, its input and output if it names none, and what that was promised and
    /// allowed, unless something else is said.
    fn in_request(&self, asked: &LoadRequest, name: &str) -> LoadRequest {
        LoadRequest {
            name: Some(name.to_string()),
            input: asked.input.clone().or_else(|| self.input.clone()),
            output: asked.output.clone().or_else(|| self.output.clone()),
            rate: asked.rate.or(self.limits.rate),
            share: asked.share.or(self.limits.share),
            priority: match asked.priority {
                0 => self.priority,
                said => said,
            },
            exclusive: asked.exclusive || self.exclusive,
            ..asked.clone()
        }
    }
}

fn not_entered(folder: &Path, e: &std::io::Error) -> Refusal {
    let what = format!("it runs, but not in {}: {e}", folder.display());
    Refusal::new(Kind::Limit, what)
}

fn not_kept(e: std::io::Error) -> Refusal {
    Refusal::new(
        Kind::NotSaved,
        format!("it runs, but what the next host knows is the version before it: {e}"),
    )
    .help("it is tried again with each change, and when this host ends")
}
