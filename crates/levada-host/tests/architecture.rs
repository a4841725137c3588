// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What docs/architecture.md names is there. Tried: a file that is called otherwise, in either table.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_there(folder: &str, name: &str) -> bool {
    let ends = [".rs", ".c", ".h"];
    let file = |end: &&str| root().join(folder).join(format!("{name}{end}")).is_file();
    ends.iter().any(file) || root().join(folder).join(name).exists()
}

/// The folders of the layers: "part   folder   words".
fn in_layers(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().take_while(|line| !line.starts_with("Arrows"));
    let words = rows.flat_map(|row| row.split_whitespace());
    words
        .filter(|word| {
            ["crates/", "runtime/", "hardware/"]
                .iter()
                .any(|f| word.starts_with(f))
        })
        .map(|word| (".".to_string(), word.to_string()))
        .collect()
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
    assert!(layers.len() > 20 && host.len() > 40, "{layers:?} {host:?}");
    let gone = layers
        .iter()
        .chain(&host)
        .filter(|(folder, name)| !is_there(folder, name));
    let gone: Vec<_> = gone.collect();
    assert!(gone.is_empty(), "{gone:?}");
}
