// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Source files that are named on the command line, either directly or as folders.

use crate::common::output::{Failure, failure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The kinds of files that a command reads.
#[derive(Clone, Copy)]
pub struct Kind {
    extensions: &'static [&'static str],
    /// The error texts for a file of another kind, and for a folder without such files.
    not: &'static str,
    any: &'static str,
}

pub const CAL: Kind = Kind {
    extensions: &["cal"],
    not: "no .cal file",
    any: ".cal file",
};

pub const CAL_AND_XDF: Kind = Kind {
    extensions: &["cal", "xdf"],
    not: "neither a .cal nor an .xdf file",
    any: ".cal or .xdf file",
};

impl Kind {
    fn holds(self, path: &Path) -> bool {
        let extension = path.extension().and_then(|e| e.to_str());
        extension.is_some_and(|e| self.extensions.contains(&e))
    }
}

/// Adds the files of a kind at or below `path`.
pub fn gather(path: &Path, kind: Kind, files: &mut BTreeSet<PathBuf>) -> Result<(), Failure> {
    let shown = path.display();
    if path.is_file() {
        if !kind.holds(path) {
            return failure(format!("{shown} is {}", kind.not));
        }
        files.insert(path.to_path_buf());
        return Ok(());
    }
    if !path.is_dir() {
        return failure(if path.exists() {
            format!("{shown} is {}, nor a folder of them", kind.not)
        } else {
            format!("there is no file or folder {shown}")
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
            let path = entry.path();
            // Links to folders are not followed, since they may form cycles.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(_) if kind.holds(&path) && path.is_file() => drop(files.insert(path)),
                _ => {}
            }
        }
    }
    if files.len() > before {
        Ok(())
    } else {
        failure(format!("there is no {} in {shown}", kind.any))
    }
}
