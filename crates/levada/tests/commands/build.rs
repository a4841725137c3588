// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada build`: C sources, objects and programs, and the headers and the library they are made with.

use crate::common;
use crate::common::host::TOP;
use crate::common::{network, numbers};
use std::process::Command;

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
    // Nothing but what was compiled, and the entry that names it, is left in the cache.
    for name in place.list("cache") {
        let (stem, kind) = name.split_once('.').unwrap();
        assert!(["so", "o", "prepared"].contains(&kind), "{name}");
        assert!(stem.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
    }
}

#[test]
fn runtime_symbols_are_exported_to_loaded_objects() {
    let symbols = Command::new("nm")
        .args(["-D", "--defined-only", env!("CARGO_BIN_EXE_levada")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&symbols.stdout).into_owned();
    for name in [
        "lvd_actor_fail",
        "lvd_app_option",
        "lvd_native_fail",
        "lvd_app_exit",
        "lvd_app_set_quiescent_ok",
    ] {
        assert!(text.contains(&format!(" T {name}\n")), "{name}");
    }
}

/// A network with much C is one file where a file is named, and several in a folder that is.
#[test]
fn c_sources_are_written_into_the_requested_folder() {
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
