// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of standard streams and named pipes: open, idle, closed, or full.

use crate::common::host::{TOP, sources};
use crate::common::{Instance, PRINT, Place, Run, SOURCE, network, numbers, spawn_piped, without};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// A named pipe with its other end not open yet delays no other actor, at either end of a network.
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
        let (child, mut input, mut lines) =
            spawn_piped(&mut place.command(&["run", TOP, "--in", "-", "--workers", "1"]));
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
            let mut command = if built {
                Command::new(place.path("top"))
            } else {
                place.command(&["run", TOP])
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
