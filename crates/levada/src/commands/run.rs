// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada run`: compiles a network or opens a C program, runs it on one worker per core, and prints a summary.
//!
//! It creates a host (`levada-host`) with this one application; the host ends with it.

use crate::cli::RunArgs;
use crate::commands::graph;
use crate::commands::play::{self, Viewer};
use crate::common::artifact::{self, Kind};
use crate::common::core_time;
use crate::common::io_options;
use crate::common::io_options::Where;
use crate::common::native_hang::NativeHang;
use crate::common::output::{self, Failure, failure, failure_with};
use crate::common::prepare_cache::{self, CompiledSources};
use crate::common::program;
use crate::common::progress::Progress;
use crate::common::realtime;
use crate::common::run_summary::{Outcome, Summary, Written};
use crate::common::runnable::Runnable;
use crate::common::signals::Interrupt;
use crate::record;
use crate::record::sampler::Sampler;
use levada_host::{Host, HostedApp, Limits, Load};
use levada_sys::{App, Counters, Network, Status};
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    check(args)?;
    let made = if program::is_program(&args.network.network) {
        program::open(args)?
    } else {
        compiled(args)?
    };
    if args.json {
        output::keep_for_results()?;
    }
    let host = realtime::start(&args.runtime.options())?;
    let viewer = args.play.then(|| Viewer::start(&made.name)).transpose()?;
    let load = load_of(args, &made, &host, viewer.as_ref())?;
    host.check_memory(&load.name, &load)?;
    let hosted = host.load(load)?;
    let app = &hosted.app;
    let stopped = hosted.clone();
    let runtime = host.runtime().clone();
    let stop = move || drop(stopped.app.stop());
    let interrupt = match Interrupt::watch(move || runtime.serve(), stop) {
        Ok(interrupt) => interrupt,
        Err(e) => return failure(format!("cannot watch for signals: {e}")),
    };
    let shown = args.progress || (!args.no_progress && std::io::stderr().is_terminal());
    let mut progress = shown.then(|| Progress::new(host.runtime()));

    let began = SystemTime::now();
    let first = core_time::Sample::now();
    let start = Instant::now();
    // An application that has been interrupted already does not start; how it ended is told below.
    if let Err(e) = host.start(&hosted)
        && interrupt.signal().is_none()
    {
        return Err(e.into());
    }
    let samples = args
        .record
        .as_ref()
        .and_then(|_| Sampler::begin(&hosted, host.runtime()));
    let limit = args.runtime.action_time_limit.filter(|ms| *ms > 0);
    let hang = NativeHang::new(limit.map(|ms| Duration::from_millis(ms.into())));
    // This thread also handles signals and prints progress.
    host.runtime().serve();
    let ended = until_end(app, progress.as_mut(), hang, &interrupt);
    let elapsed = start.elapsed();
    drop(progress);
    let status = match ended {
        Ok(status) => status,
        Err(why) => {
            let mut failure = Failure::new(why).help("the process ends with it");
            if let Some(signal) = interrupt.signal() {
                failure = failure.kind(levada_host::Kind::Interrupted);
                failure = failure.status((128 + signal) as u8);
            }
            output::error(&failure.what, failure.help.as_deref());
            if args.json {
                output::line(&failure.json().to_string())?;
            }
            std::process::exit(failure.exit_status().into());
        }
    };

    let printed = all_printed();
    let others = core_time::Sample::now().others_since(&first);
    let mut summary = Summary::new(app, host.runtime(), elapsed, &others, hosted.moves());
    summary.network = made.name.clone();
    summary.diagnostics = made.diagnostics;
    summary.strict = args.strict;
    let signal = interrupt
        .signal()
        .or_else(|| is_unread(status, viewer.as_ref()).then_some(libc::SIGPIPE));
    summary.outcome = outcome(app, status, signal, printed);
    // A firing that did not end is not counted, and is none that never began.
    let came_to_rest = matches!(status, Status::OK | Status::DEADLOCK);
    if came_to_rest && summary.counters.actors.iter().all(|a| a.firings == 0) {
        summary.idle = Some(app.wait_report());
    }
    if let Some(file) = &args.graph {
        let counters = &summary.counters;
        let picture = graph::of_run(&summary.network, &made.network, counters, elapsed);
        match artifact::write(file, picture.as_bytes(), Kind::Svg) {
            Err(e) if summary.outcome.is_done() => summary.outcome = Outcome::Failed(e.what),
            Err(e) => output::error(&e.what, None),
            Ok(()) => {}
        }
    }
    if let (Some(file), Outcome::Done) = (&args.record, &summary.outcome) {
        let text = recorded(
            &host,
            &hosted,
            &made.network,
            samples,
            &summary.counters,
            (start, elapsed),
        );
        if let Err(e) = artifact::write(file, text.as_bytes(), Kind::Toml) {
            summary.outcome = Outcome::Failed(e.what);
        }
    }
    // Files that natives hold open are finished or removed when the application is dropped.
    drop(interrupt);
    drop(hosted);
    drop(host);
    if let Some(viewer) = viewer {
        let shown = viewer.finish();
        // A viewer window that is closed early is a normal end of the run.
        if matches!(summary.outcome, Outcome::Interrupted(libc::SIGPIPE)) && shown.is_ok() {
            summary.outcome = Outcome::Done;
        }
        match shown {
            Err(e) if summary.outcome.is_done() || signal == Some(libc::SIGPIPE) => return Err(e),
            _ => {}
        }
    }
    say_what_was_written(&mut summary, args.given.output.as_deref(), began);
    if args.json {
        output::line(&summary.json(args.stats).to_string())?;
    }
    if !matches!(summary.outcome, Outcome::Interrupted(libc::SIGPIPE)) {
        summary.say(&made.sources, args.stats, args.json);
    }
    Ok(summary.exit_code())
}

/// Checks the options before anything is compiled.
fn check(args: &RunArgs) -> Result<(), Failure> {
    io_options::check(&args.given, Where::Here)?;
    if args.play {
        play::viewer()?;
    }
    for (option, file, kind) in [
        ("--graph", &args.graph, Kind::Svg),
        ("--record", &args.record, Kind::Toml),
    ] {
        if let Some(file) = file {
            io_options::writable(option, file, Where::Here)?;
            artifact::check(file, kind)?;
        }
    }
    let to_output = |file: &Option<PathBuf>| file.as_deref().is_some_and(output::is_standard);
    let written = [&args.given.output, &args.graph, &args.record];
    if args.json && written.into_iter().any(to_output) {
        return failure_with(
            "--json and what is written to - cannot both have the output",
            "name a file",
        );
    }
    Ok(())
}

/// The load request: the only application, on all workers.
fn load_of(
    args: &RunArgs,
    made: &Runnable,
    host: &Host,
    viewer: Option<&Viewer>,
) -> Result<Load, Failure> {
    let pins = match &args.placement {
        Some(file) => {
            let workers = host.machine().workers();
            record::pins(file, &made.name, &made.network, workers)?
        }
        None => Vec::new(),
    };
    let mut options = io_options::options(&args.given);
    options.extend(viewer.map(|v| ("out".to_string(), v.file())));
    Ok(Load {
        name: made.name.clone(),
        network_class: made.name.clone(),
        network: made.network.clone(),
        object: made.object.clone(),
        options,
        priority: 0,
        pins,
        load_by_others: Vec::new(),
        initial_workers: None,
        limits: Limits {
            rate: args.rate,
            cpus: None,
        },
        fixed_buffers: args.fixed_buffers,
        memory: args.memory,
        can_count: true,
        force: true,
        exclusive: false,
        reserved_core: None,
    })
}

/// Whether the run ended because the reader of its output has gone. A native may notice that and fail before the
/// signal arrives here.
fn is_unread(status: Status, viewer: Option<&Viewer>) -> bool {
    let output = std::io::stdout();
    let read = viewer.map_or(output.as_fd(), Viewer::end);
    (status == Status::FAULT || status == Status::STOPPED) && output::has_no_reader(read)
}

fn outcome(app: &App, status: Status, signal: Option<i32>, printed: bool) -> Outcome {
    match (status, signal) {
        // The reader of standard output has gone.
        (_, Some(libc::SIGPIPE)) => Outcome::Interrupted(libc::SIGPIPE),
        (Status::STOPPED, Some(signal)) => Outcome::Interrupted(signal),
        (Status::OK, _) if !printed => {
            Outcome::Failed("what was printed could not all be written".into())
        }
        (Status::OK, _) => Outcome::Done,
        (Status::DEADLOCK, _) => Outcome::Deadlock(app.wait_report()),
        (status, _) => match app.fault() {
            Some(fault) => Summary::fault(fault),
            None => Outcome::Failed(format!("{} ({})", status.text(), status.name())),
        },
    }
}

/// The description of the run for `--record`; `times`: its start and duration.
fn recorded(
    host: &Host,
    hosted: &HostedApp,
    network: &Network,
    samples: Option<Sampler>,
    counters: &Counters,
    times: (Instant, Duration),
) -> String {
    let seen = samples.map(|samples| samples.end(counters));
    let costs = record::cost_profile(network, counters, &seen.unwrap_or_default());
    let runtime = host.runtime();
    let ran = (0..runtime.workers()).map(|w| runtime.worker_counters(w).unwrap_or_default());
    let machine = record::measured_machine(host.machine(), &ran.collect::<Vec<_>>());
    record::description(hosted, &machine, counters, costs, times)
}

/// Adds to the summary what was written to `output` since `began`, or that nothing was.
fn say_what_was_written(summary: &mut Summary, output: Option<&Path>, began: SystemTime) {
    summary.output = output.and_then(|o| Written::since(began, o));
    let other = |o: &Path| std::fs::metadata(o).is_ok_and(|m| !m.is_file() && !m.is_dir());
    summary.unwritten = output
        .filter(|o| summary.output.is_none() && !output::is_standard(o) && !other(o))
        .map(Path::to_path_buf);
}

fn compiled(args: &RunArgs) -> Result<Runnable, Failure> {
    let prepare = || prepare_cache::prepared(&args.network, &args.compile, args.no_progress, None);
    let mut made = prepare()?;
    if !args.arguments.is_empty() {
        return failure_with(
            format!("{} is a network, and takes no arguments", made.network),
            "--set gives its parameters values; arguments are for C programs (.so)",
        );
    }
    let names = made.option_names();
    let mut diagnostics = std::mem::take(&mut made.diagnostics);
    io_options::asked_for(&args.given, &names, &mut diagnostics)?;
    if args.play && !names.holds("out") {
        return failure("--play: nothing in this network writes what could be shown");
    }
    // SAFETY: the compiler has just written it, or its seal proves that it did.
    let mut opened = unsafe { Network::open(&made.object) };
    if opened.is_err() && made.is_cached {
        // It was removed meanwhile, or a dependency such as a library has changed: compile again, once.
        let _ = std::fs::remove_file(&made.object);
        made = prepare()?;
        // SAFETY: as above.
        opened = unsafe { Network::open(&made.object) };
    }
    Ok(Runnable {
        name: made.network,
        network: Arc::new(opened.map_err(Failure::new)?),
        sources: match made.texts {
            Some(texts) => CompiledSources::Texts(texts),
            None => CompiledSources::Files(made.seen),
        },
        object: Some(made.object),
        diagnostics,
    })
}

/// Flushes the C library's buffers, which natives and `print` use; false if there were write errors.
fn all_printed() -> bool {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: no native runs any more, and the C library's stream always exists.
    unsafe { libc::fflush(std::ptr::null_mut()) == 0 && libc::ferror(stdout) == 0 }
}

/// Waits until the application has ended, and shows progress; an error describes an action that does not end.
fn until_end(
    app: &App,
    mut progress: Option<&mut Progress>,
    mut hang: NativeHang,
    interrupt: &Interrupt,
) -> Result<Status, String> {
    let step = Duration::from_millis(if progress.is_some() { 50 } else { 250 });
    loop {
        let status = app.wait(Some(step));
        if status != Status::TIMEOUT {
            return Ok(status);
        }
        if let Some(progress) = &mut progress {
            progress.tick(app);
        }
        if let Some(why) = hang.check(app, interrupt.signal().is_some()) {
            return Err(why);
        }
    }
}
