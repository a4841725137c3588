// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options for the natives of an application: input (`--in`), output (`--out`) and others (`--option`). Values that
//! cannot be used are reported before anything is compiled.

use crate::cli::GivenArgs;
use crate::common::output::{self, Failure, failure, failure_with};
use levada_cal::diag::{Diagnostic, Diagnostics, Sources};
use levada_cal::natives::{Files, OptionNames};
use serde_json::Value;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where an application runs. In a host, the user's standard input and output (`-`) are not available.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Where {
    Here,
    Host,
}

pub fn check(args: &GivenArgs, place: Where) -> Result<(), Failure> {
    // These would bypass the checks of --in and --out.
    if let Some((name, value)) = args.option.iter().find(|o| o.0 == "in" || o.0 == "out") {
        return failure_with(
            format!("--option {name}={value}: {name} is an option of its own"),
            format!("write --{name} {value}"),
        );
    }
    if let Some(input) = &args.input {
        readable(input, place)?;
    }
    if let Some(output) = &args.output {
        writable("--out", output, place)?;
    }
    match (&args.input, &args.output) {
        (Some(input), Some(output)) => not_its_input(input, output),
        _ => Ok(()),
    }
}

/// What is written takes the place of the file that has its name, at the end: not of one that is read.
fn not_its_input(input: &Path, output: &Path) -> Result<(), Failure> {
    let Ok(there) = std::fs::metadata(output) else {
        return Ok(());
    };
    let is_same = |path: &Path| {
        let found = std::fs::metadata(path);
        let key = |m: &Metadata| (m.dev(), m.ino());
        there.is_file() && found.is_ok_and(|found| key(&found) == key(&there))
    };
    let is_read = |part: String| match std::fs::read_dir(&part) {
        Ok(entries) => entries.flatten().any(|entry| is_same(&entry.path())),
        Err(_) => is_same(Path::new(&part)),
    };
    if !inputs(input).into_iter().any(is_read) {
        return Ok(());
    }
    let what = "--in reads this file, and it would be replaced";
    failure_with(
        format!("--out {}: {what}", output.display()),
        "name another file",
    )
}

/// The files or folders that `--in` names, as the natives split it: a name with a comma in it is one file if there is
/// such a file.
fn inputs(input: &Path) -> Vec<String> {
    let typed = input.to_string_lossy();
    if input.exists() || typed.is_empty() {
        vec![typed.into_owned()]
    } else {
        typed.split(',').map(str::to_string).collect()
    }
}

/// Checks that `--in` can be read: a file, a folder, several files separated by commas, or `-`.
fn readable(input: &Path, place: Where) -> Result<(), Failure> {
    let typed = input.to_string_lossy();
    let parts = inputs(input);
    if parts.iter().all(|p| p.is_empty()) {
        return failure_with(
            format!("--in {typed:?} names no file"),
            match place {
                Where::Here => "- is standard input",
                Where::Host => NAME_A_FILE,
            },
        );
    }
    for part in parts.iter().filter(|p| !matches!(p.as_str(), "" | "-")) {
        // A pipe is not opened here: only its reader may open it, once.
        let tried = std::fs::metadata(part).and_then(|m| {
            if m.is_file() {
                std::fs::File::open(part).map(drop)
            } else {
                Ok(())
            }
        });
        if let Err(e) = tried {
            return failure(format!("--in {part}: {e}"));
        }
    }
    Ok(())
}

/// Help for an option that needs a file although standard input or output is not available.
const NAME_A_FILE: &str = "name a file, or a pipe made with mkfifo";

pub fn writable(option: &str, path: &Path, place: Where) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    if path.as_os_str().is_empty() {
        return failure_with(
            format!("{option} names no file"),
            match place {
                Where::Here => "name one, or - for the output",
                Where::Host => NAME_A_FILE,
            },
        );
    }
    if folder.is_dir() {
        Ok(())
    } else {
        failure_with(
            format!(
                "{option} {}: there is no folder {}",
                path.display(),
                folder.display()
            ),
            format!("make it: mkdir -p {}", folder.display()),
        )
    }
}

/// Checks options that an application needs in a host, where it would otherwise fail only when it runs.
pub fn needed(args: &GivenArgs, files: Files) -> Result<(), Failure> {
    if files.reads && args.input.is_none() {
        return failure_with(
            "this network reads what --in names, and that is not given",
            format!("{NAME_A_FILE}, with --in; /dev/null, if what would read is never called"),
        );
    }
    let folder = args.output.as_ref().filter(|p| p.is_dir());
    match folder.filter(|_| files.writes_one) {
        Some(folder) => failure_with(
            format!("--out {}: is a folder", folder.display()),
            "this network writes one file: name that",
        ),
        None => Ok(()),
    }
}

/// An option that no native of the network uses is an error; a file that none reads or writes causes a warning.
pub fn asked_for(
    args: &GivenArgs,
    names: &OptionNames,
    diagnostics: &mut Vec<Value>,
) -> Result<(), Failure> {
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
    let sources = Sources::new();
    output::diagnostics(&sources, &unused);
    diagnostics.extend(output::list(&sources, &unused));
    Ok(())
}

pub fn options(args: &GivenArgs) -> Vec<(String, String)> {
    let mut options = Vec::new();
    let path = |p: &PathBuf| p.to_string_lossy().into_owned();
    options.extend(args.input.iter().map(|p| ("in".to_string(), path(p))));
    options.extend(args.output.iter().map(|p| ("out".to_string(), path(p))));
    options.extend(args.option.iter().cloned());
    options
}
