// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada`: the command.
//!
//! Exit status: 0 when what was asked for was done; 1 when it was not (the reason is on the error
//! output); 2 when the command line is wrong; 130 when it was interrupted.

mod build;
mod check;
mod cli;
mod doctor;
mod graph;
mod interrupt;
mod manual;
mod measured;
mod network;
mod output;
mod progress;
mod run;
mod summary;

use clap::Parser;
use cli::{Cli, Command};
use output::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A reader that goes away (`levada graph x | head`) is no error.
    // SAFETY: no other thread runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(e) => return usage(&e),
    };
    let json = command.json();
    let done = match command {
        Command::Run(args) => run::run(&args),
        Command::Build(args) => build::build(&args),
        Command::Check(args) => check::check(&args),
        Command::Graph(args) => graph::graph(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { command, dir } => manual::man(command.as_deref(), dir.as_deref()),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            output::error(&failure.what, failure.help.as_deref());
            if json {
                // Where not even that can be written, the status has to do.
                let _ = output::line(&failure.json().to_string());
            }
            ExitCode::FAILURE
        }
    }
}

/// Help, the version, or what is wrong with the command line.
fn usage(e: &clap::Error) -> ExitCode {
    let _ = e.print();
    if e.use_stderr() && std::env::args_os().any(|a| a == "--json") {
        let text = e.render().to_string();
        let first: Vec<&str> = text.lines().take_while(|l| !l.is_empty()).collect();
        let first: Vec<&str> = first.iter().map(|l| l.trim()).collect();
        let first = first.join(" ");
        let what = first.strip_prefix("error: ").unwrap_or(&first);
        let _ = output::line(&Failure::new(what).json().to_string());
    }
    ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2))
}
