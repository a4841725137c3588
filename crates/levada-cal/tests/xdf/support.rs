// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sources that a test writes: actors, and the parts of a network; what the compiler reports about them.

use levada_cal::diag::{Diagnostics, render};
use levada_cal::ir;
use levada_cal::workspace::Workspace;
use levada_cal::xdf::load_network;
use std::path::PathBuf;

pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let dir = std::env::temp_dir().join(format!("levada-xdf-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let folder = Folder(dir);
        for (path, text) in files {
            folder.write(path, text.as_bytes());
        }
        folder
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        let full = self.0.join(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(full, bytes).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub const ACTORS: &[(&str, &str)] = &[
    (
        "p/Source.cal",
        "package p;\nactor Source (int n) ==> int(size=8) Out :\n  int i := 0;\n  \
         action ==> Out:[i] guard i < n do i := i + 1; end\nend\n",
    ),
    (
        "p/Gain.cal",
        "package p;\nactor Gain (int factor = 2, bool loud = true, String name = \"\") \
         int(size=8) In ==> int(size=8) Out :\n  action In:[x] ==> Out:[x * factor] end\nend\n",
    ),
    (
        "p/Sink.cal",
        "package p;\nactor Sink () int(size=8) In ==> :\n  action In:[x] ==> end\nend\n",
    ),
    (
        "p/Wide.cal",
        "package p;\nactor Wide () int(size=16) In ==> :\n  action In:[x] ==> end\nend\n",
    ),
    (
        "p/Unsigned.cal",
        "package p;\nactor Unsigned () uint(size=5) In ==> :\n  action In:[x] ==> end\nend\n",
    ),
    (
        "p/Flag.cal",
        "package p;\nactor Flag () bool In ==> :\n  action In:[x] ==> end\nend\n",
    ),
];

pub fn int(value: i64) -> String {
    format!("<Expr kind=\"Literal\" literal-kind=\"Integer\" value=\"{value}\"/>")
}

pub fn instance(id: &str, class: &str, params: &[(&str, String)]) -> String {
    let params: String = params
        .iter()
        .map(|(name, value)| format!("<Parameter name=\"{name}\">{value}</Parameter>"))
        .collect();
    format!("<Instance id=\"{id}\">\n<Class name=\"{class}\"/>\n{params}</Instance>\n")
}

/// `a.Out -> b.In`; without an instance, a port of the network.
pub fn wire(from: &str, to: &str, inside: &str) -> String {
    let end = |e: &str| match e.split_once('.') {
        Some((i, p)) => (i.to_string(), p.to_string()),
        None => (String::new(), e.to_string()),
    };
    let ((si, sp), (di, dp)) = (end(from), end(to));
    format!(
        "<Connection dst=\"{di}\" dst-port=\"{dp}\" src=\"{si}\" src-port=\"{sp}\">{inside}</Connection>\n"
    )
}

pub fn buffer(value: i64) -> String {
    format!(
        "<Attribute kind=\"Value\" name=\"bufferSize\">{}</Attribute>",
        int(value)
    )
}

pub fn xdf(body: &str) -> String {
    format!("<?xml version=\"1.0\"?>\n<XDF name=\"Top\">\n{body}</XDF>\n")
}

pub fn source() -> String {
    instance("source", "p.Source", &[("n", int(3))])
}

pub fn sink() -> String {
    instance("sink", "p.Sink", &[])
}

/// Elaborates `p.Top` and gives what was said.
pub fn load(
    name: &str,
    files: &[(&str, &str)],
    set: &[(&str, &str)],
) -> (Option<ir::Network>, String) {
    let folder = Folder::new(name, ACTORS);
    for (path, text) in files {
        folder.write(path, text.as_bytes());
    }
    let mut workspace = Workspace::new(vec![folder.0.clone()]);
    let mut diags = Diagnostics::new();
    let set: Vec<(String, String)> = set
        .iter()
        .map(|(n, v)| (n.to_string(), v.to_string()))
        .collect();
    let network = load_network(&mut workspace, "p.Top", &set, &mut diags);
    assert_eq!(network.is_none(), diags.has_errors());
    (network, render(&workspace.sources, &diags, false))
}

pub fn loads(name: &str, body: &str, set: &[(&str, &str)]) -> ir::Network {
    let (network, said) = load(name, &[("p/Top.xdf", &xdf(body))], set);
    network.unwrap_or_else(|| panic!("{said}"))
}

/// The network is refused, and each of `expected` is said.
pub fn refused(name: &str, body: &str, set: &[(&str, &str)], expected: &[&str]) {
    refused_files(name, &[("p/Top.xdf", &xdf(body))], set, expected);
}

pub fn refused_files(name: &str, files: &[(&str, &str)], set: &[(&str, &str)], expected: &[&str]) {
    let (network, said) = load(name, files, set);
    assert!(network.is_none(), "{name} was accepted");
    for part in expected {
        assert!(said.contains(part), "{name}: no {part:?} in:\n{said}");
    }
}

/// The network is taken, and each of `expected` is said all the same.
pub fn warned(name: &str, body: &str, expected: &[&str]) -> ir::Network {
    let (network, said) = load(name, &[("p/Top.xdf", &xdf(body))], &[]);
    for part in expected {
        assert!(said.contains(part), "{name}: no {part:?} in:\n{said}");
    }
    network.unwrap_or_else(|| panic!("{said}"))
}

/// A network around one actor, with its ports handed out and a parameter handed down.
pub fn nested() -> String {
    let decl = "<Decl kind=\"Param\" name=\"k\"><Type name=\"int\"/></Decl>\n\
        <Decl kind=\"Variable\" name=\"twice\"><Type name=\"int\"/><Expr kind=\"BinOpSeq\">\
        <Expr kind=\"Var\" name=\"k\"/><Op name=\"*\"/><Expr kind=\"Literal\" \
        literal-kind=\"Integer\" value=\"2\"/></Expr></Decl>\n";
    let port = |kind: &str, name: &str| {
        format!(
            "<Port kind=\"{kind}\" name=\"{name}\"><Type name=\"int\"><Entry kind=\"Expr\" \
             name=\"size\">{}</Entry></Type></Port>\n",
            int(8)
        )
    };
    xdf(&format!(
        "{decl}{}{}{}{}{}{}",
        port("Input", "In"),
        port("Output", "Out"),
        port("Output", "Copy"),
        instance(
            "gain",
            "p.Gain",
            &[("factor", "<Expr kind=\"Var\" name=\"twice\"/>".to_string())]
        ),
        wire("In", "gain.In", &buffer(64)),
        wire("gain.Out", "Out", "") + &wire("In", "Copy", ""),
    ))
}
