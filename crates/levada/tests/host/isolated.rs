// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of isolated applications: they are controlled like all others, and whatever ends their process ends only
//! them.

use crate::common;
use crate::common::host::{Host, held_pipe, rogues, sources};
use crate::common::{Place, network, skipped};
use serde_json::Value;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn rogue(host: &Host, what: u32, more: &[&str]) -> String {
    let (file, name) = (format!("src/p/Rogue{what}.xdf"), format!("rogue{what}"));
    let mut args = vec!["load", &file, "--name", &name, "--out=/dev/null"];
    args.extend(["--isolate"]);
    args.extend(more);
    host.run(&args).succeeds();
    name
}

fn load(host: &Host, file: &str, name: &str, out: &str) -> u32 {
    let args = ["load", file, "--isolate", "--name", name, "--out", out];
    host.run(&args).succeeds();
    process(&host.seen(name))
}

fn process(seen: &Value) -> u32 {
    seen["isolated"].as_u64().unwrap_or_default() as u32
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|s| s.chars().next());
    state.is_some_and(|s| s != 'Z')
}

fn until_gone(pid: u32) {
    let start = Instant::now();
    while lives(pid) {
        let long = start.elapsed() > Duration::from_secs(60);
        assert!(!long, "the process {pid} lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pid: u32, signal: i32) {
    assert!(pid > 1);
    // SAFETY: it is a child of a host of this test, which has not been waited for.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

fn fires(host: &Host, name: &str) {
    let firings = |a: &Value| a["firings"].as_u64().unwrap_or(0);
    let before = firings(&host.seen(name));
    host.until(name, |a| firings(a) > before);
}

#[test]
fn isolated_applications_are_controlled_like_others() {
    let host = Host::begin();
    let pid = load(&host, "src/p/Many.xdf", "apart", "apart.txt");
    assert!(lives(pid) && pid != host.child.id());
    fires(&host, "apart");
    let shown = host.json(&["show", "apart"]);
    assert_eq!((&shown["name"], process(&shown)), (&"apart".into(), pid));
    assert_eq!(shown["actor"].as_array().unwrap().len(), 2);
    assert_eq!(shown["number"], host.seen("apart")["number"]);
    host.run(&["pause", "apart"]).succeeds();
    assert_eq!(host.seen("apart")["state"], "paused");
    let why = host.run(&["why", "apart"]);
    assert!(why.succeeds().out.contains("apart is paused"), "{why:?}");
    host.run(&["resume", "apart"]).succeeds();
    fires(&host, "apart");
    host.run(&["move", "apart", "source", "1"]).succeeds();
    host.run(&["move", "apart", "none", "1"])
        .refuses(4, &["none"]);
    let stats = host.json(&["stats"]);
    // The whole screen as JSON is the same, once.
    assert_eq!(
        host.json(&["top"])["application"].as_array().map(Vec::len),
        stats["application"].as_array().map(Vec::len)
    );
    assert_eq!(stats["host"]["applications"], 1);
    assert_eq!(stats["application"][0]["isolated"], pid);
    assert!(host.get("/metrics").contains("application=\"apart\""));
    let list = host.run(&["list"]);
    assert!(list.out.contains(&format!("running in {pid}")), "{list:?}");
    host.run(&["load", "src/p/Many.xdf", "--name=apart"])
        .refuses(5, &["an application apart is loaded already"]);
    let ended = host.json(&["unload", "apart"]);
    assert_eq!(ended["outcome"], "done");
    until_gone(pid);
    let text = std::fs::read_to_string(host.place.path("apart.txt")).unwrap();
    let good = text
        .lines()
        .enumerate()
        .all(|(i, l)| l == (i + 1).to_string());
    assert!(text.lines().count() > 1000 && good);
    host.run(&["show", "apart"]).refuses(4, &["no application"]);
    let events = host.run(&["events"]).succeeds().out.clone();
    for word in ["loaded", "paused", "resumed", "ended", "unloaded"] {
        assert!(events.contains(word), "{events}");
    }
}

#[test]
fn ended_application_frees_its_name() {
    let host = Host::begin();
    for _ in 0..3 {
        let args = [
            "load",
            common::host::TOP,
            "--isolate",
            "--name=few",
            "--out=few.txt",
        ];
        host.run(&args).succeeds();
        let ended = host.until("few", |a| a["state"] == "ended");
        assert_eq!(ended["outcome"], "done");
        until_gone(process(&ended));
        let text = std::fs::read_to_string(host.place.path("few.txt")).unwrap();
        assert_eq!(text, "1\n2\n3\n");
    }
    host.run(&["pause", "few"]).refuses(5, &["few has ended"]);
    // In the host itself it takes the place of what is left.
    host.run(&["load", common::host::TOP, "--name=few"])
        .succeeds();
    let all = host.json(&["list"]);
    assert_eq!(all.as_array().unwrap().len(), 1);
    assert_eq!(all[0]["isolated"], Value::Null);
}

#[test]
fn whatever_ends_its_process_ends_it_alone() {
    let host = Host::begin_in(rogues());
    host.many("other");
    let told = [
        (0, "its process was ended by signal 6 (Aborted)"),
        (1, "its process has exited with status 3"),
        (2, "its process was ended by signal 9 (Killed)"),
    ];
    for (what, how) in told {
        let name = rogue(&host, what, &[]);
        let failed = host.until(&name, |a| a["state"] == "failed");
        assert_eq!(failed["outcome"], how);
        let why = host.run(&["why", &name]);
        let says = format!("{name} has failed: {how}");
        assert!(why.succeeds().out.contains(&says), "{why:?}");
        host.run(&["resume", &name]).refuses(5, &["has ended"]);
        let ended = host.json(&["unload", &name]);
        assert_eq!(ended["outcome"], how);
    }
    let pid = load(&host, "src/p/Many.xdf", "killed", "killed.txt");
    let halves = || {
        let names = host.place.list(".").into_iter();
        names.filter(|n| n.starts_with("killed.txt.part-")).count()
    };
    host.until("killed", |_| halves() == 1);
    signal(pid, libc::SIGKILL);
    let failed = host.until("killed", |a| a["state"] == "failed");
    assert!(failed["outcome"].as_str().unwrap().contains("signal 9"));
    host.until("killed", |_| halves() == 0);
    fires(&host, "other");
    let events = host.run(&["events"]).succeeds().out.clone();
    assert_eq!(events.matches("failed").count(), 4, "{events}");
}

/// An application that is ended by a signal from outside is reported so, and leaves no partial output.
#[test]
fn an_end_by_a_signal_from_outside_is_reported_so() {
    let host = Host::begin();
    let told = [
        (libc::SIGTERM, "signal 15 (Terminated)"),
        (libc::SIGINT, "signal 2 (Interrupt)"),
        (libc::SIGHUP, "signal 1 (Hangup)"),
    ];
    for (number, how) in told {
        let pid = load(&host, "src/p/Many.xdf", "apart", "apart.txt");
        fires(&host, "apart");
        signal(pid, number);
        let failed = host.until("apart", |a| a["state"] == "failed");
        assert_eq!(failed["outcome"], format!("its process was ended by {how}"));
        until_gone(pid);
        let left = host.place.list("");
        assert!(
            left.iter().all(|name| !name.starts_with("apart.txt")),
            "{left:?}"
        );
        host.run(&["unload", "apart"]).succeeds();
    }
    // One that does not end then is killed, at once.
    let pid = load(&host, "src/p/Many.xdf", "apart", "/dev/null");
    signal(pid, libc::SIGSTOP);
    signal(pid, libc::SIGTERM);
    host.run(&["unload", "apart", "--now"]).succeeds();
    until_gone(pid);
}

/// Told again, it does not wait for a firing that lasts, and has ended by that signal, too.
#[test]
fn an_end_by_a_second_signal_is_reported_so() {
    let host = Host::begin_in(rogues());
    let name = rogue(&host, 3, &[]);
    host.until(&name, |a| a["firings"].as_u64() > Some(9));
    let pid = process(&host.seen(&name));
    while lives(pid) {
        // It may have gone since.
        // SAFETY: a child of a host of this test, or no process.
        unsafe { libc::kill(pid as i32, libc::SIGTERM) };
        std::thread::sleep(Duration::from_millis(50));
    }
    let failed = host.until(&name, |a| a["state"] == "failed");
    let how = "its process was ended by signal 15 (Terminated)";
    assert_eq!(failed["outcome"], how);
}

#[test]
fn faults_of_isolated_applications_are_reported_in_the_same_words() {
    let host = Host::begin();
    let args = ["load", "src/p/Bad.xdf", "--name=bad", "--out=/dev/null"];
    host.run(&[&args[..], &["--isolate"]].concat()).succeeds();
    let apart = host.until("bad", |a| a["state"] == "failed");
    host.run(&["unload", "bad"]).succeeds();
    host.run(&args).succeeds();
    let here = host.until("bad", |a| a["state"] == "failed");
    assert_eq!(apart["outcome"], here["outcome"]);
}

/// What was told of how it ended, each time.
fn ends_told(host: &Host, name: &str, ends: &[&str]) {
    let events = host.run(&["events", "--json"]).succeeds().out.clone();
    let events = events.lines().map(|l| serde_json::from_str(l).unwrap());
    let own = events.filter(|e: &Value| e["application"] == name);
    let told = own.map(|e| e["event"].as_str().unwrap().to_string());
    let told = told.filter(|e| ["ended", "failed", "unloaded"].contains(&e.as_str()));
    assert_eq!(told.collect::<Vec<_>>(), ends);
}

#[test]
fn an_application_that_does_not_return_is_removed_all_the_same() {
    let host = Host::begin_in(rogues());
    let name = rogue(&host, 3, &[]);
    host.until(&name, |a| a["firings"].as_u64() > Some(9));
    let pid = process(&host.seen(&name));
    host.run(&["unload", &name, "--timeout=0.2"])
        .refuses(8, &["draining still after 200ms"]);
    let unloaded = host.run(&["unload", &name, "--now", "--timeout=0.2", "--json"]);
    assert_eq!(unloaded.succeeds().json()["outcome"], "stopped");
    until_gone(pid);
    ends_told(&host, &name, &["ended", "unloaded"]);
    // One that does not respond at all delays no command for long.
    for with_its_guard in [false, true] {
        let pid = load(&host, "src/p/Many.xdf", "mute", "/dev/null");
        signal(pid, libc::SIGSTOP);
        if with_its_guard {
            // SAFETY: they are a group of their own, below a host of this test.
            let done = unsafe { libc::kill(-libc::getpgid(pid as i32), libc::SIGSTOP) };
            assert_eq!(done, 0);
        }
        assert_eq!(host.seen("mute")["isolated"], pid);
        host.run(&["unload", "mute", "--now"]).succeeds();
        until_gone(pid);
    }
    ends_told(&host, "mute", &["ended", "unloaded", "ended", "unloaded"]);
    assert_eq!(host.json(&["list"]), Value::Array(Vec::new()));
}

/// A stopped process is waited for up to the timeout, shared by all requests to it, and not longer if no reply is
/// needed.
#[test]
fn a_stopped_process_is_waited_for_until_the_timeout() {
    let host = Host::begin();
    let pid = load(&host, "src/p/Many.xdf", "mute", "/dev/null");
    fires(&host, "mute");
    signal(pid, libc::SIGSTOP);
    let silent = [
        "the process of mute has not answered within ",
        "s: it is stopped",
    ];
    let cont = format!("kill -CONT {pid}");
    for (what, limit) in [
        (&["pause", "mute"][..], "--timeout=1"),
        (&["resume", "mute"], "--timeout=1"),
        (&["unload", "mute"], "--timeout=1"),
        (&["move", "mute", "source", "1"], "--timeout=1"),
        (&["move", "mute", "source", "1"], "--json"),
    ] {
        let start = Instant::now();
        let run = host.run(&[what, &[limit]].concat());
        let took = start.elapsed();
        run.refuses(
            8,
            &[silent[0], silent[1], &cont, "levada unload mute --now"],
        );
        // It waited for as long as it says.
        let (_, told) = run.err.split_once(silent[0]).unwrap();
        let told: f64 = told.split_once("s:").unwrap().0.parse().unwrap();
        let told = Duration::from_secs_f64(told);
        assert!(told <= took, "{took:?}: {run:?}");
    }
    let why = host.run(&["why", "mute", "--timeout=1"]);
    let stopped = format!("mute: its process {pid} is stopped");
    assert!(why.succeeds().out.contains(&stopped), "{why:?}");
    assert_eq!(host.seen("mute")["isolated"], pid);
    host.json(&["show", "mute"]);
    signal(pid, libc::SIGCONT);
    // It was told to go as well.
    host.run(&["unload", "mute", "--now"]);
    until_gone(pid);
}

#[test]
fn memory_claims_stop_at_the_limit() {
    let host = Host::begin_in(rogues());
    host.run(&["load", "src/p/Many.xdf", "--isolate", "--memory=1K"])
        .refuses(6, &["Many claims", "and may have 1024"]);
    assert_eq!(host.json(&["list"]), Value::Array(Vec::new()));
    let name = rogue(&host, 4, &["--memory=64M"]);
    let failed = host.until(&name, |a| a["state"] == "failed");
    let how = failed["outcome"].as_str().unwrap();
    assert!(
        how.contains("signal 6 (Aborted); it had all but reached its limit of memory"),
        "{how}"
    );
    // An application that ends before it has used up its limit is not reported to have exceeded it.
    let name = rogue(&host, 0, &["--memory=64M"]);
    let failed = host.until(&name, |a| a["state"] == "failed");
    assert!(
        failed["outcome"]
            .as_str()
            .unwrap()
            .ends_with("signal 6 (Aborted)")
    );
}

/// For how long it ran is known whatever its process says; of all else, after how long it said that.
#[test]
fn the_run_time_of_an_unexplained_end_is_correct() {
    let host = Host::begin();
    for killed in [true, false] {
        let start = Instant::now();
        let pid = load(&host, "src/p/Many.xdf", "mute", "/dev/null");
        let loaded = Instant::now();
        fires(&host, "mute");
        assert_eq!(host.seen("mute")["last_report_s"], Value::Null);
        std::thread::sleep(Duration::from_millis(1500));
        let ran_for = |a: &Value, least: f64| {
            let (seconds, told) = (a["seconds"].as_f64().unwrap(), a["last_report_s"].as_f64());
            let most = start.elapsed().as_secs_f64();
            assert!(least <= seconds && seconds <= most, "{least} {a} {most}");
            assert!(told.is_some_and(|told| told < seconds - 1.0), "{a}");
            assert!(a["firings"].as_u64() > Some(0), "{a}");
        };
        signal(pid, if killed { libc::SIGKILL } else { libc::SIGSTOP });
        let least = loaded.elapsed().as_secs_f64();
        let told = if killed {
            let failed = host.until("mute", |a| a["state"] == "failed");
            ran_for(&failed, least);
            "has ended without a word"
        } else {
            ran_for(&host.seen("mute"), least);
            "does not answer"
        };
        for args in [&["list"][..], &["show", "mute"]] {
            let shown = host.run(args);
            let words = "mute: what it has done is what it said after ";
            let out = &shown.succeeds().out;
            assert!(out.contains(words) && out.contains(told), "{out}");
        }
        ran_for(&host.json(&["unload", "mute", "--now"]), least);
    }
    // An application that fails by itself leaves a crash record.
    let args = [
        "load",
        "src/p/Bad.xdf",
        "--name=bad",
        "--out=/dev/null",
        "--isolate",
    ];
    host.run(&args).succeeds();
    let failed = host.until("bad", |a| a["state"] == "failed");
    assert_eq!(failed["last_report_s"], Value::Null);
    assert!(failed["firings"].as_u64() > Some(0), "{failed}");
}

/// Takes memory until there is no more, says in a file how many MiB it had, and ends, or stays.
const EATS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int all = 0;
  for (void *p; (p = malloc(1 << 20)); all++) memset(p, 1, 1 << 20);
  FILE *file = fopen(argv[1], "w");
  if (!file) return 2;
  fprintf(file, "%d\n", all);
  if (fclose(file)) return 3;
  while (argc > 2) sleep(1);
  return 1;
}
"#;

/// What Levada takes itself is none of it: of a C program, which needs most of that, of a small limit and of a
/// large one. The process answers, or refuses, when all is taken.
#[test]
fn memory_can_be_claimed_up_to_the_limit() {
    let place = sources();
    place.write("eats.c", EATS);
    place
        .run(&["cc", "--plugin", "eats.c", "-o", "eats.so"])
        .succeeds();
    let host = Host::begin_printing(place, &[]);
    // So much more at the most, with two workers.
    let itself = 64 + 2 * 9;
    for (size, stays) in [(1, true), (10, false), (50, true), (200, false)] {
        let out = format!("{size}.txt");
        let memory = format!("--memory={size}M");
        let mut args = vec!["load", "eats.so", "--name=eats", "--isolate", &memory];
        args.extend(["--socket=h.sock", "--", &out]);
        args.extend(stays.then_some("stays"));
        host.place.run(&args).succeeds();
        let start = Instant::now();
        let all = loop {
            let text = std::fs::read_to_string(host.place.path(&out)).unwrap_or_default();
            if text.ends_with('\n') {
                break text.trim().parse::<u32>().unwrap();
            }
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "nothing is said"
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!((size..=size + itself).contains(&all), "{size} MiB: {all}");
        if stays {
            let pid = process(&host.seen("eats"));
            for _ in 0..4 {
                host.run(&["why", "eats"]);
                assert!(lives(pid));
            }
            host.run(&["unload", "eats", "--now"]).succeeds();
        } else {
            let failed = host.until("eats", |a| a["state"] == "failed");
            let how = failed["outcome"].as_str().unwrap();
            assert!(
                how.ends_with("; it had all but reached its limit of memory (--memory)"),
                "{how}"
            );
        }
    }
    assert!(!host.said().contains("panicked"), "{}", host.said());
}

#[test]
fn a_host_that_is_killed_takes_it_along_and_the_next_one_loads_it_again() {
    let host = Host::begin();
    let pid = load(&host, "src/p/Many.xdf", "apart", "/dev/null");
    let mut host = host;
    host.child.kill().unwrap();
    host.child.wait().unwrap();
    until_gone(pid);
    let dead = format!("levada-isolated-{}-", host.child.id());
    let place = std::mem::replace(&mut host.place, Place::new(&[]));
    let host = Host::begin_with(place, &["--restore"]);
    let again = host.until("apart", |a| a["state"] == "running");
    assert!(lives(process(&again)) && process(&again) != pid);
    let left = std::fs::read_dir(std::env::temp_dir()).unwrap();
    let mut left = left.flatten().map(|e| e.file_name().into_string().unwrap());
    assert!(left.all(|name| !name.starts_with(&dead)));
    // A host that is told to end lets it finish, which is no failure of it.
    let mut host = host;
    for told in [libc::SIGTERM, libc::SIGINT] {
        let running = host.until("apart", |a| a["state"] == "running");
        signal(host.child.id(), told);
        until_gone(process(&running));
        host.until_dead();
        assert_eq!(host.child.wait().unwrap().code(), Some(0));
        assert!(!host.said().contains("has failed"), "{}", host.said());
        host = host.again(&["--restore"]);
    }
}

#[test]
fn a_new_version_goes_on_in_the_same_process() {
    let place = sources();
    place.write(
        "src/p/Read.cal",
        "package p;\nimport levada.io.*;\nactor Read () ==> int Out :\n  action ==> Out:[io_read_number()] guard \
         io_more() end\nend\n",
    );
    let text = network(
        &[("read", "p.Read", &[]), ("write", "p.Write", &[])],
        &[("read.Out", "write.In")],
    );
    for name in ["Copy", "Again"] {
        let file = format!("src/p/{name}.xdf");
        place.write(&file, &text.replace("\"Top\"", &format!("\"{name}\"")));
    }
    let mut input = held_pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    let args = ["load", "src/p/Copy.xdf", "--isolate", "--name=copy"];
    host.run(&[&args[..], &["--in=in.fifo", "--out=out.txt"]].concat())
        .succeeds();
    let pid = process(&host.seen("copy"));
    // A client continues to write while one version takes over from the other.
    let over = AtomicBool::new(false);
    let last = std::thread::scope(|scope| {
        let writes = scope.spawn(|| {
            let mut last = 0;
            while !over.load(Ordering::Relaxed) {
                last += 1;
                input.write_all(format!("{last} ").as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
            last
        });
        host.until("copy", |a| a["firings"].as_u64() > Some(3));
        host.run(&["replace", "copy", "src/p/Again.xdf"]).succeeds();
        let seen = host.seen("copy");
        assert_eq!((process(&seen), &seen["network"]), (pid, &"p.Again".into()));
        host.until("copy", |a| a["firings"].as_u64() > Some(3));
        over.store(true, Ordering::Relaxed);
        writes.join().unwrap()
    });
    drop(input);
    let ended = host.until("copy", |a| a["state"] == "ended");
    assert_eq!(ended["outcome"], "done");
    let text = std::fs::read_to_string(host.place.path("out.txt")).unwrap();
    let all: String = (1..=last).map(|i| format!("{i}\n")).collect();
    assert_eq!(text, all);
    host.many("here");
    host.run(&["replace", "here", "src/p/Again.xdf", "--isolate"])
        .refuses(3, &["here has no process of its own"]);
}

#[test]
fn all_applications_of_a_manifest_are_loaded_or_none() {
    let host = Host::begin();
    let one = |name: &str, file: &str, more: &str| {
        format!(
            "[[application]]\nname = \"{name}\"\nnetwork = \"{file}\"\nout = \"/dev/null\"\n{more}\n"
        )
    };
    let apart = one("apart", "src/p/Many.xdf", "isolate = true");
    let here = one("here", "src/p/Many.xdf", "");
    let much = one("much", "src/p/Many.xdf", "isolate = true\nmemory = 1000");
    host.place
        .write("bad.toml", &(apart.clone() + &here + &much));
    host.run(&["load", "bad.toml"])
        .refuses(6, &["much claims ", "and may have 1000"]);
    assert_eq!(host.json(&["list"]), Value::Array(Vec::new()));
    host.place.write("good.toml", &(apart + &here));
    host.run(&["load", "good.toml"]).succeeds();
    fires(&host, "apart");
    fires(&host, "here");
    assert_eq!(host.seen("here")["isolated"], Value::Null);
    // The numbers are of one count.
    let (a, b) = (host.seen("apart"), host.seen("here"));
    assert!(a["number"].as_u64() < b["number"].as_u64());
}

#[test]
fn wrong_ways_to_hand_over_a_socket_are_told() {
    let place = sources();
    place
        .run(&["host", "--listener=3"])
        .refuses(3, &["no socket is handed over (--listener)"]);
    place
        .run(&["host", "--listener=1"])
        .refuses(2, &["listener"]);
}

/// What its process has forked, in a session of its own and with no parent any more, ends with it.
#[test]
fn forked_processes_end_with_the_application() {
    let mut host = Host::begin_in(rogues());
    let left = |host: &Host, before: usize| -> u32 {
        let start = Instant::now();
        loop {
            let all = std::fs::read(host.place.path("left")).unwrap_or_default();
            if let Some(last) = all[before * 4..].first_chunk::<4>() {
                return u32::from_ne_bytes(*last);
            }
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "nothing is forked"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let ways = ["--now", "drained", "killed", "told to end", "host killed"];
    for (n, way) in ways.into_iter().enumerate() {
        let name = rogue(&host, 7, &[]);
        let (forked, process) = (left(&host, n), process(&host.seen(&name)));
        assert!(lives(forked) && forked != process);
        match way {
            "--now" => drop(host.run(&["unload", &name, "--now"]).succeeds()),
            "drained" => drop(host.run(&["unload", &name]).succeeds()),
            "killed" => {
                signal(process, libc::SIGKILL);
                let failed = host.until(&name, |a| a["state"] == "failed");
                assert!(failed["outcome"].as_str().unwrap().contains("signal 9"));
            }
            "told to end" => host = host.again(&[]),
            _ => host.child.kill().unwrap(),
        }
        until_gone(forked);
        until_gone(process);
    }
}

/// Where an actor of an application is.
fn worker_of(host: &Host, name: &str, actor: &str) -> u64 {
    let shown = host.json(&["show", name]);
    let actors = shown["actor"].as_array().unwrap();
    let found = actors.iter().find(|a| a["name"] == actor).unwrap();
    found["worker"].as_u64().unwrap()
}

fn load_alone(host: &Host) -> common::Run {
    let args = ["load", "src/p/Many.xdf", "--name=alone", "--out=/dev/null"];
    host.run(&[&args[..], &["--exclusive"]].concat())
}

/// Two start on two cores, whether or not the first has been measured; and so does one next to an application that is
/// not isolated.
#[test]
fn they_begin_where_others_leave_most() {
    let place = sources();
    place.write(
        "src/p/Spin.cal",
        "package p;\nactor Spin () ==> :\n  int n := 0;\n  action ==> do n := n + 1; end\nend\n",
    );
    let spin = network(&[("spin", "p.Spin", &[])], &[]);
    place.write("src/p/Spins.xdf", &spin.replace("\"Top\"", "\"Spins\""));
    let host = Host::begin_in(place);
    let load = |name: &str, more: &[&str]| {
        let args = ["load", "src/p/Spins.xdf", "--name", name];
        host.run(&[&args[..], more].concat()).succeeds();
        worker_of(&host, name, "spin")
    };
    for first in [
        &["--isolate", "--paused"][..],
        &["--isolate"],
        &["--paused"],
    ] {
        let one = load("one", first);
        if !first.contains(&"--paused") {
            fires(&host, "one");
        }
        let two = load("two", &["--isolate", "--paused"]);
        assert_ne!(one, two, "{first:?}");
        for name in ["one", "two"] {
            host.run(&["unload", name, "--now"]).succeeds();
        }
    }
}

/// Requests do not wait for an application that occupies a core: one core for an action that does not end, all cores
/// for a process that does not respond. Its pending requests are void when it responds again.
#[test]
fn a_core_that_one_keeps_is_not_given_away() {
    let host = Host::begin_in(rogues());
    let name = rogue(&host, 3, &["--no-fuse"]);
    host.until(&name, |a| a["firings"].as_u64() > Some(9));
    let kept = worker_of(&host, &name, "rogue");
    load_alone(&host).succeeds();
    assert_eq!(host.seen("alone")["exclusive"], 1 - kept);
    for actor in ["source", "write"] {
        assert_eq!(worker_of(&host, &name, actor), kept);
    }
    host.run(&["unload", "alone", "--now"]).succeeds();
    host.run(&["unload", &name, "--now"]).succeeds();
    let pid = load(&host, "src/p/Many.xdf", "mute", "/dev/null");
    fires(&host, "mute");
    signal(pid, libc::SIGSTOP);
    let silent = format!("mute, in process {pid}, does not answer");
    load_alone(&host).refuses(5, &["no core could be emptied for alone", &silent]);
    signal(pid, libc::SIGCONT);
    fires(&host, "mute");
    for worker in ["0", "1"] {
        let start = Instant::now();
        while host.run(&["move", "mute", "source", worker]).code != Some(0) {
            let long = start.elapsed() > Duration::from_secs(60);
            assert!(!long, "worker {worker} does not come back");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let start = Instant::now();
    while load_alone(&host).code != Some(0) {
        let long = start.elapsed() > Duration::from_secs(60);
        assert!(!long, "it keeps its cores");
    }
    let own = host.seen("alone")["exclusive"].as_u64().unwrap();
    assert_ne!(worker_of(&host, "mute", "source"), own);
    fires(&host, "mute");
}

/// While this is open, opening that file blocks (fanotify). `None`: not permitted for this user.
fn held_up(file: &std::path::Path) -> Option<std::os::fd::OwnedFd> {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    let flags = libc::FAN_CLASS_CONTENT | libc::FAN_CLOEXEC;
    // SAFETY: has no preconditions; what comes back is ours.
    let group = unsafe {
        let fd = libc::fanotify_init(flags, libc::O_RDONLY as u32);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))?
    };
    let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
    // SAFETY: the descriptor is open, and the path is terminated.
    let done = unsafe {
        libc::fanotify_mark(
            group.as_raw_fd(),
            libc::FAN_MARK_ADD,
            libc::FAN_OPEN_PERM,
            libc::AT_FDCWD,
            path.as_ptr(),
        )
    };
    (done == 0).then_some(group)
}

/// A slow state folder delays requests that change the state, and no queries.
#[test]
fn an_end_that_cannot_be_remembered_at_once_holds_up_no_list() {
    let host = Host::begin();
    host.many("other");
    let pid = load(&host, "src/p/Many.xdf", "apart", "/dev/null");
    let Some(slow) = held_up(&host.place.path("state/other.json")) else {
        return skipped(
            "an end that cannot be remembered at once",
            "no file can be held up here (fanotify needs CAP_SYS_ADMIN)",
        );
    };
    std::thread::scope(|scope| {
        // It reads what is remembered of that one, and gets no further.
        let pauses = scope.spawn(|| host.run(&["pause", "other"]));
        host.until("other", |a| a["state"] == "paused");
        std::thread::sleep(Duration::from_millis(300));
        signal(pid, libc::SIGKILL);
        until_gone(pid);
        std::thread::sleep(Duration::from_millis(300));
        // It answers while that is held up still.
        host.run(&["list"]).succeeds();
        drop(slow);
        pauses.join().unwrap();
    });
    host.until("apart", |a| a["state"] == "failed");
    assert!(!host.place.exists("state/apart.json"));
}
