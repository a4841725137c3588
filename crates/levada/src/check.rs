// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada check`: parses and type-checks files and folders, and says all that is wrong.

use crate::cli::CheckArgs;
use crate::output::{self, Failure, failure, plural};
use levada_cal::diag::Diagnostics;
use levada_cal::workspace::Workspace;
use levada_cal::xdf;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    for dir in &args.path {
        if !dir.is_dir() {
            return failure(format!("--path {}: there is no such folder", dir.display()));
        }
    }
    let mut files = BTreeSet::new();
    for path in &args.paths {
        gather(path, &mut files)?;
    }
    // Files that share a source root see the same classes.
    let mut by_root: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for file in &files {
        match xdf::locate(file) {
            // By its full path, as it is found when another file names its class.
            Ok(found) => {
                let full = file.canonicalize().unwrap_or_else(|_| file.clone());
                by_root.entry(found.root).or_default().push(full);
            }
            Err(what) => return failure(what),
        }
    }
    let (mut errors, mut warnings) = (0, 0);
    let mut found = Vec::new();
    for (root, files) in &by_root {
        let mut roots = vec![root.clone()];
        roots.extend(args.path.iter().cloned());
        let mut workspace = Workspace::new(roots);
        let mut diags = Diagnostics::new();
        for file in files {
            match file.extension().is_some_and(|e| e == "xdf") {
                true => xdf::check_xdf(&mut workspace, file, &mut diags),
                false => workspace.check_file(file, &mut diags),
            }
        }
        let (e, w) = output::counts(&diags);
        errors += e;
        warnings += w;
        match args.json {
            true => found.extend(output::list(&workspace.sources, &diags)),
            false => output::diagnostics(&workspace.sources, &diags),
        }
    }
    if args.json {
        output::line(
            &serde_json::json!({
                "files": files.len(),
                "errors": errors,
                "warnings": warnings,
                "diagnostics": found,
            })
            .to_string(),
        )?;
    } else {
        output::line(&format!(
            "{} checked: {}, {}",
            plural(files.len(), "file"),
            plural(errors, "error"),
            plural(warnings, "warning")
        ))?;
    }
    Ok(match errors {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The CAL and XDF files at or below `path`.
fn gather(path: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), Failure> {
    let shown = path.display();
    let is_source =
        |p: &Path| matches!(p.extension().and_then(|e| e.to_str()), Some("cal" | "xdf"));
    if path.is_file() {
        if !is_source(path) {
            return failure(format!("{shown} is neither a .cal nor an .xdf file"));
        }
        files.insert(path.to_path_buf());
        return Ok(());
    }
    if !path.is_dir() {
        return failure(match path.exists() {
            true => format!("{shown} is neither a .cal nor an .xdf file, nor a folder of them"),
            false => format!("there is no file or folder {shown}"),
        });
    }
    let before = files.len();
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) => return failure(format!("cannot read the folder {}: {e}", folder.display())),
        };
        for entry in entries.filter_map(Result::ok) {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let path = entry.path();
            // Links to folders are not followed: they may lead in circles.
            if kind.is_dir() {
                folders.push(path);
            } else if is_source(&path) && path.is_file() {
                files.insert(path);
            }
        }
    }
    match files.len() > before {
        true => Ok(()),
        false => failure(format!("there is no .cal or .xdf file in {shown}")),
    }
}
