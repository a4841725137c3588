// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of C programs in a host: forks, remote procedures and streams on the workers shared with networks.

use crate::common;
use crate::common::Place;
use crate::common::host::{Host, compiled, sources};
use std::time::{Duration, Instant};

/// Writes what it has computed into the file that its first argument names, and returns the third; with
/// `wait` it makes the file `begun`, and goes on until the file `go` is there.
const PROGRAM: &str = r#"
#include <levada/fork.h>
#include <levada/srpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int runs;
int fib(int n) {
  int a, b;
  if (n < 2) return n;
  a = fib(n - 1) !! { b = fib(n - 2); }
  return a + b;
}
static void count(void) {
  stream_create(1);
  for (int i = 0; i < 20000; i++) { stream_put(1, i); stream_push(1); }
}
PB_PROCEDURE(count)
int main(int argc, char **argv) {
  if (argc < 3) return 90;
  if (runs++) return 91;
  int n = fib(atoi(argv[2]));
  TASKID t = pb_create("count", 0);
  if (stream_create(1) != LVD_OK || pb_rpc(t) != LVD_OK) return 92;
  long sum = 0;
  for (int x; stream_get(1, x) == LVD_OK; sum += x) stream_pop(1);
  if (argc > 3 && strcmp(argv[3], "wait") == 0) {
    fclose(fopen("begun", "w"));
    while (access("go", F_OK) && lvd_fiber_sleep(1000000) == LVD_OK) {}
  }
  if (argc > 3 && strcmp(argv[3], "crash") == 0) *(volatile int *)8 = 1;
  FILE *f = fopen(argv[1], "w");
  fprintf(f, "%d %ld\n", n, sum);
  fclose(f);
  if (pb_finish() != LVD_OK) return 93;
  return argc > 3 ? atoi(argv[3]) : 0;
}
"#;

fn programs() -> Place {
    let place = sources();
    compiled(&place, "libwork", PROGRAM);
    place
}

fn load(host: &Host, name: &str, more: &[&str], arguments: &[&str]) {
    let mut args = vec!["load", "libwork.so", "--name", name, "--socket", "h.sock"];
    args.extend(more);
    args.push("--");
    args.extend(arguments);
    host.place.run(&args).succeeds();
}

#[test]
fn programs_run_with_networks_and_each_other() {
    let host = Host::begin_in(programs());
    host.many("network");
    let names: Vec<String> = (0..8).map(|i| format!("p{i}")).collect();
    for (i, name) in names.iter().enumerate() {
        let isolated: &[&str] = if i % 4 == 3 { &["--isolate"] } else { &[] };
        let file = host.place.path(&format!("{name}.txt"));
        load(&host, name, isolated, &[&file.to_string_lossy(), "15"]);
    }
    for name in &names {
        let ended = host.until(name, |a| a["outcome"].is_string());
        assert_eq!(ended["outcome"], "done");
        assert_eq!(ended["network"], "work");
        let text = std::fs::read_to_string(host.place.path(&format!("{name}.txt"))).unwrap();
        assert_eq!(text, "610 199990000\n");
    }
    let before = host.seen("network")["firings"].as_u64();
    host.until("network", |a| a["firings"].as_u64() > before);
}

#[test]
fn how_main_ends_is_how_the_application_ends() {
    let host = Host::begin_in(programs());
    load(&host, "three", &[], &["/dev/null", "5", "3"]);
    load(&host, "crash", &[], &["/dev/null", "5", "crash"]);
    load(&host, "few", &[], &[]);
    let outcome = |name: &str| {
        let ended = host.until(name, |a| a["state"] == "failed");
        ended["outcome"].as_str().unwrap().to_string()
    };
    assert!(outcome("three").contains("main has returned 3"));
    assert!(outcome("few").contains("main has returned 90"));
    let crash = outcome("crash");
    assert!(crash.contains("memory"), "{crash}");
}

#[test]
fn computations_of_programs_are_counted() {
    let host = Host::begin_in(programs());
    load(&host, "busy", &[], &["/dev/null", "41"]);
    let ended = host.until("busy", |a| a["outcome"].is_string());
    assert!(ended["busy"].as_f64() >= Some(0.05), "{ended}");
}

#[test]
fn one_that_waits_is_paused_and_stopped() {
    let host = Host::begin_in(programs());
    let go = host.place.path("go.txt");
    load(&host, "waits", &[], &[&go.to_string_lossy(), "5", "wait"]);
    host.run(&["pause", "waits"]).succeeds();
    assert_eq!(host.seen("waits")["state"], "paused");
    host.run(&["resume", "waits"]).succeeds();
    host.run(&["unload", "waits", "--timeout=0.2"])
        .refuses(8, &["draining still"]);
    let ended = host.json(&["unload", "waits", "--now"]);
    assert_eq!(ended["outcome"], "stopped");
    let start = Instant::now();
    while host.seen("waits").is_object() {
        assert!(start.elapsed() < Duration::from_secs(300));
    }
    // The file may be written over while it runs.
    load(&host, "again", &[], &[&go.to_string_lossy(), "5", "wait"]);
    std::fs::write(host.place.path("libwork.so"), "no object").unwrap();
    host.run(&["unload", "again", "--now"]).succeeds();
    host.run(&["load", "libwork.so"])
        .refuses(1, &["libwork.so", "file too short"]);
}

#[test]
fn options_of_networks_are_refused_for_programs() {
    let host = Host::begin_in(programs());
    host.run(&["load", "libwork.so", "--in=x"])
        .refuses(1, &["--in is for networks, and libwork.so is a C program"]);
    host.run(&["load", "lib.so"])
        .refuses(1, &["there is no file lib.so"]);
    let place = &host.place;
    let top = common::host::TOP;
    place
        .run(&["load", top, "--socket=h.sock", "--", "x"])
        .refuses(3, &["takes no arguments", "--set"]);
    place
        .run(&["graph", "libwork.so"])
        .refuses(1, &["libwork.so is a shared object", "levada load"]);
    place
        .run(&["run", top, "--", "x"])
        .refuses(1, &["takes no arguments", "--set"]);
    compiled(place, "none", "int other;\n");
    host.run(&["load", "none.so"])
        .refuses(1, &["none.so has no main"]);
    let all = host.json(&["list"]);
    assert_eq!(all.as_array().unwrap().len(), 0);
}

#[test]
fn they_run_without_a_host() {
    let place = programs();
    let with = |first: &[&str], rest: &[&str]| {
        let args = [&["run"], first, &["libwork.so", "--"], rest].concat();
        place.run(&args)
    };
    let said = with(&["--json"], &["out.txt", "15"]).succeeds().json();
    assert_eq!(said["outcome"], "done");
    assert_eq!(said["network"], "work");
    let text = std::fs::read_to_string(place.path("out.txt")).unwrap();
    assert_eq!(text, "610 199990000\n");
    with(&[], &["/dev/null", "5", "3"]).refuses(1, &["main has returned 3"]);
    with(&["--stats"], &["/dev/null", "5", "crash"]).refuses(1, &["memory"]);
    with(&["--record", "r.toml"], &[]).refuses(1, &["--record is for networks"]);
    with(&["--set", "a=1"], &[]).refuses(1, &["--set is for networks"]);
    place
        .run(&["run", "no.so"])
        .refuses(1, &["there is no file no.so"]);
    place
        .run(&["build", "libwork.so"])
        .refuses(1, &["not a network", "levada run"]);
    // Told to stop, it ends as soon as it waits.
    let mut child = place
        .command(&["run", "libwork.so", "--", "/dev/null", "5", "wait"])
        .spawn()
        .unwrap();
    while !place.exists("begun") {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: a child of ours.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert_eq!(child.wait().unwrap().code(), Some(128 + libc::SIGTERM));
}

/// Copies lines from the pipe of its first argument to the file of its second, each with its version before
/// it; what is read and not written is its persistent block, as are the files. With a third it does not listen.
const COPIES: &str = r#"
#include <fcntl.h>
#include <levada/fiber.h>
#include <levada/native.h>
#include <levada/program.h>
#include <string.h>
#include <unistd.h>
struct kept { int in, out, versions; size_t has; char line[64]; };
static const char key;
int main(int argc, char **argv) {
  struct kept *k = lvd_app_persistent_data(lvd_current_app(), "kept", &key, sizeof *k, NULL);
  if (argc > 3) while (lvd_fiber_sleep(1000000) == LVD_OK) {}
  if (!k->versions++) {
    k->in = open(argv[1], O_RDWR | O_NONBLOCK);
    k->out = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0600);
  }
  while (lvd_wait_input_restartable(k->in) == LVD_OK) {
    char c;
    if (read(k->in, &c, 1) != 1) continue;
    k->line[k->has++] = c;
    if (c != '\n') continue;
    if (write(k->out, k->line, k->has) != (ssize_t)k->has) return 1;
    k->has = 0;
  }
  return 0;
}
"#;

#[test]
fn a_new_version_takes_over_between_two_elements() {
    let place = sources();
    compiled(&place, "copies", COPIES);
    let host = Host::begin_in(place);
    let (from, to) = (
        common::host::pipe(&host.place, "in"),
        host.place.path("out"),
    );
    let mut input = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&from)
        .unwrap();
    let files = [from.to_str().unwrap(), to.to_str().unwrap()];
    let with = |args: &[&str], more: &[&str]| {
        let at = ["--socket", "h.sock", "--"];
        host.place.run(&[args, &at, &files, more].concat())
    };
    with(&["load", "copies.so", "--name", "c"], &[]).succeeds();
    let mut all = String::new();
    for version in 0..10 {
        // In the middle of a line, too.
        for part in 0..50 {
            let text = format!("{version} {part}{}", if part % 3 == 0 { "\n" } else { " " });
            std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
            all += &text;
        }
        with(&["replace", "c", "copies.so"], &[]).succeeds();
        assert_eq!(host.seen("c")["state"], "running");
    }
    let whole = &all[..=all.rfind('\n').unwrap()];
    let start = Instant::now();
    while std::fs::read_to_string(&to).unwrap_or_default() != whole {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "lines are missing"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    // While paused it cannot exit; a network is not a program; a program that exits on request is unloaded that way.
    host.run(&["pause", "c"]).succeeds();
    with(&["replace", "c", "copies.so"], &[]).refuses(5, &["is paused", "resume it first"]);
    host.run(&["resume", "c"]).succeeds();
    host.run(&["replace", "c", common::host::TOP]).refuses(
        3,
        &["c is a C program, and its new version would be a network"],
    );
    assert_eq!(host.json(&["unload", "c"])["outcome"], "done");
    // A program that does not check for requests continues unchanged, and cannot be replaced.
    with(&["load", "copies.so", "--name", "deaf"], &["deaf"]).succeeds();
    with(&["replace", "deaf", "copies.so", "--timeout", "0.2"], &[]).refuses(
        8,
        &[
            "deaf continues unchanged",
            "has not asked",
            "lvd_app_is_draining",
        ],
    );
    assert_eq!(host.seen("deaf")["state"], "running");
    assert_eq!(host.json(&["list"]).as_array().map(Vec::len), Some(1));
}

/// Computes until the file that its argument names is there, and then sleeps in the system.
const KEEPS: &str = r#"
#include <unistd.h>
int main(int argc, char **argv) {
  if (argc < 2) return 1;
  for (volatile int i = 0; i % 100000 || access(argv[1], F_OK); i = i % 100000 + 1) {}
  int p[2];
  char c;
  return pipe(p) || read(p[0], &c, 1) < 0;
}
"#;

/// What has its worker waits for nothing that is known: it computes, or is in the system.
#[test]
fn computing_and_sleeping_programs_are_reported() {
    let place = sources();
    compiled(&place, "keeps", KEEPS);
    let host = Host::begin_in(place);
    let file = host.place.path("sleep");
    let argument = file.to_string_lossy();
    let args = ["load", "keeps.so", "--name=keeps", "--socket=h.sock", "--"];
    host.place
        .run(&[&args[..], &[&argument]].concat())
        .succeeds();
    let until = |what: &str| {
        let start = Instant::now();
        loop {
            let why = host.run(&["why", "keeps"]);
            let told = &why.succeeds().out;
            if told.contains(&format!("main {what}, and has had worker ")) && told.contains(" s\n")
            {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(300), "{why:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until("computes");
    host.place.write("sleep", "");
    until("sleeps in the system");
}

/// Prints what its first argument says, without a new line, and then does what the second one does.
const PRINTS: &str = r#"
#include <levada/srpc.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  printf("<%s>", argv[1]);
  FILE *f = fopen(argv[3], "w");
  fprintf(f, "%s", argv[1]);
  if (strcmp(argv[2], "crash") == 0) *(volatile int *)8 = 1;
  while (strcmp(argv[2], "wait") == 0 && lvd_fiber_sleep(1000000) == LVD_OK) {}
  return 0;
}
"#;

/// What programs print is there when they have ended, while the host lives; also of those in a process of their own,
/// which leave nothing open either.
#[test]
fn output_of_programs_is_flushed_at_their_end() {
    let place = sources();
    compiled(&place, "libprints", PRINTS);
    let mut host = Host::begin_printing(place, &[]);
    for (name, how, more) in [
        ("returns", "", &[][..]),
        ("crashes", "crash", &[]),
        ("stopped", "wait", &[]),
        ("apart", "", &["--isolate"]),
        ("apart-crashes", "crash", &["--isolate"]),
        ("apart-stopped", "wait", &["--isolate"]),
    ] {
        let file = host.place.path(&format!("{name}.txt"));
        let mut args = vec!["load", "libprints.so", "--name", name, "--socket", "h.sock"];
        args.extend(more);
        let file = file.to_string_lossy().into_owned();
        args.extend(["--", name, how, &file]);
        host.place.run(&args).succeeds();
        match how {
            "wait" => {
                // It has printed when its file is there.
                let start = Instant::now();
                while !std::path::Path::new(&file).exists() {
                    assert!(start.elapsed() < Duration::from_secs(300), "no file");
                    std::thread::sleep(Duration::from_millis(5));
                }
                host.run(&["unload", name, "--now"]).succeeds();
            }
            _ => drop(host.until(name, |a| a["outcome"].is_string())),
        }
        let start = Instant::now();
        while !host.printed().contains(&format!("<{name}>")) {
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "{name}: nothing"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        if name == "apart" {
            assert_eq!(std::fs::read_to_string(&file).unwrap(), name);
        }
    }
    host.child.kill().unwrap();
    host.until_dead();
}

/// What it leaves behind is the host's, since it shares the host's process.
const LEAVES: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  if (chdir("/")) return 90;
  signal(SIGCHLD, SIG_IGN);
  return setenv("PATH", "/nowhere", 1) || setenv("TMPDIR", "/nowhere", 1) || setenv("CC", "/nowhere/cc", 1);
}
"#;

#[test]
fn a_host_needs_neither_its_folder_nor_its_environment() {
    let place = sources();
    compiled(&place, "leaves", LEAVES);
    let mut host = Host::begin_in(place);
    host.run(&["load", "leaves.so", "--name", "leaves"])
        .succeeds();
    host.until("leaves", |a| a["outcome"] == "done");
    // One of its own is compiled for it, by a compiler that is looked for.
    let once = format!("src/p/Own{}.xdf", std::process::id());
    let own = std::fs::read_to_string(host.place.path("src/p/Many.xdf")).unwrap();
    let own = own.replace(
        "2000000000",
        &(2_000_000_000 - std::process::id()).to_string(),
    );
    host.place.write(&once, &own);
    for (name, more) in [("here", &[][..]), ("apart", &["--isolate"])] {
        let load = ["load", &once, "--name", name, "--out", "/dev/null"];
        host.run(&[&load[..], more].concat()).succeeds();
        host.until(name, |a| a["firings"].as_u64() > Some(0));
    }
    assert!(host.place.exists("state/here.json") && host.place.exists("state/apart.json"));
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    host.until_dead();
    assert!(!host.place.exists("h.sock"));
}

/// Makes a file where it is.
const HERE: &str = r#"
#include <stdio.h>
int main(void) {
  FILE *f = fopen("here", "w");
  return !f || fclose(f);
}
"#;

#[test]
fn an_isolated_one_is_in_the_folder_of_its_client() {
    let place = sources();
    compiled(&place, "here", HERE);
    std::fs::create_dir(place.path("sub")).unwrap();
    let host = Host::begin_in(place);
    for (name, more, file) in [
        ("apart", &["--isolate"][..], "sub/here"),
        ("shared", &[], "here"),
    ] {
        let load = [
            "load",
            "../here.so",
            "--name",
            name,
            "--socket",
            "../h.sock",
        ];
        let mut client = host.place.command(&[&load[..], more].concat());
        let done = client.current_dir(host.place.path("sub")).status();
        assert!(done.unwrap().success());
        host.until(name, |a| a["outcome"] == "done");
        assert!(host.place.exists(file), "{name}");
        std::fs::remove_file(host.place.path(file)).unwrap();
    }
}

/// Leaves when it is told to.
const LEAVES_WHEN_TOLD: &str = r#"
#include <levada/fiber.h>
#include <levada/native.h>
#include <levada/program.h>
int main(void) {
  while (!lvd_app_is_draining(lvd_current_app())) lvd_fiber_sleep(1000000);
  return 0;
}
"#;

#[test]
fn a_new_version_is_in_the_folder_of_its_client() {
    let place = sources();
    compiled(&place, "here", HERE);
    compiled(&place, "leaves", LEAVES_WHEN_TOLD);
    std::fs::create_dir(place.path("sub")).unwrap();
    let host = Host::begin_in(place);
    for (name, more, file) in [
        ("apart", &["--isolate"][..], "sub/here"),
        ("shared", &[], "here"),
    ] {
        let load = ["load", "leaves.so", "--name", name];
        host.run(&[&load[..], more].concat()).succeeds();
        let replace = ["replace", name, "../here.so", "--socket", "../h.sock"];
        let mut client = host.place.command(&replace);
        let done = client.current_dir(host.place.path("sub")).status();
        assert!(done.unwrap().success());
        host.until(name, |a| a["outcome"] == "done");
        assert!(host.place.exists(file), "{name}");
        std::fs::remove_file(host.place.path(file)).unwrap();
    }
}

/// It is not even loaded, as far as its process has come.
const CONSTRUCTS: &str = r#"
#include <unistd.h>
__attribute__((constructor)) static void stays(void) { for (;;) pause(); }
int main(void) { return 0; }
"#;

#[test]
fn an_isolated_one_with_an_endless_constructor_is_refused() {
    let place = sources();
    compiled(&place, "stays", CONSTRUCTS);
    let host = Host::begin_in(place);
    let load = ["load", "stays.so", "--name=stays", "--isolate"];
    host.run(&[&load[..], &["--timeout=2"]].concat()).refuses(
        8,
        &["stays has not been loaded in the time", "a constructor"],
    );
    assert!(host.seen("stays").is_null());
    assert!(!host.place.exists("state/stays.json"));
    let events = host.run(&["events"]).succeeds().out.clone();
    assert!(!events.contains("stays"), "{events}");
}

/// What it was to replace goes on; but its process answers nothing before that constructor has returned.
#[test]
fn a_constructor_that_does_not_return_ends_no_old_version() {
    let place = sources();
    compiled(&place, "stays", CONSTRUCTS);
    compiled(
        &place,
        "old",
        "#include <levada/fiber.h>\n#include <stdio.h>\nint main(void) {\n  for (int i = 0;; i++) {\n    \
         FILE *f = fopen(\"count\", \"w\");\n    if (!f || fprintf(f, \"%d\", i) < 0 || fclose(f)) return 1;\n    \
         if (lvd_fiber_sleep(1000000)) return 2;\n  }\n}\n",
    );
    let host = Host::begin_in(place);
    host.run(&["load", "old.so", "--name=a", "--isolate"])
        .succeeds();
    let process = host.seen("a")["isolated"].as_i64().unwrap();
    host.run(&["replace", "a", "stays.so", "--timeout=1"])
        .refuses(8, &["a continues unchanged", "a constructor", "--now"]);
    let count = || std::fs::read_to_string(host.place.path("count")).unwrap();
    let before = count();
    let start = Instant::now();
    while count() == before || count().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(300), "it has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    host.run(&["unload", "a", "--now"]).succeeds();
    // SAFETY: has no preconditions.
    assert_ne!(unsafe { libc::kill(process as i32, 0) }, 0);
}

#[test]
fn a_program_that_may_not_have_enough_is_told_what_helps() {
    let host = Host::begin_in(programs());
    let load = ["load", "libwork.so", "--name=small", "--memory=1"];
    let refused = host.run(&load);
    refused.refuses(6, &["small claims", "allow it more with --memory"]);
    assert!(
        !refused.err.contains("channels (bufferSize)"),
        "{refused:?}"
    );
}

/// As one that is being copied while it is loaded: the loader would map what is not there.
#[test]
fn a_truncated_program_is_refused_and_ends_no_other() {
    let place = sources();
    compiled(&place, "whole", "int main(void) { return 0; }\n");
    let whole = std::fs::read(place.path("whole.so")).unwrap();
    let host = Host::begin_in(place);
    host.many("net");
    for (part, told) in [
        (0.0, "cut.so: "),
        (0.001, "cut.so: "),
        (0.02, "cut.so: the file is truncated"),
        (0.2, "cut.so: the file is truncated"),
        (0.5, "cut.so: the file is truncated"),
    ] {
        let cut = &whole[..(whole.len() as f64 * part) as usize];
        std::fs::write(host.place.path("cut.so"), cut).unwrap();
        host.run(&["load", "cut.so"]).refuses(1, &[told]);
        let run = host.place.run(&["run", "cut.so"]);
        run.refuses(1, &[told]);
    }
    assert_eq!(host.seen("net")["state"], "running");
    std::fs::write(host.place.path("cut.so"), &whole).unwrap();
    host.run(&["load", "cut.so"]).succeeds();
    let ended = host.until("cut", |a| a["state"] == "ended" || a["state"] == "failed");
    assert_eq!(ended["outcome"], "done");
}

/// Like a file that its copier has preallocated, or that was overwritten. The loader's behaviour with such a file is
/// undefined; what is loaded all the same fails by itself.
#[test]
fn a_damaged_program_ends_no_other() {
    let place = sources();
    compiled(&place, "whole", "int main(void) { return 0; }\n");
    let whole = std::fs::read(place.path("whole.so")).unwrap();
    let host = Host::begin_in(place);
    host.many("net");
    let zeros = (1..20).map(|part| whole.len() * part / 20..whole.len());
    let holes = (0..40).map(|at| at * 64..at * 64 + 48);
    let mut refused = 0;
    for damaged in zeros.chain(holes) {
        let mut bytes = whole.clone();
        bytes[damaged].fill(0);
        std::fs::write(host.place.path("bad.so"), &bytes).unwrap();
        let load = host.run(&["load", "bad.so"]);
        match load.code {
            Some(0) => {
                host.until("bad", |a| a["state"] == "ended" || a["state"] == "failed");
                host.run(&["unload", "bad"]).succeeds();
            }
            _ => {
                load.refuses(1, &["bad.so"]);
                refused += usize::from(
                    load.err
                        .contains("the process that tried it was ended by signal 11"),
                );
            }
        }
    }
    assert!(refused > 5, "{refused}");
    assert_eq!(host.seen("net")["state"], "running");
}

/// Each is tried first where it can do no harm.
#[test]
fn a_program_with_a_harmful_constructor_or_destructor_is_refused() {
    let place = sources();
    let all = [
        (
            "constructor",
            "((void (*)(void))0)()",
            "was ended by signal 11",
        ),
        ("constructor", "abort()", "was ended by signal 6"),
        (
            "constructor",
            "puts(\"opened\"), exit(0)",
            "has exited with status 0",
        ),
        ("constructor", "_exit(3)", "has exited with status 3"),
        ("constructor", "for (;;) pause()", "does a constructor"),
        ("destructor", "abort()", "was ended by signal 6"),
    ];
    for (number, (when, what, _)) in all.iter().enumerate() {
        let text = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n__attribute__(({when})) static void \
             harms(void) {{ {what}; }}\nint main(void) {{ return 0; }}\n"
        );
        compiled(&place, &format!("harms{number}"), &text);
    }
    let host = Host::begin_in(place);
    host.many("net");
    for (number, (_, what, told)) in all.iter().enumerate() {
        let file = format!("harms{number}.so");
        let load = ["load", &file, "--timeout=2"];
        let status = if what.contains("pause") { 8 } else { 1 };
        host.run(&load).refuses(status, &[told]);
        assert!(host.seen(&format!("harms{number}")).is_null());
    }
    assert_eq!(host.seen("net")["state"], "running");
    assert!(!host.place.exists("state/harms0.json"));
}
