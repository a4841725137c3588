// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the files of networks: how they are found, read and checked.
//!
//! Wrong input: a file that does not exist, is empty, binary, malformed, too large, or no network.

use crate::support::{ACTORS, Folder, instance, nested, refused_files, sink, source, wire, xdf};
use levada_cal::diag::{Diagnostics, render};
use levada_cal::workspace::Workspace;
use levada_cal::xdf::{check_xdf, load_network, locate};
use std::path::Path;

#[test]
fn files_that_cannot_be_networks() {
    let mut none = Workspace::new(vec![]);
    let mut diags = Diagnostics::new();
    assert!(load_network(&mut none, "p.Top", &[], &mut diags).is_none());
    assert!(render(&none.sources, &diags, false).contains("--path"));
    for (text, expected) in [
        ("", "the file is empty"),
        ("<XDF name=\"Top\">", "malformed XML"),
        // What is cut is shown where it ends.
        (
            "<XDF name=\"Top\">\n  <Instance id=\"a\">\n",
            "p/Top.xdf:2:20",
        ),
        ("<XDF name=\"Top\">\n<Instance id=", "p/Top.xdf:2:14"),
        ("<html/>", "this is <html>"),
        ("<!DOCTYPE a><XDF name=\"Top\"/>", "document type"),
        (
            "<XDF name=\"Top\"><Instanz/></XDF>",
            "<Instanz> has no meaning",
        ),
    ] {
        refused_files("file", &[("p/Top.xdf", text)], &[], &[expected]);
    }
    let folder = Folder::new("binary", &[]);
    folder.write("p/Top.xdf", &[0xff, 0xfe, 0, 1]);
    let mut workspace = Workspace::new(vec![folder.0.clone()]);
    let mut diags = Diagnostics::new();
    assert!(load_network(&mut workspace, "p.Top", &[], &mut diags).is_none());
    assert!(render(&workspace.sources, &diags, false).contains("is not text"));
}

#[test]
fn files_that_are_too_large_are_not_read() {
    let folder = Folder::new("large", &[]);
    for name in ["p/Top.xdf", "q/Top.cal"] {
        folder.write(name, b"");
        let mut for_writing = std::fs::File::options();
        let file = for_writing.write(true).open(folder.0.join(name)).unwrap();
        file.set_len(5 << 30).unwrap();
        let said = "it is too large: a source file has at most 64 MiB";
        let refused = locate(&folder.0.join(name)).unwrap_err();
        assert!(refused.contains(said), "{refused}");
        let mut workspace = Workspace::new(vec![folder.0.clone()]);
        let mut diags = Diagnostics::new();
        let class = name.split('.').next().unwrap().replace('/', ".");
        assert!(load_network(&mut workspace, &class, &[], &mut diags).is_none());
        let shown = render(&workspace.sources, &diags, false);
        assert!(shown.contains(said), "{shown}");
    }
}

#[test]
fn checking_a_network_checks_what_is_under_it() {
    let folder = Folder::new("check", ACTORS);
    let top = source() + &instance("sink", "p.Flag", &[]) + &wire("source.Out", "sink.In", "");
    folder.write("p/Top.xdf", xdf(&top).as_bytes());
    folder.write("p/Nested.xdf", nested().as_bytes());
    let check = |file: &str| {
        let mut workspace = Workspace::new(vec![folder.0.clone()]);
        let mut diags = Diagnostics::new();
        check_xdf(&mut workspace, &folder.0.join(file), &mut diags);
        (
            diags.error_count(),
            render(&workspace.sources, &diags, false),
        )
    };
    let (errors, said) = check("p/Top.xdf");
    assert_eq!(errors, 1, "{said}");
    assert!(said.contains("takes bool"));
    // Open parameters and ports are no error here.
    assert_eq!(check("p/Nested.xdf"), (0, String::new()));
    assert!(check("p/None.xdf").1.contains("cannot read"));
}

#[test]
fn the_source_root_is_found_from_a_path() {
    let folder = Folder::new("root", ACTORS);
    folder.write("p/Top.xdf", xdf(&(source() + &sink())).as_bytes());
    let root = folder.0.canonicalize().unwrap();
    let found = locate(&folder.0.join("p/Top.xdf")).unwrap();
    assert_eq!(
        (found.root.as_path(), found.class.as_str()),
        (root.as_path(), "p.Top")
    );
    let found = locate(&folder.0.join("p/Sink.cal")).unwrap();
    assert_eq!(
        (found.root.as_path(), found.class.as_str()),
        (root.as_path(), "p.Sink")
    );
    assert!(
        locate(Path::new("/nowhere/at/all.xdf"))
            .unwrap_err()
            .contains("cannot read")
    );
    assert!(locate(Path::new("a.txt")).unwrap_err().contains("neither"));
}
