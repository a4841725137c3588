// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada check`: parses and type-checks files and folders, and prints all diagnostics.

mod explain;

use crate::cli::CheckArgs;
use crate::common::output::{self, Failure, failure, plural};
use crate::common::projects::Projects;
use crate::common::sources;
use levada_cal::workspace::Workspace;
use levada_cal::xdf;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

pub fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    for dir in &args.path {
        if !dir.is_dir() {
            return failure(format!("--path {}: there is no such folder", dir.display()));
        }
    }
    if let Some(place) = &args.explain {
        return explain::explain(place, args);
    }
    let mut files = BTreeSet::new();
    for path in &args.paths {
        sources::gather(path, sources::CAL_AND_XDF, &mut files)?;
    }
    // Files that share their source roots see the same classes.
    let mut by_roots: BTreeMap<Vec<PathBuf>, Vec<PathBuf>> = BTreeMap::new();
    let mut projects = Projects::default();
    for file in &files {
        let mut roots = projects.roots(file)?;
        match xdf::locate_in(file, &roots) {
            // By its full path, under which it is also found when another file names its class.
            Ok(found) => {
                if !roots.contains(&found.root) {
                    roots.insert(0, found.root);
                }
                let full = file.canonicalize().unwrap_or_else(|_| file.clone());
                by_roots.entry(roots).or_default().push(full);
            }
            Err(what) => return failure(what),
        }
    }
    let (mut errors, mut warnings) = (0, 0);
    let mut found = Vec::new();
    let mut of_projects = projects.warnings();
    for (roots, files) in &by_roots {
        let mut roots = roots.clone();
        roots.extend(args.path.iter().cloned());
        let mut workspace = Workspace::new(roots);
        let mut diags = std::mem::take(&mut of_projects);
        if args.portability_notes {
            diags.keep_notes();
        }
        for file in files {
            if file.extension().is_some_and(|e| e == "xdf") {
                xdf::check_xdf(&mut workspace, file, &mut diags)
            } else {
                workspace.check_file(file, &mut diags)
            }
        }
        let (e, w) = output::counts(&diags);
        errors += e;
        warnings += w;
        if args.json {
            found.extend(output::list(&workspace.sources, &diags))
        } else {
            drop(output::diagnostics(&workspace.sources, &diags))
        }
    }
    if args.json {
        let report = serde_json::json!({
            "files": files.len(),
            "errors": errors,
            "warnings": warnings,
            "diagnostics": found,
        });
        output::report(report, errors > 0)?;
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
