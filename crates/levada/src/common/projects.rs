// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Eclipse projects (`.project`, `.classpath`) that source files belong to.

use crate::common::output::Failure;
use levada_cal::diag::Diagnostics;
use levada_cal::project::Project;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The projects of files; each project is read once.
#[derive(Default)]
pub struct Projects {
    /// By folder; `None` if it belongs to no project.
    known: BTreeMap<PathBuf, Option<Rc<Project>>>,
}

impl Projects {
    /// The source roots of the project of `file`; empty if it belongs to none.
    pub fn roots(&mut self, file: &Path) -> Result<Vec<PathBuf>, Failure> {
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

    pub fn warnings(&self) -> Diagnostics {
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
