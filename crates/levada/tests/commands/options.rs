// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `--in`, `--out` and `--option`, and of the files that natives create and remove.
//!
//! Wrong input: options that no native uses, invalid rates, frames of another size or sampling, partial files of a
//! process that was killed; numbers that are none or too large, and no input.

use crate::common::{Place, numbers};
use std::process::Command;
use std::time::Duration;

const VIDEO: &str = "src/p/Video.cal";

/// Two frames of 4 by 4 with colours of 2 by 2; the second one of `w` by `w` with colours of `c` by `c`.
fn video() -> Place {
    Place::new(&[(
        VIDEO,
        "package p;\nimport levada.io.*;\nactor Video (int w = 4, int c = 2) ==> :\n  int n := 0;\n  \
         one: action ==> guard n = 0 do\n    io_video_begin(4, 4, 2, 2, 2, 2);\n    \
         io_video_end();\n    n := 1;\n  end\n  \
         two: action ==> guard n = 1 do\n    io_video_begin(w, w, c, c, c, c);\n    \
         io_video_end();\n    n := 2;\n  end\nend\n",
    )])
}

#[test]
fn a_rate_is_frames_or_frames_and_seconds() {
    let place = video();
    let run = |rate: &str| {
        let option = format!("rate={rate}");
        place.run(&["run", VIDEO, "--out", "out.y4m", "--option", &option])
    };
    for (rate, written) in [("30", "F30:1 "), ("30000:1001", "F30000:1001 ")] {
        run(rate).succeeds();
        let video = std::fs::read(place.path("out.y4m")).unwrap();
        let header = String::from_utf8_lossy(&video[..60]).into_owned();
        assert!(header.contains(written), "{header}");
        std::fs::remove_file(place.path("out.y4m")).unwrap();
    }
    for rate in [
        "-5",
        "+5",
        " 5",
        "",
        "0",
        "25xyz",
        "25:",
        ":25",
        "25:0",
        "25:1:1",
        "1000000000000",
        "4294967296",
        "18446744073709551617",
        "2.5",
    ] {
        run(rate).refuses(1, &[&format!("the rate \"{rate}\" is neither")]);
        assert_eq!(place.list("."), ["src"], "{rate}");
    }
}

#[test]
fn an_option_that_nothing_asks_for_is_refused() {
    let place = video();
    let run = place.run(&["run", VIDEO, "--out", "out.y4m", "--option", "rat=30"]);
    run.refuses(
        1,
        &[
            "--option rat=30: nothing in this network asks for rat",
            "it has rate",
        ],
    );
    assert!(!place.exists("out.y4m"));
    let run = place.run(&["run", VIDEO, "--option", "rat=30", "--json"]);
    assert_eq!(run.json()["outcome"], "refused");
    let place = numbers();
    let run = place.run(&["run", "src/p/Top.xdf", "--option", "rate=30"]);
    run.refuses(1, &["nothing in this network asks for rate"]);
    // Files are often given by habit: a file that is not read causes a warning only.
    place.write("in.txt", "");
    let run = place.run(&[
        "run",
        "src/p/Top.xdf",
        "--in",
        "in.txt",
        "--out",
        "out",
        "--json",
    ]);
    run.succeeds();
    let found = run.json()["diagnostics"].to_string();
    for said in [
        "--in: nothing in this network reads it",
        "--out: nothing in",
    ] {
        assert!(found.contains(said) && run.err.contains(said), "{run:?}");
    }
}

#[test]
fn a_frame_that_does_not_fit_is_told_by_what_differs() {
    let place = video();
    let run = |set: &str| place.run(&["run", VIDEO, "--out", "out.y4m", "--set", set]);
    let said = "picture 2 is of another sampling (4:4:4) than those before it (4:2:0)";
    run("c=4").refuses(1, &[said]);
    let said = "picture 2 is of another sampling (colours of 3x3 and 3x3) than those before it";
    run("c=3").refuses(1, &[said]);
    let said = "picture 2 is of another size (3x3) than those before it (4x4)";
    run("w=3").refuses(1, &[said]);
}

#[test]
fn what_a_killed_process_has_left_is_removed() {
    let place = video();
    let mut child = Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    // Dead, too, although its parent has not waited for it.
    let mut child = Command::new("true").spawn().unwrap();
    let zombie = child.id();
    let stat = || std::fs::read_to_string(format!("/proc/{zombie}/stat")).unwrap();
    while !stat().contains(") Z ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    place.write(&format!("out.y4m.part-{zombie}-0"), "half of it");
    let alive = std::process::id();
    let kept = [
        format!("out.y4m.part-{alive}-0"),
        format!("out.y4m.part-{dead}-0x"),
        format!("out.y4m.part-99999999999-{dead}"),
        format!("ut.y4m.part-{dead}-0"),
    ];
    for name in &kept {
        place.write(name, "");
    }
    for i in 0..2 {
        place.write(&format!("out.y4m.part-{dead}-{i}"), "half of it");
    }
    place.run(&["run", VIDEO, "--out", "out.y4m"]).succeeds();
    let mut expected: Vec<&str> = kept.iter().map(String::as_str).collect();
    expected.extend(["out.y4m", "src"]);
    expected.sort();
    assert_eq!(place.list("."), expected);
    child.wait().unwrap();
}

#[test]
fn output_through_a_symbolic_link_keeps_the_link() {
    let place = video();
    place.write("real.y4m", "old");
    place.write("real.svg", "");
    for (link, real, wanted) in [
        ("link.y4m", "real.y4m", "run"),
        ("graph.svg", "real.svg", "graph"),
    ] {
        std::os::unix::fs::symlink(real, place.path(link)).unwrap();
        match wanted {
            "run" => place.run(&["run", VIDEO, "--out", link]).succeeds(),
            _ => place.run(&["graph", VIDEO, "--svg", link]).succeeds(),
        };
        let meta = std::fs::symlink_metadata(place.path(link)).unwrap();
        assert!(meta.is_symlink(), "{link}");
        let written = std::fs::read(place.path(real)).unwrap();
        assert!(written.len() > 3, "{link}");
    }
    assert_eq!(
        place.list("."),
        ["graph.svg", "link.y4m", "real.svg", "real.y4m", "src"]
    );
}

/// A negative number is a wrong value of the option that it follows, and no option of its own.
#[test]
fn a_negative_number_is_told_to_be_no_value() {
    let place = Place::new(&[]);
    for (command, option, part) in [
        ("load", "--rate", "write a number from 0.001"),
        ("load", "--cpus", "write a number from 0.001"),
        ("load", "--memory", "such as 500000"),
        ("load", "--timeout", "write a number from 0.05"),
        ("run", "--workers", "write a whole number from 1"),
        ("run", "--spin", "write a whole number from 0"),
    ] {
        let told = place.run(&[command, "x.xdf", option, "-1"]);
        told.refuses(2, &[option, "'-1'", part]);
        assert!(!told.err.contains("tip"), "{told:?}");
    }
}

#[test]
fn invalid_inputs_are_refused() {
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
