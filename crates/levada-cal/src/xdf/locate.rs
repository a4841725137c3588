// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the source root and the class name of a file.
//!
//! A class `a.b.C` lies at `a/b/C.xdf` under some source root, which the user should not have to name in addition to
//! the file. Networks rarely state their package, so the root is found by trial: the folder above the file from which
//! most classes that the network uses can be found.

use crate::fs_deps;
use crate::workspace::{ClassFile, read_source};
use std::path::{Path, PathBuf};

/// A network (or actor) found by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkFile {
    pub root: PathBuf,
    pub class: String,
    /// The file itself. Another file of the same class may be in its folder.
    pub file: ClassFile,
}

/// Maximum number of levels between a root and a file.
const PACKAGE_DEPTH_MAX: usize = 16;

/// Finds root and class of the file at `path`, which may lie below one of `roots`; the error is a
/// sentence.
pub fn locate_in(path: &Path, roots: &[PathBuf]) -> Result<NetworkFile, String> {
    let known = fs_deps::canonicalize(path).ok().and_then(|full| {
        let root = roots.iter().find(|root| full.starts_with(root))?;
        let class = full.strip_prefix(root).ok()?.with_extension("");
        let parts: Option<Vec<&str>> = class.iter().map(|part| part.to_str()).collect();
        let file = match full.extension().and_then(|e| e.to_str())? {
            "cal" => ClassFile::Cal(full.clone()),
            "xdf" => ClassFile::Xdf(full.clone()),
            _ => return None,
        };
        Some(NetworkFile {
            root: root.clone(),
            class: parts?.join("."),
            file,
        })
    });
    known.map_or_else(|| locate(path), Ok)
}

/// Finds root and class of the file at `path`; the error is a sentence.
pub fn locate(path: &Path) -> Result<NetworkFile, String> {
    let shown = path.display();
    let extension = path.extension().and_then(|e| e.to_str());
    if !matches!(extension, Some("xdf" | "cal")) {
        return Err(format!(
            "{shown} is neither a network (.xdf) nor an actor (.cal)"
        ));
    }
    let full = fs_deps::canonicalize(path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    if !fs_deps::is_file(&full) {
        return Err(format!("{shown} is not a file"));
    }
    let text = read_source(&full).map_err(|e| format!("cannot read {shown}: {e}"))?;
    let text = String::from_utf8_lossy(&text);
    let used = match extension {
        Some("xdf") => classes_of(&text),
        _ => Vec::new(),
    };
    let package = match extension {
        Some("cal") => cal_package(&text),
        _ => None,
    };
    let mut best: Option<(usize, NetworkFile)> = None;
    let mut names = vec![
        full.file_stem()
            .map(|s| s.to_string_lossy().into_owned())
            .unwrap_or_default(),
    ];
    let mut folder = full.parent();
    for depth in 0..PACKAGE_DEPTH_MAX {
        let Some(root) = folder else { break };
        let class = names.iter().rev().cloned().collect::<Vec<_>>().join(".");
        let score = match &package {
            Some(package) => usize::from(class == join(package, &names[0])),
            None => used.iter().filter(|c| exists(root, c)).count(),
        };
        // The nearest folder wins among equals.
        if best.as_ref().is_none_or(|(s, _)| score > *s) {
            let root = root.to_path_buf();
            let file = match extension {
                Some("cal") => ClassFile::Cal(full.clone()),
                _ => ClassFile::Xdf(full.clone()),
            };
            best = Some((score, NetworkFile { root, class, file }));
        }
        if depth + 1 < PACKAGE_DEPTH_MAX {
            names.push(
                root.file_name()
                    .map(|s| s.to_string_lossy().into_owned())
                    .unwrap_or_default(),
            );
            folder = root.parent();
        }
    }
    best.map(|(_, file)| file)
        .ok_or_else(|| format!("{shown} lies in no folder"))
}

fn join(package: &str, name: &str) -> String {
    if package.is_empty() {
        name.to_string()
    } else {
        format!("{package}.{name}")
    }
}

fn exists(root: &Path, class: &str) -> bool {
    let relative: PathBuf = class.split('.').collect();
    ["cal", "xdf"]
        .iter()
        .any(|e| fs_deps::is_file(&root.join(&relative).with_extension(e)))
}

/// The classes that a network names, even if the file has errors.
fn classes_of(text: &str) -> Vec<String> {
    let mut classes: Vec<String> = Vec::new();
    let options = roxmltree::ParsingOptions {
        nodes_limit: 4 << 20,
        ..roxmltree::ParsingOptions::default()
    };
    if let Ok(document) = roxmltree::Document::parse_with_options(text, options) {
        for node in document.descendants().filter(|n| n.has_tag_name("Class")) {
            if let Some(name) = node.attribute("name") {
                // A class name must not refer to a path outside of the root.
                if name.split('.').all(|p| !p.is_empty() && !p.contains('/')) {
                    classes.push(name.to_string());
                }
            }
        }
    }
    classes.sort();
    classes.dedup();
    classes
}

/// The package of a CAL file (`package a.b;`), if it has one.
fn cal_package(text: &str) -> Option<String> {
    let line = text
        .lines()
        .map(str::trim_start)
        .find(|l| l.starts_with("package ") || l.starts_with("package\t"));
    let Some(line) = line else {
        return Some(String::new());
    };
    let name = line["package".len()..].split(';').next()?;
    Some(name.split_whitespace().collect())
}
