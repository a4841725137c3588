// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada run`: compiles a network, runs it on one worker per core, and says what it did.
//!
//! Actors start where the mapper puts them by what an earlier run has measured, or else by a guess
//! (the pipeline cut into even pieces); what the counters then measure is given to the mapper, which
//! moves them.

use crate::cli::RunArgs;
use crate::graph;
use crate::interrupt::Interrupt;
use crate::measured;
use crate::network::{self, Loaded};
use crate::output::{self, Failure, failure, failure_with};
use crate::progress::Progress;
use crate::summary::{Outcome, Summary, Written};
use levada_cal::diag::{Diagnostic, Diagnostics};
use levada_cal::natives::OptionNames;
use levada_map::{Balancer, Graph, Link, Machine, Sample};
use levada_sys::{App, AppOptions, Counters, Network, Runtime, RuntimeOptions, Status};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    if let Some(input) = &args.input {
        readable(input)?;
    }
    for (option, file) in [("--out", &args.output), ("--graph", &args.graph)] {
        if let Some(file) = file {
            writable(option, file)?;
        }
    }
    let to_output = |file: &Option<PathBuf>| file.as_deref().is_some_and(output::is_standard);
    if args.json && (to_output(&args.output) || to_output(&args.graph)) {
        return failure_with(
            "--json and what is written to - cannot both have the output",
            "name a file",
        );
    }
    let mut loaded = network::load(&args.network)?;
    let compile = network::compile_options(&loaded, &args.compile)?;
    let made = network::compile(&mut loaded, &compile)?;
    asked_for(args, &made.options, &mut loaded)?;
    if args.json {
        output::keep_for_results()?;
    }
    // SAFETY: the compiler has just made it, or vouches for it by its content.
    let mut opened = unsafe { Network::open(&made.object) };
    if opened.is_err() && made.cached && std::fs::remove_file(&made.object).is_ok() {
        // Something has changed around it, such as a library: it is made anew, once.
        network::compile(&mut loaded, &compile)?;
        // SAFETY: as above.
        opened = unsafe { Network::open(&made.object) };
    }
    let network = match opened {
        Ok(network) => Arc::new(network),
        Err(what) => return failure(what),
    };
    let object = made.object;
    let runtime = Runtime::new(&RuntimeOptions {
        workers: args.workers.unwrap_or(0),
        time_limit_ms: args.time_limit.unwrap_or(0),
        ..RuntimeOptions::default()
    });
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(e) => {
            return failure_with(
                format!("the runtime cannot start: {e}"),
                "run levada doctor",
            );
        }
    };
    let machine = Machine::new(runtime.workers() as usize);
    let known = measured::load(&object, network.actors(), links(&network, |_| 0.0));
    let placement = match &known {
        Some(known) => levada_map::place(known, &machine),
        None => levada_map::place(&first_guess(&network), &machine),
    };
    let options = AppOptions {
        name: Some(loaded.network.name.clone()),
        placement: Some(placement.clone()),
        options: options(args),
        ..AppOptions::default()
    };
    let app = match App::load(&runtime, &network, &options) {
        Ok(app) => Arc::new(app),
        Err(e) => return failure(format!("{} cannot be loaded: {e}", loaded.network.name)),
    };
    let stopped = app.clone();
    let interrupt = match Interrupt::watch(move || drop(stopped.stop())) {
        Ok(interrupt) => interrupt,
        Err(e) => return failure(format!("cannot watch for signals: {e}")),
    };
    let shown = args.progress || (!args.no_progress && std::io::stderr().is_terminal());
    let mut progress = shown.then(|| Progress::new(&runtime));
    let balancer = (!args.no_balance && machine.workers > 1).then(|| {
        let balancer = Balancer::new(machine, placement);
        match known {
            Some(_) => balancer.trusting(),
            None => balancer,
        }
    });

    let began = SystemTime::now();
    let start = Instant::now();
    // An application that has been interrupted already does not start; how it ended is told below.
    if let Err(e) = app.start()
        && interrupt.signal().is_none()
    {
        return failure(format!("{} cannot be started: {e}", loaded.network.name));
    }
    let moves = Watch {
        app: &app,
        balancer,
        before: app.counters().unwrap_or_default(),
        at: start,
        moves: 0,
    };
    let (status, moves) = moves.until_end(progress.as_mut());
    let elapsed = start.elapsed();
    drop(progress);

    let printed = all_printed();
    let mut summary = Summary::new(&app, &runtime, elapsed, moves);
    summary.network = loaded.network.name.clone();
    summary.diagnostics = std::mem::take(&mut loaded.diagnostics);
    if summary.counters.actors.iter().all(|a| a.firings == 0) {
        summary.idle = Some(app.why());
    }
    let signal = interrupt.signal();
    summary.outcome = match (status, signal) {
        // Who reads what the network prints has gone.
        (_, Some(libc::SIGPIPE)) => Outcome::Interrupted(libc::SIGPIPE),
        (Status::STOPPED, Some(signal)) => Outcome::Interrupted(signal),
        (Status::OK, _) if !printed => {
            Outcome::Failed("what was printed could not all be written".into())
        }
        (Status::OK, _) => Outcome::Done,
        (Status::DEADLOCK, _) => Outcome::Deadlock(app.why()),
        (status, _) => match app.fault() {
            Some(fault) => Summary::fault(fault),
            None => Outcome::Failed(format!("{} ({})", status.text(), status.name())),
        },
    };
    if let Some(file) = &args.graph {
        let counters = &summary.counters;
        let picture = graph::of_run(&summary.network, &network, counters, elapsed);
        match output::write_file(file, picture.as_bytes()) {
            Err(e) if summary.outcome.is_done() => summary.outcome = Outcome::Failed(e.what),
            Err(e) => output::error(&e.what, None),
            Ok(()) => {}
        }
    }
    if summary.outcome.is_done() {
        let counters = &summary.counters;
        let ended: Vec<u32> = counters.actors.iter().map(|a| a.worker).collect();
        let all = graph_between(&network, &Counters::default(), counters);
        measured::save(&object, &all.without_traffic(&machine, &ended));
    }
    // What natives hold open is finished, or removed, when the application goes.
    drop(interrupt);
    drop(app);
    drop(runtime);
    summary.output = args
        .output
        .as_deref()
        .and_then(|o| Written::since(began, o));
    if args.json {
        output::line(&summary.json(args.stats).to_string())?;
    }
    if !matches!(summary.outcome, Outcome::Interrupted(libc::SIGPIPE)) {
        summary.say(&loaded.network, args.stats, args.json);
    }
    Ok(summary.exit_code())
}

/// Writes out what natives and `print` left in the C library's buffers; did all of it arrive?
fn all_printed() -> bool {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: no native runs any more, and the C library's own stream is always there.
    unsafe { libc::fflush(std::ptr::null_mut()) == 0 && libc::ferror(stdout) == 0 }
}

/// `--in` names a file, a folder, several files with commas between them, or `-`; what cannot be read
/// is said before anything is compiled.
fn readable(input: &Path) -> Result<(), Failure> {
    let typed = input.to_string_lossy();
    let parts: Vec<&str> = match input.exists() || typed.is_empty() {
        true => vec![&typed],
        false => typed.split(',').collect(),
    };
    if parts.iter().all(|p| p.is_empty()) {
        return failure_with(
            format!("--in {typed:?} names no file"),
            "- is standard input",
        );
    }
    for part in parts.into_iter().filter(|p| !matches!(*p, "" | "-")) {
        // A pipe is opened by who reads it, and once.
        let tried = std::fs::metadata(part).and_then(|m| match m.is_file() {
            true => std::fs::File::open(part).map(drop),
            false => Ok(()),
        });
        if let Err(e) = tried {
            return failure(format!("--in {part}: {e}"));
        }
    }
    Ok(())
}

fn writable(option: &str, path: &Path) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    if path.as_os_str().is_empty() {
        return failure_with(
            format!("{option} names no file"),
            "name one, or - for the output",
        );
    }
    match folder.is_dir() {
        true => Ok(()),
        false => failure_with(
            format!(
                "{option} {}: there is no folder {}",
                path.display(),
                folder.display()
            ),
            format!("make it: mkdir -p {}", folder.display()),
        ),
    }
}

/// An option that no native of the network asks for is refused; files that nobody reads or writes
/// are warned of.
fn asked_for(args: &RunArgs, names: &OptionNames, loaded: &mut Loaded) -> Result<(), Failure> {
    for (name, value) in &args.option {
        if !names.holds(name) {
            return failure_with(
                format!("--option {name}={value}: nothing in this network asks for {name}"),
                match names.others().as_slice() {
                    [] => "it has no such options".to_string(),
                    others => format!("it has {}", others.join(", ")),
                },
            );
        }
    }
    let mut unused = Diagnostics::new();
    for (name, given, does) in [
        ("in", args.input.is_some(), "reads"),
        ("out", args.output.is_some(), "writes"),
    ] {
        if given && !names.holds(name) {
            let what = format!("--{name}: nothing in this network {does} it");
            unused.push(Diagnostic::warning("unused-option", what));
        }
    }
    output::diagnostics(&loaded.sources, &unused);
    let found = output::list(&loaded.sources, &unused);
    loaded.diagnostics.extend(found);
    Ok(())
}

fn options(args: &RunArgs) -> Vec<(String, String)> {
    let mut options = Vec::new();
    let path = |p: &PathBuf| p.to_string_lossy().into_owned();
    options.extend(args.input.iter().map(|p| ("in".to_string(), path(p))));
    options.extend(args.output.iter().map(|p| ("out".to_string(), path(p))));
    options.extend(args.option.iter().cloned());
    options
}

/// Before anything is measured every actor weighs the same, and so does every channel.
fn first_guess(network: &Network) -> Graph {
    Graph {
        busy: vec![1.0; network.actors()],
        links: links(network, |_| 0.1),
    }
}

fn links(network: &Network, bytes: impl Fn(usize) -> f64) -> Vec<Link> {
    let all = network.links().into_iter().enumerate();
    all.map(|(i, (from, to, _))| Link {
        from: from as usize,
        to: to as usize,
        bytes: bytes(i),
    })
    .collect()
}

/// What was done from one reading of the counters to the next.
fn graph_between(network: &Network, before: &Counters, now: &Counters) -> Graph {
    let busy = |i: usize| {
        let before = before.actors.get(i).map_or(Duration::ZERO, |a| a.busy);
        now.actors[i].busy.saturating_sub(before).as_nanos() as f64
    };
    let sizes: Vec<u32> = network.links().iter().map(|l| l.2).collect();
    let bytes = |i: usize| {
        let got = |c: &Counters| c.channels.get(i).map_or(0, |c| c.got);
        let size = sizes.get(i).copied().unwrap_or(0);
        got(now).saturating_sub(got(before)) as f64 * f64::from(size)
    };
    Graph {
        busy: (0..now.actors.len()).map(busy).collect(),
        links: links(network, bytes),
    }
}

/// Watches an application until it ends.
struct Watch<'a> {
    app: &'a App,
    balancer: Option<Balancer>,
    before: Counters,
    at: Instant,
    moves: usize,
}

impl Watch<'_> {
    fn until_end(mut self, mut progress: Option<&mut Progress>) -> (Status, usize) {
        if self.balancer.is_none() && progress.is_none() {
            return (self.app.wait(None), 0);
        }
        let start = self.at;
        let mut quiet = 0;
        loop {
            // Often at first, when placement is a guess; seldom when nothing happens.
            let tick = match start.elapsed().as_millis() {
                _ if quiet > 4 => Duration::from_millis(1000),
                0..20 => Duration::from_millis(4),
                20..100 => Duration::from_millis(10),
                100..1000 => Duration::from_millis(50),
                _ => Duration::from_millis(200),
            };
            let status = self.app.wait(Some(tick));
            if status != Status::TIME {
                return (status, self.moves);
            }
            let fired = self.balance();
            quiet = if fired { 0 } else { quiet + 1 };
            if let Some(progress) = &mut progress {
                progress.tick(self.app);
            }
        }
    }

    /// Takes a sample and makes the moves that the balancer asks for; whether anything fired.
    fn balance(&mut self) -> bool {
        let Ok(now) = self.app.counters() else {
            return false;
        };
        let elapsed = self.at.elapsed();
        self.at += elapsed;
        let sample = Sample {
            elapsed,
            graph: graph_between(self.app.network(), &self.before, &now),
        };
        let fired = sample.graph.busy.iter().any(|b| *b > 0.0);
        if let Some(balancer) = &mut self.balancer {
            for (actor, worker) in balancer.sample(&sample) {
                if self.app.move_actor(actor as u32, worker).is_ok() {
                    self.moves += 1;
                }
            }
        }
        self.before = now;
        fired
    }
}
