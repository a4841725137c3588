// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads the applications of a request: all of them, or none. Errors are found before any application starts.

use crate::admission::check::any_rate_reserved;
use crate::app::HostedApp;
use crate::isolated::Isolated;
use crate::isolated::set::NewIsolated;
use crate::lifecycle::load::{Load, name_taken};
use crate::model::admission_report::Admission;
use crate::model::app_name::check_name;
use crate::model::error::{Kind, Refusal};
use crate::ops::names::{assign_names, likely_name};
use crate::ops::output_conflicts;
use crate::ops::pending::PendingLoad;
use crate::ops::prepare_process::Client;
use crate::ops::ready::{PreparedLoad, check_memory, label, pins, prepare_load};
use crate::ops::state::ServerState;
use crate::persist::journal::Journal;
use crate::protocol::{Details, Failed, LoadRequest, Manifest, REQUEST_TIMEOUT_S};
use crate::util::lock::lock;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A loaded application, in this process or in a child.
enum LoadedApp {
    Here(Arc<HostedApp>),
    Isolated(Arc<Isolated>),
}

impl LoadedApp {
    fn number(&self) -> u64 {
        match self {
            LoadedApp::Here(hosted) => hosted.number,
            LoadedApp::Isolated(isolated) => isolated.number,
        }
    }

    /// Whether it is being unloaded before it has started.
    fn is_unloading(&self) -> bool {
        match self {
            LoadedApp::Here(hosted) => hosted.is_unloading(),
            LoadedApp::Isolated(isolated) => isolated.is_unloading(),
        }
    }
}

/// Loads all of these applications, or none: the first error is returned before anything is changed.
pub fn load_all(
    served: &ServerState,
    requests: Vec<LoadRequest>,
    client: Option<&Client>,
) -> Result<Vec<Details>, Failed> {
    load_for(served, requests, client, Cause::Asked)
}

/// Loads one application.
pub(crate) fn load_one(
    served: &ServerState,
    request: LoadRequest,
    client: Option<&Client>,
) -> Result<Details, Failed> {
    let loaded = load_all(served, vec![request], client)?.pop();
    loaded.ok_or_else(|| Refusal::new(Kind::Unknown, "it has been unloaded at once").into())
}

/// Loads the applications of a manifest, all or none.
pub(crate) fn load_manifest(
    served: &ServerState,
    manifest: Manifest,
    client: Option<&Client>,
) -> Result<Vec<Details>, Failed> {
    if manifest.application.is_empty() {
        let what = "there is no application in the manifest";
        return Err(Refusal::new(Kind::Wrong, what)
            .help("each is a table [[application]], with the network that it is")
            .into());
    }
    // The applications of a manifest are mapped together, from measurements.
    if let Some(one) = manifest
        .application
        .iter()
        .find(|a| !a.core_usage_by_others.is_empty())
    {
        let what = format!("{}: core_usage_by_others is not for manifests", label(one));
        return Err(Refusal::new(Kind::Wrong, what)
            .help("leave it out, or load that application alone by a request")
            .into());
    }
    load_all(served, manifest.application, client)
}

/// The reason of a load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A request.
    Asked,
    /// A restore: it is already in the state folder, and no client waits.
    Restored,
    /// The same, and a client waits.
    Resumed,
}

pub(crate) fn load_for(
    served: &ServerState,
    requests: Vec<LoadRequest>,
    client: Option<&Client>,
    why: Cause,
) -> Result<Vec<Details>, Failed> {
    let restored = why != Cause::Asked;
    let mut names = BTreeSet::new();
    for name in requests.iter().filter_map(|r| r.name.as_ref()) {
        check_name(name)?;
        // Before a useless compilation.
        if is_live(served, name) {
            return Err(name_taken(name).into());
        }
        if !names.insert(name.clone()) {
            let what = format!("two of these applications are named {name}");
            return Err(Refusal::new(Kind::Wrong, what)
                .help("give one of them another name")
                .into());
        }
    }
    let several = requests.len() > 1;
    let ready = (1..).zip(requests).map(|(place, request)| {
        let owner = several.then(|| match label(&request) {
            unknown if unknown.is_empty() => format!("application {place}"),
            known => known,
        });
        prepare_load(served, request, client, restored).map_err(|failed| failed.of(owner))
    });
    let mut ready = ready.collect::<Result<Vec<PreparedLoad>, Failed>>()?;
    check_memory(&served.host, &ready)?;
    reserve_cores(served, &mut ready)?;
    place_together(served, &mut ready)?;
    let mut loaded: Vec<(LoadedApp, PreparedLoad)> = Vec::new();
    // Pending until they have started, or the load has been undone.
    let mut coming = if several {
        served.pending.start_manifest(served.host.last())
    } else {
        served.pending.start_load()
    };
    let done = place_all(served, ready, &names, &mut loaded, restored, &mut coming);
    if let Err(refused) = done.and_then(|()| start_all(served, &loaded, why)) {
        undo(served, &loaded, restored);
        return Err(refused);
    }
    drop(coming);
    journal_each(served, &loaded, Journal::record_running);
    let details = loaded.into_iter().filter_map(|(loaded, one)| {
        let (mut details, claimed) = match loaded {
            LoadedApp::Here(hosted) => {
                let seen = served.host.with_number(hosted.number)?;
                let details = Details {
                    admission: hosted.admission.clone(),
                    ..Details::from(&seen)
                };
                (details, seen.bytes)
            }
            LoadedApp::Isolated(isolated) => {
                let details = Details {
                    admission: admission_of_isolated(served, &isolated.name, &one),
                    ..isolated.details()
                };
                (details, isolated.memory_bytes())
            }
        };
        // It may have ended since.
        details.application.memory = claimed;
        Some(Details {
            diagnostics: one.prepared.diagnostics,
            text: one.prepared.text,
            ..details
        })
    });
    Ok(details.collect())
}

/// The report for an isolated application that has a reserved rate, or is loaded with others that have.
fn admission_of_isolated(
    served: &ServerState,
    name: &str,
    one: &PreparedLoad,
) -> Option<Admission> {
    let uncounted = one.request.rate.filter(|_| !one.prepared.counts);
    let rate = one.request.rate.filter(|_| one.prepared.counts);
    let any = rate.is_some() || any_rate_reserved(&served.host.shared);
    let unknown = any.then(|| {
        Admission::unknown(&format!(
            "{name} is isolated, and is not mapped with others"
        ))
    });
    match uncounted {
        Some(reserved) => Some(Admission::uncounted(name, reserved, unknown)),
        None => unknown,
    }
}

/// Reserves the cores of exclusive applications, before a lock is taken that other requests need.
fn reserve_cores(served: &ServerState, ready: &mut [PreparedLoad]) -> Result<(), Failed> {
    let several = ready.len() > 1;
    for one in ready {
        let name = likely_name(one);
        let Some(load) = one.load.as_mut().filter(|load| load.exclusive) else {
            continue;
        };
        let asked = Load {
            pins: pins(served, &name, &one.request, load)?,
            name,
            ..load.clone()
        };
        let emptied = served
            .host
            .reserve_core_for(&asked, None)
            .map_err(Failed::from);
        let owner = several.then(|| label(&one.request));
        load.reserved_core = Some(emptied.map_err(|failed| failed.of(owner))?);
    }
    Ok(())
}

/// The initial workers of applications that share the cores, if there are several.
fn place_together(served: &ServerState, ready: &mut [PreparedLoad]) -> Result<(), Failed> {
    let several = ready.len() > 1;
    let mut loads = Vec::new();
    for one in ready {
        let shares = |load: &&mut Load| !load.exclusive && !load.network.is_program();
        let name = likely_name(one);
        let Some(load) = one.load.as_mut().filter(shares) else {
            continue;
        };
        let owner = several.then(|| label(&one.request));
        let pins = pins(served, &name, &one.request, load);
        load.pins = pins.map_err(|failed| failed.of(owner))?;
        loads.push(load);
    }
    let asked: Vec<&Load> = loads.iter().map(|load| &**load).collect();
    let seats = served.host.initial_placements(&asked);
    for (load, seats) in loads.into_iter().zip(seats.into_iter().flatten()) {
        load.initial_workers = Some(seats);
    }
    Ok(())
}

/// Writes a line to the journal for each that runs in this process.
fn journal_each(
    served: &ServerState,
    loaded: &[(LoadedApp, PreparedLoad)],
    say: impl Fn(&Journal, &str),
) {
    let Some(memory) = &served.store else {
        return;
    };
    for (loaded, one) in loaded {
        if let LoadedApp::Here(_) = loaded {
            say(memory.journal(), one.name());
        }
    }
}

/// Assigns the names, and loads them without starting.
fn place_all(
    served: &ServerState,
    mut ready: Vec<PreparedLoad>,
    names: &BTreeSet<String>,
    loaded: &mut Vec<(LoadedApp, PreparedLoad)>,
    restored: bool,
    coming: &mut PendingLoad,
) -> Result<(), Failed> {
    let _naming = lock(&served.name_lock);
    output_conflicts::check_outputs(served, &ready, None)?;
    let several = ready.len() > 1;
    assign_names(served, &mut ready, names, coming)?;
    let admitted = admit_all(served, &ready)?;
    for (one, admission) in ready.into_iter().zip(admitted) {
        let placed = place(served, &one, admission);
        let owner = several.then(|| one.name().to_string());
        let placed = placed.map_err(|failed| failed.of(owner))?;
        coming.set_number(one.name(), placed.number());
        loaded.push((placed, one));
    }
    let Some(memory) = &served.store else {
        return Ok(());
    };
    if restored {
        for (name, number) in names_and_numbers(loaded) {
            // It was unloaded while it was compiled.
            if !memory.claim_restored(name, number) {
                let what = format!("{name} was unloaded before it started");
                return Err(Refusal::new(Kind::Conflict, what).into());
            }
        }
        return Ok(());
    }
    let all = names_and_numbers(loaded).zip(loaded.iter());
    let all: Vec<_> = all
        .map(|((name, n), (_, one))| (name, n, &one.request))
        .collect();
    Ok(memory.save_all(&all).map_err(|e| {
        let what = format!("the loaded applications cannot be saved: {e}");
        Refusal::new(Kind::Limit, what)
            .help("make room there, or name another folder with levada host --state DIR")
    })?)
}

/// The name and number of each.
fn names_and_numbers(loaded: &[(LoadedApp, PreparedLoad)]) -> impl Iterator<Item = (&str, u64)> {
    loaded
        .iter()
        .map(|(loaded, one)| (one.name(), loaded.number()))
}

/// The admission check of all of them together; isolated applications are not checked.
fn admit_all(
    served: &ServerState,
    ready: &[PreparedLoad],
) -> Result<Vec<Option<Admission>>, Failed> {
    let loads: Vec<&Load> = ready.iter().filter_map(|one| one.load.as_ref()).collect();
    let mut admitted = served.host.admit(&loads, None)?.into_iter();
    let of_each = ready.iter().map(|one| {
        let here = one.load.is_some();
        here.then(|| admitted.next()).flatten().flatten()
    });
    Ok(of_each.collect())
}

fn place(
    served: &ServerState,
    one: &PreparedLoad,
    admission: Option<Admission>,
) -> Result<LoadedApp, Failed> {
    let name = one.name();
    served.isolated.forget(name);
    if let Some(load) = &one.load {
        let loaded = served.host.load_admitted(load.clone(), None, admission)?;
        return Ok(LoadedApp::Here(loaded));
    }
    let number = served.host.claim_number(name);
    let (starts, events) = (served.launch.clone(), served.host.events().clone());
    let new = NewIsolated {
        name,
        number,
        network: &one.prepared.network,
        folder: &one.request.directory,
        settings: one.settings(),
    };
    let begun = served.isolated.begin(new, starts, events)?;
    Ok(LoadedApp::Isolated(begun))
}

/// Starts all of them, except those that are to stay paused.
fn start_all(
    served: &ServerState,
    loaded: &[(LoadedApp, PreparedLoad)],
    why: Cause,
) -> Result<(), Failed> {
    // Compilation is done, so the default timeout is enough.
    let usual = Duration::from_secs_f64(REQUEST_TIMEOUT_S);
    let time = |one: &PreparedLoad| {
        one.time_left
            .filter(|_| why != Cause::Restored)
            .unwrap_or(usual)
    };
    for (loaded, one) in loaded {
        if let LoadedApp::Isolated(isolated) = loaded {
            let usage = load_by_others(served, isolated.number);
            isolated.load(&one.request, usage, time(one), served.host.events())?;
        }
    }
    served.isolated.notify_neighbors();
    journal_each(served, loaded, Journal::record_start);
    for (loaded, one) in loaded {
        match loaded {
            // When it was unloaded it was not in the state folder yet, or not as this host's.
            _ if loaded.is_unloading() => {
                let what = format!("{} was unloaded before it started", one.name());
                return Err(Refusal::new(Kind::Conflict, what).into());
            }
            _ if one.request.paused => {}
            LoadedApp::Here(hosted) => served.host.start(hosted)?,
            LoadedApp::Isolated(isolated) => match isolated.start(time(one)) {
                Err(failed) if isolated.lives() => return Err(failed),
                // It has ended meanwhile, as its details say.
                _ => {}
            },
        }
    }
    Ok(())
}

/// The load of all others on each worker's core.
fn load_by_others(served: &ServerState, number: u64) -> Vec<f64> {
    let here = served.host.shared.loads().into_iter().map(|ns| ns / 1e9);
    let elsewhere = served.isolated.loads_except(Some(number));
    let elsewhere = elsewhere.into_iter().chain(std::iter::repeat(0.0));
    here.zip(elsewhere).map(|(a, b)| a + b).collect()
}

fn undo(served: &ServerState, loaded: &[(LoadedApp, PreparedLoad)], restored: bool) {
    journal_each(served, loaded, Journal::record_not_started);
    match &served.store {
        // What the previous host has stored stays for the next one.
        Some(memory) if restored => {
            for ((name, number), (loaded, _)) in names_and_numbers(loaded).zip(loaded) {
                if loaded.is_unloading() {
                    // Except what was unloaded meanwhile.
                    memory.forget_ended(name, number)
                } else {
                    memory.return_unrestored(name, number)
                }
            }
        }
        // An error here is already on standard error; the response says only why the load has failed.
        Some(memory) => drop(memory.forget_all(&names_and_numbers(loaded).collect::<Vec<_>>())),
        None => {}
    }
    for (loaded, _) in loaded {
        match loaded {
            LoadedApp::Here(hosted) => served.host.discard(hosted),
            LoadedApp::Isolated(isolated) => {
                served.isolated.discard(isolated, served.host.events())
            }
        }
    }
}

pub(crate) fn is_live(served: &ServerState, name: &str) -> bool {
    served.host.is_live(name) || served.isolated.live(name).is_some()
}
