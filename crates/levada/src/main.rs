// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The `levada` command: parses the command line and runs one command.
//!
//! Exit status: 0 on success, else the status of the error (`levada_host::Kind` defines the values,
//! docs/errors.md lists them). A program in a shield passes its own status on.

#[macro_use]
mod common;

mod cc;
mod cli;
mod client;
mod commands;
mod lsp;
mod record;
mod shield;
mod top;
mod unit;

use clap::Parser;
use cli::{Cli, Command};
use commands::{
    build, check, doctor, fmt, graph, host, manual, map, mcapi, prepare, run, translate,
};
use common::output::{self, Failure};
use common::signals;
use levada_host::Kind;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A closed reader (`levada graph x | head`) is not an error.
    // SAFETY: no other thread runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    signals::survive_file_limit();
    if let Some(words) = compiler_words() {
        return cc::cc(&words).unwrap_or_else(|failure| {
            output::error(&failure.what, failure.help.as_deref());
            ExitCode::FAILURE
        });
    }
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(e) => return usage(&e),
    };
    let json = command.json();
    let done = match command {
        Command::Run(args) => run::run(&args),
        Command::Host(args) => host::host(&args),
        Command::Load(args) => client::load(&args),
        Command::Replace(args) => client::replace(&args),
        Command::Unload(args) => client::unload(&args),
        Command::Pause(args) => client::pause(&args),
        Command::Resume(args) => client::resume(&args),
        Command::List(args) => client::list(&args),
        Command::Show(args) => client::show(&args),
        Command::Map(args) => map::map_of(&args),
        Command::Move(args) => client::move_actor(&args),
        Command::Stats(args) => client::stats(&args.at),
        Command::Top(args) => top::top(&args),
        Command::Why(args) => client::why(&args),
        Command::Events(args) => client::events(&args),
        Command::Prepare(args) => prepare::prepare(&args),
        Command::Build(args) => build::build(&args),
        Command::Check(args) => check::check(&args),
        Command::Fmt(args) => fmt::fmt(&args),
        Command::Lsp => lsp::lsp(),
        Command::Graph(args) => graph::graph(&args),
        Command::Cc(args) => cc::cc(&args.words),
        Command::Translate(args) => translate::translate(&args),
        Command::Mcapi(command) => mcapi::mcapi(&command),
        Command::Shield(args) => shield::shield(&args),
        Command::Unit(command) => unit::unit(&command),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { command, dir } => manual::man(command.as_deref(), dir.as_deref()),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            output::error(&failure.what, failure.help.as_deref());
            if json {
                // If this cannot be written either, only the exit status reports the error.
                let _ = output::line(&failure.json().to_string());
            }
            ExitCode::from(failure.exit_status())
        }
    }
}

/// The arguments for the C compiler: everything after `levada cc`, or after `levada-cc` if this command has that
/// name.
fn compiler_words() -> Option<Vec<OsString>> {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    if Path::new(&name).file_name() == Some(OsStr::new("levada-cc")) {
        return Some(words.collect());
    }
    let cc = words.next().is_some_and(|w| w == "cc");
    cc.then(|| words.collect())
}

/// Prints help, the version, or the error in the command line.
fn usage(e: &clap::Error) -> ExitCode {
    let text = e.render().to_string();
    let printed = match output::plain(&text) {
        Cow::Borrowed(_) => e.print().and_then(|()| std::io::stdout().flush()),
        // Arguments such as file names may contain control characters.
        Cow::Owned(shown) => {
            output::say_text(&shown);
            Ok(())
        }
    };
    if let Err(why) = printed
        && !e.use_stderr()
    {
        output::error(&output::not_written(why).what, None);
        return ExitCode::FAILURE;
    }
    if e.use_stderr() && std::env::args_os().any(|a| a == "--json") {
        let first: Vec<&str> = text.lines().take_while(|l| !l.is_empty()).collect();
        let first: Vec<&str> = first.iter().map(|l| l.trim()).collect();
        let first = first.join(" ");
        let what = first.strip_prefix("error: ").unwrap_or(&first);
        let _ = output::line(&Failure::new(what).kind(Kind::Usage).json().to_string());
    }
    if e.use_stderr() {
        ExitCode::from(Kind::Usage.exit_status())
    } else {
        ExitCode::SUCCESS
    }
}
