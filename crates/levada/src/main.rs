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
    let done = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Build(args) => build::build(&args),
        Command::Check(args) => check::check(&args),
        Command::Graph(args) => graph::graph(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { dir } => manual::man(dir.as_deref()),
    };
    match done {
        Ok(code) => code,
        Err(Failure { what, help }) => {
            output::error(&what, help.as_deref());
            ExitCode::FAILURE
        }
    }
}
