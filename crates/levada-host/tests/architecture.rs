// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What docs/architecture.md names is there. Tried: a file that is called otherwise, in either table.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_there(folder: &str, name: &str) -> bool {
    let ends = [".rs", ".c", ".h"];
    let file = |end: &&str| root().join(folder).join(format!("{name}{end}")).is_file();
    ends.iter().any(file) || root().join(folder).join(name).is_file()
}

/// The rows of the layers, of which those of the runtime name files: "part   folder   name, name (words)".
fn in_layers(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().take_while(|line| !line.starts_with("Arrows"));
    let folders = [" runtime/src ", " runtime/include ", " runtime/far "];
    let rows = rows.filter(|line| folders.iter().any(|folder| line.contains(folder)));
    let mut all = Vec::new();
    for row in rows {
        let mut parts = row.trim().split("  ").filter(|part| !part.is_empty());
        let (Some(_), Some(folder), Some(names)) = (parts.next(), parts.next(), parts.next())
        else {
            panic!("{row}");
        };
        let folder = match folder.trim() {
            "runtime/include" => "runtime/include/levada",
            folder => folder,
        };
        // Behind a colon, and in parentheses, stand words.
        for name in names.split(':').next().unwrap().split([',', ';']) {
            let name = name.split('(').next().unwrap().trim();
            if !name.is_empty() && !name.contains(' ') {
                all.push((folder.to_string(), name.to_string()));
            }
        }
    }
    all
}

/// The table of the host: each name in the last column, in backquotes.
fn in_host(text: &str) -> Vec<(String, String)> {
    let host = text
        .split("\n## The host\n")
        .nth(1)
        .expect("the host has a section");
    let rows = host.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let cells = rows.map(|row| row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names
        .map(|name| ("crates/levada-host/src".to_string(), name.to_string()))
        .collect()
}

#[test]
fn what_the_architecture_names_is_there() {
    let text = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let (layers, host) = (in_layers(&text), in_host(&text));
    assert!(layers.len() > 30 && host.len() > 40, "{layers:?} {host:?}");
    let gone = layers
        .iter()
        .chain(&host)
        .filter(|(folder, name)| !is_there(folder, name));
    let gone: Vec<_> = gone.collect();
    assert!(gone.is_empty(), "{gone:?}");
}
