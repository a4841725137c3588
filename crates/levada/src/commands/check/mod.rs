// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada check`: parses and type-checks files and folders, and says all that is wrong.

mod explain;

use crate::cli::CheckArgs;
use crate::common::output::{self, Failure, failure, plural};
use crate::common::sources;
use levada_cal::diag::Diagnostics;
use levada_cal::project::Project;
use levada_cal::workspace::Workspace;
use levada_cal::xdf;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

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
            // By its full path, as it is found when another file names its class.
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
        if args.notes {
            diags.keep_notes();
        }
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
            false => drop(output::diagnostics(&workspace.sources, &diags)),
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

/// The projects that files lie in, each read once.
#[derive(Default)]
pub(crate) struct Projects {
    /// By the folder that was asked for; `None`: it lies in no project.
    known: BTreeMap<PathBuf, Option<Rc<Project>>>,
}

impl Projects {
    /// The source roots of the project that `file` lies in; none if it lies in none.
    pub(crate) fn roots(&mut self, file: &Path) -> Result<Vec<PathBuf>, Failure> {
        let full = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
        let Some(folder) = full.parent() else {
            return Ok(Vec::new());
        };
        if !self.known.contains_key(folder) {
            let found = Project::around(folder).map_err(Failure::new)?;
            let same = |p: &Project| {
                let mut all = self.known.values().flatten();
                all.find(|known| known.folder == p.folder).cloned()
            };
            let found = found.map(|p| same(&p).unwrap_or_else(|| Rc::new(p)));
            self.known.insert(folder.to_path_buf(), found);
        }
        let project = self.known[folder].as_ref();
        Ok(project.map(|p| p.roots.clone()).unwrap_or_default())
    }

    fn warnings(&self) -> Diagnostics {
        let mut seen = BTreeSet::new();
        let mut diags = Diagnostics::new();
        for project in self.known.values().flatten() {
            if seen.insert(&project.folder) {
                diags.extend(project.warnings());
            }
        }
        diags
    }
}
