// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada prepare`: everything that precedes loading an application into a host, in a process of its own
//! (`levada-host` starts it). Prints one line of JSON.

use crate::cli::{GivenArgs, PrepareArgs};
use crate::common::io_options::Where;
use crate::common::output::{self, Failure, failure_with};
use crate::common::{io_options, prepare_cache, program};
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
    let mut made = prepare_cache::prepared(&args.network, &args.compile, false, Some(step_back))?;
    let names = made.option_names();
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
