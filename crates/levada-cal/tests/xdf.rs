// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Networks elaborated from files: what a right one becomes, and what is said of each wrong one.
//!
//! Wrong inputs that are tried here: unknown class, class name that leaves the root, unknown
//! instance, unknown port (and an input used as an output), two writers to one input, two instances
//! of one name, unknown, missing and twice given parameters, values of a wrong type or out of range,
//! unknown names in expressions, division by zero, overflow, type and width mismatches across a
//! connection, a bad bufferSize, a network within itself, a network that multiplies without end,
//! open and empty networks, settings of the command line that name nothing or do not fit, a file
//! that is not there, empty, binary, malformed, not a network.

use levada_cal::diag::{Diagnostics, render};
use levada_cal::interp::{Machine, Options};
use levada_cal::ir;
use levada_cal::workspace::Workspace;
use levada_cal::xdf::{check_xdf, load_network, locate};
use std::path::{Path, PathBuf};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let dir = std::env::temp_dir().join(format!("levada-xdf-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let folder = Folder(dir);
        for (path, text) in files {
            folder.write(path, text.as_bytes());
        }
        folder
    }

    fn write(&self, path: &str, bytes: &[u8]) {
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

const ACTORS: &[(&str, &str)] = &[
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

fn int(value: i64) -> String {
    format!("<Expr kind=\"Literal\" literal-kind=\"Integer\" value=\"{value}\"/>")
}

fn instance(id: &str, class: &str, params: &[(&str, String)]) -> String {
    let params: String = params
        .iter()
        .map(|(name, value)| format!("<Parameter name=\"{name}\">{value}</Parameter>"))
        .collect();
    format!("<Instance id=\"{id}\">\n<Class name=\"{class}\"/>\n{params}</Instance>\n")
}

/// `a.Out -> b.In`; without an instance, a port of the network.
fn wire(from: &str, to: &str, inside: &str) -> String {
    let end = |e: &str| match e.split_once('.') {
        Some((i, p)) => (i.to_string(), p.to_string()),
        None => (String::new(), e.to_string()),
    };
    let ((si, sp), (di, dp)) = (end(from), end(to));
    format!(
        "<Connection dst=\"{di}\" dst-port=\"{dp}\" src=\"{si}\" src-port=\"{sp}\">{inside}</Connection>\n"
    )
}

fn buffer(value: i64) -> String {
    format!(
        "<Attribute kind=\"Value\" name=\"bufferSize\">{}</Attribute>",
        int(value)
    )
}

fn xdf(body: &str) -> String {
    format!("<?xml version=\"1.0\"?>\n<XDF name=\"Top\">\n{body}</XDF>\n")
}

fn source() -> String {
    instance("source", "p.Source", &[("n", int(3))])
}

fn sink() -> String {
    instance("sink", "p.Sink", &[])
}

/// Elaborates `p.Top` and gives what was said.
fn load(name: &str, files: &[(&str, &str)], set: &[(&str, &str)]) -> (Option<ir::Network>, String) {
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

fn loads(name: &str, body: &str, set: &[(&str, &str)]) -> ir::Network {
    let (network, said) = load(name, &[("p/Top.xdf", &xdf(body))], set);
    network.unwrap_or_else(|| panic!("{said}"))
}

/// The network is refused, and each of `expected` is said.
fn refused(name: &str, body: &str, set: &[(&str, &str)], expected: &[&str]) {
    refused_files(name, &[("p/Top.xdf", &xdf(body))], set, expected);
}

fn refused_files(name: &str, files: &[(&str, &str)], set: &[(&str, &str)], expected: &[&str]) {
    let (network, said) = load(name, files, set);
    assert!(network.is_none(), "{name} was accepted");
    for part in expected {
        assert!(said.contains(part), "{name}: no {part:?} in:\n{said}");
    }
}

/// The network is taken, and each of `expected` is said all the same.
fn warned(name: &str, body: &str, expected: &[&str]) -> ir::Network {
    let (network, said) = load(name, &[("p/Top.xdf", &xdf(body))], &[]);
    for part in expected {
        assert!(said.contains(part), "{name}: no {part:?} in:\n{said}");
    }
    network.unwrap_or_else(|| panic!("{said}"))
}

/// A network around one actor, with its ports handed out and a parameter handed down.
fn nested() -> String {
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

#[test]
fn networks_flatten_and_parameters_are_handed_down() {
    let body = source()
        + &instance("inner", "p.Nested", &[("k", int(5))])
        + &instance("other", "p.Nested", &[("k", int(5))])
        + &sink()
        + &instance("copy", "p.Sink", &[])
        + &wire("source.Out", "inner.In", &buffer(9))
        + &wire("inner.Out", "other.In", "")
        + &wire("other.Out", "sink.In", "")
        + &wire("inner.Copy", "copy.In", &buffer(130));
    let (network, said) = load(
        "nested",
        &[("p/Top.xdf", &xdf(&body)), ("p/Nested.xdf", &nested())],
        &[],
    );
    let network = network.unwrap_or_else(|| panic!("{said}"));
    let names: Vec<&str> = network.instances.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(
        names,
        ["source", "inner.gain", "other.gain", "sink", "copy"]
    );
    // Equal parameters share one specialised actor.
    assert!(std::sync::Arc::ptr_eq(
        &network.instances[1].actor,
        &network.instances[2].actor
    ));
    let channels: Vec<(usize, Vec<usize>, Option<u32>)> = network
        .channels
        .iter()
        .map(|c| {
            (
                c.from.instance,
                c.to.iter().map(|t| t.instance).collect(),
                c.capacity,
            )
        })
        .collect();
    // The fan-out is one channel with two consumers, as large as the largest part asks for.
    assert_eq!(
        channels,
        [
            (0, vec![1, 4], Some(130)),
            (1, vec![2], Some(64)),
            (2, vec![3], None)
        ]
    );
    // `other.Copy` leads nowhere: said, but no error.
    assert!(said.contains("nothing consumes other.Copy"), "{said}");
}

#[test]
fn settings_replace_parameters_and_variables_of_the_top() {
    let decls = "<Decl kind=\"Param\" name=\"n\"><Type name=\"int\"/></Decl>\
                 <Decl kind=\"Variable\" name=\"size\"><Type name=\"int\"/>"
        .to_string()
        + &int(16)
        + "</Decl>";
    let size = "<Attribute kind=\"Value\" name=\"bufferSize\"><Expr kind=\"Var\" name=\"size\"/>\
                </Attribute>";
    let body = decls
        + &instance(
            "source",
            "p.Source",
            &[("n", "<Expr kind=\"Var\" name=\"n\"/>".to_string())],
        )
        + &sink()
        + &wire("source.Out", "sink.In", size);
    let network = loads("set", &body, &[("n", "-0x10")]);
    assert_eq!(network.channels[0].capacity, Some(16));
    let network = loads("set2", &body, &[("n", "1"), ("size", "4096")]);
    assert_eq!(network.channels[0].capacity, Some(4096));
    refused("set3", &body, &[], &["no value", "--set n=VALUE"]);
    refused(
        "set4",
        &body,
        &[("n", "one"), ("m", "2")],
        &[
            "`one` is not an int(size=32)",
            "no parameter or variable `m`",
            "there are: n, size",
        ],
    );
    refused(
        "set5",
        &body,
        &[("n", "3000000000")],
        &["is not an int(size=32)"],
    );
    refused(
        "set6",
        &body,
        &[("n", "1"), ("size", "0")],
        &["bufferSize must be"],
    );
}

#[test]
fn a_parameter_that_is_cut_is_told_with_both_numbers() {
    let many = "package p;\nactor Many (uint n) ==> :\n  List(type: int, size=n) a;\n  \
                action ==> do a[0] := 1; end\nend\n";
    let body = instance("many", "p.Many", &[("n", int(-1))]);
    refused_files(
        "cut",
        &[("p/Many.cal", many), ("p/Top.xdf", &xdf(&body))],
        &[],
        &[
            "parameter `n` is given -1, which does not fit uint",
            "it becomes 4294967295 here",
            "the size of a list is from 1 to",
        ],
    );
}

/// Operators and conversions of networks give what those of actors do.
#[test]
fn networks_compute_what_actors_do() {
    let show = "package p;\nactor Show (uint(size=5) held, int sign, String text, double tenth, float \
                rounded) ==> :\n  bool done := false;\n  action ==>\n  guard not done\n  do\n    \
                println(held + \" \" + sign + \" \" + text + \" \" + (tenth = 0.1) + \" \" + (rounded = \
                0.1) + \" \" + ~(sign mod 7));\n    done := true;\n  end\nend\n";
    let literal = |kind: &str, value: &str| {
        format!("<Expr kind=\"Literal\" literal-kind=\"{kind}\" value=\"{value}\"/>")
    };
    let both = |op: &str, a: &str, b: &str| {
        format!("<Expr kind=\"BinOpSeq\">{a}<Op name=\"{op}\"/>{b}</Expr>")
    };
    // Held in 8 bits, and not cut to 5.
    let five = format!(
        "<Decl kind=\"Variable\" name=\"five\"><Type name=\"uint\"><Entry kind=\"Expr\" \
         name=\"size\">{}</Entry></Type>{}</Decl>\n",
        int(5),
        int(32)
    );
    let text = both("+", &literal("String", "x"), &literal("Real", "0.5"));
    let parameters = [
        ("held", "<Expr kind=\"Var\" name=\"five\"/>".to_string()),
        ("sign", both(">>", &int(-5), &int(63))),
        ("text", text),
        ("tenth", literal("Real", "0.1")),
        ("rounded", literal("Real", "0.1")),
    ];
    let top = xdf(&(five + &instance("show", "p.Show", &parameters)));
    let (network, said) = load("alike", &[("p/Show.cal", show), ("p/Top.xdf", &top)], &[]);
    let network = network.unwrap_or_else(|| panic!("{said}"));
    let report = Machine::new(&network, Options::default()).run().unwrap();
    let printed = report.printed.concat();
    assert_eq!(printed, "32 -1 x0.500000 true true 0\n", "{said}");
}

#[test]
fn an_actor_without_ports_is_a_network_of_itself() {
    let hello = "package p;\nactor Top (int n) ==> :\n  action ==> do println(n); end\nend\n";
    let (network, said) = load("single", &[("p/Top.cal", hello)], &[("n", "4")]);
    assert_eq!(
        network.unwrap_or_else(|| panic!("{said}")).instances.len(),
        1
    );
    refused_files("single2", &[("p/Top.cal", hello)], &[], &["--set n=VALUE"]);
    let open = "package p;\nactor Top () int In ==> :\n  action In:[x] ==> end\nend\n";
    refused_files("single3", &[("p/Top.cal", open)], &[], &["has the port In"]);
}

#[test]
fn what_a_network_names_must_be_there() {
    refused(
        "class",
        &instance("x", "p.Nothing", &[]),
        &[],
        &[
            "no actor or network is called p.Nothing",
            "Top.xdf:4:14",
            "p/Nothing.cal",
        ],
    );
    refused(
        "escape",
        &instance("x", "../../etc/passwd", &[]),
        &[],
        &["is not a class name"],
    );
    let both = source() + &sink();
    refused(
        "instance",
        &(both.clone() + &wire("sourec.Out", "sink.In", "")),
        &[],
        &["no instance is called sourec", "did you mean `source`?"],
    );
    refused(
        "port",
        &(both.clone() + &wire("source.Oot", "sink.Im", "")),
        &[],
        &[
            "p.Source has no output port Oot",
            "did you mean `Out`?",
            "p.Sink has no input port Im",
        ],
    );
    refused(
        "direction",
        &(both.clone() + &wire("sink.In", "source.Out", "")),
        &[],
        &["In is an input port", "Out is an output port"],
    );
    refused(
        "own",
        &(both + &wire("In", "sink.In", "")),
        &[],
        &["this network has no input port In"],
    );
}

#[test]
fn names_and_writers_are_unique() {
    refused(
        "twice",
        &(source() + &source()),
        &[],
        &[
            "two of the network's instances are called source",
            "the first",
        ],
    );
    refused(
        "writers",
        &(source()
            + &instance("more", "p.Source", &[("n", int(1))])
            + &sink()
            + &wire("source.Out", "sink.In", "")
            + &wire("more.Out", "sink.In", "")),
        &[],
        &["sink.In has two writers"],
    );
}

#[test]
fn parameters_fit_their_declarations() {
    let gain = |params: &[(&str, String)]| {
        source()
            + &instance("gain", "p.Gain", params)
            + &sink()
            + &wire("source.Out", "gain.In", "")
            + &wire("gain.Out", "sink.In", "")
    };
    loads("defaults", &gain(&[]), &[]);
    warned(
        "unknown",
        &gain(&[("facto", int(1))]),
        &["p.Gain has no parameter `facto`", "did you mean `factor`?"],
    );
    refused(
        "given twice",
        &gain(&[("factor", int(1)), ("factor", int(2))]),
        &[],
        &["`factor` is given twice"],
    );
    warned(
        "missing",
        &(instance("s", "p.Source", &[]) + &sink() + &wire("s.Out", "sink.In", "")),
        &[
            "the instance s gives no value to the parameter `n` of p.Source: it is 0",
            "declared here, without a default",
        ],
    );
    // That a network has no value for is only wrong where it is read.
    let open = "<Decl kind=\"Param\" name=\"n\"><Type name=\"int\"/></Decl>".to_string();
    let read = "<Expr kind=\"Var\" name=\"n\"/>".to_string();
    loads("not read", &(open.clone() + &gain(&[])), &[]);
    refused(
        "read",
        &(open.clone() + &gain(&[("factor", read.clone())])),
        &[],
        &["the parameter `n` has no value", "--set n=VALUE"],
    );
    loads("set", &(open + &gain(&[("factor", read)])), &[("n", "3")]);
    refused("kind", &gain(&[("loud", int(1))]), &[], &["loud"]);
    refused(
        "name",
        &gain(&[(
            "factor",
            "<Expr kind=\"Var\" name=\"nowhere\"/>".to_string(),
        )]),
        &[],
        &["no parameter or variable `nowhere`"],
    );
    let divided = "<Expr kind=\"BinOpSeq\"><Expr kind=\"Literal\" literal-kind=\"Integer\" \
                   value=\"1\"/><Op name=\"/\"/><Expr kind=\"Literal\" literal-kind=\"Integer\" \
                   value=\"0\"/></Expr>";
    refused(
        "zero",
        &gain(&[("factor", divided.to_string())]),
        &[],
        &["division by zero"],
    );
    refused(
        "literal",
        &gain(&[(
            "factor",
            int(1).replace("\"1\"", "\"99999999999999999999\""),
        )]),
        &[],
        &["is not an integer of 64 bits"],
    );
}

#[test]
fn both_ends_of_a_channel_hold_elements_alike() {
    let to =
        |class: &str| source() + &instance("sink", class, &[]) + &wire("source.Out", "sink.In", "");
    // Widths and signs may differ within a container.
    loads("unsigned", &to("p.Unsigned"), &[]);
    // Other containers: an actor in between converts.
    let network = loads("wide", &to("p.Wide"), &[]);
    let names: Vec<&str> = network.instances.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["source", "sink", "source.Out.convert_int8_int16"]);
    let ends: Vec<(usize, usize)> = network
        .channels
        .iter()
        .map(|c| (c.from.instance, c.to[0].instance))
        .collect();
    assert_eq!(ends, [(0, 2), (2, 1)]);
    refused("flag", &to("p.Flag"), &[], &["but sink.In takes bool"]);
    for size in [0, -4, 1 << 40] {
        refused(
            "buffer",
            &(source() + &sink() + &wire("source.Out", "sink.In", &buffer(size))),
            &[],
            &["bufferSize must be an integer between 1 and"],
        );
    }
}

#[test]
fn networks_end() {
    refused(
        "itself",
        &instance("again", "p.Top", &[]),
        &[],
        &["a network within itself", "Top contains Top"],
    );
    refused_files(
        "circle",
        &[
            ("p/Top.xdf", &xdf(&instance("a", "p.A", &[]))),
            ("p/A.xdf", &xdf(&instance("b", "p.B", &[]))),
            ("p/B.xdf", &xdf(&instance("a", "p.A", &[]))),
        ],
        &[],
        &["A contains B contains A"],
    );
    // Ten to the sixth.
    let ten = |class: &str| -> String {
        let all: String = (0..10)
            .map(|i| instance(&format!("i{i}"), class, &[]))
            .collect();
        xdf(&all)
    };
    refused_files(
        "many",
        &[
            ("p/Top.xdf", &ten("p.N1")),
            ("p/N1.xdf", &ten("p.N2")),
            ("p/N2.xdf", &ten("p.N3")),
            ("p/N3.xdf", &ten("p.N4")),
            ("p/N4.xdf", &ten("p.N5")),
            ("p/N5.xdf", &ten("p.Idle")),
            (
                "p/Idle.cal",
                "package p;\nactor Idle () ==> :\n  action ==> guard false end\nend\n",
            ),
        ],
        &[],
        &["more than 65536 instances"],
    );
    // Two to the 40th networks, and not one actor.
    let twice = |class: &str| instance("a", class, &[]) + &instance("b", class, &[]);
    let mut files: Vec<(String, String)> = (0..40)
        .map(|i| (format!("p/E{i}.xdf"), xdf(&twice(&format!("p.E{}", i + 1)))))
        .collect();
    files[0].0 = "p/Top.xdf".to_string();
    files.push(("p/E40.xdf".to_string(), xdf("")));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(p, t)| (p.as_str(), t.as_str()))
        .collect();
    refused_files("double", &files, &[], &["more than 65536 instances"]);
    refused("empty", "", &[], &["has no instances"]);
    refused(
        "open",
        &format!(
            "<Port kind=\"Input\" name=\"In\"/>{}",
            sink() + &wire("In", "sink.In", "")
        ),
        &[],
        &["has the port In: only a network without ports can be run"],
    );
}

#[test]
fn every_error_is_reported_not_the_first() {
    let body = instance("a", "p.Nothing", &[])
        + &instance("s", "p.Source", &[])
        + &sink()
        + &wire("s.Out", "sink.Im", "")
        + &wire("t.Out", "sink.In", &buffer(0));
    refused(
        "all",
        &body,
        &[],
        &[
            "no actor or network is called p.Nothing",
            "gives no value to the parameter `n`",
            "p.Sink has no input port Im",
            "no instance is called t",
        ],
    );
}

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

/// One mistake in a network, or in the head of a class that it uses, is one error, whatever depends on what
/// is wrong, and nothing else is reported.
#[test]
fn one_mistake_is_one_error() {
    let gain = |params: &[(&str, String)]| instance("gain", "p.Gain", params);
    let variable = |name: &str| format!("<Expr kind=\"Var\" name=\"{name}\"/>");
    let wires = wire("source.Out", "gain.In", "") + &wire("gain.Out", "sink.In", "");
    let top = |instances: &[&str], wires: &str| xdf(&(instances.concat() + wires));
    let right = top(&[&source(), &gain(&[]), &sink()], &wires);
    let gone =
        instance("gain", "p.Gone", &[("factor", int(2))]) + &instance("other", "p.Gone", &[]);
    let twice = source() + &instance("source", "p.Sink", &[]);
    let named = gain(&[("factor", variable("gone")), ("loud", variable("gone"))]);
    let odd = "<Decl kind=\"Variable\" name=\"k\"><Type name=\"foo\"/>".to_owned()
        + &int(3)
        + "</Decl>\n";
    let cases = [
        (
            "unknown-class",
            top(&[&source(), &gone, &sink()], &wires),
            None,
        ),
        (
            "unknown-instance",
            right.replace("src=\"gain\"", "src=\"gian\""),
            None,
        ),
        (
            "unknown-port",
            right.replace(
                "dst=\"gain\" dst-port=\"In\"",
                "dst=\"gain\" dst-port=\"Inn\"",
            ),
            None,
        ),
        (
            "duplicate-name",
            top(&[&twice, &gain(&[]), &sink()], &wires),
            None,
        ),
        (
            "unknown-name",
            top(&[&source(), &named, &sink()], &wires),
            None,
        ),
        (
            "unknown-type",
            top(
                &[
                    &odd,
                    &source(),
                    &gain(&[("factor", variable("k"))]),
                    &sink(),
                ],
                &wires,
            ),
            None,
        ),
        (
            "parameter",
            top(
                &[
                    &source(),
                    &gain(&[(
                        "factor",
                        "<Expr kind=\"Literal\" literal-kind=\"Boolean\" \
                           value=\"true\"/>"
                            .into(),
                    )]),
                    &sink(),
                ],
                &wires,
            ),
            Some((":\n", ":\n  int v[factor]; int w[#v + factor];\n")),
        ),
        (
            "size",
            top(&[&source(), &gain(&[("factor", int(-1))]), &sink()], &wires),
            Some((":\n", ":\n  int v[factor]; int w[#v];\n")),
        ),
        ("malformed-xml", right.replace("</Instance>", ""), None),
        ("syntax", right.clone(), Some((":\n", ":\n  int v 3];\n"))),
        (
            "type",
            right.clone(),
            Some((":\n", ":\n  int v = true; int w[v];\n")),
        ),
        (
            "syntax",
            right,
            Some(("int(size=8) In", "foo In, int(size=8) Other")),
        ),
    ];
    let (_, class) = ACTORS
        .iter()
        .find(|(path, _)| *path == "p/Gain.cal")
        .unwrap();
    for (i, (code, top, change)) in cases.iter().enumerate() {
        let text = match change {
            Some((from, to)) => class.replacen(from, to, 1),
            None => class.to_string(),
        };
        let files = [("p/Top.xdf", top.as_str()), ("p/Gain.cal", text.as_str())];
        let (net, said) = load(&format!("one-{i}"), &files, &[]);
        assert!(net.is_none(), "{i}: {said}");
        let heads: Vec<&str> = said
            .lines()
            .filter(|l| l.starts_with("error") || l.starts_with("warning"))
            .collect();
        assert!(
            heads.len() == 1 && heads[0].starts_with(&format!("error[{code}]")),
            "{i}: {said}"
        );
    }
}

/// Actors of constant rates: `Take N`, `Give N`, and one that joins two.
const RATED: &[(&str, &str)] = &[
    (
        "p/Take.cal",
        "package p;\nactor Take (int n) int(size=8) In ==> :\n  action In:[x] repeat n ==> end\nend\n",
    ),
    (
        "p/Give.cal",
        "package p;\nactor Give (int n) int(size=8) In ==> int(size=8) Out :\n  \
         action In:[x] ==> Out:[[x : for int i in 1 .. n]] repeat n end\nend\n",
    ),
    (
        "p/Join.cal",
        "package p;\nactor Join () int(size=8) A, int(size=8) B ==> int(size=8) Out :\n  \
         action A:[a], B:[b] ==> Out:[a + b] end\nend\n",
    ),
    (
        "p/Turns.cal",
        "package p;\nactor Turns () int(size=8) In ==> :\n  a: action In:[x] ==> end\n  \
         b: action In:[x] repeat 3 ==> end\n  schedule fsm s : s (a) --> t; t (b) --> s; end\nend\n",
    ),
    (
        "p/Block.cal",
        "package p;\nactor Block () ==> int(size=8) Out :\n  int i := 0;\n  \
         action ==> Out:[1, 2, 3] guard i < 4 do i := i + 1; end\n  \
         action ==> Out:[4] guard i = 4 do i := 5; end\nend\n",
    ),
    (
        "p/Picky.cal",
        "package p;\nactor Picky () int(size=8) In ==> :\n  action In:[x, y] ==> guard x > y end\n  \
         action In:[x] ==> end\nend\n",
    ),
    (
        "p/Delay.cal",
        "package p;\nactor Delay () int(size=8) In ==> int(size=8) Out :\n  \
         initialize ==> Out:[0, 0] end\n  action In:[x] ==> Out:[x] end\nend\n",
    ),
];

/// What is said of a network of these actors that loads.
fn of_rates(name: &str, body: &str) -> String {
    let top = xdf(body);
    let files: Vec<(&str, &str)> = [ACTORS, RATED, &[("p/Top.xdf", &*top)]].concat();
    let (network, said) = load(name, &files, &[]);
    assert!(network.is_some(), "{name}: {said}");
    said
}

fn count_to(id: &str, n: i64) -> String {
    instance(id, "p.Source", &[("n", int(n))])
}

#[test]
fn what_a_known_total_leaves_over_is_told() {
    let take = |n: i64| instance("take", "p.Take", &[("n", int(n))]);
    let direct = |total: i64, n: i64| {
        of_rates(
            "total",
            &[
                count_to("source", total),
                take(n),
                wire("source.Out", "take.In", ""),
            ]
            .concat(),
        )
    };
    let said = direct(100, 48);
    for part in [
        "warning[rates]: 4 of the 100 elements that source.Out puts are left over at the end",
        "take.In takes 48 at a time",
        "Top.xdf:",
        "<Connection dst=\"take\"",
        "Take.cal:3:",
        "let a multiple of 48 come",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert!(
        direct(40, 48)
            .contains("take never fires: source.Out puts 40 in all, and take.In takes 48")
    );
    assert_eq!(direct(96, 48), "");
    assert_eq!(direct(0, 48), "");
    // Behind others: 7 times 3, by 4 and by 1 and 3 in turn, with the two that a delay puts first.
    let give = || instance("give", "p.Give", &[("n", int(3))]);
    let behind = |total: i64, rest: &str| {
        let front = [
            count_to("source", total),
            give(),
            wire("source.Out", "give.In", ""),
        ]
        .concat();
        of_rates("behind", &(front + rest))
    };
    let four = take(4) + &wire("give.Out", "take.In", "");
    assert!(behind(7, &four).contains("1 of the 21 elements that give.Out puts are left over"));
    assert_eq!(behind(8, &four), "");
    let turns = instance("turns", "p.Turns", &[]) + &wire("give.Out", "turns.In", "");
    let said = behind(6, &turns);
    for part in [
        "1 of the 18 elements that give.Out puts",
        "turns.In takes 1, 3 in turn",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert_eq!(behind(7, &turns), "");
    let delay = instance("delay", "p.Delay", &[])
        + &wire("give.Out", "delay.In", "")
        + &take(4)
        + &wire("delay.Out", "take.In", "");
    assert!(behind(7, &delay).contains("3 of the 23 elements that delay.Out puts"));
    assert_eq!(behind(6, &delay), "");
    // A source with several actions is played: 4 times 3 and 1.
    let block = |n: i64| {
        let body = [
            instance("block", "p.Block", &[]),
            take(n),
            wire("block.Out", "take.In", ""),
        ];
        of_rates("block", &body.concat())
    };
    let said = block(5);
    assert!(
        said.contains("3 of the 13 elements that block.Out puts"),
        "{said}"
    );
    assert_eq!(block(13), "");
    // Of two sources one may end first.
    let join = |a: i64, b: i64| {
        let parts = [
            count_to("one", a),
            count_to("two", b),
            instance("join", "p.Join", &[]),
            sink(),
            wire("one.Out", "join.A", ""),
            wire("two.Out", "join.B", ""),
            wire("join.Out", "sink.In", ""),
        ];
        of_rates("join", &parts.concat())
    };
    let said = join(10, 12);
    for part in [
        "2 of the 12 elements that two.Out puts",
        "join fires 10 times, until join.A ends",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert_eq!(join(12, 12), "");
    // What depends on values is not known, and nothing is said of what is behind it.
    let picky = [
        count_to("source", 5),
        instance("picky", "p.Picky", &[]),
        wire("source.Out", "picky.In", ""),
    ];
    assert_eq!(of_rates("picky", &picky.concat()), "");
}

#[test]
fn rates_that_cannot_be_balanced_are_told() {
    let ways = |first: i64, second: i64| {
        let parts = [
            count_to("source", 30),
            instance("a", "p.Give", &[("n", int(first))]),
            instance("b", "p.Give", &[("n", int(second))]),
            instance("join", "p.Join", &[]),
            sink(),
            wire("source.Out", "a.In", ""),
            wire("source.Out", "b.In", ""),
            wire("a.Out", "join.A", ""),
            wire("b.Out", "join.B", ""),
            wire("join.Out", "sink.In", ""),
        ];
        of_rates("ways", &parts.concat())
    };
    assert_eq!(ways(2, 2), "");
    let said = ways(2, 3);
    for part in [
        "warning[rates]: the rates of this channel cannot meet",
        "<Connection",
        "Join.cal:3:",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    // Around a cycle, too, whatever is in it at first.
    let around = |n: i64| {
        let parts = [
            count_to("source", 30),
            instance("join", "p.Join", &[]),
            instance("delay", "p.Delay", &[]),
            instance("give", "p.Give", &[("n", int(n))]),
            wire("source.Out", "join.A", ""),
            wire("join.Out", "delay.In", ""),
            wire("delay.Out", "give.In", ""),
            wire("give.Out", "join.B", ""),
        ];
        of_rates("around", &parts.concat())
    };
    assert_eq!(around(1), "");
    let said = around(2);
    assert!(
        said.contains("cannot meet") && !said.contains("left over"),
        "{said}"
    );
}

#[test]
fn a_channel_that_is_too_small_is_told_with_its_place() {
    let body = |n: i64| {
        let parts = [
            count_to("source", 16),
            instance("take", "p.Take", &[("n", int(8))]),
            wire("source.Out", "take.In", &buffer(n)),
        ];
        of_rates("small", &parts.concat())
    };
    assert_eq!(body(8), "");
    let said = body(7);
    for part in [
        "warning[small-channel]",
        "take.In takes 8 at a time",
        "<Connection",
        "a bufferSize of 8",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}
