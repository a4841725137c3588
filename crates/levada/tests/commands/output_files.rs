// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the files that are written: each is complete or absent, also after an interrupt, a closed reader, a full
//! disk or a limit of the system; and none replaces a file that Levada did not make, or that the run reads.

use crate::common::host::{READ, TOP, sources};
use crate::common::{Instance, Place, Run, SOURCE, network, numbers};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

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
