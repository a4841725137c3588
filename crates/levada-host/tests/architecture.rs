// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folders of the layers that docs/architecture.md draws exist. Tried: a folder under another name.

use std::path::Path;

#[test]
fn what_the_architecture_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    // The table of the layers: "part   folder   words".
    let rows = text.lines().take_while(|line| !line.starts_with("Arrows"));
    let words = rows.flat_map(|row| row.split_whitespace());
    let folders: Vec<_> = words
        .filter(|word| {
            ["crates/", "runtime/", "hardware/"]
                .iter()
                .any(|root| word.starts_with(root))
        })
        .collect();
    assert!(folders.len() > 20, "{folders:?}");
    let missing: Vec<_> = folders
        .iter()
        .filter(|folder| !root.join(folder).is_dir())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
