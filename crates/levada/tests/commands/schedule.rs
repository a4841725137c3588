// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of round-robin scheduling within a worker: the output is the same, and actors run in order.

use crate::common::host::{Host, sources};
use crate::common::{Place, network};

const TOP: &str = "src/p/Top.xdf";
const ROUNDS: usize = 200;

/// A source that gives an element to one actor, and then to another, which is the next one after it; each writes
/// what it gets. All channels hold one element, so that a round of turns is one of elements.
fn both() -> Place {
    let place = Place::new(&[
        (
            "src/p/Both.cal",
            "package p;\nactor Both (int rounds) ==> int First, int Second :\n  int n := 0;\n  \
             action ==> First:[2 * n - 2], Second:[2 * n - 1] guard n < rounds do n := n + 1; end\nend\n",
        ),
        (
            "src/p/Write.cal",
            "package p;\nimport levada.io.*;\nactor Write () int In ==> :\n  action In:[x] ==> do \
             io_write_number(x); end\nend\n",
        ),
    ]);
    let rounds = ROUNDS.to_string();
    let text = network(
        &[
            ("both", "p.Both", &[("rounds", &rounds)]),
            ("next", "p.Write", &[]),
            ("last", "p.Write", &[]),
        ],
        &[("both.First", "last.In"), ("both.Second", "next.In")],
    );
    let one = "<Attribute kind=\"Value\" name=\"bufferSize\"><Expr kind=\"Literal\" \
               literal-kind=\"Integer\" value=\"1\"/></Attribute></Connection>";
    place.write(TOP, &sized(&text, one));
    place
}

/// All connections with an attribute.
fn sized(text: &str, attribute: &str) -> String {
    let line = |line: &str| {
        if line.starts_with("<Connection") {
            line.replacen("/>", &format!(">{attribute}"), 1) + "\n"
        } else {
            format!("{line}\n")
        }
    };
    text.lines().map(line).collect()
}

fn written(place: &Place, file: &str) -> Vec<usize> {
    let text = std::fs::read_to_string(place.path(file)).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Counts the rounds, except at the beginning and the end, in which the second actor writes first: then an actor may
/// be missing.
fn second_first(numbers: &[usize]) -> usize {
    let middle = &numbers[20..2 * ROUNDS - 20];
    middle.chunks(2).filter(|two| two[0] % 2 == 1).count()
}

fn sorted(mut numbers: Vec<usize>) -> Vec<usize> {
    numbers.sort_unstable();
    numbers
}

#[test]
fn actors_have_their_turns_in_their_order() {
    let place = both();
    let alone = ["run", TOP, "--no-fuse", "--workers", "1", "--out"];
    let run = |file: &str, more: &[&str]| {
        let run = place.run(&[&alone[..], &[file], more].concat());
        run.succeeds();
        written(&place, file)
    };
    let usual = run("usual", &[]);
    let same = run("same", &["--schedule", "event-driven"]);
    let around = run("around", &["--schedule=round-robin"]);
    let all: Vec<usize> = (0..2 * ROUNDS).collect();
    for numbers in [&usual, &same, &around] {
        assert_eq!(sorted(numbers.clone()), all);
    }
    // An actor that is asked to yield, as by the clock, may be late in a round.
    assert!(second_first(&usual) < ROUNDS / 4, "{usual:?}");
    assert!(second_first(&same) < ROUNDS / 4, "{same:?}");
    assert_eq!(second_first(&around), ROUNDS - 20, "{around:?}");
}

#[test]
fn a_host_does_so() {
    let host = Host::begin_with(both(), &["--schedule", "round-robin", "--no-balance"]);
    // All on one worker, where no two write at a time.
    host.place
        .write("p.toml", "[a]\nboth = 1\nnext = 1\nlast = 1\n");
    let args = ["load", TOP, "--name", "a", "--no-fuse", "--out", "out"];
    let all = [&args[..], &["--placement", "p.toml"]].concat();
    host.run(&all).succeeds();
    host.until("a", |a| a["state"] == "ended");
    let numbers = written(&host.place, "out");
    assert_eq!(second_first(&numbers), ROUNDS - 20, "{numbers:?}");
}

#[test]
fn isolated_applications_are_scheduled_round_robin_too() {
    let host = Host::begin_with(sources(), &["--schedule", "round-robin"]);
    let args = ["load", "src/p/Many.xdf", "--name", "a", "--isolate"];
    host.run(&[&args[..], &["--out", "/dev/null"]].concat())
        .succeeds();
    let process = &host.seen("a")["isolated"];
    let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap();
    let command = String::from_utf8_lossy(&command);
    assert!(command.contains("--schedule=round-robin"), "{command}");
}
