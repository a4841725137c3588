// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands that speak to a host: each is a request or two over its socket, and what was answered
//! as a table. With `--json` it is what the host says, as it says it.

use crate::cli::{
    AllArgs, AtArgs, EventsArgs, LoadArgs, MoveArgs, OneArgs, ReplaceArgs, UnloadArgs,
};
use crate::output::{self, Failure, grouped, plural, table, unit_of};
use crate::waiting::Waiting;
use levada_host::api::socket;
use levada_host::api::types::{
    Application, Details, Failed, HostInfo, LoadRequest, Manifest, MoveRequest, Progress,
    ReplaceRequest, Stats, Unloaded, Why, Worker,
};
use levada_host::client::{Client, Method, encoded};
use levada_host::{State, Verdict};
use levada_map::text::placement_text;
use levada_map::{Actor, App, Mix};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

type Done = Result<ExitCode, Failure>;

impl From<Failed> for Failure {
    /// What was found in the sources is shown where it was found, before the rest is told.
    fn from(failed: Failed) -> Failure {
        let _ = std::io::stderr().lock().write_all(failed.text.as_bytes());
        Failure {
            help: failed.help,
            ..Failure::new(failed.error).found(failed.diagnostics)
        }
    }
}

/// So long a host takes to say that something has taken too long, at most.
const GRACE: f64 = 15.0;
/// As the host has it for what it does itself, and for what it compiles.
const USUAL: f64 = 30.0;
const COMPILES: f64 = 1800.0;

pub fn client(at: &AtArgs) -> Result<Client, Failure> {
    client_for(at, at.within.unwrap_or(USUAL))
}

/// A client of what may last so many seconds by itself.
fn client_for(at: &AtArgs, seconds: f64) -> Result<Client, Failure> {
    let client = match &at.socket {
        Some(path) => Client::new(path),
        None => Client::new(&socket::usual_path()?),
    };
    Ok(client.within(Duration::from_secs_f64(seconds + GRACE)))
}

/// Says what the host has answered: as JSON, or in `words`.
fn say<T: Serialize + DeserializeOwned>(
    at: &AtArgs,
    method: &str,
    address: &str,
    body: &Value,
    words: impl FnOnce(&T) -> String,
) -> Done {
    said(at, client(at)?, method, address, body, words)
}

fn said<T: Serialize + DeserializeOwned>(
    at: &AtArgs,
    client: Client,
    method: &str,
    address: &str,
    body: &Value,
    words: impl FnOnce(&T) -> String,
) -> Done {
    let method = method.parse().map_err(|_| Failure::new("no such method"))?;
    told(at, &client.text(method, address, body)?, words)
}

/// Asks for what the host compiles first, and says so where that takes long.
fn compiled<T: Serialize + DeserializeOwned>(
    at: &AtArgs,
    client: Client,
    address: &str,
    body: &Value,
    words: impl FnOnce(&T) -> String,
) -> Done {
    let waiting = Waiting::for_a_load(&client);
    let text = client.text(Method::POST, address, body);
    drop(waiting);
    told(at, &text?, words)
}

fn told<T: Serialize + DeserializeOwned>(
    at: &AtArgs,
    text: &str,
    words: impl FnOnce(&T) -> String,
) -> Done {
    if at.json {
        output::line(text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer: T = serde_json::from_str(text).map_err(|e| {
        Failure::new(format!("the host says what is not understood: {e}"))
            .help("is it of another version? --json shows what it says")
    })?;
    output::line(words(&answer).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn one(name: &str, rest: &str) -> String {
    format!("/applications/{}{rest}", encoded(name))
}

/// An option that would say of one application what a manifest says of each.
fn beside_manifest(args: &LoadArgs) -> Option<&'static str> {
    let (network, given, compile) = (&args.network, &args.given, &args.compile);
    let all = [
        ("name", args.name.is_some()),
        ("in", given.input.is_some()),
        ("out", given.output.is_some()),
        ("option", !given.option.is_empty()),
        ("set", !network.set.is_empty()),
        ("path", !network.path.is_empty()),
        ("project", network.project.is_some()),
        ("priority", args.priority != 0),
        ("memory", args.memory.is_some()),
        ("rate", args.rate.is_some()),
        ("share", args.share.is_some()),
        ("anyway", args.anyway),
        ("placement", args.placement.is_some()),
        ("exclusive", args.exclusive),
        ("isolate", args.isolate),
        ("paused", args.paused),
        ("native", !compile.native.is_empty()),
        ("unchecked", compile.unchecked),
        ("outside", compile.outside.is_some()),
        ("any-sizes", compile.any_sizes.is_some()),
        ("no-fuse", compile.no_fuse),
        ("fuse", compile.fuse),
        ("", !args.arguments.is_empty()),
    ];
    all.into_iter().find(|o| o.1).map(|o| o.0)
}

/// Several applications, from a file: all or none. Paths in it are relative to where it lies.
fn load_manifest(args: &LoadArgs) -> Done {
    if let Some(option) = beside_manifest(args) {
        return output::failure_with(
            format!("--{option}: a manifest says itself how its applications are loaded"),
            "write it into the manifest, or load the network alone",
        );
    }
    let path = std::path::absolute(&args.network.network)?;
    let shown = path.display();
    let text = levada_host::text_file::read(&path);
    let text = text.map_err(|e| Failure::new(format!("{shown}: {e}")))?;
    let read: Result<Manifest, _> = toml::from_str(&text);
    let mut manifest = read.map_err(|e| {
        Failure::new(format!("{shown}: {}", e.to_string().trim_end()))
            .help(
                "each [[application]] has a network, and what levada load knows: name, in, out, set, ...; \
                 beside is for one that is loaded alone",
            )
    })?;
    let folder = path
        .parent()
        .map(std::path::Path::to_path_buf)
        .unwrap_or_default();
    as_text(&folder)?;
    for one in &mut manifest.application {
        let numbers = [
            ("rate", one.rate),
            ("share", one.share),
            ("within", one.within),
        ];
        for (what, number) in numbers {
            // JSON has no such numbers, and would say nothing.
            if let Some(number) = number.filter(|n| !n.is_finite()) {
                return output::failure(format!("{shown}: {what} is {number}, which is no number"));
            }
        }
        one.directory = folder.join(&one.directory);
        one.within = one.within.or(args.at.within);
    }
    let each = manifest.application.iter();
    let all = each.map(|one| one.within.unwrap_or(COMPILES)).sum::<f64>();
    compiled(
        &args.at,
        client_for(&args.at, all.clamp(0.0, 1e9))?,
        "/manifest",
        &json!(manifest),
        |all: &Vec<Details>| loaded_all(all),
    )
}

fn loaded(made: &Details) -> String {
    loaded_all(std::slice::from_ref(made))
}

fn loaded_all(all: &[Details]) -> String {
    let mut noted = Vec::new();
    for made in all {
        // Warnings are shown as `levada check` shows them.
        let _ = std::io::stderr().lock().write_all(made.text.as_bytes());
        let admission = made.admission.iter();
        let mut unkept = admission.filter(|a| a.verdict != Verdict::Kept);
        // The same words of several are said once.
        if let Some(a) = unkept.next().filter(|a| !noted.contains(&&a.text)) {
            let _ = writeln!(std::io::stderr().lock(), "note: {}", a.text);
            noted.push(&a.text);
        }
    }
    let lines: Vec<String> = all.iter().map(what_is_loaded).collect();
    lines.join("\n")
}

fn what_is_loaded(made: &Details) -> String {
    let a = &made.application;
    let isolated = a.isolated.map(|process| format!(", in process {process}"));
    let alone = a
        .exclusive
        .map(|worker| format!(", alone on worker {worker}"));
    format!(
        "loaded {} ({}): {}, {}, {}{}{}",
        a.name,
        a.network,
        plural(a.actors, "actor"),
        plural(made.channel.len(), "channel"),
        bytes(a.memory),
        isolated.unwrap_or_default(),
        alone.unwrap_or_default()
    )
}

pub fn load(args: &LoadArgs) -> Done {
    if args.network.network.ends_with(".toml") {
        return load_manifest(args);
    }
    let request = request(args)?;
    let client = client_for(&args.at, request.within.unwrap_or(COMPILES))?;
    compiled(&args.at, client, "/applications", &json!(request), loaded)
}

/// A path as a host is told it.
fn as_text(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        let what = format!("{path:?} is no text in UTF-8, and a host is told paths as text");
        Failure::new(what)
            .help("give it another name, or a link that has one; levada run takes any")
    })
}

/// What the host is asked to load.
fn request(args: &LoadArgs) -> Result<LoadRequest, Failure> {
    let text = |path: &PathBuf| as_text(path).map(str::to_string);
    let all = |paths: &[PathBuf]| paths.iter().map(text).collect::<Result<Vec<_>, _>>();
    let directory = std::env::current_dir()?;
    as_text(&directory)?;
    Ok(LoadRequest {
        network: args.network.network.clone(),
        arguments: args.arguments.clone(),
        directory,
        name: args.name.clone(),
        set: args.network.set.iter().cloned().collect(),
        input: args.given.input.as_ref().map(text).transpose()?,
        output: args.given.output.as_ref().map(text).transpose()?,
        option: args.given.option.iter().cloned().collect(),
        priority: args.priority,
        path: all(&args.network.path)?,
        project: args.network.project.as_ref().map(text).transpose()?,
        native: all(&args.compile.native)?,
        unchecked: args.compile.unchecked,
        outside: args.compile.outside.map(|o| o.name().to_string()),
        any_sizes: args.compile.any_sizes,
        no_fuse: args.compile.no_fuse,
        memory: args.memory,
        rate: args.rate,
        share: args.share,
        anyway: args.anyway,
        exclusive: args.exclusive,
        placement: args.placement.as_ref().map(text).transpose()?,
        beside: Vec::new(),
        isolate: args.isolate,
        paused: args.paused,
        within: args.at.within,
    })
}

pub fn replace(args: &ReplaceArgs) -> Done {
    if args.load.name.is_some() || args.load.paused {
        return output::failure_with(
            "a new version has the name of the old one, and runs",
            "leave out --name and --paused",
        );
    }
    if args.load.network.network.ends_with(".toml") {
        return output::failure_with(
            "a new version is one network or program, and a manifest may hold several",
            "replace each by itself; levada load takes manifests",
        );
    }
    // What is limited is how long the old one drains; the new one is compiled first.
    let drains = args.load.at.within.unwrap_or(USUAL);
    let load = LoadRequest {
        within: None,
        ..request(&args.load)?
    };
    let request = ReplaceRequest {
        load,
        within: Some(drains),
    };
    let address = one(&args.old, "/replace");
    compiled(
        &args.load.at,
        client_for(&args.load.at, COMPILES + drains)?,
        &address,
        &json!(request),
        |made: &Details| {
            for what in &made.anew {
                let _ = writeln!(std::io::stderr().lock(), "note: {what}");
            }
            loaded(made).replacen("loaded", "replaced", 1)
        },
    )
}

fn within(at: &AtArgs) -> String {
    format!("?within={}", at.within.unwrap_or(USUAL))
}

pub fn unload(args: &UnloadArgs) -> Done {
    let how = match args.now {
        true => within(&args.at) + "&now=true",
        false => within(&args.at),
    };
    say(
        &args.at,
        "DELETE",
        &one(&args.name, &how),
        &Value::Null,
        |u: &Unloaded| {
            let done = u.progress.as_ref().map(|p| format!(", {}", done(p)));
            format!(
                "unloaded {}: {} after {:.2} s, {} firings{}",
                u.name,
                u.outcome,
                u.seconds,
                grouped(u.firings),
                done.unwrap_or_default()
            )
        },
    )
}

pub fn pause(args: &OneArgs) -> Done {
    let words = |a: &Application| format!("paused {}", a.name);
    say(
        &args.at,
        "POST",
        &one(&args.name, &format!("/pause{}", within(&args.at))),
        &Value::Null,
        words,
    )
}

pub fn resume(args: &OneArgs) -> Done {
    let words = |a: &Application| format!("resumed {}", a.name);
    say(
        &args.at,
        "POST",
        &one(&args.name, &format!("/resume{}", within(&args.at))),
        &Value::Null,
        words,
    )
}

pub fn move_actor(args: &MoveArgs) -> Done {
    let request = MoveRequest {
        actor: args.actor.clone(),
        worker: args.worker,
        free: args.free,
    };
    say(
        &args.at,
        "POST",
        &one(&args.name, "/move"),
        &json!(request),
        |a: &Application| {
            let of = format!("{} of {}", args.actor, a.name);
            match args.worker {
                Some(worker) => format!("{of} goes to worker {worker}, and stays there"),
                None => format!("{of} goes where the mapper puts it"),
            }
        },
    )
}

pub fn list(args: &AllArgs) -> Done {
    say(
        &args.at,
        "GET",
        "/applications",
        &Value::Null,
        |all: &Vec<Application>| match all.is_empty() {
            true => "no application is loaded".to_string(),
            false => applications(all) + &left_out(all),
        },
    )
}

pub fn why(args: &OneArgs) -> Done {
    say(
        &args.at,
        "GET",
        &one(&args.name, "/why"),
        &Value::Null,
        |why: &Why| why.text.clone(),
    )
}

pub fn show(args: &OneArgs) -> Done {
    say(
        &args.at,
        "GET",
        &one(&args.name, ""),
        &Value::Null,
        |d: &Details| {
            let mut out = applications(std::slice::from_ref(&d.application));
            if d.application.state == State::Held {
                return out + &left_out(std::slice::from_ref(&d.application));
            }
            if let Some(outcome) = &d.application.outcome {
                out += &format!("\n  {outcome}\n");
            }
            out += &promise(&d.application);
            let rows: Vec<Vec<String>> = d
                .actor
                .iter()
                .map(|a| {
                    vec![
                        a.name.clone(),
                        pinned(a.worker, a.pin),
                        grouped(a.firings),
                        format!("{:.3} s", a.busy),
                        format!("{:.3} ms", a.longest * 1e3),
                    ]
                })
                .collect();
            let head = ["actor", "worker", "firings", "busy", "longest"];
            out += &format!("\n{}", table(&head, &rows));
            let rows: Vec<Vec<String>> = d
                .channel
                .iter()
                .map(|c| {
                    vec![
                        format!("{} -> {}", c.from, c.to),
                        grouped(u64::from(c.capacity)),
                        grouped(u64::from(c.fill)),
                        grouped(c.got),
                        grouped(c.full),
                        grouped(c.empty),
                    ]
                })
                .collect();
            if !rows.is_empty() {
                let head = ["channel", "capacity", "fill", "elements", "full", "empty"];
                out += &format!("\n{}", table(&head, &rows));
            }
            out
        },
    )
}

/// What it is promised, and what it has had of that.
fn promise(a: &Application) -> String {
    let Some(promised) = a.promised else {
        return String::new();
    };
    let unit = a.progress.as_ref().map(|p| p.unit.as_str());
    let unit = unit.filter(|unit| !unit.is_empty()).unwrap_or("units");
    let pace = a.pace.map(|pace| format!(", has had {pace:.1} lately"));
    let late = match a.late.unwrap_or(0) {
        0 => String::new(),
        1 => ", was late once".to_string(),
        times => format!(", was late {times} times"),
    };
    let pace = pace.unwrap_or_default();
    let is = match a.is_late {
        Some(true) => ", is late",
        _ => "",
    };
    format!("\n  is promised {promised:.1} {unit} a second{pace}{late}{is}\n")
}

/// The worker of an actor, and whether it must stay there, or on which.
fn pinned(worker: u32, pin: Option<u32>) -> String {
    match pin {
        None => worker.to_string(),
        Some(pin) if pin == worker => format!("{worker}, pinned"),
        Some(pin) => format!("{worker}, pinned to {pin}"),
    }
}

/// Who sits where, as `--placement` takes it back.
fn placement(all: &[Worker]) -> String {
    let mut mix = Mix::default();
    let mut seats: BTreeMap<&str, Vec<(&str, u32)>> = BTreeMap::new();
    for w in all {
        for a in &w.actor {
            let of = seats.entry(&a.application).or_default();
            of.push((&a.actor, w.worker));
        }
    }
    for (app, actors) in &seats {
        let actor = |(name, _): &(&str, u32)| Actor {
            name: name.to_string(),
            time: 0.0,
            firings: 0.0,
            pin: None,
        };
        mix.apps.push(App {
            name: app.to_string(),
            unit: String::new(),
            priority: 0,
            promise: None,
            actors: actors.iter().map(actor).collect(),
            channels: Vec::new(),
            course: None,
        });
    }
    let workers: Vec<u32> = seats
        .values()
        .flatten()
        .map(|(_, worker)| *worker)
        .collect();
    placement_text(&mix, &workers)
}

pub fn map(at: &AtArgs, write: Option<&Path>) -> Done {
    if let Some(file) = write {
        let all = client(at)?.text(Method::GET, "/map", &Value::Null)?;
        let all: Vec<Worker> = serde_json::from_str(&all)
            .map_err(|e| Failure::new(format!("the host says what is not understood: {e}")))?;
        output::write_file(file, placement(&all).as_bytes())?;
    }
    say(at, "GET", "/map", &Value::Null, |all: &Vec<Worker>| {
        let mut rows = Vec::new();
        for w in all {
            let actors = || w.actor.iter().chain(&w.isolated);
            let shares = actors().filter_map(|a| a.share);
            let programs = w.program.iter().map(|p| p.share);
            let total = shares.chain(programs).fold(0.0, |all, one| all + one);
            let many = plural(actors().count(), "actor");
            let whose = match w.open {
                true => many,
                false => format!("{many}, and no others"),
            };
            rows.push(vec![core(w), whose, share(Some(total.min(1.0)))]);
            for a in &w.actor {
                let name = format!("  {}.{}", a.application, a.actor);
                let stays = match a.pin {
                    None => String::new(),
                    Some(pin) if pin == w.worker => "pinned".to_string(),
                    Some(pin) => format!("pinned to {pin}"),
                };
                rows.push(vec![name, stays, share(a.share)]);
            }
            for a in &w.isolated {
                let name = format!("  {}.{}", a.application, a.actor);
                rows.push(vec![name, "isolated".to_string(), share(a.share)]);
            }
            for p in &w.program {
                let name = format!("  {}", p.application);
                rows.push(vec![name, "its fibers".to_string(), share(Some(p.share))]);
            }
        }
        table(&["worker", "", "of a core"], &rows)
    })
}

/// Of a host whose workers have a real-time priority, that they have.
pub fn realtime(host: &HostInfo) -> String {
    let say = |priority| format!(", workers at real-time priority {priority}");
    host.realtime.map_or_else(String::new, say)
}

pub fn stats(at: &AtArgs) -> Done {
    say(at, "GET", "/stats", &Value::Null, |s: &Stats| {
        let of = s.host.seconds.max(1e-9);
        let rows: Vec<Vec<String>> = s
            .worker
            .iter()
            .map(|w| {
                vec![
                    core(w),
                    format!("{:.1} s", w.busy),
                    share(Some((w.busy / of).min(1.0))),
                    format!("{:.1} s", w.lost),
                    grouped(w.activations),
                    grouped(w.sleeps),
                    w.actor.len().to_string(),
                ]
            })
            .collect();
        let head = [
            "worker",
            "busy",
            "share",
            "lost",
            "activations",
            "sleeps",
            "actors",
        ];
        format!(
            "  up for {:.1} s, {} loaded{}\n\n{}\n{}{}",
            s.host.seconds,
            plural(s.host.applications, "application"),
            realtime(&s.host),
            table(&head, &rows),
            leases(s),
            applications(&s.application)
        )
    })
}

/// Of the cores that programs beside the host wanted, too.
fn leases(s: &Stats) -> String {
    let row = |w: &Worker| {
        let lease = w.lease.as_ref()?;
        let whose = match lease.process {
            None => "nobody".to_string(),
            Some(process) if process == s.host.pid => "the host".to_string(),
            Some(process) => format!("process {process}"),
        };
        Some(vec![
            core(w),
            whose,
            lease.waiting.to_string(),
            grouped(lease.given),
            grouped(lease.seized),
            grouped(lease.left),
            format!("{:.1} ms", 1e3 * lease.waited / lease.waits.max(1) as f64),
            format!("{:.1} ms", 1e3 * lease.longest),
        ])
    };
    let rows: Vec<Vec<String>> = s.worker.iter().filter_map(row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => {
            let head = [
                "lease of", "has it", "waiting", "given", "seized", "left", "waits", "longest",
            ];
            format!("{}\n", table(&head, &rows))
        }
    }
}

pub fn events(args: &EventsArgs) -> Done {
    let since = args.since.map(|n| format!("&since={n}"));
    let address = format!(
        "/events?follow={}{}",
        args.follow,
        since.unwrap_or_default()
    );
    let mut written = Ok(());
    client(&args.at)?.lines(&address, |line| {
        written = match args.at.json {
            true => output::line(line),
            false => output::line(&event(line)),
        };
        written.is_ok()
    })?;
    written?;
    match args.follow {
        // Nobody else ends such a stream.
        true => output::failure("the host has ended"),
        false => Ok(ExitCode::SUCCESS),
    }
}

fn event(line: &str) -> String {
    let Ok(event) = serde_json::from_str::<Value>(line) else {
        return line.to_string();
    };
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_string();
    if event["event"] == "missed" {
        let count = event["count"].as_u64().unwrap_or_default();
        let were = if count == 1 { "was" } else { "were" };
        return format!("  ({} {were} missed)", plural(count as usize, "event"));
    }
    let at = event["at"].as_f64().unwrap_or_default();
    let day = at.rem_euclid(86400.0);
    let time = format!(
        "{:02}:{:02}:{:06.3}",
        (day / 3600.0) as u32,
        (day / 60.0) as u32 % 60,
        day % 60.0
    );
    let mut out = format!("{time}  {:<9} {}", text("event"), text("application"));
    if event["event"] == "moved" {
        out += &format!(
            ".{}: worker {} -> {}",
            text("actor"),
            event["from"],
            event["to"]
        );
    }
    match text("detail").as_str() {
        "" => out,
        detail => format!("{out}: {detail}"),
    }
}

// ---- words -------------------------------------------------------------------------------------

fn applications(all: &[Application]) -> String {
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|a| {
            vec![
                a.name.clone(),
                state(a),
                a.network.clone(),
                format!("{:.1} s", a.seconds),
                grouped(a.firings),
                format!("{:.2} s", a.busy),
                bytes(a.memory),
                a.progress.as_ref().map_or(String::new(), done),
            ]
        })
        .collect();
    let head = [
        "application",
        "state",
        "network",
        "for",
        "firings",
        "busy",
        "memory",
        "done",
    ];
    table(&head, &rows)
}

/// What the host has not loaded again: why, and what to do.
fn left_out(all: &[Application]) -> String {
    let held = all.iter().filter(|a| a.state == State::Held);
    let lines: String = held
        .map(|a| {
            format!(
                "\n  {name}: {}\n  levada resume {name} loads it again, levada unload {name} forgets \
                 it\n",
                a.outcome.as_deref().unwrap_or_default(),
                name = a.name
            )
        })
        .collect();
    lines
}

/// An application that has a process of its own is shown with it.
fn state(a: &Application) -> String {
    match (a.isolated, &a.outcome) {
        (Some(process), None) => format!("{} in {process}", a.state),
        _ => a.state.to_string(),
    }
}

fn done(p: &Progress) -> String {
    format!("{} {}", grouped(p.done), unit_of(p.done, &p.unit))
}

fn core(w: &Worker) -> String {
    match w.cpu {
        0.. => format!("{} (core {})", w.worker, w.cpu),
        _ => w.worker.to_string(),
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or("-".to_string(), |s| format!("{:.1}%", s * 100.0))
}

fn bytes(n: u64) -> String {
    match n {
        n if n >= 10 << 20 => format!("{} MiB", n >> 20),
        n if n >= 10 << 10 => format!("{} KiB", n >> 10),
        n => plural(n as usize, "byte"),
    }
}
