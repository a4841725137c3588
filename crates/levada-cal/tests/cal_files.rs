// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One small CAL file for each feature and each rule: `cal/good` has what they become, beside
//! them, `cal/bad` has what is said about them. `LEVADA_UPDATE=1` writes these texts anew.

mod support;

use levada_cal::diag::{self, Diagnostics};
use levada_cal::ir::Span;
use levada_cal::workspace::Workspace;
use std::path::{Path, PathBuf};

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cal")
        .join(kind)
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "cal"))
        .collect();
    found.sort();
    assert!(found.len() > 20, "where are the files?");
    found
}

/// Compares with the text beside the file; all differences are shown at the end.
fn compare(path: &Path, extension: &str, got: &str, wrong: &mut String) {
    let beside = path.with_extension(extension);
    let got = format!("{}\n", got.trim_end());
    if std::env::var_os("LEVADA_UPDATE").is_some() {
        std::fs::write(&beside, got).unwrap();
        return;
    }
    let want = std::fs::read_to_string(&beside).unwrap_or_default();
    if want != got {
        let name = beside.file_name().unwrap().to_string_lossy();
        *wrong += &format!("== {name}: expected\n{want}== but got\n{got}\n");
    }
}

fn render(root: &Path, ws: &Workspace, diags: &Diagnostics) -> String {
    // Paths are shown from the folder that the tests run in.
    let text = diag::render(&ws.sources, diags, false);
    let shown = diag::Sources::display_path(root);
    text.replace(&format!("{shown}/"), "").trim_end().to_owned()
}

#[test]
fn good_files_become_what_they_should() {
    let root = folder("good");
    let mut wrong = String::new();
    for path in files(&root) {
        let mut ws = Workspace::new(vec![root.clone()]);
        let class = path.file_stem().unwrap().to_str().unwrap();
        let mut diags = Diagnostics::new();
        ws.check_file(&path, &mut diags);
        let actor = ws.instantiate(class, &[], Span::default(), &mut diags);
        let mut got = render(&root, &ws, &diags);
        if !got.is_empty() {
            got += "\n";
        }
        match actor {
            Some(actor) => got += &support::text(&actor),
            None => wrong += &format!("== {class}: not lowered\n"),
        }
        compare(&path, "txt", &got, &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn bad_files_are_told_so() {
    let root = folder("bad");
    let mut wrong = String::new();
    for path in files(&root) {
        let mut ws = Workspace::new(vec![root.clone()]);
        let mut diags = Diagnostics::new();
        ws.check_file(&path, &mut diags);
        let class = path.file_stem().unwrap().to_str().unwrap();
        assert!(!diags.is_empty(), "{class}: nothing was said");
        let mut again = Diagnostics::new();
        if diags.has_errors() && class != "FileName" && class != "Imports" {
            let actor = ws.instantiate(class, &[], Span::default(), &mut again);
            assert!(actor.is_none(), "{class}: lowered in spite of its errors");
        }
        compare(&path, "txt", &render(&root, &ws, &diags), &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong}");
}
