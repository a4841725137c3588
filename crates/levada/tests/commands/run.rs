// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada run`: what a network computes, and what a run reports.

use crate::common::busy::Busy;
use crate::common::host::{READ, TOP, held_pipe};
use crate::common::{Instance, PRINT, Place, SOURCE, network, numbers};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn run_runs_a_network_by_path_and_by_class_name() {
    let place = numbers();
    for args in [
        vec!["run", TOP],
        vec!["run", TOP, "--workers", "1"],
        vec!["run", TOP, "--workers", "2", "--no-balance"],
        vec!["run", TOP, "--workers", "2", "--spin", "0", "--no-fuse"],
        vec![
            "run",
            TOP,
            "--workers",
            "2",
            "--spin",
            "1000000",
            "--no-fuse",
        ],
        vec!["run", "p.Top", "--path", "src", "--unchecked"],
        vec!["run", TOP, "--no-fuse"],
    ] {
        let run = place.run(&args);
        assert_eq!(run.succeeds().out, "1\n2\n3\n", "{args:?}");
        assert!(run.err.contains("done: p.Top in"), "{run:?}");
        assert!(run.err.contains("% busy"), "{run:?}");
    }
}

#[test]
fn run_reports_as_json_and_in_tables() {
    let place = numbers();
    let run = place.run(&["run", TOP, "--json", "--stats", "--no-fuse"]);
    // The output is the object alone; what the network prints goes to the error output.
    assert_eq!(run.succeeds().out.lines().count(), 1, "{run:?}");
    assert!(run.err.contains("1\n2\n3\n"), "{run:?}");
    let json = run.json();
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(0));
    assert_eq!(json["outcome"], "done");
    assert_eq!(json["network"], "p.Top");
    assert!(json["seconds"].as_f64().unwrap() > 0.0);
    assert!(!json["cores"].as_array().unwrap().is_empty());
    let firings: Vec<u64> = json["actors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["firings"].as_u64().unwrap())
        .collect();
    assert_eq!(firings, [3, 3]);
    let channel = &json["channels"][0];
    assert_eq!((&channel["got"], &channel["left"]), (&3.into(), &0.into()));
    let ends = ["from", "from_port", "to", "to_port"].map(|end| channel[end].as_str().unwrap());
    assert_eq!(ends, ["source", "Out", "print", "In"]);
    let run = place.run(&["run", TOP, "--stats", "--no-fuse"]);
    assert!(run.err.contains("firings"), "{run:?}");
    assert!(run.err.contains("source.Out -> print.In"), "{run:?}");
}

#[test]
fn elements_are_converted_where_the_ends_of_a_channel_differ() {
    let place = Place::new(&[(
        "src/p/Hundreds.cal",
        "package p;\nactor Hundreds () ==> int Out :\n  int n := 0;\n  action ==> Out:[n] guard n \
         < 300 do n := n + 100; end\nend\n",
    )]);
    for (name, ty) in [("Narrow", "int(size=8)"), ("Wide", "uint(size=40)")] {
        let text = format!(
            "package p;\nactor {name} () {ty} In ==> :\n  action In:[x] ==> do println(\"{name} \" + \
             x); end\nend\n"
        );
        place.write(&format!("src/p/{name}.cal"), &text);
    }
    let instances: &[Instance] = &[
        ("hundreds", "p.Hundreds", &[]),
        ("narrow", "p.Narrow", &[]),
        ("wide", "p.Wide", &[]),
    ];
    let wires = [("hundreds.Out", "narrow.In"), ("hundreds.Out", "wide.In")];
    place.write(TOP, &network(instances, &wires));
    for fuse in ["--fuse", "--no-fuse"] {
        let run = place.run(&["run", TOP, fuse]);
        let mut lines: Vec<&str> = run.succeeds().out.lines().collect();
        lines.sort_unstable();
        let expected = [
            "Narrow -56",
            "Narrow 100",
            "Narrow 44",
            "Wide 100",
            "Wide 200",
            "Wide 300",
        ];
        assert_eq!(lines, expected);
        assert!(run.err.contains("cut to the width"), "{run:?}");
    }
}

#[test]
fn run_hands_settings_and_options_to_the_network() {
    let place = Place::new(&[SOURCE]);
    place.write(
        "src/p/Write.cal",
        "package p;\nimport levada.io.*;\nactor Write () int In ==> :\n  action In:[x] ==> do \
         io_write_number(x); end\nend\n",
    );
    let top = network(
        &[
            ("source", "p.Source", &[("n", "3")]),
            ("write", "p.Write", &[]),
        ],
        &[("source.Out", "write.In")],
    );
    let parameter = "<Decl kind=\"Param\" name=\"count\"><Type name=\"int\"/></Decl>\n<Instance";
    let top = top.replacen("<Instance", parameter, 1).replacen(
        "<Expr kind=\"Literal\" literal-kind=\"Integer\" value=\"3\"/>",
        "<Expr kind=\"Var\" name=\"count\"/>",
        1,
    );
    place.write(TOP, &top);
    let run = place.run(&["run", TOP, "--set", "count=5", "--out", "n.txt", "--json"]);
    assert_eq!(run.succeeds().json()["output"], "n.txt");
    let written = std::fs::read_to_string(place.path("n.txt")).unwrap();
    assert_eq!(written, "1\n2\n3\n4\n5\n");
    assert_eq!(place.list("."), ["n.txt", "src"]);
}

/// A consumer that will never consume again has ended, and a producer without other consumers ends with it: however
/// much it would produce, and whether or not the channel is empty.
#[test]
fn a_producer_for_an_ended_consumer_ends_with_it() {
    for never in ["k > 0", "x < 0"] {
        let actor = format!(
            "package p;\nactor Never () int In ==> :\n  int k := 0;\n  action In:[x] ==> guard {never} do k := k + x; \
             end\nend\n"
        );
        let place = Place::new(&[SOURCE, ("src/p/Never.cal", &actor)]);
        for n in ["3", "2000000000"] {
            let instances: &[Instance] = &[
                ("source", "p.Source", &[("n", n)]),
                ("never", "p.Never", &[]),
            ];
            place.write(TOP, &network(instances, &[("source.Out", "never.In")]));
            for fuse in ["--fuse", "--no-fuse"] {
                let json = place.run(&["run", TOP, fuse, "--json"]);
                assert_eq!(json.succeeds().json()["outcome"], "done", "{never} {n}");
            }
        }
    }
}

#[test]
fn how_much_of_the_input_was_taken_is_told() {
    let place = Place::new(&[
        (
            "src/p/Read.cal",
            "package p;\nimport levada.io.*;\nactor Read (int n) ==> int Out :\n  int i := 0;\n  action ==> \
             Out:[io_read_number()] guard i < n and io_more() do i := i + 1; end\nend\n",
        ),
        PRINT,
    ]);
    place.write("in.txt", &"1234567\n".repeat(20_000));
    let run = |n: &str| {
        let instances: [Instance; 2] = [("read", "p.Read", &[("n", n)]), ("print", "p.Print", &[])];
        place.write(TOP, &network(&instances, &[("read.Out", "print.In")]));
        let run = place.run(&["run", TOP, "--in", "in.txt", "--json"]);
        run.succeeds().json()["input"].clone()
    };
    assert_eq!(
        run("1000000"),
        serde_json::json!({"done_bytes": 160_000, "total_bytes": 160_000})
    );
    // What is read ahead into a buffer was not taken.
    let taken = run("10000")["done_bytes"].as_u64().unwrap();
    assert!((60_000..100_000).contains(&taken), "{taken}");
    let text = place.run(&["run", TOP, "--in", "in.txt"]);
    assert!(
        text.succeeds().err.contains("of 156 KiB taken ("),
        "{text:?}"
    );
}

/// Runs until its input ends, with a program that computes on each core.
#[test]
fn the_time_that_other_programs_took_is_told() {
    let place = Place::new(&[("src/p/Read.cal", READ), PRINT]);
    let instances: [Instance; 2] = [("read", "p.Read", &[]), ("print", "p.Print", &[])];
    place.write(TOP, &network(&instances, &[("read.Out", "print.In")]));
    let input = held_pipe(&place, "numbers");
    let cores = std::thread::available_parallelism().unwrap().get();
    let busy: Vec<Busy> = (0..cores).map(|_| Busy::anywhere()).collect();
    let mut run = place
        .command(&["run", TOP, "--in", "numbers", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (&input).write_all(b"1 2 3\n").unwrap();
    let mut printed = BufReader::new(run.stderr.take().unwrap()).lines();
    assert!(
        printed
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line == "2")
    );
    // It has to last for some ticks of the kernel.
    std::thread::sleep(Duration::from_millis(500));
    drop(input);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut run.stdout.take().unwrap(), &mut said).unwrap();
    let status = run.wait().unwrap();
    drop(busy);
    assert!(status.success(), "{said}");
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    let shares = json["cores"].as_array().unwrap().iter();
    let shares: Vec<f64> = shares
        .map(|c| c["others_share"].as_f64().unwrap_or(-1.0))
        .collect();
    assert!(shares.iter().any(|share| *share > 0.1), "{json}");
}
