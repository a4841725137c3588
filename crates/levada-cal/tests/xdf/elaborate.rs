// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of elaboration: the instances and channels that a network becomes.

use crate::support::{
    buffer, instance, int, load, loads, nested, refused, refused_files, sink, source, wire, xdf,
};
use levada_cal::interp::{Machine, Options};

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
