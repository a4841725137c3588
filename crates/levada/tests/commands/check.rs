// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada check`, and of sources with errors.
//!
//! Wrong input: CAL files with errors of every stage, XDF files with errors, sources that are empty, truncated, not
//! text, deeply nested or endless. (Networks with errors: crates/levada-cal/tests/xdf; CAL with errors: the compiler's
//! tests; pictures with errors: examples/jpeg.)

use crate::common::host::TOP;
use crate::common::{Place, numbers};

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
    place.write(
        "src/p/Source.cal",
        "package p;\nactor Source (int n) ==> int Out :\n  action ==> Out:[a] end\n  \
         action ==> Out:[b] end\nend\n",
    );
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
