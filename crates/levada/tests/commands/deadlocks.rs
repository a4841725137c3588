// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of networks in which no actor can fire: deadlocks of each kind, and networks with nothing to do.

use crate::common::host::TOP;
use crate::common::{Instance, PRINT, Place, SOURCE, blocks, network, numbers};
use std::process::Command;

#[test]
fn a_network_in_which_nothing_has_to_be_done_says_so() {
    let place = numbers();
    let text = std::fs::read_to_string(place.path(TOP)).unwrap();
    place.write(TOP, &text.replace("value=\"3\"", "value=\"0\""));
    let run = place.run(&["run", TOP, "--no-fuse"]);
    let said = "warning: nothing ever fired\n    print waits for 1 element on its input In";
    assert!(run.succeeds().err.contains(said), "{run:?}");
    let json = place.run(&["run", TOP, "--no-fuse", "--json"]).json();
    assert_eq!(json["outcome"], "done");
    assert!(json["never_fired"].as_str().unwrap().contains("print"));
}

#[test]
fn a_deadlock_report_names_what_each_actor_waits_for() {
    // Two of the first are wanted for each of the second, but both come in turn, and few fit.
    let place = Place::new(&[
        (
            "src/p/Both.cal",
            "package p;\nactor Both () ==> int A, int B :\n  action ==> A:[1], B:[2] end\nend\n",
        ),
        (
            "src/p/Uneven.cal",
            "package p;\nactor Uneven () int A, int B ==> :\n  action A:[x, y], B:[z] ==> end\nend\n",
        ),
    ]);
    let text = network(
        &[("both", "p.Both", &[]), ("uneven", "p.Uneven", &[])],
        &[("both.A", "uneven.A"), ("both.B", "uneven.B")],
    );
    place.write(TOP, &text);
    let run = place.run(&["run", TOP, "--fixed-buffers"]);
    run.refuses(1, &["nothing can move any more", "both", "uneven"]);
    // No capacity is enough: the channel grows as far as it may.
    let run = place.run(&["run", TOP, "--memory", "1M"]);
    run.refuses(
        1,
        &[
            "has grown from 16384 elements to",
            "uneven waits for 2 elements on its input A",
            "the channel both.B -> uneven.B would have to grow",
            "and may have 1048576",
            "--memory",
        ],
    );
    let json = place.run(&["run", TOP, "--json"]).json();
    assert_eq!(json["outcome"], "deadlock");
    assert_eq!(json["code"], "failed");
    assert!(json["why"].as_str().unwrap().contains("both"));
}

#[test]
fn a_cycle_without_a_first_element_is_a_deadlock() {
    let place = Place::new(&[(
        "src/p/Next.cal",
        "package p;\nactor Next () int In ==> int Out :\n  action In:[x] ==> Out:[x + 1] end\nend\n",
    )]);
    let instances: &[Instance] = &[("one", "p.Next", &[]), ("two", "p.Next", &[])];
    let wires = [("one.Out", "two.In"), ("two.Out", "one.In")];
    place.write(TOP, &network(instances, &wires));
    for fuse in ["--fuse", "--no-fuse"] {
        let run = place.run(&["run", TOP, fuse]);
        run.refuses(1, &["nothing ever fired, and nothing can", "first element"]);
    }
    let run = place.run(&["run", TOP, "--no-fuse"]);
    run.refuses(1, &["in a cycle", "the channel two.Out -> one.In is empty"]);
    let json = place.run(&["run", TOP, "--no-fuse", "--json"]).json();
    assert_eq!(json["outcome"], "deadlock");
    assert!(json["why"].as_str().unwrap().contains("in a cycle"));
}

#[test]
fn a_cycle_before_which_elements_lie_is_a_deadlock() {
    let place = Place::new(&[
        SOURCE,
        (
            "src/p/Add.cal",
            "package p;\nactor Add () int A, int B ==> int Sum :\n  action A:[a], B:[b] ==> Sum:[a \
             + b] end\nend\n",
        ),
        (
            "src/p/Same.cal",
            "package p;\nactor Same () int In ==> int Out :\n  action In:[x] ==> Out:[x] end\nend\n",
        ),
    ]);
    let instances: &[Instance] = &[
        ("source", "p.Source", &[("n", "3")]),
        ("add", "p.Add", &[]),
        ("same", "p.Same", &[]),
    ];
    let wires = [
        ("source.Out", "add.A"),
        ("add.Sum", "same.In"),
        ("same.Out", "add.B"),
    ];
    place.write(TOP, &network(instances, &wires));
    let run = place.run(&["run", TOP, "--no-fuse"]);
    run.refuses(
        1,
        &[
            "nothing can move any more",
            "add waits for 1 element on its input B",
        ],
    );
    place.run(&["run", TOP]).refuses(1, &["error: nothing"]);
}

#[test]
fn unused_ports_are_warned_of_and_harmless() {
    let place = Place::new(&[SOURCE, PRINT]);
    place.write(
        TOP,
        &network(
            &[
                ("source", "p.Source", &[("n", "3")]),
                ("print", "p.Print", &[]),
            ],
            &[],
        ),
    );
    let run = place.run(&["run", TOP]);
    run.succeeds();
    assert!(run.err.contains("nothing feeds print.In"), "{run:?}");
    assert!(run.err.contains("nothing consumes source.Out"), "{run:?}");
    assert_eq!(run.out, "");
    // So they are in a program of its own.
    place.run(&["build", TOP, "-o", "top"]).succeeds();
    let mut program = Command::new(place.path("top"));
    assert!(program.status().unwrap().success());
}

#[test]
fn a_channel_that_is_too_small_grows_and_the_run_says_so() {
    let said = "blocks.Data -> parts.Data has grown from 3 elements to 12";
    let large = blocks("5", 100).run(&["run", TOP]);
    assert!(!large.succeeds().err.contains("grown"), "{large:?}");
    let place = blocks("5", 3);
    for workers in ["1", "2"] {
        let run = place.run(&["run", TOP, "--workers", workers]);
        assert_eq!(run.succeeds().out, large.out);
        assert!(run.err.contains(said), "{run:?}");
    }
    let json = place.run(&["run", TOP, "--json", "--stats"]).json();
    let grown = serde_json::json!([{
        "from": "blocks", "from_port": "Data", "to": "parts", "to_port": "Data",
        "loaded_capacity": 3, "capacity": 12,
    }]);
    assert_eq!((&json["outcome"], &json["grown"]), (&"done".into(), &grown));
    assert_eq!(json["channels"][0]["capacity"], 12);
    // With the sizes that it says nothing grows.
    let enough = blocks("5", 12).run(&["run", TOP, "--fixed-buffers"]);
    assert_eq!(enough.succeeds().out, large.out);
    assert!(!enough.err.contains("grown"), "{enough:?}");
    // A program of its own does the same.
    place.run(&["build", TOP, "-o", "top"]).succeeds();
    let program = |args: &[&str]| Command::new(place.path("top")).args(args).output().unwrap();
    let grows = program(&[]);
    assert!(grows.status.success());
    assert_eq!(String::from_utf8_lossy(&grows.stdout), large.out);
    assert!(
        String::from_utf8_lossy(&grows.stderr).contains(said),
        "{grows:?}"
    );
    assert_eq!(program(&["--fixed-buffers"]).status.code(), Some(1));
}

#[test]
fn fixed_buffers_are_a_deadlock_that_names_the_channel() {
    let place = blocks("5", 3);
    let run = place.run(&["run", TOP, "--fixed-buffers"]);
    run.refuses(
        1,
        &[
            "nothing can move any more",
            "the channel blocks.Data -> parts.Data would have to grow from 3 elements to 6, and buffers are fixed",
            "without --fixed-buffers",
        ],
    );
    let json = place.run(&["run", TOP, "--fixed-buffers", "--json"]);
    assert_eq!(json.json()["outcome"], "deadlock");
    assert_eq!(json.json()["grown"], serde_json::json!([]));
    // What it takes at first is more than it may have.
    let run = place.run(&["run", TOP, "--memory", "1K"]);
    run.refuses(6, &["claims", "and may have 1024", "--memory"]);
}

#[test]
fn random_sizes_do_not_change_the_output() {
    let place = blocks("5", 40);
    let large = place.run(&["run", TOP]);
    let mut grown = 0;
    for seed in 0..6 {
        let seed = seed.to_string();
        let run = place.run(&["run", TOP, "--random-buffer-sizes", &seed]);
        assert_eq!(run.succeeds().out, large.out);
        grown += usize::from(run.err.contains("has grown"));
    }
    assert!(grown > 0);
}
