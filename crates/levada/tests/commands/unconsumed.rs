// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of elements that are left over in channels at the end of a run, and of `--strict`.

use crate::common::host::TOP;
use crate::common::{Instance, Place, Run, SOURCE, network};
use std::process::Command;

/// Takes `n` elements at a time.
fn blocks(n: usize) -> String {
    format!(
        "package p;\nactor Blocks () int In ==> :\n  action In:[x] repeat {n} ==> do println(x[0]); end\nend\n"
    )
}

#[test]
fn what_is_left_over_at_the_end_is_named_with_its_reason() {
    let place = Place::new(&[SOURCE, ("src/p/Blocks.cal", &blocks(2048))]);
    let instances: [Instance; 2] = [
        ("source", "p.Source", &[("n", "4480")]),
        ("sink", "p.Blocks", &[]),
    ];
    place.write(TOP, &network(&instances, &[("source.Out", "sink.In")]));
    for fuse in ["--fuse", "--no-fuse"] {
        let run = place.run(&["run", TOP, fuse]);
        assert_eq!(run.succeeds().out, "1\n2049\n");
        let line = "384 elements in source.Out -> sink.In: sink waits for 2048 there";
        assert!(run.err.contains(line), "{run:?}");
        let strict = place.run(&["run", TOP, fuse, "--strict"]);
        strict.refuses(14, &["elements were left over", line]);
        assert_eq!(strict.out, "1\n2049\n");
    }
    let json = place.run(&["run", TOP, "--json", "--strict"]);
    assert_eq!(json.code, Some(14));
    let json = json.json();
    assert_eq!(
        (&json["outcome"], &json["code"]),
        (&"unconsumed".into(), &"unconsumed".into())
    );
    let left = &json["unconsumed"][0];
    assert_eq!(
        (&left["from"], &left["from_port"]),
        (&"source".into(), &"Out".into())
    );
    assert_eq!(
        (&left["to"], &left["to_port"]),
        (&"sink".into(), &"In".into())
    );
    assert_eq!(
        (
            &left["elements"],
            json["unconsumed"].as_array().unwrap().len()
        ),
        (&384.into(), 1)
    );
    // And by a program that holds the network.
    place.run(&["build", TOP, "-o", "top"]).succeeds();
    let program = |args: &[&str]| {
        let mut command = Command::new(place.path("top"));
        Run::new(command.args(args).output().unwrap())
    };
    let line = "elements were left over\n  384 elements in source.Out -> sink.In: sink waits for 2048 there\n";
    assert!(program(&[]).succeeds().err.ends_with(line));
    let strict = program(&["--strict"]);
    strict.refuses(14, &[line]);
    assert_eq!(strict.out, "1\n2049\n");
    program(&["--strict", "--workers", "1"]).refuses(14, &[line]);
    assert_eq!(json["elements"]["done"], 4096);
    assert!(json["elements"]["per_second"].as_f64().unwrap() > 0.0);
    // What comes out even is no matter.
    let instances: [Instance; 2] = [
        ("source", "p.Source", &[("n", "4096")]),
        ("sink", "p.Blocks", &[]),
    ];
    place.write(TOP, &network(&instances, &[("source.Out", "sink.In")]));
    let run = place.run(&["run", TOP, "--strict", "--stats"]);
    assert!(!run.succeeds().err.contains("left over"), "{run:?}");
    assert!(
        run.err.contains("4 096 elements through channels"),
        "{run:?}"
    );
    assert!(!run.err.contains("moved between"), "{run:?}");
    place.run(&["build", TOP, "-o", "top"]).succeeds();
    assert_eq!(program(&["--strict"]).succeeds().err, "");
    let json = place.run(&["run", TOP, "--json"]).json();
    assert_eq!(json["unconsumed"], serde_json::json!([]));
    assert!(json["outcome"] == "done" && json["code"].is_null());
}

#[test]
fn what_is_left_over_since_another_input_is_empty_says_so() {
    let place = Place::new(&[
        SOURCE,
        (
            "src/p/Add.cal",
            "package p;\nactor Add () int A, int B ==> :\n  action A:[a], B:[b] ==> do println(a + b); end\nend\n",
        ),
    ]);
    let instances: [Instance; 3] = [
        ("few", "p.Source", &[("n", "2")]),
        ("many", "p.Source", &[("n", "9")]),
        ("add", "p.Add", &[]),
    ];
    let wires = [("few.Out", "add.A"), ("many.Out", "add.B")];
    place.write(TOP, &network(&instances, &wires));
    let run = place.run(&["run", TOP]);
    assert_eq!(run.succeeds().out, "2\n4\n");
    let line =
        "7 elements in many.Out -> add.B: add waits for 1 element on its input A, which has 0";
    assert!(run.err.contains(line), "{run:?}");
}

#[test]
fn what_is_put_for_an_actor_that_has_ended_is_left_over() {
    let place = Place::new(&[
        SOURCE,
        (
            "src/p/First.cal",
            "package p;\nactor First () int In ==> :\n  int n := 0;\n  action In:[x] ==> guard n < 3 do n := n + 1; \
             println(x); end\nend\n",
        ),
    ]);
    let instances: [Instance; 2] = [
        ("source", "p.Source", &[("n", "100000")]),
        ("first", "p.First", &[]),
    ];
    place.write(TOP, &network(&instances, &[("source.Out", "first.In")]));
    let run = place.run(&["run", TOP, "--no-fuse"]);
    assert_eq!(run.succeeds().out, "1\n2\n3\n");
    let line = " elements in source.Out -> first.In: first takes no more";
    assert!(run.err.contains(line), "{run:?}");
}
