// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada run`: compiles a network, runs it on one worker per core, and says what it did.
//!
//! It is a host with one application (`levada-host`), which ends with it.

use crate::cli::RunArgs;
use crate::given;
use crate::graph;
use crate::interrupt::Interrupt;
use crate::network;
use crate::output::{self, Failure, failure, failure_with};
use crate::play::{self, Viewer};
use crate::progress::Progress;
use crate::record;
use crate::summary::{Outcome, Summary, Written};
use levada_host::{Host, Limits, Load};
use levada_sys::{App, Network, Status};
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    given::check(&args.given)?;
    if args.play {
        play::viewer()?;
    }
    for (option, file) in [("--graph", &args.graph), ("--record", &args.record)] {
        if let Some(file) = file {
            given::writable(option, file)?;
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
    let mut loaded = network::load(&args.network)?;
    let compile = network::compile_options(&loaded, &args.compile)?;
    let made = network::compile(&mut loaded, &compile)?;
    given::asked_for(&args.given, &made.options, &mut loaded.diagnostics)?;
    if args.play && !made.options.holds("out") {
        return failure("--play: nothing in this network writes what could be shown");
    }
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
    let host = Host::new(&args.runtime.options())?;
    let pins = match &args.placement {
        Some(file) => {
            let workers = host.machine().workers();
            record::pins(file, &loaded.network.name, &network, workers)?
        }
        None => Vec::new(),
    };
    let viewer = match args.play {
        true => Some(Viewer::start(&loaded.network.name)?),
        false => None,
    };
    let mut options = given::options(&args.given);
    options.extend(viewer.iter().map(|v| ("out".to_string(), v.file())));
    let hosted = host.load(Load {
        name: loaded.network.name.clone(),
        class: loaded.network.name.clone(),
        network: network.clone(),
        object: Some(made.object),
        options,
        priority: 0,
        pins,
        limits: Limits {
            rate: args.rate,
            share: None,
        },
        anyway: true,
        exclusive: false,
    })?;
    let app = &hosted.app;
    let stopped = hosted.clone();
    let interrupt = match Interrupt::watch(move || drop(stopped.app.stop())) {
        Ok(interrupt) => interrupt,
        Err(e) => return failure(format!("cannot watch for signals: {e}")),
    };
    let shown = args.progress || (!args.no_progress && std::io::stderr().is_terminal());
    let mut progress = shown.then(|| Progress::new(host.runtime()));

    let began = SystemTime::now();
    let start = Instant::now();
    // An application that has been interrupted already does not start; how it ended is told below.
    if let Err(e) = host.start(&hosted)
        && interrupt.signal().is_none()
    {
        return Err(e.into());
    }
    let status = until_end(app, progress.as_mut());
    let elapsed = start.elapsed();
    drop(progress);

    let printed = all_printed();
    let mut summary = Summary::new(app, host.runtime(), elapsed, hosted.moves());
    summary.network = loaded.network.name.clone();
    summary.diagnostics = std::mem::take(&mut loaded.diagnostics);
    if summary.counters.actors.iter().all(|a| a.firings == 0) {
        summary.idle = Some(app.why());
    }
    // A native may learn that its reader has gone, and fail, before the signal is seen here.
    let unread = || {
        let output = std::io::stdout();
        let read = viewer.as_ref().map_or(output.as_fd(), Viewer::end);
        (status == Status::FAULT || status == Status::STOPPED) && output::has_no_reader(read)
    };
    let signal = interrupt.signal();
    let signal = signal.or_else(|| unread().then_some(libc::SIGPIPE));
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
    if let (Some(file), Outcome::Done) = (&args.record, &summary.outcome) {
        let text = record::described(&hosted, host.machine(), &summary.counters, elapsed);
        if let Err(e) = output::write_file(file, text.as_bytes()) {
            summary.outcome = Outcome::Failed(e.what);
        }
    }
    // What natives hold open is finished, or removed, when the application goes.
    drop(interrupt);
    drop(hosted);
    drop(host);
    if let Some(viewer) = viewer {
        let shown = viewer.finish();
        // A window that is closed early ends the run as well as any other end.
        if matches!(summary.outcome, Outcome::Interrupted(libc::SIGPIPE)) && shown.is_ok() {
            summary.outcome = Outcome::Done;
        }
        match shown {
            Err(e) if summary.outcome.is_done() || signal == Some(libc::SIGPIPE) => return Err(e),
            _ => {}
        }
    }
    summary.output = args
        .given
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

/// Waits until it has ended, and shows how far it is meanwhile.
fn until_end(app: &App, progress: Option<&mut Progress>) -> Status {
    let Some(progress) = progress else {
        return app.wait(None);
    };
    loop {
        let status = app.wait(Some(Duration::from_millis(50)));
        if status != Status::TIME {
            return status;
        }
        progress.tick(app);
    }
}
