// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loading: from a request to an application that runs. All of a request's applications are loaded, or
//! none: what is wrong with one is told before any of them runs.

use super::coming::Coming;
use super::isolated::Isolated;
use super::prepare::{self, Client, Prepared};
use super::types::{Details, Failed, LoadRequest, ReplaceRequest};
use super::{Served, USUAL, limit, memory, output};
use crate::admission::{Admission, any_promised};
use crate::events::What;
use crate::host::Host;
use crate::hosted::{Hosted, State};
use crate::journal::Journal;
use crate::keep::Limits;
use crate::load::{Load, check_name};
use crate::placement;
use crate::refusal::{Kind, Refusal};
use crate::state::{Memory, Restore};
use levada_sys::Network;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// An application with all that its load needs. One that is isolated is not even opened here.
pub(super) struct Ready {
    pub request: LoadRequest,
    pub prepared: Prepared,
    load: Option<Load>,
}

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
}

/// Loads all of these, or none: the first that is wrong is told, before anything is touched.
pub fn load_all(
    served: &Served,
    requests: Vec<LoadRequest>,
    client: Option<&Client>,
) -> Result<Vec<Details>, Failed> {
    load_them(served, requests, client, false)
}

/// What is `restored` is remembered already.
fn load_them(
    served: &Served,
    requests: Vec<LoadRequest>,
    client: Option<&Client>,
    restored: bool,
) -> Result<Vec<Details>, Failed> {
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
    let ready = requests.into_iter().map(|request| {
        let whose = several.then(|| whose(&request));
        make_ready(served, request, client).map_err(|failed| failed.of(whose))
    });
    let mut ready = ready.collect::<Result<Vec<Ready>, Failed>>()?;
    fits(&served.host, &ready)?;
    empty_cores(served, &mut ready, restored)?;
    seat_together(served, &mut ready)?;
    let mut loaded: Vec<(Loaded, Ready)> = Vec::new();
    // Until they have begun, or have been taken back.
    let mut coming = served.coming.nobody();
    let done = place_all(served, ready, &names, &mut loaded, restored, &mut coming);
    if let Err(refused) = done.and_then(|()| start_all(served, &loaded)) {
        take_back(served, &loaded, restored);
        return Err(refused);
    }
    drop(coming);
    each_begun(served, &loaded, Journal::runs);
    let seen = served.host.list();
    let details = loaded.into_iter().filter_map(|(loaded, one)| {
        let details = match loaded {
            Loaded::Here(hosted) => Details {
                admission: hosted.admission.clone(),
                ..Details::from(seen.iter().find(|a| a.number == hosted.number)?)
            },
            Loaded::Isolated(isolated) => Details {
                admission: beside(served, &isolated.name, &one),
                ..isolated.details()
            },
        };
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
fn beside(served: &Served, name: &str, one: &Ready) -> Option<Admission> {
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

/// What one of several is called when something is wrong with it.
fn whose(request: &LoadRequest) -> String {
    let name = request.name.as_ref();
    name.unwrap_or(&request.network).clone()
}

/// For those that are to have one to themselves: before anybody waits for the name of one of them.
fn empty_cores(served: &Served, ready: &mut [Ready], restored: bool) -> Result<(), Failed> {
    let several = ready.len() > 1;
    for one in ready {
        let Some(load) = one.load.as_mut().filter(|load| load.exclusive) else {
            continue;
        };
        let name = one.request.name.clone().unwrap_or_default();
        let asked = Load {
            pins: pins(served, &name, &one.request, load)?,
            name,
            anyway: load.anyway || restored,
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
        let Some(load) = one.load.as_mut().filter(shares) else {
            continue;
        };
        let name = one.request.name.clone().unwrap_or_default();
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
            let name = one.request.name.as_deref().unwrap_or_default();
            say(memory.journal(), name);
        }
    }
}

/// Gives each its name, and its place.
fn place_all(
    served: &Served,
    ready: Vec<Ready>,
    names: &BTreeSet<String>,
    loaded: &mut Vec<(Loaded, Ready)>,
    restored: bool,
    coming: &mut Coming,
) -> Result<(), Failed> {
    let _naming = served.naming.lock().unwrap_or_else(PoisonError::into_inner);
    output::differs(served, &ready, None)?;
    let several = ready.len() > 1;
    for mut one in ready {
        let name = match one.request.name.take() {
            Some(name) => name,
            None => free_name(served, &one.prepared.network, names),
        };
        let whose = several.then(|| name.clone());
        let placed = place(served, &name, &one, restored, coming);
        let placed = placed.map_err(|failed| failed.of(whose))?;
        one.request.name = Some(name);
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
        Refusal::new(Kind::Limit, what).help("name another folder with levada host --state DIR")
    })?)
}

/// The name and the number of each.
fn numbered(loaded: &[(Loaded, Ready)]) -> impl Iterator<Item = (&str, u64)> {
    loaded.iter().map(|(loaded, one)| {
        let name = one.request.name.as_deref().unwrap_or_default();
        (name, loaded.number())
    })
}

fn place(
    served: &Served,
    name: &str,
    one: &Ready,
    restored: bool,
    coming: &mut Coming,
) -> Result<Loaded, Failed> {
    if is_live(served, name) {
        return Err(taken(name).into());
    }
    // Before anybody finds it.
    coming.add(name);
    served.isolated.forget(name);
    if let Some(load) = &one.load {
        let load = Load {
            name: name.to_string(),
            pins: pins(served, name, &one.request, load)?,
            // It has been admitted by the host before this one.
            anyway: load.anyway || restored,
            ..load.clone()
        };
        return Ok(Loaded::Here(served.host.load(load)?));
    }
    let number = served.host.claim(name);
    let (starts, events) = (served.starts.clone(), served.host.events().clone());
    let begun = served
        .isolated
        .begin(name, number, &one.prepared, starts, events)?;
    Ok(Loaded::Isolated(begun))
}

/// Where the file that the request names keeps its actors.
fn pins(
    served: &Served,
    name: &str,
    request: &LoadRequest,
    load: &Load,
) -> Result<Vec<Option<u32>>, Failed> {
    let Some(file) = &request.placement else {
        return Ok(Vec::new());
    };
    let path = request.directory.join(file);
    let wrong = |what: String| Refusal::new(Kind::Wrong, format!("{}: {what}", path.display()));
    let text = crate::text_file::read_regular(&path).map_err(|e| wrong(e.to_string()))?;
    let workers = served.host.machine().workers();
    let pins = placement::pins(&text, name, &load.class, &load.network, workers, true);
    Ok(pins.map_err(|p| wrong(p.what).help(p.help))?)
}

/// Starts those that shall run, when all are there.
fn start_all(served: &Served, loaded: &[(Loaded, Ready)]) -> Result<(), Failed> {
    for (loaded, one) in loaded {
        if let Loaded::Isolated(isolated) = loaded {
            let beside = beside_of(served, isolated.number);
            isolated.load(&one.request, beside, LOADS, served.host.events())?;
        }
    }
    each_begun(served, loaded, Journal::begins);
    for (loaded, _) in loaded.iter().filter(|(_, one)| !one.request.paused) {
        match loaded {
            Loaded::Here(hosted) => served.host.start(hosted)?,
            Loaded::Isolated(isolated) => match isolated.start(LOADS) {
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
    let here = served.host.loads().into_iter().map(|ns| ns / 1e9);
    let elsewhere = served.isolated.loads_but(Some(number));
    let elsewhere = elsewhere.into_iter().chain(std::iter::repeat(0.0));
    here.zip(elsewhere).map(|(a, b)| a + b).collect()
}

/// So long an isolated application that is compiled already may take to be loaded, and to begin.
const LOADS: Duration = Duration::from_secs(30);

fn make_ready(
    served: &Served,
    request: LoadRequest,
    client: Option<&Client>,
) -> Result<Ready, Failed> {
    let limits = Limits {
        rate: positive("rate", request.rate)?,
        share: positive("share", request.share)?,
    };
    let prepare = || prepare::prepare(&served.command, &request, &served.preparing, client);
    let mut prepared = prepare()?;
    if !request.arguments.is_empty() && !prepared.program {
        let what = format!("{} is a network, and takes no arguments", prepared.network);
        return Err(Refusal::new(Kind::Wrong, what)
            .help("--set gives its parameters values; arguments are for C programs (.so)")
            .into());
    }
    let kind = match (prepared.program, request.isolate) {
        (true, _) => Some("a C program, whose forks and procedures run on all"),
        (_, true) => Some("isolated: its own process has workers on all"),
        _ => None,
    };
    if let Some(kind) = kind.filter(|_| request.placement.is_some()) {
        let what = format!(
            "a placement is for networks, and {} is {kind}",
            prepared.network
        );
        return Err(Refusal::new(Kind::Wrong, what)
            .help("leave out --placement")
            .into());
    }
    if let Some(kind) = kind.filter(|_| request.exclusive) {
        let what = format!(
            "a core for it alone is for networks, and {} is {kind}",
            prepared.network
        );
        return Err(Refusal::new(Kind::Wrong, what)
            .help("leave out --exclusive")
            .into());
    }
    if request.isolate {
        return Ok(Ready {
            request,
            prepared,
            load: None,
        });
    }
    // SAFETY: the compiler has just made it, or vouches for it by its content; a program is trusted where
    // it is not isolated.
    let open = |prepared: &Prepared| unsafe {
        match prepared.program {
            true => Network::program(&prepared.object, &request.arguments),
            false => Network::open(&prepared.object),
        }
    };
    let mut opened = open(&prepared);
    if opened.is_err() && !prepared.program && std::fs::remove_file(&prepared.object).is_ok() {
        // Something has changed around it, such as a library: it is made anew, once.
        prepared = prepare()?;
        opened = open(&prepared);
    }
    let network = opened.map_err(|what| Refusal::new(Kind::Wrong, what))?;
    let load = Load {
        name: String::new(),
        class: prepared.network.clone(),
        network: Arc::new(network),
        // What is measured of a program depends on what it is told to do.
        object: (!prepared.program).then(|| prepared.object.clone()),
        options: prepared.options.clone(),
        priority: request.priority,
        pins: Vec::new(),
        seats: None,
        beside: request.beside.clone(),
        limits,
        counts: prepared.counts,
        anyway: request.anyway,
        exclusive: request.exclusive,
        core: None,
    };
    Ok(Ready {
        request,
        prepared,
        load: Some(load),
    })
}

/// A number that a limit can have.
fn positive(what: &str, given: Option<f64>) -> Result<Option<f64>, Refusal> {
    match given {
        Some(n) if !(n.is_finite() && (1e-3..=1e9).contains(&n)) => {
            let what = format!("{what} is {n}: it is a number from 0.001 to 1000000000");
            Err(Refusal::new(Kind::Wrong, what))
        }
        given => Ok(given),
    }
}

fn take_back(served: &Served, loaded: &[(Loaded, Ready)], restored: bool) {
    each_begun(served, loaded, Journal::does_not_run);
    match &served.memory {
        // What the host before this one has kept stays, for the next.
        Some(memory) if restored => {
            for ((name, number), (loaded, _)) in numbered(loaded).zip(loaded) {
                match loaded {
                    // But for what somebody has unloaded meanwhile.
                    Loaded::Here(hosted) if hosted.app.is_ending() => memory.forget(name, number),
                    _ => memory.give_back(name, number),
                }
            }
        }
        Some(memory) => memory.forget_all(&numbered(loaded).collect::<Vec<_>>()),
        None => {}
    }
    for (loaded, _) in loaded {
        match loaded {
            Loaded::Here(hosted) => served.host.take_back(hosted),
            Loaded::Isolated(isolated) => served.isolated.take_back(isolated),
        }
    }
}

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
            drop(load_left(served, memory, name, false));
        }
    };
    first.iter().for_each(load);
    for some in last.chunks(Journal::together(last.len())) {
        // Who ends the host now is one of these.
        memory.journal().await_settled();
        some.iter().for_each(load);
    }
}

/// Loads again what the host before this one had loaded.
fn load_left(served: &Served, memory: &Memory, name: &str, resumed: bool) -> Result<(), Failed> {
    let journal = memory.journal();
    let load = |mut request: LoadRequest| {
        request.paused &= !resumed;
        let apart = request.isolate;
        // What it is compiled to is opened in this process, and may run code at once.
        if !request.isolate {
            journal.begins(name);
        }
        load_them(served, vec![request], None, true)?;
        if apart {
            memory.release(name);
        }
        Ok(())
    };
    let read = memory.read(name).map_err(|e| Refusal::new(Kind::Wrong, e));
    let done: Result<(), Failed> = read.map_err(Failed::from).and_then(load);
    match done {
        Ok(()) => Ok(()),
        // Somebody else has loaded it meanwhile.
        Err(failed) if is_live(served, name) => Err(failed),
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
pub fn resume_left(served: &Served, name: &str) -> Result<bool, Failed> {
    let Some(memory) = served.memory.as_ref().filter(|m| m.is_left(name)) else {
        return Ok(false);
    };
    // Who loads it at this moment is waited for, as for any other.
    let Some(_coming) = served.coming.loads(name) else {
        return Ok(false);
    };
    if !memory.is_left(name) || is_live(served, name) {
        return Ok(false);
    }
    load_left(served, memory, name, true)?;
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
    served.host.events().tell(event, name, why);
    let help = left_help(name);
    let _ = writeln!(std::io::stderr().lock(), "{name}: {why} ({help})");
}

fn taken(name: &str) -> Refusal {
    let what = format!("an application {name} is loaded already");
    Refusal::new(Kind::Conflict, what)
        .help("give this one another name with --name, or unload that one")
}

pub(super) fn is_live(served: &Served, name: &str) -> bool {
    served.host.live(name).is_ok() || served.isolated.live(name).is_some()
}

/// The last part of the network's name, and a number if that is taken, or `wanted` by another.
fn free_name(served: &Served, class: &str, wanted: &BTreeSet<String>) -> String {
    let short = class.rsplit('.').next().unwrap_or(class);
    let short: String = short
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    let short: String = short.chars().take(48).collect();
    let short = if short.is_empty() { "app" } else { &short };
    let is_free = |name: &str| !wanted.contains(name) && !is_live(served, name);
    let numbered = (2..).map(|n| format!("{short}-{n}"));
    std::iter::once(short.to_string())
        .chain(numbered)
        .find(|name| is_free(name))
        .unwrap_or_default()
}

/// Is there memory for them?
fn fits(host: &Host, ready: &[Ready]) -> Result<(), Failed> {
    let left = memory::left();
    let several = ready.len() > 1;
    let mut all = 0u64;
    for one in ready {
        // What is isolated is sized where it is opened.
        let Some(load) = &one.load else {
            continue;
        };
        let needs = host.size(load).map_err(|refusal| {
            let whose = several.then(|| whose(&one.request));
            Failed::from(refusal).of(whose)
        })?;
        all = all.saturating_add(needs);
        let name = one.request.name.as_ref().unwrap_or(&load.class);
        let claims = format!("{name} claims {needs} bytes for its state and its channels");
        if let Some(limit) = one.request.memory
            && needs > limit
        {
            let what = format!("{claims}, and may have {limit}");
            return Err(Refusal::new(Kind::Limit, what)
                .help("smaller channels (bufferSize) take less, or allow it more with --memory")
                .into());
        }
        if let Some(left) = left
            && all > left
        {
            let what = format!("{claims}, and there are not so many left");
            return Err(Refusal::new(Kind::Limit, what)
                .help("smaller channels (bufferSize) take less, or unload what is not needed")
                .into());
        }
    }
    Ok(())
}

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
    // What it was promised and allowed stays so, unless something else is said.
    load.rate = load.rate.or(old.limits.rate);
    load.share = load.share.or(old.limits.share);
    load.exclusive |= old.exclusive.is_some();
    if load.priority == 0 {
        load.priority = old.priority;
    }
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
    let mut kept = Ok(());
    let paused = ready.request.paused;
    let journal = served.memory.as_ref().map(Memory::journal);
    if let Some(journal) = journal {
        journal.begins(name);
    }
    let new = host.replace(load, paused, within, |new, held| {
        ready.request.paused = held;
        if let Some(memory) = &served.memory {
            kept = memory.keep(name, new.number, &ready.request);
        }
    });
    if let Some(journal) = journal {
        match &new {
            Ok(_) => journal.runs(name),
            Err(_) => journal.does_not_run(name),
        }
    }
    let new = new?;
    kept.map_err(not_kept)?;
    let (number, admission) = (new.number, new.admission.clone());
    let anew = new.anew.get().cloned().unwrap_or_default();
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
    isolated: &Isolated,
    request: ReplaceRequest,
    within: Duration,
    client: Option<&Client>,
) -> Result<Details, Failed> {
    let mut load = request.load;
    goes_on(&mut load, &isolated.name, |what| isolated.option(what));
    load.isolate = true;
    let mut ready = make_ready(served, load, client)?;
    let name = isolated.name.as_str();
    output::differs(served, std::slice::from_ref(&ready), Some(name))?;
    let (_coming, within) = served
        .coming
        .replaces(name, within, || is_live(served, name))?;
    let details = isolated.replace(&ready.request, &ready.prepared, within)?;
    ready.request.paused = is_held(details.application.state);
    if let Some(memory) = &served.memory {
        let kept = memory.keep(&isolated.name, isolated.number, &ready.request);
        kept.map_err(not_kept)?;
    }
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

fn not_kept(e: std::io::Error) -> Refusal {
    Refusal::new(Kind::Limit, format!("it runs, but is not remembered: {e}"))
}
