// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of networks with errors: each is reported once, at its place.
//!
//! Wrong input: an unknown class, a class name that leaves the root, an unknown instance, an unknown port (and an input
//! used as an output), two writers to one input, two instances of one name, a network within itself, a network that
//! multiplies without end, open and empty networks, and one mistake of each kind with what depends on it.

use crate::support::{
    ACTORS, buffer, instance, int, load, refused, refused_files, sink, source, wire, xdf,
};

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
