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
use crate::progress::Progress;
use crate::summary::{Outcome, Summary, Written};
use levada_host::{Host, HostOptions, Load};
use levada_sys::{App, Network, RuntimeOptions, Status};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    given::check(&args.given)?;
    if let Some(file) = &args.graph {
        given::writable("--graph", file)?;
    }
    let to_output = |file: &Option<PathBuf>| file.as_deref().is_some_and(output::is_standard);
    if args.json && (to_output(&args.given.output) || to_output(&args.graph)) {
        return failure_with(
            "--json and what is written to - cannot both have the output",
            "name a file",
        );
    }
    let mut loaded = network::load(&args.network)?;
    let compile = network::compile_options(&loaded, &args.compile)?;
    let made = network::compile(&mut loaded, &compile)?;
    given::asked_for(&args.given, &made.options, &mut loaded)?;
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
    let host = Host::new(&HostOptions {
        runtime: RuntimeOptions {
            workers: args.workers.unwrap_or(0),
            time_limit_ms: args.time_limit.unwrap_or(0),
            ..RuntimeOptions::default()
        },
        balance: !args.no_balance,
    })?;
    let hosted = host.load(Load {
        name: loaded.network.name.clone(),
        class: loaded.network.name.clone(),
        network: network.clone(),
        object: Some(made.object),
        options: given::options(&args.given),
        priority: 0,
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
    // What natives hold open is finished, or removed, when the application goes.
    drop(interrupt);
    drop(hosted);
    drop(host);
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
