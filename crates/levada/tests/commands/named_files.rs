// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the networks, files and folders that a command line names.
//!
//! Wrong input: networks that do not exist, folders, foreign files, files that share their name with another,
//! impossible names, unknown classes; inputs, outputs and folders that do not exist; outputs that are folders or cannot
//! be written; a device as the name of a program.

use crate::common::host::TOP;
use crate::common::{network, numbers};
use std::process::Command;

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
                "levada cc --plugin -O2 src/prog.c -o src/prog.so",
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
fn named_file_is_used_if_two_share_its_name() {
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
        let program = Command::new(place.path("same")).output();
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
