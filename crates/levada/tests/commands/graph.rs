// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada graph` and `levada run --graph`: the pictures of a network and of a run.

use crate::common::host::TOP;
use crate::common::numbers;

#[test]
fn run_draws_what_it_measured() {
    let place = numbers();
    place
        .run(&["run", TOP, "--graph", "run.svg", "--no-fuse"])
        .succeeds();
    let picture = std::fs::read_to_string(place.path("run.svg")).unwrap();
    assert!(picture.contains("core 0 ·") || picture.contains("core 1 ·"));
    assert!(picture.contains("numbers are elements carried"));
    assert!(picture.contains(">3</text>"), "{picture}");
}

#[test]
fn graph_draws_svg_and_dot() {
    let place = numbers();
    let run = place.run(&["graph", TOP]);
    assert!(run.succeeds().out.starts_with("digraph \"p.Top\""));
    let run = place.run(&["graph", TOP, "--svg", "a.svg", "--dot", "a.dot", "--json"]);
    assert_eq!(run.succeeds().json()["actors"], 2);
    let svg = std::fs::read_to_string(place.path("a.svg")).unwrap();
    assert!(svg.contains("source") && svg.contains("\n</svg>\n<!-- Made by Levada: "));
    let dot = std::fs::read_to_string(place.path("a.dot")).unwrap();
    assert!(dot.contains("n0:o0 -> n1:i0"));
    // A dash is the output, not a file of that name.
    let dot = place.run(&["graph", TOP, "--dot", "-", "--svg", "b.svg"]);
    assert!(dot.succeeds().out.starts_with("digraph"));
    let svg = place.run(&["graph", TOP, "--svg", "-"]);
    assert!(svg.succeeds().out.starts_with("<svg") && svg.out.ends_with("</svg>\n"));
    let c = place.run(&["build", TOP, "--emit", "c", "-o", "-"]);
    assert!(c.succeeds().out.contains("levada_network"));
    assert_eq!(place.list("."), ["a.dot", "a.svg", "b.svg", "src"]);
}
