// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada fmt`: formats CAL files. A file is either replaced as a whole or left unchanged.

use crate::cli::FmtArgs;
use crate::common::output::{self, Failure, failure_with, plural};
use crate::common::sources;
use levada_cal::diag::{Diagnostics, Sources};
use levada_cal::{encoding, format, workspace};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

pub fn fmt(args: &FmtArgs) -> Result<ExitCode, Failure> {
    if args.paths.iter().any(|p| output::is_standard(p)) {
        if args.paths.len() > 1 {
            return failure_with("- stands alone", "name files, or only -");
        }
        return standard(args.check);
    }
    let mut files = BTreeSet::new();
    for path in &args.paths {
        sources::gather(path, sources::CAL, &mut files)?;
    }
    let (mut changed, mut bad) = (0, 0);
    for file in &files {
        match one(file, args.check) {
            Ok(true) => {
                changed += 1;
                output::line(&file.display().to_string())?;
            }
            Ok(false) => {}
            Err(Some(failure)) => {
                bad += 1;
                output::error(&failure.what, failure.help.as_deref());
            }
            Err(None) => bad += 1,
        }
    }
    let all = plural(files.len(), "file");
    let what = if args.check {
        "not formatted"
    } else {
        "reformatted"
    };
    let faulty = match bad {
        0 => String::new(),
        n => format!(", {} left alone for errors", plural(n, "file")),
    };
    output::line(&format!("{all}: {changed} {what}{faulty}"))?;
    Ok(if bad == 0 && !(args.check && changed > 0) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Formats standard input to standard output; writes nothing if it has errors.
fn standard(check: bool) -> Result<ExitCode, Failure> {
    let bytes = output::input()?;
    let Ok(formatted) = formatted("<stdin>", &bytes) else {
        return Ok(ExitCode::FAILURE);
    };
    if check {
        return Ok(if formatted == bytes {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    output::raw(&formatted)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the file was changed, or with `check` would be changed; `None` for errors that were already printed.
fn one(file: &Path, check: bool) -> Result<bool, Option<Failure>> {
    let cannot = |what: &str, e: std::io::Error| {
        Some(Failure::new(format!(
            "cannot {what} {}: {e}",
            file.display()
        )))
    };
    let bytes = workspace::read_source(file).map_err(|e| cannot("read", e))?;
    let formatted = formatted(&Sources::display_path(file), &bytes).map_err(|()| None)?;
    if formatted == bytes {
        return Ok(false);
    }
    if !check {
        replace(file, &formatted).map_err(|e| cannot("write", e))?;
    }
    Ok(true)
}

/// Replaces the file atomically and keeps its permissions.
fn replace(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let file = output::followed(file);
    let old = std::fs::metadata(&file)?;
    output::replace(&file, bytes, Some(old.permissions()))
}

/// The formatted bytes of the file, in its encoding.
fn formatted(name: &str, bytes: &[u8]) -> Result<Vec<u8>, ()> {
    let (text, stored) = encoding::decode(bytes);
    let mut sources = Sources::new();
    let file = sources.add(name, encoding::line_feeds(text.clone()));
    match format::format(file, &text) {
        Ok(done) => Ok(encoding::encode(&done, stored)),
        Err(errors) => {
            let mut diags = Diagnostics::new();
            diags.extend(errors);
            output::diagnostics(&sources, &diags);
            Err(())
        }
    }
}
