// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada prepare`: everything that precedes loading an application into a host, in a process of its own
//! (`levada-host` starts it). Prints one line of JSON.

use crate::cli::{GivenArgs, PrepareArgs};
use crate::common::io_options::Where;
use crate::common::output::{self, Failure, failure_with};
use crate::common::prepare_cache::{Answer, Entry};
use crate::common::{io_options, program, resolve};
use levada_cal::natives::OptionNames;
use levada_cal::{compile, fs_deps};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn prepare(args: &PrepareArgs) -> Result<ExitCode, Failure> {
    // The result is useless once the host has been killed.
    // SAFETY: affects this process only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    for (name, file) in [("in", &args.given.input), ("out", &args.given.output)] {
        if file.as_deref().is_some_and(output::is_standard) {
            return failure_with(
                format!("--{name} -: an application in a host has no input or output of yours"),
                "name a file, or a pipe made with mkfifo",
            );
        }
    }
    if program::is_program(&args.network.network) {
        return program::prepare(args);
    }
    io_options::check(&args.given, Where::Host)?;
    let entry = Entry::of(&args.network, &args.compile);
    let made = match entry.as_ref().and_then(Entry::load) {
        Some(made) => {
            say_on!("{}", made.shown);
            made
        }
        None => whole_way(args, entry.as_ref())?,
    };
    let names = OptionNames::again(made.names, made.any_name, made.files);
    let mut diagnostics = made.diagnostics;
    io_options::asked_for(&args.given, &names, &mut diagnostics)?;
    io_options::needed(&args.given, names.files)?;
    let said = json!({
        "object": made.object,
        "network": made.network,
        "options": io_options::options(&whole(&args.given)?),
        "counts": made.counts,
        "diagnostics": diagnostics,
    });
    output::line(&said.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Prepares from the sources, and stores the result in the cache.
fn whole_way(args: &PrepareArgs, entry: Option<&Entry>) -> Result<Answer, Failure> {
    fs_deps::begin();
    let mut loaded = resolve::load(&args.network)?;
    let options = compile::Options {
        before: Some(step_back),
        ..resolve::compile_options(&loaded, &args.compile)?
    };
    let made = resolve::compile(&mut loaded, &options)?;
    let mut answer = Answer {
        object: made.object,
        network: loaded.network.name,
        names: made.options.all().map(str::to_string).collect(),
        any_name: made.options.any,
        files: made.options.files,
        counts: made.options.counts,
        diagnostics: loaded.diagnostics,
        shown: loaded.shown,
        seen: Vec::new(),
    };
    if let (Some(seen), Some(entry)) = (fs_deps::taken(), entry) {
        answer.seen = seen;
        entry.store(&answer);
    }
    Ok(answer)
}

/// Lowers the priority, so that the C compiler does not take CPU time from the workers.
fn step_back() {
    // SAFETY: affects this process and its future children only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}

/// Makes paths absolute, since the host has another current folder.
fn whole(given: &GivenArgs) -> Result<GivenArgs, Failure> {
    let one = |path: &Path| -> Result<PathBuf, Failure> { Ok(std::path::absolute(path)?) };
    let input = match &given.input {
        Some(input) if !input.exists() => {
            // Several, separated by commas.
            let typed = input.to_string_lossy();
            let parts = typed.split(',').filter(|p| !p.is_empty());
            let parts: Result<Vec<String>, Failure> = parts
                .map(|p| Ok(one(Path::new(p))?.to_string_lossy().into_owned()))
                .collect();
            Some(PathBuf::from(parts?.join(",")))
        }
        input => input.as_deref().map(one).transpose()?,
    };
    Ok(GivenArgs {
        input,
        output: given.output.as_deref().map(one).transpose()?,
        option: given.option.clone(),
    })
}
