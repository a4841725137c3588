// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the command line itself: its completions and manual, and wrong usage.
//!
//! Wrong input: no command, an unknown command, option or shell; invalid numbers of workers and time limits; settings
//! without a name; with JSON, too.

use crate::common::host::TOP;
use crate::common::numbers;

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
        (vec!["run", TOP, "--action-time-limit", "-1"], "-1"),
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
fn with_json_errors_are_json_too() {
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
