// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests how the compiler's work grows with a network.

use crate::common;
use crate::common::host::TOP;
use crate::common::{Instance, network, numbers};
use std::process::Command;

/// Networks that grow in one property: its name, and the sources for a size.
type Growing = (&'static str, fn(usize) -> Vec<(String, String)>);

/// One actor with this body, between a source and a sink.
fn one_of(head: &str, body: &str) -> Vec<(String, String)> {
    let text = format!("package p;\nactor A () int In ==> int Out :\n{head}{body}end\n");
    let wires = [("source.Out", "a.In"), ("a.Out", "print.In")];
    let instances: [Instance; 3] = [
        ("source", "p.Source", &[("n", "3")]),
        ("a", "p.A", &[]),
        ("print", "p.Print", &[]),
    ];
    vec![
        ("src/p/A.cal".to_string(), text),
        (TOP.to_string(), network(&instances, &wires)),
    ]
}

fn many(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(line).collect()
}

/// A row of actors, each of a class of its own if they are to differ.
fn row_of(n: usize, differ: bool) -> Vec<(String, String)> {
    let class = |i: usize| {
        if differ {
            format!("Add{i}")
        } else {
            "Add".to_string()
        }
    };
    let mut files: Vec<(String, String)> = (0..if differ { n } else { 1 })
        .map(|i| {
            let name = class(i);
            let text = format!(
                "package p;\nactor {name} () int In ==> int Out :\n  action In:[x] ==> Out:[x + {i}] end\nend\n"
            );
            (format!("src/p/{name}.cal"), text)
        })
        .collect();
    let mut text = "<XDF name=\"Top\">\n<Instance id=\"source\"><Class name=\"p.Source\"/><Parameter name=\"n\">\
                    <Expr kind=\"Literal\" literal-kind=\"Integer\" value=\"3\"/></Parameter></Instance>\n\
                    <Instance id=\"print\"><Class name=\"p.Print\"/></Instance>\n"
        .to_string();
    let mut before = "source".to_string();
    let wire = |from: &str, to: &str| {
        format!("<Connection src=\"{from}\" src-port=\"Out\" dst=\"{to}\" dst-port=\"In\"/>\n")
    };
    for i in 0..n {
        text += &format!(
            "<Instance id=\"a{i}\"><Class name=\"p.{}\"/></Instance>\n",
            class(i)
        );
        text += &wire(&before, &format!("a{i}"));
        before = format!("a{i}");
    }
    text += &wire(&before, "print");
    files.push((TOP.to_string(), text + "</XDF>\n"));
    files
}

const GROWING: [Growing; 9] = [
    ("actors", |n| row_of(n, false)),
    ("classes", |n| row_of(n, true)),
    ("actions", |n| {
        one_of(
            "  int s := 0;\n",
            &many(n, |i| {
                format!("  a{i}: action In:[x] ==> Out:[x] guard s = {i} do s := s + 1; end\n")
            }),
        )
    }),
    ("states", |n| {
        let fsm = many(n, |i| format!("s{i} (a{i}) --> s{}; ", (i + 1) % n));
        let actions = many(n, |i| {
            format!("  a{i}: action In:[x] ==> Out:[x + {i}] end\n")
        });
        one_of("", &format!("{actions}  schedule fsm s0 : {fsm} end\n"))
    }),
    ("ports", |n| {
        let list = |f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<Vec<_>>().join(", ");
        let text = format!(
            "package p;\nactor A () {} ==> {} :\n  action {} ==> {} end\nend\n",
            list(&|i| format!("int I{i}")),
            list(&|i| format!("int O{i}")),
            list(&|i| format!("I{i}:[x{i}]")),
            list(&|i| format!("O{i}:[x{i}]")),
        );
        let mut top =
            "<XDF name=\"Top\">\n<Instance id=\"a\"><Class name=\"p.A\"/></Instance>\n".to_string();
        for i in 0..n {
            top +=
                &format!("<Connection src=\"a\" src-port=\"O{i}\" dst=\"a\" dst-port=\"I{i}\"/>\n");
        }
        vec![("src/p/A.cal".into(), text), (TOP.into(), top + "</XDF>\n")]
    }),
    ("variables", |n| {
        let body = many(n, |i| format!("    g{i} := g{i} + l{i};\n"));
        let locals = (0..n)
            .map(|i| format!("int l{i} := x + {i}"))
            .collect::<Vec<_>>()
            .join(", ");
        let action = format!("  action In:[x] ==> Out:[x] var {locals} do\n{body}  end\n");
        one_of(&many(n, |i| format!("  int g{i} := {i};\n")), &action)
    }),
    ("functions", |n| {
        let calls = many(n, |i| {
            let inner = if i > 0 {
                format!("f{}(a)", i - 1)
            } else {
                "a".to_string()
            };
            format!("  function f{i} (int a) --> int : {inner} + {i} end\n")
        });
        one_of(
            &calls,
            &format!("  action In:[x] ==> Out:[f{}(x)] end\n", n - 1),
        )
    }),
    ("loops", |n| {
        let body = many(n, |_| {
            "    foreach int k in 0 .. 15 do l[k] := l[k] + x; end\n".to_string()
        });
        let list = "  List(type:int, size=16) l;\n";
        one_of(
            list,
            &format!("  action In:[x] ==> Out:[l[0]] do\n{body}  end\n"),
        )
    }),
    ("expression", |n| {
        fn part(from: usize, to: usize) -> String {
            let middle = from.midpoint(to);
            match to - from {
                1 => format!("(x * {from})"),
                _ => format!("({} + {})", part(from, middle), part(middle, to)),
            }
        }
        one_of(
            "",
            &format!("  action In:[x] ==> Out:[{}] end\n", part(0, n)),
        )
    }),
];

/// What the compiler does grows with a network, and not with the square of anything in it. Counted are
/// instructions, which are the same on every machine of one kind.
#[test]
fn the_compilers_work_grows_as_the_network_does() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return common::skipped("the growth of the compiler's work", "there is no valgrind");
    }
    let place = numbers();
    let counted = |files: Vec<(String, String)>| -> f64 {
        files
            .iter()
            .for_each(|(name, text)| place.write(name, text));
        let run = Command::new("valgrind")
            .current_dir(place.path("."))
            .args([
                "--tool=cachegrind",
                "--cache-sim=no",
                "--cachegrind-out-file=/dev/null",
            ])
            .arg(env!("CARGO_BIN_EXE_levada"))
            .args(["build", TOP, "--emit", "c", "-o", "-"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}");
        let line = said.lines().find(|l| l.contains("refs:")).expect("a count");
        let count = line.rsplit(' ').next().unwrap().replace(',', "");
        count.parse().expect("a number")
    };
    let least = counted(one_of("", "  action In:[x] ==> Out:[x] end\n"));
    let mut wrong = Vec::new();
    for (what, files) in GROWING {
        let (small, large) = (150, 600);
        let grown = (counted(files(large)) - least) / (counted(files(small)) - least);
        let exponent = grown.ln() / (large as f64 / small as f64).ln();
        if exponent > 1.3 {
            wrong.push(format!("{what}: n^{exponent:.2}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
