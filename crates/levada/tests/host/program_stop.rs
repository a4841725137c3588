// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests that C programs are paused and ended wherever they are: in forks, in system calls, in a library.

use crate::common::host::{Host, compiled, held_pipe, sources};
use crate::common::sees_returns;
use std::io::Write;
use std::time::{Duration, Instant};

/// Each of its activations is short, and it has always forks open: it ends at one of them, when it has computed for a
/// while. That is time of its own: on a busy machine it takes many times as long, and is tried less often.
#[test]
fn endless_forks_can_be_ended() {
    let place = sources();
    compiled(
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
            host.run(&["pause", &name, "--timeout", "0.2"]);
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
fn a_program_that_only_yields_or_computes_can_be_ended() {
    let place = sources();
    compiled(
        &place,
        "turns",
        "#include <levada/fiber.h>\n#include <levada/native.h>\n#include <levada/program.h>\n#include <string.h>\n\
         static void yields(void *unused) {\n  (void)unused;\n  for (;;) lvd_fiber_yield();\n}\n\
         int main(int argc, char **argv) {\n  const char *how = argc > 1 ? argv[1] : \"\";\n  \
         for (int i = 0; i < 3 && strcmp(how, \"several\") == 0; i++)\n    \
         lvd_fiber_start(lvd_current_app(), yields, NULL, NULL, NULL);\n  \
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
                replaced.refuses(5, &["a has ended before it was replaced"]);
            });
        }
    }
    assert_eq!(host.seen("net")["state"], "running");
}

/// It calls the system again and again for what does not come: it is ended when such a call has come back to its own
/// code, and what a library has locked meanwhile is free.
#[test]
fn a_program_blocked_in_the_system_can_be_ended() {
    if !sees_returns("the end of a program that sleeps") {
        return;
    }
    let place = sources();
    compiled(
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

/// It is in the system nearly all of its time, in its own code never for longer than a moment: paused it does
/// nothing more, and goes on. What is said to go on after a signal does, and is told of no error.
#[test]
fn a_program_blocked_in_the_system_can_be_paused() {
    if !sees_returns("the pause of a program that sleeps") {
        return;
    }
    let place = sources();
    compiled(
        &place,
        "ticks",
        "#include <poll.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n\
         int main(int argc, char **argv) {\n  FILE *out = fopen(argv[2], \"w\");\n  \
         for (char byte;;) {\n    if (!strcmp(argv[1], \"sleep\")) sleep(1);\n    \
         if (!strcmp(argv[1], \"usleep\")) usleep(300);\n    if (!strcmp(argv[1], \"poll\")) poll(NULL, 0, 150);\n    \
         if (!strcmp(argv[1], \"read\") && read(0, &byte, 0)) return 1;\n    fprintf(out, \"tick\\n\");\n    \
         fflush(out);\n  }\n}\n",
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
                    assert!(start.elapsed() < Duration::from_secs(300), "{how}: no tick");
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

/// It waits for what does not come, or in a library: what it is in is told, and it is held when it has come back. A
/// read that is waited for fails for no pause.
#[test]
fn a_program_paused_in_a_call_stops_after_it() {
    if !sees_returns("a pause in a call") {
        return;
    }
    let place = sources();
    compiled(
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
            assert!(start.elapsed() < Duration::from_secs(300), "{}", text());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for all in ["a", "ab", "abc"] {
        let next = &all[all.len() - 1..];
        host.run(&["pause", "a", "--timeout=0.5"]).refuses(
            8,
            &[
                "a is paused, but it has not come to where it can be held within 500ms: main ",
                "levada unload a --now",
            ],
        );
        // On a busy machine it may have been on its way there still.
        let start = Instant::now();
        loop {
            let told = host.run(&["why", "a"]).succeeds().out.clone();
            assert!(told.starts_with("a is paused, but "), "{told}");
            if told.contains("main sleeps in the system") {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(300), "{told}");
        }
        // What it has waited for comes: it is held before it does anything with that.
        input.write_all(next.as_bytes()).unwrap();
        let start = Instant::now();
        let why = || host.run(&["why", "a"]).succeeds().out.clone();
        while why() != "a is paused\n" {
            assert!(start.elapsed() < Duration::from_secs(300), "{}", why());
        }
        assert_eq!(text(), all[..all.len() - 1]);
        host.run(&["resume", "a"]).succeeds();
        until(all);
    }
    // Ended while it is paused there, it is not waited for.
    host.run(&["pause", "a", "--timeout=0.3"])
        .refuses(8, &["a is paused, but"]);
    assert_eq!(host.json(&["unload", "a", "--now"])["outcome"], "stopped");
}

/// The clock of its worker hardly ever meets it in code of its own.
#[test]
fn a_program_that_is_in_a_library_ends_at_once() {
    if !sees_returns("the end of a program in a library") {
        return;
    }
    const ROUNDS: usize = 3;
    let place = sources();
    compiled(
        &place,
        "prints",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nstatic char text[100001];\n\
         int main(int argc, char **argv) {\n  const char *how = argc > 1 ? argv[1] : \"\";\n  \
         FILE *out = fopen(\"/dev/null\", \"w\");\n  if (!out) return 1;\n  \
         memset(text, 'x', sizeof text - 1);\n  \
         if (!strcmp(how, \"writes\")) setvbuf(out, NULL, _IONBF, 0);\n  \
         size_t (*volatile counts)(const char *) = strlen;\n  \
         while (!strcmp(how, \"counts\")) if (!counts(text)) return 2;\n  \
         for (int i = 0;; i++) if (fprintf(out, \"line %d\\n\", i) < 0) return 3;\n}\n",
    );
    let host = Host::begin_in(place);
    host.many("net");
    for how in ["prints", "writes", "counts"] {
        for more in [&[][..], &["--cpus=0.3"]] {
            let mut longest = Duration::ZERO;
            for _ in 0..ROUNDS {
                let load = ["load", "prints.so", "--name=a", "--socket", "h.sock"];
                let all = [&load[..], more, &["--", how]].concat();
                host.place.run(&all).succeeds();
                std::thread::sleep(Duration::from_millis(300));
                let start = Instant::now();
                let ended = host.json(&["unload", "a", "--now"]);
                assert_eq!(ended["outcome"], "stopped", "{how}");
                longest = longest.max(start.elapsed());
            }
            println!("{how} {more:?}: {longest:?}");
            // With the time that others on the machine take.
            assert!(longest < Duration::from_secs(4), "{how}: {longest:?}");
        }
    }
    let fired = host.seen("net")["firings"].as_u64();
    host.until("net", |a| a["firings"].as_u64() > fired);
}
