// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of C programs that compute without waiting: they share the worker with others, and continue unchanged.

use crate::common::host::{Host, compiled, sources};
use crate::common::network;
use std::time::{Duration, Instant};

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
    compiled(&place, "computes", COMPUTES);
    Host::begin_in(place)
}

/// Next to the applications of the host.
fn a_network_goes_on(host: &Host) {
    host.many("net");
    let firings = |a: &serde_json::Value| a["firings"].as_u64().unwrap_or_default();
    let before = firings(&host.until("net", |a| firings(a) > 1000));
    host.until("net", |a| firings(a) > before + 10_000);
}

/// As many as there are workers: what else there is goes on all the same, and all commands work on them.
#[test]
fn an_endless_computation_is_preempted_and_can_be_ended() {
    let host = computing();
    for name in ["one", "two", "three"] {
        host.run(&["load", "computes.so", "--name", name])
            .succeeds();
    }
    host.until("three", |a| a["busy"].as_f64() > Some(0.1));
    a_network_goes_on(&host);
    // A paused program does nothing, and continues.
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

/// An actor and a program that wait for a time run when it has come.
#[test]
fn a_timed_wait_ends_next_to_a_computation() {
    let place = sources();
    compiled(&place, "computes", COMPUTES);
    let sleeps = "#include <levada/fiber.h>\nint main(void) {\n  for (int i = 0; i < 100; i++)\n    \
        if (lvd_fiber_sleep(1000000) != LVD_OK) return 1;\n  return 0;\n}\n";
    compiled(&place, "sleeps", sleeps);
    place.write(
        "src/p/Clock.cal",
        "package p;\nactor Clock () ==> int Out :\n  @native function in_a_millisecond(int n) --> int end\n  \
         int n := 0;\n  action ==> Out:[in_a_millisecond(n)] guard n < 100 do n := n + 1; end\nend\n",
    );
    place.write(
        "natives/clock.c",
        "#include <levada/native.h>\n#include <time.h>\nint32_t in_a_millisecond(int32_t n);\n\
         int32_t in_a_millisecond(int32_t n) {\n  struct timespec t;\n  clock_gettime(CLOCK_MONOTONIC, &t);\n  \
         lvd_wait_until(t.tv_sec * INT64_C(1000000000) + t.tv_nsec + 1000000);\n  return n;\n}\n",
    );
    let clock = network(
        &[("clock", "p.Clock", &[]), ("write", "p.Write", &[])],
        &[("clock.Out", "write.In")],
    );
    place.write(
        "src/p/Clocked.xdf",
        &clock.replace("\"Top\"", "\"Clocked\""),
    );
    let host = Host::begin_in(place);
    for name in ["one", "two"] {
        host.run(&["load", "computes.so", "--name", name])
            .succeeds();
        host.until(name, |a| a["busy"].as_f64() > Some(0.1));
    }
    host.run(&["load", "sleeps.so"]).succeeds();
    host.run(&["load", "src/p/Clocked.xdf", "--out=/dev/null"])
        .succeeds();
    for name in ["sleeps", "Clocked"] {
        let ended = host.until(name, |a| !a["outcome"].is_null());
        assert_eq!(ended["outcome"], "done", "{ended}");
    }
    for name in ["one", "two"] {
        assert_eq!(host.seen(name)["state"], "running");
    }
}

/// A program of higher priority that moves from core to core does not wait at each for the time slice of the
/// computation there.
#[test]
fn a_higher_priority_gets_the_core_at_once() {
    let place = sources();
    compiled(&place, "computes", COMPUTES);
    place.write(
        "src/p/Ball.cal",
        "package p;\nactor Ball () int In ==> int Out :\n  initialize ==> Out:[0] end\n  \
         action In:[x] ==> Out:[x] end\nend\n",
    );
    place.write(
        "src/p/Back.cal",
        "package p;\nactor Back () int In ==> int Out :\n  action In:[x] ==> Out:[x] end\nend\n",
    );
    let match_ = network(
        &[("ball", "p.Ball", &[]), ("back", "p.Back", &[])],
        &[("ball.Out", "back.In"), ("back.Out", "ball.In")],
    );
    place.write("src/p/Match.xdf", &match_.replace("\"Top\"", "\"Match\""));
    place.write("sides.toml", "[Match]\nball = 0\nback = 1\n");
    let host = Host::begin_in(place);
    for name in ["one", "two"] {
        host.run(&["load", "computes.so", "--name", name])
            .succeeds();
        host.until(name, |a| a["busy"].as_f64() > Some(0.1));
    }
    let sides = ["--no-fuse", "--priority=2", "--placement=sides.toml"];
    host.run(&[&["load", "src/p/Match.xdf"][..], &sides].concat())
        .succeeds();
    let firings = |a: &serde_json::Value| a["firings"].as_u64().unwrap_or_default();
    let computed = || {
        let busy = |name| host.seen(name)["busy"].as_f64().unwrap();
        busy("one") + busy("two")
    };
    let (hops, before) = (firings(&host.seen("Match")), computed());
    let now = firings(&host.until("Match", |a| firings(a) > hops + 3000));
    let each = 1e3 * (computed() - before) / (now - hops) as f64;
    println!("{each:.3} ms were computed by others at each hop");
    // A tick of that clock is of 4 ms.
    assert!(each < 2.0, "{each} ms");
    // Nor does it harm that they are ended amid that.
    for _ in 0..5 {
        for name in ["one", "two"] {
            let ended = host.json(&["unload", name, "--now"]);
            assert_eq!(ended["outcome"], "stopped");
            host.run(&["load", "computes.so", "--name", name])
                .succeeds();
        }
    }
    let hops = firings(&host.seen("Match"));
    host.until("Match", |a| firings(a) > hops + 3000);
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
fn entities_behind_a_library_call_continue_on_another_worker() {
    let place = sources();
    compiled(&place, "stays", STAYS);
    compiled(&place, "calls", CALLS);
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
fn a_preempted_program_computes_the_same() {
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
fn load_of_forks_is_shown_in_the_map() {
    let place = sources();
    compiled(
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
        assert!(start.elapsed() < Duration::from_secs(300), "{map}");
    }
    let map = host.run(&["map"]);
    assert!(map.succeeds().out.contains("its fibers"), "{map:?}");
}

/// However long it has forks open, on all workers: what else there is has its turns, and a pause begins at once.
#[test]
fn a_program_with_open_forks_is_preempted() {
    let place = sources();
    compiled(
        &place,
        "forks",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         int fib(int n) {\n  int a, b;\n  if (n < 2) return n;\n  \
         a = fib(n - 1) !! { b = fib(n - 2); }\n  return a + b;\n}\n\
         int main(int argc, char **argv) {\n  \
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

/// Also where that has ended in a fork, or a join: some of many do.
#[test]
fn a_recursion_that_forks_is_contained() {
    let place = sources();
    let text = "static int f(int n) {\n  volatile char room[64];\n  int a = 0;\n  room[n & 63] = 1;\n  \
         a = f(n + 1) !! { room[0] = 2; }\n  return a + room[1];\n}\nint main(void) { return f(0) & 1; }\n";
    compiled(&place, "deep", text);
    let host = Host::begin_in(place);
    host.many("net");
    for _ in 0..20 {
        host.run(&["load", "deep.so", "--name", "deep"]).succeeds();
        host.until("deep", |a| a["state"] == "failed");
        host.run(&["unload", "deep"]).succeeds();
    }
    let firings = |a: &serde_json::Value| a["firings"].as_u64();
    let before = firings(&host.seen("net"));
    host.until("net", |a| firings(a) > before);
}

/// Its array is larger than its stack, and than the guard below: it is a fault of its own, and not one that computes
/// in others' memory.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_frame_larger_than_the_stack_is_contained() {
    let place = sources();
    compiled(
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
