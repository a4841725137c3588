// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loading: from applications that are ready to applications that run. All of a request's applications are loaded, or
//! none: what is wrong with one is told before any of them runs.

use crate::admission::check::any_promised;
use crate::app::Hosted;
use crate::isolated::Isolated;
use crate::isolated::set::NewIsolated;
use crate::lifecycle::load::{Load, taken};
use crate::model::admission_report::Admission;
use crate::model::app_name::check_name;
use crate::model::error::{Kind, Refusal};
use crate::ops::names::{likely_name, name_all};
use crate::ops::output_conflicts;
use crate::ops::pending::Coming;
use crate::ops::prepare_process::Client;
use crate::ops::ready::{Ready, fits, make_ready, pins, whose};
use crate::ops::state::Served;
use crate::persist::journal::Journal;
use crate::protocol::{Details, Failed, LoadRequest, Manifest, WITHIN};
use crate::util::lock::lock;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Where it has been loaded.
enum Loaded {
    Here(Arc<Hosted>),
    Isolated(Arc<Isolated>),
}

impl Loaded {
    fn number(&self) -> u64 {
        match self {
            Loaded::Here(hosted) => hosted.number,
            Loaded::Isolated(isolated) => isolated.number,
        }
    }

    /// Whether somebody has taken it away before it began.
    fn goes(&self) -> bool {
        match self {
            Loaded::Here(hosted) => hosted.goes(),
            Loaded::Isolated(isolated) => isolated.goes(),
        }
    }
}

/// Loads all of these, or none: the first that is wrong is told, before anything is touched.
pub fn load_all(
    served: &Served,
    requests: Vec<LoadRequest>,
    client: Option<&Client>,
) -> Result<Vec<Details>, Failed> {
    load_them(served, requests, client, Cause::Asked)
}

/// Loads one application.
pub(crate) fn load_one(
    served: &Served,
    request: LoadRequest,
    client: Option<&Client>,
) -> Result<Details, Failed> {
    let loaded = load_all(served, vec![request], client)?.pop();
    loaded.ok_or_else(|| Refusal::new(Kind::Unknown, "it has been unloaded at once").into())
}

/// Loads the applications of a manifest, all or none.
pub(crate) fn load_manifest(
    served: &Served,
    manifest: Manifest,
    client: Option<&Client>,
) -> Result<Vec<Details>, Failed> {
    if manifest.application.is_empty() {
        let what = "there is no application in the manifest";
        return Err(Refusal::new(Kind::Wrong, what)
            .help("each is a table [[application]], with the network that it is")
            .into());
    }
    // The applications of a manifest are mapped together, by what runs.
    if let Some(one) = manifest.application.iter().find(|a| !a.beside.is_empty()) {
        let what = format!("{}: beside is not for manifests", whose(one));
        return Err(Refusal::new(Kind::Wrong, what)
            .help("leave it out, or load that application alone by a request")
            .into());
    }
    load_all(served, manifest.application, client)
}

/// Why something is loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Somebody wants it.
    Asked,
    /// The host before this one had it, which is remembered already; nobody has said how long he waits.
    Restored,
    /// The same, and somebody waits.
    Resumed,
}

pub(crate) fn load_them(
    served: &Served,
    requests: Vec<LoadRequest>,
    client: Option<&Client>,
    why: Cause,
) -> Result<Vec<Details>, Failed> {
    let restored = why != Cause::Asked;
    let mut names = BTreeSet::new();
    for name in requests.iter().filter_map(|r| r.name.as_ref()) {
        check_name(name)?;
        // Before anything is compiled for nothing.
        if is_live(served, name) {
            return Err(taken(name).into());
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
        let whose = several.then(|| match whose(&request) {
            unknown if unknown.is_empty() => format!("application {place}"),
            known => known,
        });
        make_ready(served, request, client, restored).map_err(|failed| failed.of(whose))
    });
    let mut ready = ready.collect::<Result<Vec<Ready>, Failed>>()?;
    fits(&served.host, &ready)?;
    empty_cores(served, &mut ready)?;
    seat_together(served, &mut ready)?;
    let mut loaded: Vec<(Loaded, Ready)> = Vec::new();
    // Until they have begun, or have been taken back.
    let mut coming = match several {
        true => served.coming.nobody_together(served.host.last()),
        false => served.coming.nobody(),
    };
    let done = place_all(served, ready, &names, &mut loaded, restored, &mut coming);
    if let Err(refused) = done.and_then(|()| start_all(served, &loaded, why)) {
        take_back(served, &loaded, restored);
        return Err(refused);
    }
    drop(coming);
    each_begun(served, &loaded, Journal::runs);
    let details = loaded.into_iter().filter_map(|(loaded, one)| {
        let (mut details, claimed) = match loaded {
            Loaded::Here(hosted) => {
                let seen = served.host.with_number(hosted.number)?;
                let details = Details {
                    admission: hosted.admission.clone(),
                    ..Details::from(&seen)
                };
                (details, seen.bytes)
            }
            Loaded::Isolated(isolated) => {
                let details = Details {
                    admission: admission_of_isolated(served, &isolated.name, &one),
                    ..isolated.details()
                };
                (details, isolated.claims())
            }
        };
        // It may have ended meanwhile.
        details.application.memory = claimed;
        Some(Details {
            diagnostics: one.prepared.diagnostics,
            text: one.prepared.text,
            ..details
        })
    });
    Ok(details.collect())
}

/// What is known of promises where this one, which has a process of its own, is loaded beside them, or is promised
/// something itself.
fn admission_of_isolated(served: &Served, name: &str, one: &Ready) -> Option<Admission> {
    let uncounted = one.request.rate.filter(|_| !one.prepared.counts);
    let rate = one.request.rate.filter(|_| one.prepared.counts);
    let any = rate.is_some() || any_promised(&served.host.shared);
    let unknown = any.then(|| {
        Admission::unknown(&format!(
            "{name} is isolated, and is not mapped with others"
        ))
    });
    match uncounted {
        Some(promised) => Some(Admission::uncounted(name, promised, unknown)),
        None => unknown,
    }
}

/// For those that are to have one to themselves: before anybody waits for the name of one of them.
fn empty_cores(served: &Served, ready: &mut [Ready]) -> Result<(), Failed> {
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
        let emptied = served.host.empty_for(&asked, None).map_err(Failed::from);
        let whose = several.then(|| whose(&one.request));
        load.core = Some(emptied.map_err(|failed| failed.of(whose))?);
    }
    Ok(())
}

/// Where those that share the cores begin, if they are several.
fn seat_together(served: &Served, ready: &mut [Ready]) -> Result<(), Failed> {
    let several = ready.len() > 1;
    let mut loads = Vec::new();
    for one in ready {
        let shares = |load: &&mut Load| !load.exclusive && !load.network.is_program();
        let name = likely_name(one);
        let Some(load) = one.load.as_mut().filter(shares) else {
            continue;
        };
        let whose = several.then(|| whose(&one.request));
        let pins = pins(served, &name, &one.request, load);
        load.pins = pins.map_err(|failed| failed.of(whose))?;
        loads.push(load);
    }
    let asked: Vec<&Load> = loads.iter().map(|load| &**load).collect();
    let seats = served.host.seats_together(&asked);
    for (load, seats) in loads.into_iter().zip(seats.into_iter().flatten()) {
        load.seats = Some(seats);
    }
    Ok(())
}

/// Says so of each whose code runs in this process.
fn each_begun(served: &Served, loaded: &[(Loaded, Ready)], say: impl Fn(&Journal, &str)) {
    let Some(memory) = &served.memory else {
        return;
    };
    for (loaded, one) in loaded {
        if let Loaded::Here(_) = loaded {
            say(memory.journal(), one.name());
        }
    }
}

/// Gives each its name, and its place.
fn place_all(
    served: &Served,
    mut ready: Vec<Ready>,
    names: &BTreeSet<String>,
    loaded: &mut Vec<(Loaded, Ready)>,
    restored: bool,
    coming: &mut Coming,
) -> Result<(), Failed> {
    let _naming = lock(&served.naming);
    output_conflicts::differs(served, &ready, None)?;
    let several = ready.len() > 1;
    name_all(served, &mut ready, names, coming)?;
    let admitted = admit_all(served, &ready)?;
    for (one, admission) in ready.into_iter().zip(admitted) {
        let placed = place(served, &one, admission);
        let whose = several.then(|| one.name().to_string());
        let placed = placed.map_err(|failed| failed.of(whose))?;
        coming.has_number(one.name(), placed.number());
        loaded.push((placed, one));
    }
    let Some(memory) = &served.memory else {
        return Ok(());
    };
    if restored {
        for (name, number) in numbered(loaded) {
            // While it was compiled.
            if !memory.take_over(name, number) {
                let what = format!("{name} has been unloaded before it began");
                return Err(Refusal::new(Kind::Conflict, what).into());
            }
        }
        return Ok(());
    }
    let all = numbered(loaded).zip(loaded.iter());
    let all: Vec<_> = all
        .map(|((name, n), (_, one))| (name, n, &one.request))
        .collect();
    Ok(memory.keep_all(&all).map_err(|e| {
        let what = format!("what is loaded cannot be remembered: {e}");
        Refusal::new(Kind::Limit, what)
            .help("make room there, or name another folder with levada host --state DIR")
    })?)
}

/// The name and the number of each.
fn numbered(loaded: &[(Loaded, Ready)]) -> impl Iterator<Item = (&str, u64)> {
    loaded
        .iter()
        .map(|(loaded, one)| (one.name(), loaded.number()))
}

/// What all of them together do to the promises; nothing of what has a process of its own.
fn admit_all(served: &Served, ready: &[Ready]) -> Result<Vec<Option<Admission>>, Failed> {
    let loads: Vec<&Load> = ready.iter().filter_map(|one| one.load.as_ref()).collect();
    let mut admitted = served.host.admit(&loads, None)?.into_iter();
    let of_each = ready.iter().map(|one| {
        let here = one.load.is_some();
        here.then(|| admitted.next()).flatten().flatten()
    });
    Ok(of_each.collect())
}

fn place(served: &Served, one: &Ready, admission: Option<Admission>) -> Result<Loaded, Failed> {
    let name = one.name();
    served.isolated.forget(name);
    if let Some(load) = &one.load {
        let loaded = served.host.load_admitted(load.clone(), None, admission)?;
        return Ok(Loaded::Here(loaded));
    }
    let number = served.host.claim(name);
    let (starts, events) = (served.starts.clone(), served.host.events().clone());
    let new = NewIsolated {
        name,
        number,
        network: &one.prepared.network,
        folder: &one.request.directory,
        given: one.given(),
    };
    let begun = served.isolated.begin(new, starts, events)?;
    Ok(Loaded::Isolated(begun))
}

/// Starts those that shall run, when all are there.
fn start_all(served: &Served, loaded: &[(Loaded, Ready)], why: Cause) -> Result<(), Failed> {
    // It is compiled already.
    let usual = Duration::from_secs_f64(WITHIN);
    let time = |one: &Ready| one.left.filter(|_| why != Cause::Restored).unwrap_or(usual);
    for (loaded, one) in loaded {
        if let Loaded::Isolated(isolated) = loaded {
            let beside = beside_of(served, isolated.number);
            isolated.load(&one.request, beside, time(one), served.host.events())?;
        }
    }
    served.isolated.tell_beside();
    each_begun(served, loaded, Journal::begins);
    for (loaded, one) in loaded {
        match loaded {
            // It was not kept yet, or not of this host, when it was forgotten.
            _ if loaded.goes() => {
                let what = format!("{} has been unloaded before it began", one.name());
                return Err(Refusal::new(Kind::Conflict, what).into());
            }
            _ if one.request.paused => {}
            Loaded::Here(hosted) => served.host.start(hosted)?,
            Loaded::Isolated(isolated) => match isolated.start(time(one)) {
                Err(failed) if isolated.lives() => return Err(failed),
                // It has ended meanwhile, as its details say.
                _ => {}
            },
        }
    }
    Ok(())
}

/// What all others take of each worker's core.
fn beside_of(served: &Served, number: u64) -> Vec<f64> {
    let here = served.host.shared.loads().into_iter().map(|ns| ns / 1e9);
    let elsewhere = served.isolated.loads_but(Some(number));
    let elsewhere = elsewhere.into_iter().chain(std::iter::repeat(0.0));
    here.zip(elsewhere).map(|(a, b)| a + b).collect()
}

fn take_back(served: &Served, loaded: &[(Loaded, Ready)], restored: bool) {
    each_begun(served, loaded, Journal::does_not_run);
    match &served.memory {
        // What the host before this one has kept stays, for the next.
        Some(memory) if restored => {
            for ((name, number), (loaded, _)) in numbered(loaded).zip(loaded) {
                match loaded.goes() {
                    // But for what somebody has unloaded meanwhile.
                    true => memory.over(name, number),
                    false => memory.give_back(name, number),
                }
            }
        }
        // It is told on the host's error output, where nothing else is to be told than why it was not loaded.
        Some(memory) => drop(memory.forget_all(&numbered(loaded).collect::<Vec<_>>())),
        None => {}
    }
    for (loaded, _) in loaded {
        match loaded {
            Loaded::Here(hosted) => served.host.take_back(hosted),
            Loaded::Isolated(isolated) => served.isolated.take_back(isolated, served.host.events()),
        }
    }
}

pub(crate) fn is_live(served: &Served, name: &str) -> bool {
    served.host.is_live(name) || served.isolated.live(name).is_some()
}
