// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The user's headers that a C file includes. They are inputs of its compilation, so the name of the cached object
//! depends on them.

use crate::fs_deps;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The files that a C file includes with quotes, directly or indirectly, each once and with its content. Conditional
/// includes are treated as included. A file that does not lie in the folder of the including file is left to the
/// compiler.
pub fn quoted(path: &Path, text: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut left = vec![(path.to_path_buf(), text.as_bytes().to_vec())];
    while let Some((file, content)) = left.pop() {
        let folder = file.parent().unwrap_or(Path::new(""));
        for name in quoted_names(&String::from_utf8_lossy(&content)) {
            let included = folder.join(name);
            if !seen.insert(included.clone()) {
                continue;
            }
            fs_deps::content(&included);
            if let Ok(content) = std::fs::read(&included) {
                found.push((included.clone(), content.clone()));
                left.push((included, content));
            }
        }
    }
    found
}

/// The names in `#include "name"`.
fn quoted_names(text: &str) -> impl Iterator<Item = &str> {
    included(text).filter_map(|name| Some(name.strip_prefix('"')?.split_once('"')?.0))
}

/// The names in `#include "name"` and `#include <name>`.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    included(text).filter_map(|name| match name.as_bytes().first()? {
        b'"' => Some(name[1..].split_once('"')?.0),
        b'<' => Some(name[1..].split_once('>')?.0),
        _ => None,
    })
}

/// What follows each `#include`.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start().strip_prefix('#')?.trim_start();
        Some(line.strip_prefix("include")?.trim_start())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_included_with_quotes_is_found_once() {
        let folder = std::env::temp_dir().join(format!("levada-includes-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("a.h", "#include \"sub/b.h\"\n#include \"a.h\"\n");
        write("sub/b.h", "  #  include \"c.h\" // of its own folder\n");
        write("sub/c.h", "int c;\n");
        let text = "#include <stdio.h>\n#include\"a.h\"\n#include \"none.h\"\n// \"sub/c.h\"\n";
        let found = quoted(&folder.join("x.c"), text);
        let names: Vec<_> = found
            .iter()
            .map(|(path, _)| path.strip_prefix(&folder).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["a.h", "sub/b.h", "sub/c.h"]);
        assert_eq!(found[2].1, b"int c;\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
