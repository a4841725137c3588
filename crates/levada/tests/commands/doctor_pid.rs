// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada doctor --pid`: its report on a running program, which must not be disturbed, and its errors.

use crate::common;
use crate::common::{Place, Run, skipped};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

const FIBERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/gdb/fibers.c");
/// What its fibers wait for.
const WAITS: [(&str, &str); 5] = [
    ("digger", "an event"),
    ("sleeper", "a time"),
    ("reader", "1 element of the stream numbers (0 of 64)"),
    ("writer", "room for 1 in the stream full (8 of 8)"),
    ("joiner", "the end of digger"),
];

fn doctor(place: &Place, pid: impl ToString) -> Run {
    place.run(&["doctor", "--pid", &pid.to_string()])
}

/// A program of ours: all of its fibers wait, until its input ends.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
}

impl Program {
    fn new(place: &Place) -> Program {
        place
            .run(&["cc", "-g", "-O1", FIBERS, "-o", "fibers"])
            .succeeds();
        let mut child = Command::new(place.path("fibers"))
            .arg("stay")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut said).unwrap();
        assert_eq!(said, "all wait\n");
        let input = child.stdin.take();
        Program { child, input }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: it is our child, and not waited for yet.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    /// One letter, as the system has it: T is stopped.
    fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let (_, after) = stat.rsplit_once(") ").unwrap();
        after.chars().next().unwrap()
    }

    fn end(mut self) -> ExitStatus {
        drop(self.input.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn check_shown(run: &Run) {
    run.succeeds();
    assert!(run.err.is_empty(), "{run:#?}");
    let mut lines = run.out.lines();
    assert_eq!(lines.next(), Some("worker  core  runs"), "{run:#?}");
    assert!(lines.next().unwrap().ends_with(" -"), "{run:#?}");
    for (name, waits) in WAITS {
        let line = run.out.lines().find(|l| l.contains(&format!("  {name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {run:#?}"));
        assert!(line.contains("  idle  ") && line.ends_with(waits), "{line}");
    }
    let numbered = |l: &&str| l.contains("  idle  ");
    assert_eq!(run.out.lines().filter(numbered).count(), WAITS.len());
}

/// Can gdb look into another process here? If not, it is said once for each test.
fn can_look(place: &Place, test: &str) -> bool {
    if Command::new("gdb").arg("--version").output().is_err() {
        skipped(test, "gdb is not installed");
        return false;
    }
    let mut sleeps = Command::new("sleep").arg("100").spawn().unwrap();
    let run = doctor(place, sleeps.id());
    sleeps.kill().unwrap();
    sleeps.wait().unwrap();
    let may = !run.err.contains("does not let you look");
    if !may {
        skipped(test, "this machine does not let gdb attach");
    }
    may
}

#[test]
fn shows_a_program_that_goes_on_after_it() {
    let place = Place::new(&[]);
    if !can_look(&place, "shows_a_program_that_goes_on_after_it") {
        return;
    }
    let program = Program::new(&place);
    for _ in 0..2 {
        check_shown(&doctor(&place, program.pid()));
    }
    assert!(program.end().success());
}

#[test]
fn leaves_a_stopped_program_stopped() {
    let place = Place::new(&[]);
    if !can_look(&place, "leaves_a_stopped_program_stopped") {
        return;
    }
    let program = Program::new(&place);
    program.signal(libc::SIGSTOP);
    while program.state() != 'T' {
        std::thread::yield_now();
    }
    check_shown(&doctor(&place, program.pid()));
    assert_eq!(program.state(), 'T');
    program.signal(libc::SIGCONT);
    assert!(program.end().success());
}

#[test]
fn says_what_is_no_program_of_levadas() {
    let place = Place::new(&[]);
    if !can_look(&place, "says_what_is_no_program_of_levadas") {
        return;
    }
    let refuses = |pid: u32, parts: &[&str]| {
        let run = doctor(&place, pid);
        run.refuses(1, parts);
        assert!(run.out.is_empty(), "{run:#?}");
    };
    let mut sleeps = Command::new("sleep").arg("100").spawn().unwrap();
    refuses(sleeps.id(), &["has no workers of Levada's"]);
    assert!(sleeps.try_wait().unwrap().is_none(), "it sleeps on");
    sleeps.kill().unwrap();
    // Ended, and not waited for; then it is no more.
    let stat = format!("/proc/{}/stat", sleeps.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    refuses(sleeps.id(), &["has ended"]);
    sleeps.wait().unwrap();
    refuses(sleeps.id(), &["there is no process"]);
    // More than any process's number.
    refuses(1 << 30, &["there is no process 1073741824"]);
    refuses(0, &["there is no process 0"]);
    // Without what names its fields.
    place
        .run(&["cc", "-O1", FIBERS, "-s", "-o", "stripped"])
        .succeeds();
    let mut stripped = Command::new(place.path("stripped"))
        .arg("stay")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    refuses(stripped.id(), &["has no workers", "(stripped)"]);
    drop(stripped.stdin.take());
    assert!(stripped.wait().unwrap().success());
}

#[test]
fn an_existing_debugger_is_reported() {
    let place = Place::new(&[]);
    if !can_look(&place, "says_who_debugs_it_already") {
        return;
    }
    let program = Program::new(&place);
    let pid = program.pid() as i32;
    let no = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: it is our child; it is let go of below, by the same thread.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, no, no) };
    assert_eq!(seized, 0);
    // SAFETY: no arguments. The tracer is a thread.
    let us = format!("is being debugged by process {}", unsafe { libc::gettid() });
    doctor(&place, pid).refuses(1, &[&us]);
    // SAFETY: as above; it is interrupted first, since only what is stopped can be let go.
    unsafe {
        libc::ptrace(libc::PTRACE_INTERRUPT, pid, no, no);
        libc::waitpid(pid, &mut 0, libc::__WALL);
        assert_eq!(libc::ptrace(libc::PTRACE_DETACH, pid, no, no), 0);
    }
    check_shown(&doctor(&place, pid));
    assert!(program.end().success());
}

/// As another user, on a program of ours; or, if we cannot change the user, on process 1.
#[test]
fn a_process_of_another_user_is_reported() {
    const TEST: &str = "says_that_it_is_another_users";
    let place = Place::new(&[]);
    if !can_look(&place, TEST) {
        return;
    }
    let refused = "the system does not let you look into process";
    // SAFETY: it only asks.
    if unsafe { libc::geteuid() } != 0 {
        return doctor(&place, 1).refuses(1, &[refused, "it must be yours"]);
    }
    let program = Program::new(&place);
    let open = |path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    let copy = place.path("levada-for-all");
    common::copy_program(env!("CARGO_BIN_EXE_levada"), &copy);
    open(copy.clone());
    open(place.path(""));
    let output = Command::new(copy)
        .args(["doctor", "--pid", &program.pid().to_string()])
        .current_dir("/")
        .env("HOME", "/")
        .uid(65534)
        .gid(65534)
        .output();
    match output {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(refused), "{said}");
            assert!(output.stdout.is_empty());
        }
        Err(why) => skipped(
            TEST,
            &format!("no program can be started as another user: {why}"),
        ),
    }
    assert!(program.end().success());
}

#[test]
fn says_that_gdb_is_missing_and_what_is_no_number() {
    let place = Place::new(&[]);
    let empty = place.path("bin");
    std::fs::create_dir(&empty).unwrap();
    let mut without = place.command(&["doctor", "--pid", "1"]);
    let output = without.env("PATH", &empty).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("gdb, which looks into the process, is not installed"),
        "{said}"
    );
    for wrong in ["x", "", "4294967296"] {
        doctor(&place, wrong).refuses(2, &["--pid"]);
    }
}
