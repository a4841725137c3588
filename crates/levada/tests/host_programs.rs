// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C programs in a host: forks, remote procedures and streams on the workers of all, beside networks.

mod common;

use common::Place;
use common::host::{Host, held_pipe, sources};
use std::io::Write;
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
    make(&place, "libwork", PROGRAM);
    place
}

/// Compiles `text` to `name`.so.
fn make(place: &Place, name: &str, text: &str) {
    let (from, to) = (format!("{name}.c"), format!("{name}.so"));
    place.write(&from, text);
    place
        .run(&["cc", "--hosted", "-O2", &from, "-o", &to])
        .succeeds();
}

fn load(host: &Host, name: &str, more: &[&str], arguments: &[&str]) {
    let mut args = vec!["load", "libwork.so", "--name", name, "--socket", "h.sock"];
    args.extend(more);
    args.push("--");
    args.extend(arguments);
    host.place.run(&args).succeeds();
}

#[test]
fn they_run_beside_networks_and_each_other() {
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
fn what_they_compute_is_counted() {
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
    host.run(&["unload", "waits", "--within=0.2"])
        .refuses(1, &["draining still"]);
    let ended = host.json(&["unload", "waits", "--now"]);
    assert_eq!(ended["outcome"], "stopped");
    let start = Instant::now();
    while host.seen("waits").is_object() {
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    // The file may be written over while it runs.
    load(&host, "again", &[], &[&go.to_string_lossy(), "5", "wait"]);
    std::fs::write(host.place.path("libwork.so"), "no object").unwrap();
    host.run(&["unload", "again", "--now"]).succeeds();
    host.run(&["load", "libwork.so"])
        .refuses(1, &["libwork.so", "file too short"]);
}

#[test]
fn what_is_for_networks_is_refused() {
    let host = Host::begin_in(programs());
    host.run(&["load", "libwork.so", "--in=x"])
        .refuses(1, &["--in is for networks, and libwork.so is a C program"]);
    host.run(&["load", "lib.so"])
        .refuses(1, &["there is no file lib.so"]);
    let place = &host.place;
    let top = common::host::TOP;
    place
        .run(&["load", top, "--socket=h.sock", "--", "x"])
        .refuses(1, &["takes no arguments", "--set"]);
    place
        .run(&["graph", "libwork.so"])
        .refuses(1, &["libwork.so is a shared object", "levada load"]);
    place
        .run(&["run", top, "--", "x"])
        .refuses(1, &["takes no arguments", "--set"]);
    make(place, "none", "int other;\n");
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

/// Computes until it is ended, or as long as its first argument says, and writes what came out into the file
/// that the second one names.
const COMPUTES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static double step(double x, unsigned *random) {
  *random = *random * 1664525u + 1013904223u;
  return x * 0.9375 + (double)(*random >> 8) / 3.0;
}
int main(int argc, char **argv) {
  unsigned random = 1;
  double sum[8] = {0};
  if (argc < 2)
    for (volatile double endless = 0;; endless = step(endless, &random)) {}
  for (long i = 0, n = atol(argv[1]); i < n; i++)
    for (int k = 0; k < 8; k++) sum[k] = step(sum[k] + k, &random);
  FILE *f = fopen(argv[2], "w");
  for (int k = 0; k < 8; k++) fprintf(f, "%a\n", sum[k]);
  return fclose(f);
}
"#;

fn computing() -> Host {
    let place = sources();
    make(&place, "computes", COMPUTES);
    Host::begin_in(place)
}

/// Beside what there is.
fn a_network_goes_on(host: &Host) {
    host.many("net");
    let firings = |a: &serde_json::Value| a["firings"].as_u64().unwrap_or_default();
    let before = firings(&host.until("net", |a| firings(a) > 1000));
    host.until("net", |a| firings(a) > before + 10_000);
}

/// As many as there are workers: what else there is goes on all the same, and all commands work on them.
#[test]
fn who_computes_without_end_takes_turns_and_can_be_ended() {
    let host = computing();
    for name in ["one", "two", "three"] {
        host.run(&["load", "computes.so", "--name", name])
            .succeeds();
    }
    host.until("three", |a| a["busy"].as_f64() > Some(0.1));
    a_network_goes_on(&host);
    // Who is paused does nothing, and goes on.
    host.run(&["pause", "one"]).succeeds();
    let busy = host.seen("one")["busy"].as_f64();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(host.seen("one")["busy"].as_f64(), busy);
    host.run(&["resume", "one"]).succeeds();
    host.until("one", |a| a["busy"].as_f64() > busy);
    for name in ["one", "three", "two"] {
        let ended = host.json(&["unload", name, "--now"]);
        assert_eq!(ended["outcome"], "stopped");
    }
    host.run(&["unload", "net", "--now"]).succeeds();
}

/// In its own code it is suspended; in another library, where it might have locks, it is not.
const STAYS: &str = r#"
#include <unistd.h>
void stay(void);
void stay(void) {
  while (access("go", F_OK)) {}
}
"#;
const CALLS: &str = r#"
#include <dlfcn.h>
int main(int argc, char **argv) {
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
  void (*stay)(void) = library ? (void (*)(void))dlsym(library, "stay") : 0;
  if (!stay) return 1;
  stay();
  return 0;
}
"#;

#[test]
fn what_waits_behind_a_library_goes_on_elsewhere() {
    let place = sources();
    make(&place, "stays", STAYS);
    make(&place, "calls", CALLS);
    let library = place.path("stays.so");
    let host = Host::begin_in(place);
    let args = [
        "load", "calls.so", "--name", "calls", "--socket", "h.sock", "--",
    ];
    host.place
        .run(&[&args[..], &[library.to_str().unwrap()]].concat())
        .succeeds();
    host.until("calls", |a| a["busy"].as_f64() > Some(0.05));
    a_network_goes_on(&host);
    assert_eq!(host.seen("calls")["state"], "running");
    host.place.write("go", "");
    let ended = host.until("calls", |a| !a["outcome"].is_null());
    assert_eq!(ended["outcome"], "done");
    host.run(&["unload", "net", "--now"]).succeeds();
}

/// All that it has in registers, and on its stack, is as it was when it goes on.
#[test]
fn who_takes_turns_computes_the_same() {
    let host = computing();
    let load = |name: &str, out: &str| {
        let args = ["load", "computes.so", "--name", name, "--", "20000000", out];
        host.place
            .run(&[&args[..4], &["--socket", "h.sock"], &args[4..]].concat())
            .succeeds();
    };
    load("alone", "alone.txt");
    host.until("alone", |a| a["state"] == "ended");
    let names: Vec<String> = (0..6).map(|i| format!("c{i}")).collect();
    host.many("net");
    for name in &names {
        load(name, &format!("{name}.txt"));
    }
    let text = |file: &str| std::fs::read_to_string(host.place.path(file)).unwrap();
    for name in &names {
        let seen = host.until(name, |a| a["state"] == "ended" || a["state"] == "failed");
        assert_eq!(seen["outcome"], "done");
        assert_eq!(text(&format!("{name}.txt")), text("alone.txt"), "{name}");
    }
}

/// A program that forks and does nothing else is seen on the workers that it takes.
#[test]
fn what_forks_take_is_seen_in_the_map() {
    let place = sources();
    make(
        &place,
        "forks",
        "int fib(int n) {\n  int a, b;\n  if (n < 2) return n;\n  a = fib(n - 1) !! { b = fib(n - 2); }\n  \
         return a + b;\n}\nint main(void) {\n  for (;;) if (fib(30) < 0) return 1;\n}\n",
    );
    let host = Host::begin_in(place);
    host.run(&["load", "forks.so", "--name", "forks"])
        .succeeds();
    let takes = |w: &serde_json::Value| {
        let all = w["program"].as_array().into_iter().flatten();
        let own = all.filter(|p| p["application"] == "forks");
        own.filter_map(|p| p["share"].as_f64()).sum::<f64>()
    };
    let start = Instant::now();
    loop {
        let map = host.json(&["map"]);
        let all: Vec<f64> = map.as_array().unwrap().iter().map(takes).collect();
        assert!(all.iter().all(|share| *share <= 1.0), "{map}");
        if all.iter().sum::<f64>() > 0.01 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{map}");
    }
    let map = host.run(&["map"]);
    assert!(map.succeeds().out.contains("its fibers"), "{map:?}");
}

/// Each of its activations is short, and it has always forks open: it ends at one of them, when it has computed for a
/// while. That is time of its own: on a busy machine it takes many times as long, and is tried less often.
#[test]
fn who_forks_without_end_can_be_ended() {
    let place = sources();
    make(
        &place,
        "forks",
        "#include <stdlib.h>\nint fib(int n) {\n  int a, b;\n  if (n < 2) return n;\n  \
         a = fib(n - 1) !! { b = fib(n - 2); }\n  return a + b;\n}\nint main(int argc, char **argv) {\n  \
         if (argc < 2) return fib(25) != 75025;\n  for (;;) if (fib(atoi(argv[1])) < 0) return 1;\n}\n",
    );
    let host = Host::begin_in(place);
    host.many("net");
    let start = Instant::now();
    for round in 0..8 {
        // By now each size was ended paused before, and not.
        if round >= 4 && start.elapsed() > Duration::from_secs(15) {
            break;
        }
        let name = format!("f{round}");
        let load = [
            "load", "forks.so", "--name", &name, "--socket", "h.sock", "--",
        ];
        let size = if round % 2 == 0 { "20" } else { "34" };
        host.place.run(&[&load[..], &[size]].concat()).succeeds();
        std::thread::sleep(Duration::from_millis(50));
        if round % 3 == 0 {
            host.run(&["pause", &name, "--within", "0.2"]);
            host.run(&["resume", &name]).succeeds();
        }
        let ended = host.json(&["unload", &name, "--now"]);
        assert_eq!(ended["outcome"], "stopped");
    }
    // Whatever was stolen from them: others fork as before.
    host.run(&["load", "forks.so", "--name", "ends"]).succeeds();
    let ended = host.until("ends", |a| a["state"] == "ended" || a["state"] == "failed");
    assert_eq!(ended["outcome"], "done");
    assert_eq!(host.seen("net")["state"], "running");
}

/// It hands its worker on again and again, or calls what waits and does not look at what that says: none of its
/// activations is long. It ends all the same, also one that was asked to leave for a new version and does not hear it.
#[test]
fn who_only_yields_or_does_not_look_can_be_ended() {
    let place = sources();
    make(
        &place,
        "turns",
        "#include <levada/fiber.h>\n#include <levada/native.h>\n#include <levada/program.h>\n#include <string.h>\n\
         static void yields(void *unused) {\n  (void)unused;\n  for (;;) lvd_fiber_yield();\n}\n\
         int main(int argc, char **argv) {\n  const char *how = argc > 1 ? argv[1] : \"\";\n  \
         for (int i = 0; i < 3 && strcmp(how, \"several\") == 0; i++)\n    \
         lvd_fiber_start(lvd_app_here(), yields, NULL, NULL, NULL);\n  \
         while (strcmp(how, \"sleeps\") == 0) lvd_fiber_sleep(1000);\n  yields(NULL);\n  return 0;\n}\n",
    );
    let host = Host::begin_in(place);
    host.many("net");
    for how in ["yields", "several", "sleeps"] {
        for replaced in [false, true] {
            let load = [
                "load", "turns.so", "--name=a", "--socket", "h.sock", "--", how,
            ];
            host.place.run(&load).succeeds();
            host.until("a", |a| a["firings"] == 1);
            let unload = || {
                let ended = host.json(&["unload", "a", "--now"]);
                assert_eq!(ended["outcome"], "stopped", "{how}, {replaced}");
            };
            if !replaced {
                unload();
                continue;
            }
            std::thread::scope(|scope| {
                let replaces = scope.spawn(|| host.run(&["replace", "a", "turns.so"]));
                host.until("a", |a| a["state"] == "draining");
                unload();
                let replaced = replaces.join().unwrap();
                replaced.refuses(1, &["a has ended before it was replaced"]);
            });
        }
    }
    assert_eq!(host.seen("net")["state"], "running");
}

/// It calls the system again and again for what does not come: it is ended when such a call has come back to its own
/// code, and what a library has locked meanwhile is free.
#[test]
fn who_sleeps_in_the_system_can_be_ended() {
    if !cfg!(target_arch = "x86_64") {
        return common::skipped(
            "the end of who sleeps",
            "it is not seen here where a call returns",
        );
    }
    let place = sources();
    make(
        &place,
        "asleep",
        "#define _GNU_SOURCE\n#include <poll.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n\
         int main(int argc, char **argv) {\n  const char *how = argc > 1 ? argv[1] : \"\";\n  \
         int fd[2];\n  char byte;\n  if (pipe(fd)) return 1;\n  FILE *file = fdopen(fd[0], \"r\");\n  \
         struct pollfd p = {fd[0], POLLIN, 0};\n  for (;;) {\n    \
         if (!strcmp(how, \"sleep\")) sleep(1000);\n    \
         if (!strcmp(how, \"poll\")) poll(&p, 1, -1);\n    \
         if (!strcmp(how, \"read\") && read(fd[0], &byte, 1)) continue;\n    \
         if (!strcmp(how, \"file\") && fgetc(file) == EOF) clearerr(file);\n  }\n}\n",
    );
    let mut host = Host::begin_in(place);
    // Where no other worker takes what it holds up, too.
    for workers in [2, 1] {
        if workers == 1 {
            host = host.again(&["--workers=1"]);
        }
        host.many("net");
        for how in ["sleep", "poll", "read", "file"] {
            for _ in 0..2 {
                let load = [
                    "load",
                    "asleep.so",
                    "--name=a",
                    "--socket",
                    "h.sock",
                    "--",
                    how,
                ];
                host.place.run(&load).succeeds();
                host.until("a", |a| a["firings"] == 1);
                let ended = host.json(&["unload", "a", "--now"]);
                assert_eq!(ended["outcome"], "stopped", "{how}, {workers} workers");
            }
        }
        let fired = host.seen("net")["firings"].as_u64();
        host.until("net", |a| a["firings"].as_u64() > fired);
        host.run(&["unload", "net", "--now"]).succeeds();
    }
}

/// It is in the system nearly all of its time, in its own code never for longer than a moment: paused it does nothing more,
/// and goes on. What is said to go on after a signal does, and is told of no error.
#[test]
fn who_sleeps_in_the_system_can_be_paused() {
    if !cfg!(target_arch = "x86_64") {
        return common::skipped(
            "the pause of who sleeps",
            "it is not seen here where a call returns",
        );
    }
    let place = sources();
    make(
        &place,
        "ticks",
        "#include <poll.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n\
         int main(int argc, char **argv) {\n  FILE *out = fopen(argv[2], \"w\");\n  \
         for (char byte;;) {\n    if (!strcmp(argv[1], \"sleep\")) sleep(1);\n    \
         if (!strcmp(argv[1], \"usleep\")) usleep(300);\n    if (!strcmp(argv[1], \"poll\")) poll(NULL, 0, 150);\n    \
         if (!strcmp(argv[1], \"read\") && read(0, &byte, 0)) return 1;\n    fprintf(out, \"tick\\n\");\n    fflush(out);\n  \
         }\n}\n",
    );
    let mut host = Host::begin_in(place);
    for workers in [2, 1] {
        if workers == 1 {
            host = host.again(&["--workers=1"]);
        }
        for how in ["sleep", "usleep", "poll", "read"] {
            let out = format!("{how}{workers}.txt");
            let args = ["load", "ticks.so", "--name=a", "--socket=h.sock", "--"];
            host.place
                .run(&[&args[..], &[how, &out]].concat())
                .succeeds();
            let ticks = || {
                std::fs::read(host.place.path(&out))
                    .unwrap_or_default()
                    .len()
            };
            let more = |than: usize| {
                let start = Instant::now();
                while ticks() <= than {
                    assert!(start.elapsed() < Duration::from_secs(60), "{how}: no tick");
                    std::thread::sleep(Duration::from_millis(5));
                }
            };
            for _ in 0..3 {
                more(ticks());
                host.run(&["pause", "a"]).succeeds();
                let (why, before) = (host.run(&["why", "a"]), ticks());
                assert_eq!(why.succeeds().out, "a is paused\n");
                std::thread::sleep(Duration::from_millis(1300));
                assert_eq!(ticks(), before, "{how}, {workers} workers");
                host.run(&["resume", "a"]).succeeds();
            }
            // Nor does it go on when it is ended where it is.
            host.run(&["pause", "a"]).succeeds();
            assert_eq!(host.json(&["unload", "a", "--now"])["outcome"], "stopped");
        }
    }
}

/// It waits for what does not come, or in a library: what it is in is told, and it is held when it has come back. A read
/// that is waited for fails for no pause.
#[test]
fn who_is_paused_in_a_call_is_held_behind_it() {
    if !cfg!(target_arch = "x86_64") {
        return common::skipped("a pause in a call", "it is not seen here where it returns");
    }
    let place = sources();
    make(
        &place,
        "reads",
        "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\nint main(int argc, char **argv) {\n  \
         int fd = open(argv[1], O_RDWR);\n  FILE *out = fopen(argv[2], \"w\");\n  for (char byte;;) {\n    \
         if (read(fd, &byte, 1) != 1) return 1;\n    fputc(byte, out);\n    fflush(out);\n  }\n}\n",
    );
    let mut input = held_pipe(&place, "in");
    let host = Host::begin_in(place);
    let (from, out) = (host.place.path("in"), host.place.path("out.txt"));
    let args = ["load", "reads.so", "--name=a", "--socket=h.sock", "--"];
    let files = [from.to_str().unwrap(), out.to_str().unwrap()];
    host.place.run(&[&args[..], &files].concat()).succeeds();
    let text = || std::fs::read_to_string(&out).unwrap_or_default();
    let until = |what: &str| {
        let start = Instant::now();
        while text() != what {
            assert!(start.elapsed() < Duration::from_secs(60), "{}", text());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for all in ["a", "ab", "abc"] {
        let next = &all[all.len() - 1..];
        host.run(&["pause", "a", "--within=0.5"]).refuses(
            1,
            &[
                "a is paused, but it has not come to where it can be held within 500ms: main sleeps in the system",
                "levada unload a --now",
            ],
        );
        let why = host.run(&["why", "a"]);
        let told = &why.succeeds().out;
        assert!(told.starts_with("a is paused, but "), "{told}");
        assert!(told.contains("main sleeps in the system"), "{told}");
        // What it has waited for comes: it is held before it does anything with that.
        input.write_all(next.as_bytes()).unwrap();
        let start = Instant::now();
        while host.run(&["why", "a"]).succeeds().out != "a is paused\n" {
            assert!(start.elapsed() < Duration::from_secs(60), "{why:?}");
        }
        assert_eq!(text(), all[..all.len() - 1]);
        host.run(&["resume", "a"]).succeeds();
        until(all);
    }
    // Ended while it is paused there, it is not waited for.
    host.run(&["pause", "a", "--within=0.3"])
        .refuses(1, &["a is paused, but"]);
    assert_eq!(host.json(&["unload", "a", "--now"])["outcome"], "stopped");
}

/// However long it has forks open, on all workers: what else there is has its turns, and a pause begins at once.
#[test]
fn who_has_forks_open_takes_turns() {
    let place = sources();
    make(
        &place,
        "forks",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint fib(int n) {\n  int a, b;\n  if (n < 2) return n;\n  \
         a = fib(n - 1) !! { b = fib(n - 2); }\n  return a + b;\n}\nint main(int argc, char **argv) {\n  \
         if (argc < 3) return fib(60) < 0;\n  FILE *out = fopen(argv[2], \"w\");\n  \
         for (int i = 0; i < 5 || (argc > 3 && access(argv[3], F_OK)); i++)\n    \
         fprintf(out, \"%d\\n\", fib(atoi(argv[1])));\n  return fclose(out);\n}\n",
    );
    let host = Host::begin_in(place);
    host.run(&["load", "forks.so", "--name", "long"]).succeeds();
    host.until("long", |a| a["busy"].as_f64() > Some(0.3));
    a_network_goes_on(&host);
    host.run(&["pause", "long"]).succeeds();
    let busy = host.seen("long")["busy"].as_f64();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(host.seen("long")["busy"].as_f64(), busy);
    host.run(&["resume", "long"]).succeeds();
    host.until("long", |a| a["busy"].as_f64() > busy);
    // What is suspended amid its forks, and goes on, is as it was. Its end is ours to choose: a fast machine would
    // be there before the pause.
    let names: Vec<String> = (0..4).map(|i| format!("f{i}")).collect();
    for name in &names {
        let out = format!("{name}.txt");
        let load = [
            "load", "forks.so", "--name", name, "--socket", "h.sock", "--", "31", &out, "enough",
        ];
        host.place.run(&load).succeeds();
    }
    host.run(&["pause", "f2"]).succeeds();
    host.run(&["resume", "f2"]).succeeds();
    std::fs::write(host.place.path("enough"), "").unwrap();
    for name in &names {
        let seen = host.until(name, |a| a["state"] == "ended" || a["state"] == "failed");
        assert_eq!(seen["outcome"], "done");
        let text = std::fs::read_to_string(host.place.path(&format!("{name}.txt"))).unwrap();
        assert!(text.lines().count() >= 5, "{name}: {text}");
        assert!(text.lines().all(|line| line == "1346269"), "{name}: {text}");
    }
    host.run(&["unload", "long", "--now"]).succeeds();
    host.run(&["unload", "net", "--now"]).succeeds();
}

/// Its array is larger than its stack, and than the guard below: it is a fault of its own, and not one that computes
/// in others' memory.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_frame_larger_than_the_stack_is_contained() {
    let place = sources();
    make(
        &place,
        "large",
        "int main(int argc, char **argv) {\n  volatile char large[9 << 20];\n  large[0] = 1;\n  \
         for (volatile long i = 0;; i++) large[5] = i;\n  return large[3];\n}\n",
    );
    let host = Host::begin_in(place);
    host.run(&["load", "large.so", "--name", "large"])
        .succeeds();
    let ended = host.until("large", |a| a["outcome"].is_string());
    assert_eq!(ended["state"], "failed");
    let why = host.run(&["why", "large"]);
    assert!(why.out.contains("stack overflow"), "{why:?}");
    assert!(why.out.contains("has 8 MiB, the most that"), "{why:?}");
    a_network_goes_on(&host);
    host.run(&["unload", "net", "--now"]).succeeds();
}

/// Copies lines from the pipe of its first argument to the file of its second, each with its version before
/// it; what is read and not written is its heirloom, as are the files. With a third it does not listen.
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
  struct kept *k = lvd_app_heirloom(lvd_app_here(), "kept", &key, sizeof *k, NULL);
  if (argc > 3) while (lvd_fiber_sleep(1000000) == LVD_OK) {}
  if (!k->versions++) {
    k->in = open(argv[1], O_RDWR | O_NONBLOCK);
    k->out = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0600);
  }
  while (lvd_wait_input(k->in) == LVD_OK) {
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
    make(&place, "copies", COPIES);
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
            start.elapsed() < Duration::from_secs(60),
            "lines are missing"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    // Paused it cannot leave; a network is none; who ends when he is asked is unloaded so.
    host.run(&["pause", "c"]).succeeds();
    with(&["replace", "c", "copies.so"], &[]).refuses(1, &["is paused", "resume it first"]);
    host.run(&["resume", "c"]).succeeds();
    host.run(&["replace", "c", common::host::TOP]).refuses(
        1,
        &["c is a C program, and its new version would be a network"],
    );
    assert_eq!(host.json(&["unload", "c"])["outcome"], "done");
    // Who does not ask goes on as he was, and can be replaced by none.
    with(&["load", "copies.so", "--name", "deaf"], &["deaf"]).succeeds();
    with(&["replace", "deaf", "copies.so", "--within", "0.2"], &[]).refuses(
        1,
        &["deaf goes on as it was", "has not asked", "lvd_app_drains"],
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
fn who_computes_or_sleeps_is_told() {
    let place = sources();
    make(&place, "keeps", KEEPS);
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
            assert!(start.elapsed() < Duration::from_secs(60), "{why:?}");
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
fn what_they_print_is_written_when_they_end() {
    let place = sources();
    make(&place, "libprints", PRINTS);
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
                    assert!(start.elapsed() < Duration::from_secs(60), "no file");
                    std::thread::sleep(Duration::from_millis(5));
                }
                host.run(&["unload", name, "--now"]).succeeds();
            }
            _ => drop(host.until(name, |a| a["outcome"].is_string())),
        }
        let start = Instant::now();
        while !host.printed().contains(&format!("<{name}>")) {
            assert!(start.elapsed() < Duration::from_secs(60), "{name}: nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
        if name == "apart" {
            assert_eq!(std::fs::read_to_string(&file).unwrap(), name);
        }
    }
    host.child.kill().unwrap();
    host.until_dead();
}

/// What it leaves behind is the host's, whose process it shares.
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
    make(&place, "leaves", LEAVES);
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
    make(&place, "here", HERE);
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
  while (!lvd_app_drains(lvd_app_here())) lvd_fiber_sleep(1000000);
  return 0;
}
"#;

#[test]
fn a_new_version_is_in_the_folder_of_its_client() {
    let place = sources();
    make(&place, "here", HERE);
    make(&place, "leaves", LEAVES_WHEN_TOLD);
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
fn an_isolated_one_whose_constructor_does_not_return_is_refused() {
    let place = sources();
    make(&place, "stays", CONSTRUCTS);
    let host = Host::begin_in(place);
    let load = ["load", "stays.so", "--name=stays", "--isolate"];
    host.run(&[&load[..], &["--within=2"]].concat()).refuses(
        1,
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
    make(&place, "stays", CONSTRUCTS);
    make(
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
    host.run(&["replace", "a", "stays.so", "--within=1"])
        .refuses(1, &["a goes on as it was", "a constructor", "--now"]);
    let count = || std::fs::read_to_string(host.place.path("count")).unwrap();
    let before = count();
    let start = Instant::now();
    while count() == before || count().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60), "it has ended");
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
    refused.refuses(1, &["small claims", "allow it more with --memory"]);
    assert!(
        !refused.err.contains("channels (bufferSize)"),
        "{refused:?}"
    );
}
