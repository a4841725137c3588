// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of actions that fail or do not end: the report names the actor, the action and the line.
//!
//! Faults: an index out of bounds, a division by zero, in actions and in guards; an endless action, alone and fused.

use crate::common::host::TOP;
use crate::common::{Place, Run, SOURCE, network};

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

#[test]
fn a_line_of_which_a_part_fails_is_not_begun() {
    let place = with_body("println(\"x \" + (10 / (x - x)));");
    for options in [["--workers", "1"], ["--no-fuse", "--stats"]] {
        let run = place.run(&[&["run", TOP], &options[..]].concat());
        run.refuses(1, &["division by zero", "src/p/Bad.cal:7"]);
        assert!(!run.out.contains("x "), "{run:?}");
    }
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

/// Also where it has been joined with other actors, and their actions end.
#[test]
fn endless_action_of_a_fused_actor_is_named() {
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
    let run = place.run(&["run", TOP, "--action-time-limit", "100"]);
    run.refuses(
        1,
        &[
            "after 100 ms",
            "Hang.cal:6:",
            "hang.stay",
            "(their actors are joined into one)",
        ],
    );
}

#[test]
fn an_action_without_end_runs_into_its_time_limit() {
    let place = with_body("while x >= 0 do a[x mod 8] := a[0] + 1; end");
    let run = place.run(&["run", TOP, "--action-time-limit", "100"]);
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
    place.run(&["run", "src/p/Two.cal", "--action-time-limit", "100"])
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
