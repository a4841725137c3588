// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of requests to load an application: its name, how it is compiled, and what is refused before anything changes.
//!
//! Wrong input: networks with errors, files that do not exist or are no networks, names that are invalid or taken,
//! inputs and outputs that cannot be used, options that no native uses, limits that are too low.

use crate::common;
use crate::common::host::{Host, TOP, sources};
use crate::common::network;

#[test]
fn load_errors_are_reported_before_anything_changes() {
    let host = Host::begin();
    host.run(&["load", TOP, "--name", "a", "--paused"])
        .succeeds();
    host.place.write(
        "src/p/Odd.cal",
        "package p;\nactor Odd () ==> :\n  action ==> do y := 1; end\nend\n",
    );
    host.place.write("prog.c", "int main(void) { return 0; }\n");
    let odd = host.run(&["load", "src/p/Odd.cal"]);
    odd.refuses(1, &["Odd.cal:3", "y := 1", "1 error"]);
    let json = host.run(&["load", "src/p/Odd.cal", "--json"]);
    json.refuses(1, &[]);
    assert_eq!(json.json()["diagnostics"][0]["severity"], "error");
    for (args, parts) in [
        (
            vec!["src/p/None.xdf"],
            &["there is no file src/p/None.xdf"][..],
        ),
        (vec![TOP, "--name", "a"], &["a is loaded already", "--name"]),
        (vec![TOP, "--name", "../a"], &["is not a valid name"]),
        (vec![TOP, "--in", "none.txt"], &["--in none.txt"]),
        (vec![TOP, "--out", "none/x"], &["there is no folder"]),
        (
            vec![TOP, "--out", "-"],
            &["has no input or output of yours"],
        ),
        (
            vec![TOP, "--option", "out=-"],
            &["--option out=-", "write --out"],
        ),
        (vec![TOP, "--option", "in=none.txt"], &["write --in"]),
        (
            vec![TOP, "--option", "x=1"],
            &["nothing in this network asks for x"],
        ),
        (vec![TOP, "--memory", "4K"], &["claims", "may have 4096"]),
        (vec!["--", "--help"], &["names no network"]),
        (
            vec!["prog.c"],
            &[
                "prog.c is a C source",
                "levada cc --plugin -O2 prog.c -o prog.so",
            ],
        ),
    ] {
        let mut all = vec!["load", "--socket", "h.sock"];
        all.extend(args);
        let run = host.place.run(&all);
        // Wrong by itself, not to be asked for, taken, or too large.
        assert!(matches!(run.code, Some(1 | 3 | 5 | 6)), "{run:#?}");
        run.refuses(run.code.unwrap(), parts);
    }
    let all = host.json(&["list"]);
    assert_eq!(all.as_array().map(Vec::len), Some(1));
    assert_eq!(all[0]["state"], "loaded");
    host.run(&["unload", "a"]).succeeds();
}

#[test]
fn an_unnamed_application_gets_a_unique_name() {
    let host = Host::begin();
    let load = ["load", "src/p/Many.xdf", "--out", "/dev/null"];
    host.run(&load).succeeds();
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| host.run(&load).succeeds().out.clone());
        }
    });
    assert_eq!(host.json(&["list"]).as_array().map(Vec::len), Some(6));
    let one = |name: &str| {
        format!("[[application]]\nnetwork = \"src/p/Top.xdf\"\nout = \"/dev/null\"\n{name}\n")
    };
    let both = one("") + &one("name = \"Top\"");
    host.place.write("both.toml", &both);
    host.run(&["load", "both.toml"]).succeeds();
    for name in ["Top", "Top-2"] {
        host.until(name, |a| a["state"] == "ended");
    }
}

#[test]
fn what_is_said_of_compiling_reaches_the_compiler() {
    let host = Host::begin();
    host.place.write(
        "src/p/Far.cal",
        "package p;\nactor Far () int In ==> int Out :\n  List(type: int, size=2) a := [7, 8];\n  \
         action In:[x] ==> Out:[a[x + 4]] end\nend\n",
    );
    let far = network(
        &[
            ("source", "p.Source", &[("n", "3")]),
            ("far", "p.Far", &[]),
            ("write", "p.Write", &[]),
        ],
        &[("source.Out", "far.In"), ("far.Out", "write.In")],
    );
    host.place
        .write("src/p/Far1.xdf", &far.replace("\"Top\"", "\"Far1\""));
    for (outside, state) in [("fault", "failed"), ("clamp", "ended")] {
        let outside = format!("--out-of-bounds={outside}");
        let seed = "--random-buffer-sizes=7";
        host.run(&[
            "load",
            "src/p/Far1.xdf",
            "--name=a",
            "--out=a.txt",
            &outside,
            seed,
        ])
        .succeeds();
        let seen = host.until("a", |a| a["state"] == "ended" || a["state"] == "failed");
        assert_eq!(seen["state"], state, "{seen}");
    }
    let text = std::fs::read_to_string(host.place.path("a.txt")).unwrap();
    assert_eq!(text, "8\n8\n8\n");
    let directory = host.place.path("");
    let body =
        serde_json::json!({"network": TOP, "directory": directory, "out_of_bounds": "sideways"});
    let answer = host.post("/applications", &body.to_string());
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("sideways"),
        "{answer}"
    );
}

/// After an upgrade the host's file is gone: the host still compiles natives that fork.
#[test]
fn a_host_with_a_removed_file_compiles_all() {
    let place = sources();
    place.write(
        "src/p/Fib.cal",
        "package p;\nactor Fib () ==> int Out :\n  @native function fib_of_old(int n) --> int end\n  \
         int n := 0;\n  action ==> Out:[fib_of_old(20)] guard n < 1 do n := n + 1; end\nend\n",
    );
    place.write(
        "natives/fib.c",
        "#include <stdint.h>\nint32_t fib_of_old(int32_t n);\nint32_t fib_of_old(int32_t n) {\n  \
         if (n < 2) return n;\n  int32_t y, x = fib_of_old(n - 1) !! { y = fib_of_old(n - 2); }\n  \
         return x + y;\n}\n",
    );
    let fib = network(
        &[("fib", "p.Fib", &[]), ("write", "p.Write", &[])],
        &[("fib.Out", "write.In")],
    );
    place.write("src/p/Old.xdf", &fib.replace("\"Top\"", "\"Old\""));
    let old = place.path("old");
    common::copy_program(env!("CARGO_BIN_EXE_levada"), &old);
    let program = old.to_str().unwrap().to_string();
    let host = Host::begin_as(place, &program, &[]);
    std::fs::remove_file(&old).unwrap();
    // What an earlier run has compiled must not be taken.
    let salt = format!("\n/* {old:?} */\n");
    let path = host.place.path("natives/fib.c");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text + &salt).unwrap();
    host.run(&["load", "src/p/Old.xdf", "--name=a", "--out=a.txt"])
        .succeeds();
    host.until("a", |a| a["state"] == "ended");
    let text = std::fs::read_to_string(host.place.path("a.txt")).unwrap();
    assert_eq!(text, "6765\n");
}
