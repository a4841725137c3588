// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaces an application by name with a new version, in this process or in its child process.

use crate::app::HostedApp;
use crate::isolated::Isolated;
use crate::lifecycle::load::Load;
use crate::lifecycle::next_version::Next;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::limits::Limits;
use crate::ops::load::is_live;
use crate::ops::output_conflicts;
use crate::ops::pending::PendingLoad;
use crate::ops::prepare_process::Client;
use crate::ops::ready::{PreparedLoad, check_memory, pins, prepare_load};
use crate::ops::restore::wait_loaded;
use crate::ops::state::ServerState;
use crate::protocol::timeout::timeout_from;
use crate::protocol::{Details, Failed, LoadRequest, REQUEST_TIMEOUT_S, ReplaceRequest};
use crate::util::lock::lock;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub fn replace_now(
    served: &ServerState,
    name: &str,
    request: ReplaceRequest,
    client: Option<&Client>,
) -> Result<Details, Failed> {
    let timeout = timeout_from(request.timeout, REQUEST_TIMEOUT_S)?;
    if let Some(other) = request.load.name.as_ref().filter(|other| *other != name) {
        let what = format!("a new version has the name of the old one: {name}, and not {other}");
        return Err(Refusal::new(Kind::Wrong, what)
            .help("leave out the name")
            .into());
    }
    let timeout = wait_loaded(served, name, timeout)?;
    let asked = Replacement {
        served,
        name,
        load: request.load,
        client,
    };
    match served.isolated.find(name) {
        Some(isolated) => asked.replace_isolated(&isolated, timeout),
        None => asked.replace_here(timeout),
    }
}

/// A requested replacement.
struct Replacement<'a> {
    served: &'a ServerState,
    name: &'a str,
    load: LoadRequest,
    client: Option<&'a Client>,
}

/// Maximum number of preparations, if other replacements come first.
const PREPARATIONS_MAX: u32 = 16;

/// What a new version inherits, unless the request says otherwise.
#[derive(PartialEq)]
struct InheritedSettings {
    input: Option<String>,
    output: Option<String>,
    limits: Limits,
    priority: i32,
    exclusive: bool,
}

impl<'a> Replacement<'a> {
    /// Prepares the new version and waits for its turn; returns the time that is left. If another replacement came
    /// first, what is inherited has changed, and it is prepared again.
    fn prepare_in_turn(
        &self,
        timeout: Duration,
        stays: impl Fn() -> Result<InheritedSettings, Refusal>,
    ) -> Result<(PreparedLoad, PendingLoad<'a>, Duration), Failed> {
        let (served, name) = (self.served, self.name);
        // Compilation does not count.
        let mut left = timeout;
        for _ in 0..PREPARATIONS_MAX {
            let before = stays()?;
            let ready = prepare_load(
                served,
                before.apply_to(&self.load, name),
                self.client,
                false,
            )?;
            check_memory(&served.host, std::slice::from_ref(&ready))?;
            let turn = served
                .pending
                .start_replace(name, left, || is_live(served, name));
            let coming;
            (coming, left) = turn?;
            if stays()? == before {
                return Ok((ready, coming, left));
            }
        }
        let what = format!("{name} was replaced by other requests again and again");
        Err(Refusal::new(Kind::Conflict, what).help("try again").into())
    }

    fn replace_here(self, timeout: Duration) -> Result<Details, Failed> {
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
            Ok(InheritedSettings {
                input: option("in"),
                output: option("out"),
                limits: old.limits,
                priority: old.priority,
                exclusive: old.exclusive.is_some(),
            })
        };
        let (mut ready, _coming, timeout) = self.prepare_in_turn(timeout, stays)?;
        let (mut kept, mut entered) = (Ok(()), Ok(()));
        let paused = ready.request.paused;
        let journal = served.store.as_ref().map(|memory| memory.journal());
        let replaces = served
            .store
            .as_ref()
            .map(|memory| memory.start_replacing(name, &ready.request));
        let next = self.load_next(&ready);
        let takes_over = |new: &HostedApp, held| {
            ready.request.paused = held;
            // Relative paths in its code start at the request's folder, as after a load, if the process belongs to it
            // alone.
            if host.is_isolated() {
                entered = std::env::set_current_dir(&ready.request.directory);
            }
            if let Some(memory) = &served.store {
                kept = memory.save_version(name, new.number, &ready.request);
                // An unload before this had nothing to remove from the state folder.
                if new.is_unloading() {
                    let _ = memory.forget(name, new.number);
                }
            }
            // Not before the state folder describes the new version.
            if let Some(journal) = journal {
                journal.record_start(name);
            }
        };
        let new = next.and_then(|next| Ok(host.replace(next, paused, timeout, takes_over)?));
        drop(replaces);
        if let Some(journal) = journal {
            match &new {
                Ok(_) => journal.record_running(name),
                Err(_) => journal.record_not_started(name),
            }
        }
        let new = new?;
        kept.map_err(not_saved)?;
        entered.map_err(|e| not_entered(&ready.request.directory, &e))?;
        let (number, admission) = (new.number, new.admission.clone());
        let state_reset = new.versions.state_reset.get().cloned().unwrap_or_default();
        drop(new);
        let seen = host.list().into_iter().find(|a| a.number == number);
        let seen =
            seen.ok_or_else(|| Refusal::new(Kind::Unknown, format!("{name} has been unloaded")))?;
        Ok(Details {
            diagnostics: ready.prepared.diagnostics,
            text: ready.prepared.text,
            admission,
            state_reset,
            ..Details::from(&seen)
        })
    }

    /// Loads it. Until the host knows it no other load may take its output file or its reservation.
    fn load_next(&self, ready: &PreparedLoad) -> Result<Next, Failed> {
        let (served, name) = (self.served, self.name);
        let Some(load) = ready.load.clone() else {
            return Err(Refusal::new(Kind::Wrong, "it cannot be isolated").into());
        };
        let mut load = Load {
            name: name.to_string(),
            pins: pins(served, name, &ready.request, &load)?,
            ..load
        };
        served.host.reserve_core_for_next(&mut load)?;
        let _naming = lock(&served.name_lock);
        output_conflicts::check_outputs(served, std::slice::from_ref(ready), Some(name))?;
        Ok(served.host.load_next(load)?)
    }

    /// The new version replaces the old one within the child process.
    fn replace_isolated(
        mut self,
        isolated: &Arc<Isolated>,
        timeout: Duration,
    ) -> Result<Details, Failed> {
        self.load.isolate = true;
        let stays = || {
            // The child inherits these itself, but the state folder needs them.
            let given = isolated.given();
            let option = |what| given.option(what).map(str::to_string);
            Ok(InheritedSettings {
                input: option("in"),
                output: option("out"),
                limits: given.limits,
                priority: given.priority,
                exclusive: false,
            })
        };
        let (served, name) = (self.served, self.name);
        let (ready, _coming, timeout) = self.prepare_in_turn(timeout, stays)?;
        let naming = lock(&served.name_lock);
        output_conflicts::check_outputs(served, std::slice::from_ref(&ready), Some(name))?;
        isolated.begin_replacing(ready.settings(), timeout)?;
        drop(naming);
        let (memory, of, request) = (served.store.clone(), isolated.clone(), ready.request);
        let asked = request.clone();
        let remembered = move |replace: &dyn Fn() -> Result<Details, Failed>| {
            // Until it is stored: the new version may end at once.
            let _replaces = memory
                .as_ref()
                .map(|memory| memory.start_replacing(&of.name, &request));
            let replaced = replace();
            let pending = match &replaced {
                Ok(_) => false,
                Err(failed) if failed.pending => true,
                Err(_) => return replaced,
            };
            // It may have been paused or started since. Its status is requested before the lock is taken.
            of.details();
            let is_paused = || stays_paused(of.last_state(), pending);
            let kept = memory.as_ref().map_or(Ok(()), |memory| {
                memory.save_next(&of.name, of.number, &request, is_paused)
            });
            match (replaced, kept.map_err(not_saved)) {
                (Err(failed), Err(unsaved)) => Err(Failed {
                    error: format!("{}; {}", failed.error, unsaved.what),
                    ..failed
                }),
                (replaced, kept) => kept.map_err(Failed::from).and(replaced),
            }
        };
        let details = isolated.replace(&asked, timeout, remembered)?;
        Ok(Details {
            diagnostics: ready.prepared.diagnostics,
            text: ready.prepared.text,
            ..details
        })
    }
}

/// Whether the next host loads it paused. While the new version only `comes`, an end is that of the old version.
fn stays_paused(state: State, pending: bool) -> bool {
    match state {
        State::Paused | State::Loaded => true,
        State::Running => false,
        _ => pending,
    }
}

impl InheritedSettings {
    /// The request with what is inherited: the name, the input and output if it names none, limits and priority.
    fn apply_to(&self, asked: &LoadRequest, name: &str) -> LoadRequest {
        LoadRequest {
            name: Some(name.to_string()),
            input: asked.input.clone().or_else(|| self.input.clone()),
            output: asked.output.clone().or_else(|| self.output.clone()),
            rate: asked.rate.or(self.limits.rate),
            cpus: asked.cpus.or(self.limits.cpus),
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

fn not_saved(e: std::io::Error) -> Refusal {
    Refusal::new(
        Kind::NotSaved,
        format!("it runs, but the state folder has the version before it: {e}"),
    )
    .help("it is tried again with each change, and when this host ends")
}
