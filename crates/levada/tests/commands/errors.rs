// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of errors: each gives one clear message and a non-zero status, and leaves no partial output.
//!
//! Cases: no command, an unknown command, option or shell; invalid numbers of workers and time limits; settings
//! without a name; networks that do not exist, folders, foreign files, files that share their name with another,
//! impossible names, unknown classes; inputs, outputs and folders that do not exist; outputs that are folders or
//! cannot be written; CAL files with errors of every stage; XDF files with errors; native files that are missing,
//! do not compile, or do not define what is called; a C compiler that does not run, fails, or produces nothing; all
//! of these with JSON, too. Inputs that are empty, truncated, not text, or have numbers that are too large; outputs
//! on a full disk, outputs whose final name is taken meanwhile; a device as the name of a program; a closed reader.
//! Deeply nested and endless sources. Faults: an index out of bounds, a division by zero, an endless action, a
//! failing native, deadlocks of each kind. SIGINT and SIGTERM. (Networks with errors:
//! crates/levada-cal/tests/xdf.rs; CAL with errors: the compiler's tests; pictures with errors: examples/jpeg.)

use crate::common::host::sources;
use crate::common::{Instance, PRINT, Place, Run, SOURCE, network, numbers, without};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

const TOP: &str = "src/p/Top.xdf";

#[test]
fn wrong_usage_has_status_2() {
    let place = numbers();
    for (args, said) in [
        (vec![], "Usage"),
        (vec!["fly"], "unrecognized subcommand"),
        (vec!["run"], "NETWORK"),
        (vec!["run", TOP, "--fast"], "unexpected argument"),
        (vec!["run", TOP, "--workers", "0"], "number from 1 to 1024"),
        (
            vec!["run", TOP, "--workers", "many"],
            "number from 1 to 1024",
        ),
        (vec!["run", TOP, "--workers", "-1"], "-1"),
        (vec!["run", TOP, "--time-limit", "-1"], "-1"),
        (vec!["run", TOP, "--schedule", "fair"], "round-robin"),
        (vec!["run", TOP, "--spin", "1000001"], "from 0 to 1000000"),
        (vec!["run", TOP, "--spin", "x"], "from 0 to 1000000"),
        (vec!["run", TOP, "--set", "n"], "write NAME=VALUE"),
        (vec!["run", TOP, "--set", "=3"], "write NAME=VALUE"),
        (vec!["run", TOP, "another"], "unexpected argument"),
        (vec!["check"], "PATH"),
        (vec!["build", TOP, "--emit", "java"], "invalid value"),
        (vec!["completions", "dos"], "invalid value"),
        (vec!["run", TOP, "--out", ""], "a value is required"),
        (vec!["man", "run", "--dir", "x"], "cannot be used with"),
    ] {
        place.run(&args).refuses(2, &[said]);
    }
}

#[test]
fn networks_that_are_none() {
    let place = numbers();
    place.write("notes.txt", "hello");
    place.write("src/prog.c", "int main(void) { return 0; }\n");
    for command in ["run", "build", "graph"] {
        for (typed, said) in [
            ("src/p/None.xdf", "there is no file src/p/None.xdf"),
            ("src", "src is a folder, not a network"),
            (
                "./notes.txt",
                "neither a network (.xdf) nor an actor (.cal)",
            ),
            ("notes.txt", "notes.txt is neither a network (.xdf)"),
            ("p.None", "no network or actor is called p.None"),
            ("a b", "names no network"),
            ("p..Top", "names no network"),
            ("", "names no network"),
            ("src/p/Print.cal", "has the port In"),
            ("src/prog.c", "is a C source, not a network (.xdf)"),
            (
                "src/prog.c",
                "levada cc --hosted -O2 src/prog.c -o src/prog.so",
            ),
        ] {
            let run = place.run(&[command, typed]);
            run.refuses(1, &[said]);
            assert!(run.out.is_empty(), "{run:?}");
        }
    }
    place
        .run(&["check", "nowhere"])
        .refuses(1, &["there is no file or folder nowhere"]);
    place
        .run(&["check", "/dev/null"])
        .refuses(1, &["/dev/null is neither a .cal nor an .xdf file"]);
    place
        .run(&["check", "notes.txt"])
        .refuses(1, &["neither a .cal nor an .xdf file"]);
    std::fs::create_dir(place.path("empty")).unwrap();
    place
        .run(&["check", "empty"])
        .refuses(1, &["there is no .cal or .xdf file in empty"]);
}

#[test]
fn of_two_files_of_one_name_the_one_that_is_named_is_taken() {
    let place = numbers();
    let says = |name: &str, what: &str| {
        format!(
            "package p;\nactor {name} () ==> :\n  bool said := false;\n  action ==> guard not said \
             do println(\"{what}\"); said := true; end\nend\n"
        )
    };
    place.write("src/p/Other.cal", &says("Other", "from the network"));
    place.write("src/p/Same.cal", &says("Same", "from the actor"));
    let same = network(&[("other", "p.Other", &[])], &[]).replace("\"Top\"", "\"Same\"");
    place.write("src/p/Same.xdf", &same);
    for (file, said) in [
        ("src/p/Same.xdf", "from the network\n"),
        ("src/p/Same.cal", "from the actor\n"),
    ] {
        assert_eq!(place.run(&["run", file]).succeeds().out, said);
        place.run(&["build", file, "-o", "same"]).succeeds();
        let program = std::process::Command::new(place.path("same")).output();
        assert_eq!(String::from_utf8_lossy(&program.unwrap().stdout), said);
    }
    let drawn = place.run(&["graph", "src/p/Same.xdf"]);
    assert!(drawn.succeeds().out.contains("p.Other"), "{drawn:?}");

    // What is wrong with the other is not said of it either.
    place.write(
        "src/p/Same.cal",
        "package p;\nactor Same () ==> :\n  oops\n",
    );
    place.run(&["run", "src/p/Same.xdf"]).succeeds();

    // A name says neither: not on the command line, not in a network, and not to `check`.
    place.write("src/p/Same.cal", &says("Same", "from the actor"));
    let both = ["src/p/Same.cal and ", "src/p/Same.xdf", "ambiguous-class"];
    for command in ["run", "build", "graph"] {
        let run = place.run(&[command, "p.Same", "--path", "src"]);
        run.refuses(1, &both);
        assert!(run.out.is_empty(), "{run:?}");
    }
    let run = place.run(&["check", "src"]);
    run.refuses(1, &both);
    assert!(run.out.contains("1 error,"), "{run:?}");
    place.write(TOP, &network(&[("same", "p.Same", &[])], &[]));
    place.run(&["run", TOP]).refuses(1, &both);
    place.run(&["check", TOP]).refuses(1, &both);
}

#[test]
fn files_and_folders_that_are_not_there() {
    let place = numbers();
    for (args, said) in [
        (
            vec!["run", TOP, "--in", "none.bin"],
            "--in none.bin: No such file",
        ),
        (vec!["run", TOP, "--in", ","], "names no file"),
        (
            vec!["run", TOP, "--out", "none/x"],
            "there is no folder none",
        ),
        (
            vec!["graph", TOP, "--svg", "-", "--dot", "-"],
            "only one of --svg -, --dot - and --json",
        ),
        (
            vec!["run", TOP, "--out", "-", "--json"],
            "--json and what is written to - cannot both",
        ),
        (
            vec!["build", TOP, "--emit", "so", "-o", "-"],
            "only C can go to the output",
        ),
        (
            vec!["build", TOP, "-o", "/dev/null"],
            "/dev/null is no file that could be replaced",
        ),
        (vec!["man", "fly"], "there is no command fly"),
        (
            vec!["run", TOP, "--graph", "none/x.svg"],
            "--graph none/x.svg: there is no folder none",
        ),
        (
            vec!["run", TOP, "--path", "none"],
            "--path none: there is no such folder",
        ),
        (
            vec!["run", TOP, "--native", "none.c"],
            "--native none.c: there is no such file",
        ),
        (
            vec!["check", "src", "--path", "none"],
            "--path none: there is no such folder",
        ),
        (
            vec!["graph", TOP, "--svg", "none/x.svg"],
            "cannot write none/x.svg",
        ),
        (vec!["graph", TOP, "--dot", "src"], "cannot write src"),
        (vec!["build", TOP, "-o", "none/x"], "cannot"),
        (vec!["build", TOP, "-o", "src"], "src is a folder"),
        (
            vec!["man", "--dir", "src/p/Top.xdf"],
            "cannot make the folder",
        ),
        (
            vec!["run", TOP, "--set", "m=1"],
            "no parameter or variable `m`",
        ),
    ] {
        place.run(&args).refuses(1, &[said]);
    }
    assert_eq!(place.list("."), ["src"]);
    assert_eq!(place.list("src/p"), ["Print.cal", "Source.cal", "Top.xdf"]);
}

#[test]
fn an_output_that_cannot_be_written_is_said() {
    let place = numbers();
    let full = std::fs::File::create("/dev/full").unwrap();
    let status = place
        .command(&["man"])
        .stdout(full)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}

/// What is written to an output that takes nothing, or that is closed, has not been said; and nothing comes from an
/// input that is closed.
#[test]
fn a_closed_output_or_input_is_no_success() {
    let place = numbers();
    let said = "cannot write to the output";
    let commands: [(&[&str], &str); 7] = [
        (&["--version"], said),
        (&["run", "--help"], said),
        (&["doctor", "--json"], said),
        (&["completions", "bash"], said),
        (&["graph", TOP], said),
        (&["fmt", "-"], said),
        (&["run", TOP], "what was printed could not all be written"),
    ];
    for (args, why) in commands {
        let mut full = place.command(args);
        full.stdout(std::fs::File::create("/dev/full").unwrap());
        let mut closed = place.command(args);
        without(&mut closed, 1 << libc::STDOUT_FILENO);
        for mut command in [full, closed] {
            let source = std::fs::File::open(place.path("src/p/Print.cal")).unwrap();
            let done = command.stdin(source).stderr(Stdio::piped()).output();
            let done = done.unwrap();
            let err = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(1), "{args:?}: {err}");
            assert!(err.contains(why), "{args:?}: {err}");
        }
    }
    for args in [&["fmt", "-"][..], &["translate", "-"], &["lsp"]] {
        let mut command = place.command(args);
        without(&mut command, 1 << libc::STDIN_FILENO);
        let run = Run::new(command.output().unwrap());
        run.refuses(1, &["it is closed"]);
    }
    assert_eq!(place.list("."), ["src"]);
}

/// What a network prints does not get into the files that it writes, with any of the streams closed: neither in the
/// command nor in a program that is built.
#[test]
fn closed_streams_are_no_files() {
    let place = sources();
    place.write(
        "src/p/Source.cal",
        "package p;\nactor Source () ==> int Out :\n  int i := 0;\n  action ==> Out:[i] guard i < 3 do i := i + 1; \
         println(\"no number\"); end\nend\n",
    );
    place.write(
        TOP,
        &network(
            &[("source", "p.Source", &[]), ("write", "p.Write", &[])],
            &[("source.Out", "write.In")],
        ),
    );
    place.run(&["build", TOP, "-o", "top"]).succeeds();
    for closed in 1..8 {
        for built in [false, true] {
            let mut command = match built {
                true => Command::new(place.path("top")),
                false => place.command(&["run", TOP]),
            };
            without(&mut command, closed);
            command
                .args(["--out", "numbers.txt"])
                .current_dir(place.path(""))
                .stdout(Stdio::null());
            let done = command.output().unwrap();
            let printed = closed >> libc::STDOUT_FILENO & 1 == 0;
            let code = if printed { 0 } else { 1 };
            assert_eq!(done.status.code(), Some(code), "{closed} {built}: {done:?}");
            let numbers = std::fs::read_to_string(place.path("numbers.txt")).unwrap();
            assert_eq!(numbers, "1\n2\n3\n", "{closed} {built}");
        }
    }
}

#[test]
fn sources_with_errors_name_file_line_and_column() {
    let place = numbers();
    place.write(
        "src/p/Print.cal",
        "package p;\nactor Print () int In ==> :\n  action In:[x] ==> do y := x; end\nend\n",
    );
    for command in ["run", "build", "graph"] {
        let run = place.run(&[command, TOP]);
        run.refuses(1, &["src/p/Print.cal:3:", "y := x", "error"]);
        assert!(run.out.is_empty());
    }
    let run = place.run(&["check", "src"]);
    run.refuses(1, &["src/p/Print.cal:3:"]);
    assert!(run.out.contains("3 files checked: 1 error"), "{run:?}");
    let json = place.run(&["check", "src", "--json"]).json();
    assert_eq!(json["code"], "failed");
    let first = json["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|d| d["severity"] == "error")
        .unwrap();
    assert_eq!(first["line"], 3);
    assert!(first["column"].as_u64().unwrap() > 1);
    assert!(first["file"].as_str().unwrap().ends_with("src/p/Print.cal"));

    // Every error of every file, not the first.
    place.write("src/p/Source.cal", "package p;\nactor Source (int n) ==> int Out :\n  action ==> Out:[a] end\n  action ==> Out:[b] end\nend\n");
    place.write(
        TOP,
        "<XDF name=\"Top\">\n<Instance id=\"x\"/>\n<Port/>\n</XDF>\n",
    );
    let run = place.run(&["check", "src"]);
    run.refuses(
        1,
        &[
            "Source.cal:3:",
            "Source.cal:4:",
            "Print.cal:3:",
            "Top.xdf:2:",
            "Top.xdf:3:",
        ],
    );
    for broken in [
        "",
        "actor",
        "actor A (",
        "package p;\nactor A () ==> :\n",
        "\u{0}\u{1}",
    ] {
        place.write("src/p/Print.cal", broken);
        place
            .run(&["check", "src/p/Print.cal"])
            .refuses(1, &["error"]);
    }
}

#[test]
fn natives_that_are_missing_or_wrong() {
    let place = Place::new(&[(
        "src/p/Top.cal",
        "package p;\nactor Top () ==> :\n  @native procedure shout(int x) end\n  bool done := \
         false;\n  action ==> guard not done do shout(1); done := true; end\nend\n",
    )]);
    let top = "src/p/Top.cal";
    place
        .run(&["run", top])
        .refuses(1, &["native function shout", "--native FILE"]);
    place.write("broken.c", "void shout(int x) { return x }\n");
    place
        .run(&["run", top, "--native", "broken.c"])
        .refuses(1, &["broken.c", "error"]);
    // What CAL takes them for is what they have to be.
    for (definition, said) in [
        ("void shout(int x, int y) {}", "2 parameters, and 1 in CAL"),
        (
            "void shout(char *x) {}",
            "parameter 1 of `shout` is `char *x`",
        ),
        (
            "void shout(\n  double x) {}",
            "and an integer of 32 bits in CAL",
        ),
    ] {
        place.write("other.c", &format!("\n{definition}\n"));
        for what in ["run", "build"] {
            place
                .run(&[what, top, "--native", "other.c"])
                .refuses(1, &["other.c:2: ", said, "void shout(int32_t);"]);
        }
    }
    place.write("other.so", "no shared object\n");
    place.run(&["run", top, "--native", "other.so"]).refuses(
        1,
        &[
            "other.so",
            "no shared object that can be loaded",
            "too short",
        ],
    );
    let text = "#include <stdint.h>\nvoid shout(int32_t);\nvoid shout(int32_t x) { (void)x; }\n";
    place.write("whole.c", text);
    place
        .run(&["cc", "-shared", "-fPIC", "whole.c", "-o", "whole.so"])
        .succeeds();
    let whole = std::fs::read(place.path("whole.so")).unwrap();
    for part in [0.01, 0.1, 0.5, 0.9] {
        let cut = &whole[..(whole.len() as f64 * part) as usize];
        std::fs::write(place.path("cut.so"), cut).unwrap();
        place
            .run(&["run", top, "--native", "cut.so"])
            .refuses(1, &["cut.so: the file is truncated"]);
    }
    place.run(&["run", top, "--native", "whole.so"]).succeeds();
    place.write(
        "natives/shout.c",
        "#include <levada/native.h>\n#include <stdint.h>\nvoid shout(int32_t x);\n\
         void shout(int32_t x) {\n  lvd_native_fail(\"%d is too loud\", x);\n}\n",
    );
    place
        .run(&["run", top])
        .refuses(1, &["1 is too loud", "src/p/Top.cal:5"]);
}

#[test]
fn a_compiler_that_does_not_run_is_named() {
    let place = numbers();
    // Half of it is not installed.
    place.write(
        "cc.sh",
        "test \"$1\" = --version && exec echo cc 1\n\
         echo \"cc: fatal error: cannot execute 'cc1': execvp: No such file or directory\" >&2\nexit 1\n",
    );
    let half = format!("sh {}", place.path("cc.sh").display());
    for (cc, said) in [
        ("/nowhere/cc", "cannot run the C compiler `/nowhere/cc`"),
        (
            &half,
            "fails with status 1:\n  cc: fatal error: cannot execute",
        ),
        (
            "/bin/false",
            "the C compiler `/bin/false` fails with status 1",
        ),
        (
            "/bin/true",
            "the C compiler `/bin/true` ends well, and makes nothing",
        ),
    ] {
        for what in ["run", "build"] {
            let mut command = place.command(&[what, TOP]);
            let output = command
                .env("CC", cc)
                .env("XDG_CACHE_HOME", place.path("cache"))
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(1));
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(text.contains(said) && text.contains("CC"), "{text}");
            assert!(!text.contains("error in Levada"), "{text}");
        }
        let mut doctor = place.command(&["doctor"]);
        let output = doctor.env("CC", cc).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
    }
    assert_eq!(place.list("."), ["cache", "cc.sh", "src"]);
}

#[test]
fn with_json_what_is_wrong_is_json_too() {
    let place = numbers();
    place.write(
        "src/p/Bad.cal",
        "package p;\nactor Bad () ==> :\n  int x := y;\nend\n",
    );
    for (args, code, said) in [
        (vec!["run", "none.xdf"], 1, "there is no file none.xdf"),
        (vec!["build", "none.xdf"], 1, "there is no file none.xdf"),
        (vec!["graph", "none.xdf"], 1, "there is no file none.xdf"),
        (vec!["check", "none.xdf"], 1, "there is no file or folder"),
        (vec!["run", TOP, "--in", "none"], 1, "--in none: No such"),
        (vec!["run", TOP, "--set", "m=1"], 1, "no parameter"),
        (vec!["run", "src/p/Bad.cal"], 1, "y"),
        (
            vec!["run", TOP, "--workers", "0"],
            2,
            "number from 1 to 1024",
        ),
        (vec!["run"], 2, "NETWORK"),
        (vec!["doctor", "--fast"], 2, "--fast"),
    ] {
        let run = place.run(&[&args[..], &["--json"]].concat());
        run.refuses(code, &["error"]);
        assert_eq!(run.out.lines().count(), 1, "{run:?}");
        let json = run.json();
        assert_eq!(json["outcome"], "refused", "{run:?}");
        let list = json["diagnostics"].as_array().unwrap();
        let first = list.iter().find(|d| d["severity"] == "error").unwrap();
        assert!(first["message"].as_str().unwrap().contains(said), "{run:?}");
    }
    let json = place.run(&["run", "src/p/Bad.cal", "--json"]).json();
    assert_eq!(json["diagnostics"][0]["line"], 3);
}

#[test]
fn many_unknown_names_are_counted_and_the_first_are_guessed_at() {
    let place = Place::new(&[]);
    let known: String = (0..2000)
        .map(|i| format!("  int some{i} := 0;\n"))
        .collect();
    let unknown: String = (0..2000).map(|i| format!("    sone{i} := 1;\n")).collect();
    place.write(
        "src/p/Many.cal",
        &format!("package p;\nactor Many () ==> :\n{known}  action ==> do\n{unknown}  end\nend\n"),
    );
    let run = place.run(&["check", "src/p/Many.cal"]);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("2000 errors"), "{}", run.out);
    assert!(run.err.contains("did you mean `some0`?"));
    assert_eq!(run.err.matches("did you mean").count(), 50);
}

/// A network of the source and one actor that does `body` with each number `x`.
fn with_body(body: &str) -> Place {
    let place = Place::new(&[SOURCE]);
    place.write(
        "src/p/Bad.cal",
        &format!(
            "package p;\n\nactor Bad () int In ==> :\n  List(type: int, size=8) a;\n  \
             step: action In:[x] ==>\n  do\n    {body}\n  end\nend\n"
        ),
    );
    place.write(
        TOP,
        &network(
            &[
                ("source", "p.Source", &[("n", "100")]),
                ("bad", "p.Bad", &[]),
            ],
            &[("source.Out", "bad.In")],
        ),
    );
    place
}

#[test]
fn faults_name_actor_action_and_line_and_show_it() {
    for (body, said, fails) in [
        ("a[x] := x;", "index 8 of a list of 8", "x"),
        (
            "a[0] := 100 / (x - 5);",
            "division by zero",
            "100 / (x - 5)",
        ),
        (
            "a[0] := x mod (x - 5);",
            "division by zero",
            "x mod (x - 5)",
        ),
        (
            "println(\"\u{e4} \" + a[x + 1]);",
            "index 8 of a list of 8",
            "x + 1",
        ),
    ] {
        let place = with_body(body);
        // Also where it runs as one with the source.
        for options in [
            ["--workers", "1"],
            ["--workers", "2"],
            ["--no-fuse", "--stats"],
        ] {
            let run = place.run(&[&["run", TOP], &options[..]].concat());
            run.refuses(1, &[said, "src/p/Bad.cal:7", body, "step", "bad"]);
            assert_eq!(marked(&run.err), fails, "{}", run.err);
        }
        let run = place.run(&["run", TOP, "--no-fuse", "--json"]);
        run.refuses(1, &["in action step of actor bad"]);
        let json = run.json();
        assert_eq!(json["outcome"], "fault");
        assert_eq!(json["code"], "failed");
        assert_eq!(json["fault"]["line"], 7);
        assert_eq!(json["fault"]["action"], "step");
        let source = std::fs::read_to_string(place.path("src/p/Bad.cal")).unwrap();
        let line: Vec<char> = source.lines().nth(6).unwrap().chars().collect();
        let column = |name: &str| json["fault"][name].as_u64().unwrap() as usize;
        let expression = &line[column("column") - 1..column("last_column")];
        assert_eq!(expression.iter().collect::<String>(), fails);
        assert!(
            !json["fault"]["message"]
                .as_str()
                .unwrap()
                .contains("column")
        );
    }
}

/// What the first row of carets in a report stands below.
fn marked(report: &str) -> String {
    let lines: Vec<&str> = report.lines().collect();
    let row = lines
        .iter()
        .position(|l| l.contains('^'))
        .expect("a row of carets");
    let carets = lines[row].chars().enumerate().filter(|(_, c)| *c == '^');
    let columns: Vec<usize> = carets.map(|(i, _)| i).collect();
    let (first, last) = (columns[0], columns[columns.len() - 1]);
    let above = lines[row - 1].chars();
    above.skip(first).take(last - first + 1).collect()
}

#[test]
fn a_line_of_which_a_part_fails_is_not_begun() {
    let place = with_body("println(\"x \" + (10 / (x - x)));");
    for options in [["--workers", "1"], ["--no-fuse", "--stats"]] {
        let run = place.run(&[&["run", TOP], &options[..]].concat());
        run.refuses(1, &["division by zero", "src/p/Bad.cal:7"]);
        assert!(!run.out.contains("x "), "{run:?}");
    }
}

/// Also where it has been joined with others, whose actions end.
#[test]
fn of_joined_actors_the_one_without_end_is_named() {
    let place = Place::new(&[SOURCE]);
    place.write(
        "src/p/Hang.cal",
        "package p;\nactor Hang () int In ==> int Out :\n  function hang(int x, int y) --> int :\n    \
         if y = 0 then x else hang(x * 7 + 1, if y = 3 then 5 else y + 2 end) end\n  end\n  \
         stay: action In:[x] ==> Out:[hang(x, 1)] end\nend\n",
    );
    place.write(
        "src/p/Add.cal",
        "package p;\nactor Add () int In ==> int Out :\n  action In:[x] ==> Out:[x + 1] end\nend\n",
    );
    place.write(
        "src/p/Eat.cal",
        "package p;\nactor Eat () int In ==> :\n  int s := 0;\n  action In:[x] ==> do s := s + x; end\nend\n",
    );
    let net = network(
        &[
            ("source", "p.Source", &[("n", "2000000")]),
            ("add", "p.Add", &[]),
            ("hang", "p.Hang", &[]),
            ("eat", "p.Eat", &[]),
        ],
        &[
            ("source.Out", "add.In"),
            ("add.Out", "hang.In"),
            ("hang.Out", "eat.In"),
        ],
    );
    place.write(TOP, &net);
    let run = place.run(&["run", TOP, "--time-limit", "100"]);
    run.refuses(
        1,
        &[
            "after 100 ms",
            "Hang.cal:6:",
            "hang.stay",
            "whose actors are joined into one",
        ],
    );
}

#[test]
fn an_action_without_end_runs_into_its_time_limit() {
    let place = with_body("while x >= 0 do a[x mod 8] := a[0] + 1; end");
    let run = place.run(&["run", TOP, "--time-limit", "100"]);
    run.refuses(1, &["action step", "actor bad"]);
}

/// An actor of two actions: the first fires once, the second is where it ends. Reports name the
/// second, which is in line 7.
fn ends_in_two(guard: &str, body: &str) -> Run {
    let place = Place::new(&[]);
    let text = format!(
        "package p;\nactor Two () ==> :\n  int i := 0;\n  int z := 0;\n  \
         List(type: int, size=3) m := [1, 2, 3];\n  \
         one: action ==> guard i = 0 do i := 5; end\n  \
         two: action ==> guard {guard} do {body} end\n  \
         three: action ==> guard i = 9 do i := 1; end\nend\n"
    );
    place.write("src/p/Two.cal", &text);
    place.run(&["run", "src/p/Two.cal", "--time-limit", "100"])
}

#[test]
fn an_endless_action_after_another_is_the_one_that_is_named() {
    for body in [
        "while i > 0 do i := 5; end",
        "z := 1; while z > 0 do z := z + 2; if z > 1000 then z := 1; end end",
    ] {
        let run = ends_in_two("i = 5", body);
        run.refuses(1, &["src/p/Two.cal:7", "action two of actor Two"]);
    }
}

#[test]
fn a_fault_in_a_guard_names_its_action() {
    for (guard, said, fails) in [
        ("m[i] = 3", "index 5 of a list of 3", "i"),
        ("7 / z = 3", "division by zero", "7 / z"),
        ("7 mod z = 3", "division by zero", "7 mod z"),
    ] {
        let run = ends_in_two(guard, "i := 0;");
        assert_eq!(marked(&run.err), fails, "{}", run.err);
        run.refuses(1, &[said, "src/p/Two.cal:7", "action two of actor Two"]);
    }
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
    let run = place.run(&["run", TOP]);
    run.refuses(1, &["nothing can move any more", "both", "uneven"]);
    let json = place.run(&["run", TOP, "--json"]).json();
    assert_eq!(json["outcome"], "deadlock");
    assert_eq!(json["code"], "failed");
    assert!(json["why"].as_str().unwrap().contains("both"));
}

#[test]
fn a_circle_without_a_first_element_is_a_deadlock() {
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
    run.refuses(
        1,
        &["in a circle", "the channel two.Out -> one.In is empty"],
    );
    let json = place.run(&["run", TOP, "--no-fuse", "--json"]).json();
    assert_eq!(json["outcome"], "deadlock");
    assert!(json["why"].as_str().unwrap().contains("in a circle"));
}

#[test]
fn a_circle_before_which_elements_lie_is_a_deadlock() {
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

/// Numbers from 1 to `n`, written to a file; `more` is done with each.
fn numbers_to_a_file(n: &str, more: &str) -> Place {
    let place = Place::new(&[SOURCE]);
    place.write(
        "src/p/Write.cal",
        &format!(
            "package p;\nimport levada.io.*;\nactor Write () int In ==> :\n  @native procedure \
             trip() end\n  action In:[x] ==> do io_write_number(x); {more} end\nend\n"
        ),
    );
    let instances: &[Instance] = &[
        ("source", "p.Source", &[("n", n)]),
        ("write", "p.Write", &[]),
    ];
    place.write(TOP, &network(instances, &[("source.Out", "write.In")]));
    place
}

#[test]
fn an_output_that_cannot_be_completed_fails_the_run() {
    // Its final name becomes a folder while it is written.
    let place = numbers_to_a_file("3", "trip();");
    place.write(
        "natives/trip.c",
        "#include <sys/stat.h>\nvoid trip(void);\nvoid trip(void) { mkdir(\"n.txt\", 0777); }\n",
    );
    let run = place.run(&["run", TOP, "--out", "n.txt"]);
    run.refuses(1, &["error: cannot write n.txt: Is a directory", "failed:"]);
    assert!(
        !run.err.contains("kept") && !run.err.contains("output "),
        "{run:?}"
    );
    assert_eq!(place.list("."), ["n.txt", "natives", "src"]);
    assert!(place.list("n.txt").is_empty());
    let json = place.run(&["run", TOP, "--out", "m.txt", "--json"]);
    json.succeeds();
    // A full disk.
    let place = numbers_to_a_file("100000", "");
    let run = place.run(&["run", TOP, "--out", "/dev/full", "--json"]);
    run.refuses(1, &["cannot write", "No space left on device"]);
    assert_eq!(run.json()["outcome"], "failed");
    assert_eq!(run.json()["code"], "failed");
}

#[test]
fn a_first_firing_that_fails_is_one_that_began() {
    let place = Place::new(&[(
        "Bad.cal",
        "actor Bad () ==> :\n  int x := 0;\n  action ==> do println(1 / x); end\nend\n",
    )]);
    let run = place.run(&["run", "Bad.cal", "--json"]);
    run.refuses(1, &["division by zero"]);
    let json = run.json();
    assert_eq!(
        (&json["outcome"], &json["code"]),
        (&"fault".into(), &"failed".into())
    );
    assert!(json["never_fired"].is_null(), "{json}");
}

#[test]
fn inputs_that_are_not_what_they_should_be() {
    let place = Place::new(&[]);
    place.write(
        "src/p/Top.cal",
        "package p;\nimport levada.io.*;\nactor Top () ==> :\n  initialize ==> do io_open(); end\n  \
         action ==> guard io_more() do io_write_number(io_read_number()); end\nend\n",
    );
    let top = "src/p/Top.cal";
    for (text, said) in [
        (
            "1\n2\nthree\n",
            "in.txt, line 3: \"three\" is not a whole number",
        ),
        (
            "1 # one\n0x10\n",
            "in.txt, line 2: \"0x10\" is not a whole number",
        ),
        (
            "\u{1b}[31m\u{7f}",
            "in.txt, line 1: \"?[31m?\" is not a whole number",
        ),
        (
            "9223372036854775808\n",
            "9223372036854775808 does not fit into 64 bits",
        ),
        // A zero byte ends no number, and none is read as two.
        (
            "7\x0012\n",
            "in.txt, line 1: \"7?12\" is not a whole number",
        ),
        (
            "00000000000000000000000000000000000000000012\n",
            "in.txt, line 1: 0000000000000000000000000000000... is too long for a number",
        ),
    ] {
        place.write("in.txt", text);
        let run = place.run(&["run", top, "--in", "in.txt", "--out", "out.txt"]);
        run.refuses(1, &["error: ", said, "failed: p.Top was stopped"]);
        // It is no fault of the actor's: its source is not shown.
        assert!(!run.err.contains("Top.cal"), "{run:?}");
        assert_eq!(place.list("."), ["in.txt", "src"]);
    }
    let run = place.run(&["run", top, "--out", "out.txt"]);
    run.refuses(1, &["no input: name a file with --in FILE"]);
    place.write("in.txt", "# nothing\n");
    place
        .run(&["run", top, "--in", "in.txt", "--out", "out.txt"])
        .succeeds();
    assert_eq!(std::fs::read(place.path("out.txt")).unwrap(), b"");
}

#[test]
fn sources_that_never_end_are_refused() {
    let place = Place::new(&[]);
    let nested = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    place.write(
        "a.cal",
        &format!("actor a () ==> : int x := {nested}; end\n"),
    );
    place.write(
        "b.cal",
        &format!(
            "actor b () ==> : int x := {}1; end\n",
            "1 + ".repeat(100_000)
        ),
    );
    place.write(
        "c.xdf",
        &format!("<XDF name=\"c\">{}</XDF>", "<a>".repeat(100_000)),
    );
    let ifs = format!(
        "{}x := 1;{}",
        "if true then ".repeat(10_000),
        " end".repeat(10_000)
    );
    place.write(
        "d.cal",
        &format!("actor d () ==> : int x; action ==> do {ifs} end end\n"),
    );
    std::fs::write(place.path("e.cal"), [0xff, 0xfe, 0, 1]).unwrap();
    for file in ["a.cal", "b.cal", "c.xdf", "d.cal", "e.cal"] {
        place.run(&["check", file]).refuses(1, &["error"]);
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_run_and_leaves_nothing() {
    let place = numbers_to_a_file("2000000000", "println(x);");
    let mut child = place
        .command(&["run", TOP, "--out", "numbers.txt"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 100];
    let mut out = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut out, &mut some).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + libc::SIGPIPE));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(place.list("."), ["src"]);
}

#[test]
fn an_interrupt_stops_cleanly_and_leaves_no_partial_output() {
    let place = numbers_to_a_file("2000000000", "");
    for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let child = place
            .command(&["run", TOP, "--out", "numbers.txt", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Until it writes: a file has appeared in the folder.
        for _ in 0..6000 {
            if place.list(".").len() > 1 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(50));
        // SAFETY: the child is ours and has not been waited for.
        unsafe { libc::kill(child.id() as i32, signal) };
        let run = Run::new(child.wait_with_output().unwrap());
        assert_eq!(run.code, Some(code), "{run:?}");
        let json = run.json();
        assert_eq!(json["outcome"], "interrupted");
        assert_eq!(json["code"], "interrupted");
        assert_eq!(place.list("."), ["src"], "{run:?}");
    }
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
    let mut program = std::process::Command::new(place.path("top"));
    assert!(program.status().unwrap().success());
}

/// The system's limits of CPU time and of a file's size end a run with a message and a status.
#[test]
fn limits_of_the_system_are_named() {
    let place = sources();
    for (kind, limit, code, said) in [
        (
            libc::RLIMIT_CPU,
            2,
            128 + libc::SIGXCPU,
            [
                "error: the limit of CPU time is reached (ulimit -t)",
                "interrupted:",
            ],
        ),
        (
            libc::RLIMIT_FSIZE,
            1 << 20,
            1,
            ["cannot write many.txt: File too large", "failed:"],
        ),
    ] {
        // What is compiled takes CPU time, and files, too.
        place
            .run(&["build", "src/p/Many.xdf", "--emit", "so"])
            .succeeds();
        let out = match kind {
            libc::RLIMIT_CPU => "/dev/null",
            _ => "many.txt",
        };
        let mut command = place.command(&["run", "src/p/Many.xdf", "--out", out]);
        let set = move || {
            let limit = libc::rlimit {
                rlim_cur: limit,
                rlim_max: libc::RLIM_INFINITY,
            };
            // SAFETY: of the child alone.
            match unsafe { libc::setrlimit(kind, &limit) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: what it calls may be called there.
        let run = Run::new(unsafe { command.pre_exec(set) }.output().unwrap());
        run.refuses(code, &said);
        assert!(!place.exists("many.txt"), "{run:?}");
    }
}
