// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of each command on correct input.

use crate::common;
use crate::common::host::{READ, sources};
use crate::common::{Instance, PRINT, Place, Run, SOURCE, network, numbers};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const TOP: &str = "src/p/Top.xdf";

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

#[test]
fn check_counts_what_it_checked() {
    let place = numbers();
    let run = place.run(&["check", "src"]);
    assert_eq!(
        run.succeeds().out,
        "3 files checked: 0 errors, 0 warnings\n"
    );
    let json = place
        .run(&["check", TOP, "src/p/Print.cal", "--json"])
        .json();
    assert_eq!((&json["files"], &json["errors"]), (&2.into(), &0.into()));
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

#[test]
fn no_numbers_make_an_empty_output() {
    let place = Place::new(&[SOURCE]);
    place.write(
        "src/p/Write.cal",
        "package p;\nimport levada.io.*;\nactor Write () int In ==> :\n  initialize ==> do io_open(); \
         end\n  action In:[x] ==> do io_write_number(x); end\nend\n",
    );
    let instances: &[Instance] = &[
        ("source", "p.Source", &[("n", "0")]),
        ("write", "p.Write", &[]),
    ];
    place.write(TOP, &network(instances, &[("source.Out", "write.In")]));
    place.write("n.txt", "of an earlier run\n");
    for fuse in ["--fuse", "--no-fuse"] {
        let run = place.run(&["run", TOP, "--out", "n.txt", fuse]);
        assert!(
            run.succeeds().err.contains("output    n.txt (0 bytes)"),
            "{run:?}"
        );
        assert_eq!(std::fs::read_to_string(place.path("n.txt")).unwrap(), "");
    }
    assert_eq!(place.list("."), ["n.txt", "src"]);
}

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
fn build_makes_c_objects_and_programs() {
    let place = numbers();
    place
        .run(&["build", TOP, "--emit", "c", "-o", "top.c"])
        .succeeds();
    let c = std::fs::read_to_string(place.path("top.c")).unwrap();
    assert!(c.contains("#line") && c.contains("levada_network"));
    let run = place.run(&["build", TOP, "--emit", "so", "--json"]);
    assert_eq!(run.succeeds().json()["files"][0], "Top.so");
    assert!(place.exists("Top.so"));
    place.run(&["build", TOP]).succeeds();
    let output = Command::new(place.path("Top")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n2\n3\n");
    assert!(output.status.success());
    let wrong = Command::new(place.path("Top"))
        .args(["--workers", "none"])
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    // Its parameters are bound at compile time; unknown options are refused.
    for option in ["--set", "--in", "--rate"] {
        let wrong = Command::new(place.path("Top"))
            .args([option, "group=6"])
            .output()
            .unwrap();
        assert_eq!(wrong.status.code(), Some(2));
        let said = String::from_utf8_lossy(&wrong.stderr);
        let why = format!("nothing in this network asks for {option}");
        assert!(said.contains(&why) && said.contains("usage: "), "{said}");
    }
    for (option, why) in [
        ("--workers", "--workers takes a value"),
        ("--rate", "--rate is not known"),
        ("three", "three is no option"),
    ] {
        let wrong = Command::new(place.path("Top"))
            .arg(option)
            .output()
            .unwrap();
        assert_eq!(wrong.status.code(), Some(2));
        let said = String::from_utf8_lossy(&wrong.stderr);
        assert!(said.contains(why) && said.contains("usage: "), "{said}");
    }
    let help = Command::new(place.path("Top"))
        .arg("--help")
        .output()
        .unwrap();
    assert!(help.status.success() && help.stdout.starts_with(b"usage: "));
    // An error in writing its output is reported.
    let full = std::fs::File::create("/dev/full").unwrap();
    let lost = Command::new(place.path("Top"))
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(lost.status.code(), Some(1));
    let said = String::from_utf8_lossy(&lost.stderr);
    assert!(said.contains("could not all be written"), "{said}");
    assert_eq!(place.list("."), ["Top", "Top.so", "src", "top.c"]);
}

#[test]
fn networks_are_compiled_with_the_headers_and_the_library_of_the_command_itself() {
    // The files installed next to the command, or named by a variable, are of another version.
    let place = numbers();
    let other = "#error not these\n";
    for header in ["base", "actor", "channel", "atomic", "native", "levada"] {
        place.write(&format!("prefix/include/levada/{header}.h"), other);
    }
    place.write("prefix/lib/liblevada.a", "no library");
    place.write("prefix/bin/none", "");
    let command = place.path("prefix/bin/levada");
    common::copy_program(env!("CARGO_BIN_EXE_levada"), &command);
    for args in [&["run", TOP][..], &["build", TOP, "-o", "top"]] {
        let output = Command::new(&command)
            .args(args)
            .current_dir(place.path("."))
            .env("LEVADA_CACHE", place.path("cache"))
            .env("LEVADA_INCLUDE", place.path("prefix/include"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let output = Command::new(place.path("top")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n2\n3\n");
    // Nothing but what was compiled is left in the cache.
    for name in place.list("cache") {
        assert!(name.ends_with(".so") || name.ends_with(".o"), "{name}");
    }
}

#[test]
fn doctor_finds_a_compiler_and_a_cache() {
    let place = numbers();
    let json = place.run(&["doctor", "--json"]).succeeds().json();
    assert_eq!(json["ready"], true);
    let state = |what: &str| {
        let list = json["findings"].as_array().unwrap();
        let found = list.iter().find(|f| f["what"] == what);
        found.unwrap_or_else(|| panic!("{what}"))["state"].clone()
    };
    assert_eq!(state("C compiler"), "ok");
    assert_eq!(state("cache"), "ok");
    for what in [
        "cores",
        "membarrier",
        "memfd",
        "max_map_count",
        "fibers",
        "urgent fibers",
        "real time",
        "perf",
    ] {
        state(what);
    }
    // What is advised says what to do.
    for finding in json["findings"].as_array().unwrap() {
        assert_eq!(
            finding["state"] == "ok",
            finding["help"].is_null(),
            "{finding}"
        );
    }
    let text = place.run(&["doctor"]);
    assert!(text.succeeds().out.contains("ready to run networks"));
    let mut without = place.command(&["doctor"]);
    let output = without.env("CC", "/nowhere/cc").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("missing  C compiler"));
}

#[test]
fn completions_and_manual_come_from_the_command_line_itself() {
    let place = numbers();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = place.run(&["completions", shell]);
        assert!(run.succeeds().out.contains("doctor"), "{shell}");
    }
    assert!(place.run(&["man"]).succeeds().out.contains(".TH levada 1"));
    for name in ["run", "levada-run"] {
        let page = place.run(&["man", name]);
        let text = &page.succeeds().out;
        assert!(text.contains(".TH levada-run 1"), "{page:?}");
        let footer = format!("\"levada-run {}\"", env!("CARGO_PKG_VERSION"));
        assert!(text.lines().any(|l| l.contains(&footer)), "{page:?}");
        let status = text.find(".SH \"EXIT STATUS\"\n").unwrap();
        assert!(status < text.find(".SH VERSION").unwrap(), "{page:?}");
        assert!(text[status..].contains("\\fB130\\fR"), "{page:?}");
    }
    place.run(&["man", "--dir", "man"]).succeeds();
    // A page for each command that the help lists, and one for all.
    let help = place.run(&["help"]).succeeds().out.clone();
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let rows = listed.lines().take_while(|l| !l.is_empty());
    let rows = rows.filter_map(|l| l.strip_prefix("  ").filter(|l| !l.starts_with(' ')));
    let names = rows.filter_map(|l| l.split_whitespace().next());
    let pages = names.filter(|n| *n != "help");
    let mut pages: Vec<String> = pages.map(|n| format!("levada-{n}.1")).collect();
    assert!(pages.contains(&"levada-run.1".to_string()), "{help}");
    pages.push("levada.1".to_string());
    pages.sort();
    assert_eq!(place.list("man"), pages);
    let page = std::fs::read_to_string(place.path("man/levada-run.1")).unwrap();
    assert!(page.contains("\\-\\-workers"));
    place.run(&["--version"]).succeeds();
    assert!(place.run(&["help", "run"]).succeeds().out.contains("--set"));
    // A C compiler has options of its own; this one alone is ours.
    let help = place.run(&["cc", "--help"]);
    assert!(help.succeeds().out.contains("--serial"));
}

#[test]
fn the_runtime_is_there_for_what_is_loaded() {
    let symbols = Command::new("nm")
        .args(["-D", "--defined-only", env!("CARGO_BIN_EXE_levada")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&symbols.stdout).into_owned();
    for name in [
        "lvd_actor_fail",
        "lvd_app_option",
        "lvd_native_fail",
        "lvd_app_finish",
        "lvd_app_ends_at_rest",
    ] {
        assert!(text.contains(&format!(" T {name}\n")), "{name}");
    }
}

/// A named pipe whose other end is not open yet delays no other actor, at either end of a network.
#[test]
fn a_named_pipe_waits_for_its_other_end() {
    let place = Place::new(&[
        SOURCE,
        PRINT,
        (
            "src/p/Pass.cal",
            "package p; import levada.io.*;\n\
             actor Pass () ==> :\n\
             initialize ==> do io_open(); end\n\
             action ==> guard io_more() do io_write_number(io_read_number()); end end\n",
        ),
    ]);
    let instances: [Instance; 3] = [
        ("pass", "p.Pass", &[]),
        ("source", "p.Source", &[("n", "3")]),
        ("print", "p.Print", &[]),
    ];
    place.write(TOP, &network(&instances, &[("source.Out", "print.In")]));
    for name in ["in", "out"] {
        let path = std::ffi::CString::new(place.path(name).to_str().unwrap()).unwrap();
        // SAFETY: a path that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    }
    let mut child = place
        .command(&["run", TOP, "--in", "in", "--out", "out", "--workers", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let printed: Vec<_> = (0..3).map(|_| lines.next().unwrap().unwrap()).collect();
    assert_eq!(printed, ["1", "2", "3"]);
    let (from, to) = (place.path("out"), place.path("in"));
    let reader = std::thread::spawn(move || std::fs::read_to_string(from).unwrap());
    std::fs::write(to, "17\n-4\n").unwrap();
    assert_eq!(reader.join().unwrap(), "17\n-4\n");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}

/// Two networks in one on one worker: the first reads an idle pipe, the second goes on.
#[test]
fn a_wait_for_input_delays_no_other_actor() {
    let place = Place::new(&[
        SOURCE,
        PRINT,
        (
            "src/p/Reader.cal",
            "package p; import levada.io.io_more; import levada.io.io_read_number;\n\
             actor Reader () ==> int Out :\n\
             action ==> Out:[io_read_number()] guard io_more() end end\n",
        ),
    ]);
    let instances: [Instance; 4] = [
        ("reader", "p.Reader", &[]),
        ("show", "p.Print", &[]),
        ("source", "p.Source", &[("n", "3")]),
        ("print", "p.Print", &[]),
    ];
    let wires = [("reader.Out", "show.In"), ("source.Out", "print.In")];
    place.write(TOP, &network(&instances, &wires));
    for interrupted in [false, true] {
        let mut child = place
            .command(&["run", TOP, "--in", "-", "--workers", "1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || lines.next().unwrap().unwrap();
        assert_eq!([next(), next(), next()], ["1", "2", "3"]);
        // Each number is shown before the next one comes.
        for number in ["17", "-4"] {
            writeln!(input, "{number}").unwrap();
            assert_eq!(next(), number);
        }
        if interrupted {
            // SAFETY: the child is ours and has not been waited for.
            unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
        } else {
            drop(input);
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let code = if interrupted { 130 } else { 0 };
        assert_eq!(output.status.code(), Some(code), "{said}");
    }
}

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
    let place = Place::new(&[("src/p/Read.cal", common::host::READ), PRINT]);
    let instances: [Instance; 2] = [("read", "p.Read", &[]), ("print", "p.Print", &[])];
    place.write(TOP, &network(&instances, &[("read.Out", "print.In")]));
    let input = common::host::held_pipe(&place, "numbers");
    let cores = std::thread::available_parallelism().unwrap().get();
    let busy = || {
        Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap()
    };
    let mut busy: Vec<_> = (0..cores).map(|_| busy()).collect();
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
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(input);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut run.stdout.take().unwrap(), &mut said).unwrap();
    let status = run.wait().unwrap();
    for one in &mut busy {
        one.kill().unwrap();
        one.wait().unwrap();
    }
    assert!(status.success(), "{said}");
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    let shares = json["cores"].as_array().unwrap().iter();
    let shares: Vec<f64> = shares
        .map(|c| c["others_share"].as_f64().unwrap_or(-1.0))
        .collect();
    assert!(shares.iter().any(|share| *share > 0.1), "{json}");
}

/// By whatever name it is given: what is written gets its name at the end, when all of the input was read.
#[test]
fn an_output_does_not_replace_what_the_run_reads() {
    let place = sources();
    place.write("src/p/Read.cal", READ);
    place.write(
        TOP,
        &network(
            &[("read", "p.Read", &[]), ("write", "p.Write", &[])],
            &[("read.Out", "write.In")],
        ),
    );
    let (file, text) = (place.path("all/in.txt"), "1\n2\n3\n");
    place.write("all/in.txt", text);
    place.write("all/other.txt", "4\n");
    std::fs::hard_link(&file, place.path("hard.txt")).unwrap();
    std::os::unix::fs::symlink(&file, place.path("soft.txt")).unwrap();
    place.run(&["build", TOP, "-o", "top"]).succeeds();
    for (input, output) in [
        ("all/in.txt", "all/in.txt"),
        ("all/in.txt", "hard.txt"),
        ("soft.txt", "hard.txt"),
        ("all/other.txt,all/in.txt", "soft.txt"),
        ("all", "all/in.txt"),
    ] {
        let given = ["--in", input, "--out", output];
        let run = place.run(&[&["run", TOP][..], &given].concat());
        run.refuses(1, &["--in reads this file", "name another file"]);
        let mut program = Command::new(place.path("top"));
        program.args(given).current_dir(place.path(""));
        Run::new(program.output().unwrap()).refuses(1, &["--in reads this file"]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    for output in ["all/new.txt", "all/other.txt"] {
        let given = ["--in", "all/in.txt", "--out", output];
        place.run(&[&["run", TOP][..], &given].concat()).succeeds();
        assert_eq!(std::fs::read_to_string(place.path(output)).unwrap(), text);
    }
}

/// Whatever Levada writes, what it did not make stays, and what it made is made again.
#[test]
fn no_file_is_replaced_that_was_not_made_here() {
    let place = numbers();
    let own = "/* mine */\n";
    place.write("man/other.1", own);
    place.write("x.c", "int main(void) { return 0; }\n");
    let before = std::fs::read_to_string(place.path("x.c")).unwrap();
    let why = "was not made by Levada, or was changed since; it is not replaced";
    for (file, args) in [
        ("Top.c", &["build", TOP, "--emit", "c"][..]),
        ("Top.so", &["build", TOP, "--emit", "so"]),
        ("Top", &["build", TOP]),
        ("named", &["build", TOP, "-o", "named"]),
        ("linked", &["build", TOP, "--emit", "c", "-o", "link"]),
        ("a.svg", &["graph", TOP, "--svg", "a.svg"]),
        ("a.dot", &["graph", TOP, "--dot", "a.dot"]),
        ("b.svg", &["run", TOP, "--graph", "b.svg"]),
        ("b.toml", &["run", TOP, "--record", "b.toml"]),
        ("y.c", &["translate", "x.c", "-o", "y.c"]),
        ("man/levada.1", &["man", "--dir", "man"]),
    ] {
        place.write(file, own);
        if file == "linked" {
            std::os::unix::fs::symlink("linked", place.path("link")).unwrap();
        }
        let files = (place.list("."), place.list("man"));
        let run = place.run(args);
        run.refuses(1, &[why, "remove it, or name another"]);
        assert!(
            run.out.is_empty(),
            "a run begins, or a result is told: {run:?}"
        );
        assert_eq!(std::fs::read_to_string(place.path(file)).unwrap(), own);
        assert_eq!((place.list("."), place.list("man")), files, "{args:?}");
    }
    // A source is not its own output.
    let run = place.run(&["translate", "x.c", "-o", "x.c"]);
    run.refuses(1, &["x.c was not made by Levada"]);
    assert_eq!(std::fs::read_to_string(place.path("x.c")).unwrap(), before);
    // A link that leads nowhere is not replaced either.
    std::os::unix::fs::symlink("nowhere", place.path("lost")).unwrap();
    let run = place.run(&["build", TOP, "--emit", "c", "-o", "lost"]);
    run.refuses(1, &["lost is a link that leads nowhere"]);
    assert!(place.path("lost").is_symlink());

    // An empty file may become one, and all that was made may be made again until it is changed.
    place.write("made/c", "");
    for args in [
        &["build", TOP, "--emit", "c", "-o", "made/c"][..],
        &["build", TOP, "--emit", "so", "-o", "made/so"],
        &["build", TOP, "-o", "made/exe"],
        &["graph", TOP, "--svg", "made/svg"],
        &["graph", TOP, "--dot", "made/dot"],
        &["run", TOP, "--graph", "made/run"],
        &["run", TOP, "--record", "made/record"],
        &["translate", "x.c", "-o", "made/translated"],
        &["man", "--dir", "made/man"],
    ] {
        place.run(args).succeeds();
        place.run(args).succeeds();
        let name = args[args.len() - 1];
        let file = match name {
            "made/man" => "made/man/levada-run.1",
            name => name,
        };
        let mut text = std::fs::read(place.path(file)).unwrap();
        text[0] ^= 1;
        std::fs::write(place.path(file), &text).unwrap();
        place.run(args).refuses(1, &[why]);
        assert_eq!(std::fs::read(place.path(file)).unwrap(), text);
    }
}

/// A network with much C is one file where a file is named, and several in a folder that is.
#[test]
fn much_c_goes_where_it_was_asked_for() {
    let place = numbers();
    let actions: String = (0..400)
        .map(|i| {
            format!(
                "  a{i}: action In:[x] ==> Out:[v] guard s = {i} do v := v + x * {i}; s := (s + {}) \
                 mod 400; end\n",
                i % 7 + 1
            )
        })
        .collect();
    let large = format!(
        "package p;\nactor Large () int In ==> int Out :\n  int s := 0; int v := 0;\n{actions}end\n"
    );
    place.write("src/p/Large.cal", &large);
    let network = network(
        &[
            ("source", "p.Source", &[]),
            ("large", "p.Large", &[]),
            ("print", "p.Print", &[]),
        ],
        &[("source.Out", "large.In"), ("large.Out", "print.In")],
    );
    place.write(TOP, &network);
    let own = "/* mine */\n";
    place.write("d/p_Print.c", own);
    let emit = |output: &str| place.run(&["build", TOP, "--emit", "c", "-o", output]);
    emit("d/o.c").succeeds();
    assert_eq!(place.list("d"), ["o.c", "p_Print.c"]);
    let one = std::fs::read_to_string(place.path("d/o.c")).unwrap();
    assert!(one.len() > 500_000 && one.contains("levada_network"));
    let run = emit("-");
    assert!(
        one.starts_with(run.succeeds().out.trim_end()),
        "the same text"
    );

    // Of several files none is written where one cannot be.
    emit("d").refuses(1, &["d/p_Print.c was not made by Levada"]);
    assert_eq!(place.list("d"), ["o.c", "p_Print.c"]);
    let json = place.run(&["build", TOP, "--emit", "c", "-o", "e/", "--json"]);
    let mut made: Vec<String> = json.succeeds().json()["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f.as_str().unwrap().trim_start_matches("e/").to_string())
        .collect();
    made.sort();
    assert_eq!(place.list("e"), made);
    assert!(
        made.len() > 2 && made.contains(&"Top.c".to_string()),
        "{made:?}"
    );
    emit("e").succeeds();
    assert_eq!(place.list("e"), made);
    assert_eq!(
        std::fs::read_to_string(place.path("d/p_Print.c")).unwrap(),
        own
    );
}

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
