// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of applications with exclusive use of a core of the host.

use crate::common;
use crate::common::host::{Host, TOP};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const MANY_XDF: &str = "src/p/Many.xdf";

fn load(host: &Host, name: &str, more: &[&str]) -> common::Run {
    let args = ["load", MANY_XDF, "--name", name, "--out", "/dev/null"];
    host.run(&[&args[..], more].concat())
}

/// Where the actors of an application are.
fn workers(host: &Host, name: &str) -> BTreeSet<u64> {
    let shown = host.json(&["show", name]);
    let actors = shown["actor"].as_array().unwrap();
    actors
        .iter()
        .map(|a| a["worker"].as_u64().unwrap())
        .collect()
}

fn until(what: &str, good: impl Fn() -> bool) {
    let start = Instant::now();
    while !good() {
        assert!(start.elapsed() < Duration::from_secs(300), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn works(host: &Host, name: &str) {
    let firings = |seen: Value| seen["firings"].as_u64();
    let before = firings(host.seen(name));
    host.until(name, |a| a["firings"].as_u64() > before);
}

#[test]
fn nothing_else_is_on_its_core() {
    let host = Host::begin();
    for name in ["a", "b"] {
        load(&host, name, &[]).succeeds();
    }
    let said = load(&host, "alone", &["--exclusive"]);
    let seen = host.seen("alone");
    let own = seen["exclusive"].as_u64().unwrap();
    assert!(
        said.succeeds()
            .out
            .contains(&format!("alone on worker {own}")),
        "{said:?}"
    );
    // Also applications that were placed without measurements, or are loaded later.
    load(&host, "c", &[]).succeeds();
    until("others leave", || {
        ["a", "b", "c"]
            .iter()
            .all(|name| !workers(&host, name).contains(&own))
    });
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        assert_eq!(workers(&host, "alone"), BTreeSet::from([own]));
        for name in ["a", "b", "c"] {
            assert!(!workers(&host, name).contains(&own), "{name}");
        }
    }
    for name in ["a", "b", "c", "alone"] {
        works(&host, name);
    }
    let own = own.to_string();
    let why = format!("worker {own} is exclusive to alone");
    host.run(&["move", "a", "source", &own])
        .refuses(5, &["source cannot be moved", &why]);
    // Of two workers one is for all.
    load(&host, "more", &["--exclusive"])
        .refuses(6, &["no core for more alone: of 2 workers 1 is for all"]);
    // A new version has the same core, and nothing comes between.
    for _ in 0..3 {
        host.run(&["replace", "alone", MANY_XDF]).succeeds();
        assert_eq!(host.seen("alone")["exclusive"].to_string(), own);
        works(&host, "alone");
        host.run(&["move", "a", "source", &own])
            .refuses(5, &["move"]);
    }
    host.run(&["replace", "a", MANY_XDF, "--exclusive"])
        .refuses(6, &["no core for a alone: of 2 workers 1 is for all"]);
    host.run(&["unload", "alone", "--now"]).succeeds();
    // The core is for all again, and the others come to it.
    host.run(&["move", "a", "source", &own]).succeeds();
    load(&host, "more", &["--exclusive"]).succeeds();
    works(&host, "more");
}

/// Whether an isolated application can have an actor there: its process has been told that it may.
fn may_be_on(host: &Host, name: &str, worker: &str) -> bool {
    let moved = host.run(&["move", name, "source", worker]);
    host.run(&["move", name, "source", "--unpin"]);
    moved.code == Some(0)
}

/// Nor is what has a process of its own, whichever is there first; when the core comes back, it comes to it.
#[test]
fn nothing_isolated_is_on_its_core() {
    for order in [["alone", "apart"], ["apart", "alone"]] {
        let host = Host::begin();
        for name in order {
            let how = ["--exclusive", "--isolate"][usize::from(name == "apart")];
            load(&host, name, &["--no-fuse", how]).succeeds();
        }
        let own = host.seen("alone")["exclusive"].as_u64().unwrap();
        let other = BTreeSet::from([1 - own]);
        // At once, and for good.
        for _ in 0..50 {
            assert_eq!(workers(&host, "apart"), other, "{order:?}");
        }
        works(&host, "alone");
        works(&host, "apart");
        let map = host.json(&["map"]);
        let isolated = |worker: u64| {
            let there = &map[worker as usize]["isolated"];
            there.as_array().map_or(0, Vec::len)
        };
        assert_eq!((isolated(own), isolated(1 - own)), (0, 2), "{map}");
        let text = host.run(&["map"]);
        let rows = text.succeeds().out.lines();
        let apart: Vec<&str> = rows.filter(|row| row.contains("apart.")).collect();
        assert!(apart.len() == 2 && apart.iter().all(|row| row.contains("isolated")));
        let worker = own.to_string();
        let why = format!("worker {worker} is exclusive to alone");
        host.run(&["move", "apart", "source", &worker])
            .refuses(5, &["source cannot be moved", &why]);
        // A new version has the same core, and nothing comes between.
        host.run(&["replace", "alone", MANY_XDF]).succeeds();
        assert_eq!(host.seen("alone")["exclusive"], own);
        assert_eq!(workers(&host, "apart"), other);
        host.run(&["unload", "alone", "--now"]).succeeds();
        until("the core comes back", || may_be_on(&host, "apart", &worker));
    }
}

/// A thread waits for the end of the process that a core is left to, until the core comes back.
#[test]
fn a_returned_core_is_no_longer_monitored() {
    let host = Host::begin();
    let cpu = &host.json(&["map"])[0]["cpu"];
    if *cpu == -1 {
        return common::skipped("leaving a core", "its workers have no cores of their own");
    }
    let tasks = format!("/proc/{}/task", host.child.id());
    let watch = || {
        let all = std::fs::read_dir(&tasks).unwrap().flatten();
        let names = all.map(|t| std::fs::read_to_string(t.path().join("comm")));
        names
            .flatten()
            .filter(|n| n.trim() == "levada/reserve")
            .count()
    };
    let path = format!("/cores/{cpu}/reservation");
    let body = format!("{{\"process\": {}}}", std::process::id());
    for _ in 0..3 {
        assert!(host.post(&path, &body).starts_with("HTTP/1.1 200"));
        until("the host watches the process", || watch() == 1);
        let back = format!("DELETE {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert!(host.raw(back.as_bytes()).starts_with("HTTP/1.1 200"));
        until("the host no longer watches it", || watch() == 0);
    }
}

/// A core that is vacated for another program is vacated by all applications.
#[test]
fn nothing_isolated_is_on_a_core_that_is_away() {
    let host = Host::begin();
    load(&host, "apart", &["--isolate", "--no-fuse"]).succeeds();
    let map = host.json(&["map"]);
    if map[0]["cpu"] == -1 {
        return common::skipped("leaving a core", "its workers have no cores of their own");
    }
    for worker in [0, 1, 0] {
        let path = format!("/cores/{}/reservation", map[worker]["cpu"]);
        let body = format!("{{\"process\": {}}}", std::process::id());
        assert!(host.post(&path, &body).starts_with("HTTP/1.1 200"));
        let other = BTreeSet::from([1 - worker as u64]);
        assert_eq!(workers(&host, "apart"), other);
        // Applications that are loaded later avoid it, too.
        load(&host, "later", &["--isolate", "--no-fuse"]).succeeds();
        assert_eq!(workers(&host, "later"), other);
        works(&host, "apart");
        let back = format!("DELETE {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert!(host.raw(back.as_bytes()).starts_with("HTTP/1.1 200"));
        for name in ["apart", "later"] {
            let worker = worker.to_string();
            until("the core comes back", || may_be_on(&host, name, &worker));
        }
        host.run(&["unload", "later", "--now"]).succeeds();
    }
}

#[test]
fn a_failed_or_ended_application_gives_its_core_back() {
    let host = Host::begin();
    let args = [
        "load",
        "src/p/Bad.xdf",
        "--name",
        "bad",
        "--out",
        "/dev/null",
        "--exclusive",
    ];
    host.run(&args).succeeds();
    host.until("bad", |a| a["state"] == "failed");
    let args = [
        "load",
        TOP,
        "--name",
        "few",
        "--out",
        "/dev/null",
        "--exclusive",
    ];
    host.run(&args).succeeds();
    host.until("few", |a| a["outcome"] == "done");
    load(&host, "many", &["--exclusive"]).succeeds();
    works(&host, "many");
}

#[test]
fn impossible_exclusive_loads_are_refused() {
    let host = Host::begin();
    load(&host, "x", &["--exclusive", "--isolate"]).refuses(3, &["isolated", "--exclusive"]);
    host.place.write("main.c", "int main(void) { return 0; }\n");
    let compile = ["cc", "--plugin", "main.c", "-o", "main.so"];
    host.place.run(&compile).succeeds();
    host.run(&["load", "main.so", "--exclusive"])
        .refuses(3, &["a C program", "--exclusive"]);
    host.place.write(
        "both.toml",
        &format!(
            "[[application]]\nnetwork = \"{MANY_XDF}\"\nname = \"m\"\nout = \"/dev/null\"\nexclusive = true\n"
        ),
    );
    host.run(&["load", "both.toml"]).succeeds();
    assert!(host.seen("m")["exclusive"].is_u64());
}

/// The moves of an actor that were told, in their order.
fn moves(host: &Host, name: &str, actor: &str) -> Vec<(u64, u64)> {
    let told = host.run(&["events", "--json"]);
    let told = told.succeeds();
    let all = told
        .out
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap());
    let own = all.filter(|e| e["event"] == "moved" && e["application"] == name);
    let own = own.filter(|e| e["actor"] == actor);
    own.map(|e| (e["from"].as_u64().unwrap(), e["to"].as_u64().unwrap()))
        .collect()
}

/// Every move is told, once and in order, to where the actor is: also those of the runtime, from a core that is
/// taken away, and back to where one must stay.
#[test]
fn moves_from_a_core_that_is_taken_are_told() {
    let host = Host::begin();
    load(&host, "a", &["--no-fuse"]).succeeds();
    load(&host, "b", &["--no-fuse", "--paused"]).succeeds();
    let at = |name, actor: &str| {
        let shown = host.json(&["show", name]);
        let actors = shown["actor"].as_array().unwrap();
        let found = actors.iter().find(|a| a["name"] == actor).unwrap();
        found["worker"].as_u64().unwrap()
    };
    for (name, actor) in [("a", "source"), ("b", "source")] {
        host.run(&["move", name, actor, "1"]).succeeds();
        until("it comes to it", || at(name, actor) == 1);
    }
    let told_of = |name, actor: &'static str| {
        let all = moves(&host, name, actor);
        assert!(all.iter().all(|(from, to)| from != to), "{all:?}");
        assert!(all.windows(2).all(|w| w[0].1 == w[1].0), "{all:?}");
        all.last().map(|last| last.1)
    };
    let cpu = host.json(&["map"])[1]["cpu"].as_i64().unwrap();
    let path = format!("/cores/{cpu}/reservation");
    let body = format!("{{\"process\": {}}}", std::process::id());
    for _ in 0..3 {
        assert!(host.post(&path, &body).starts_with("HTTP/1.1 200"));
        for name in ["a", "b"] {
            assert_eq!(at(name, "source"), 0);
            until("it is told", || told_of(name, "source") == Some(0));
        }
        let back = format!("DELETE {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert!(host.raw(back.as_bytes()).starts_with("HTTP/1.1 200"));
        // It must stay there, and goes back.
        until("it goes back", || at("a", "source") == 1);
        until("it is told", || told_of("a", "source") == Some(1));
        host.run(&["move", "b", "source", "1"]).succeeds();
    }
    load(&host, "alone", &["--exclusive"]).succeeds();
    let own = host.seen("alone")["exclusive"].as_u64().unwrap();
    for actor in ["source", "write"] {
        assert_ne!(at("a", actor), own);
        until("it is told", || {
            told_of("a", actor).is_none_or(|at| at != own)
        });
    }
}

/// A C program that keeps the core that it is on.
fn load_sleeper(host: &Host, name: &str) {
    let place = &host.place;
    place.write(
        "sleeps.c",
        "#include <stdio.h>\n#include <unistd.h>\nint main(int argc, char **argv) {\n  \
         FILE *f = fopen(argv[1], \"w\");\n  fclose(f);\n  \
         int p[2];\n  char c;\n  return pipe(p) || read(p[0], &c, 1) < 0;\n}\n",
    );
    let compile = ["cc", "--plugin", "sleeps.c", "-o", "sleeps.so"];
    place.run(&compile).succeeds();
    let there = place.path(name);
    let argument = there.to_str().unwrap();
    let args = [
        "load",
        "sleeps.so",
        "--name",
        name,
        "--socket=h.sock",
        "--",
        argument,
    ];
    place.run(&args).succeeds();
    until("it begins", || there.exists());
}

/// It is not waited for: another core is emptied, and the answer is true when it comes.
#[test]
fn a_core_that_is_kept_is_not_waited_for() {
    let host = Host::begin();
    load_sleeper(&host, "sleeper");
    let said = load(&host, "alone", &["--exclusive"]);
    let own = host.seen("alone")["exclusive"].as_u64().unwrap();
    assert!(
        said.succeeds()
            .out
            .contains(&format!("alone on worker {own}"))
    );
    for _ in 0..100 {
        assert_eq!(workers(&host, "alone"), BTreeSet::from([own]));
    }
    works(&host, "alone");
}

/// If each core is occupied, the error names the applications, and nothing has changed; likewise if only the occupied
/// core would remain for others.
#[test]
fn exclusive_load_is_refused_if_no_core_can_be_vacated() {
    let host = Host::begin();
    load_sleeper(&host, "one");
    load(&host, "a", &[]).succeeds();
    works(&host, "a");
    // When it has slept for a second it is seen to stay.
    let stays = || std::thread::sleep(Duration::from_millis(1500));
    stays();
    load(&host, "alone", &["--exclusive"]).refuses(
        5,
        &[
            "no core could be emptied for alone",
            "one computes there, or sleeps",
            "others would wait",
        ],
    );
    works(&host, "a");
    host.run(&["unload", "a", "--now"]).succeeds();
    load_sleeper(&host, "two");
    stays();
    let refused = std::thread::scope(|scope| {
        let alone = scope.spawn(|| load(&host, "alone", &["--exclusive"]));
        // Others load meanwhile.
        load(&host, "b", &[]).succeeds();
        alone.join().unwrap()
    });
    refused.refuses(
        5,
        &[
            "no core could be emptied for alone",
            "one computes",
            "two computes",
        ],
    );
    let all = host.json(&["list"]);
    let names: BTreeSet<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["name"].as_str())
        .collect();
    assert_eq!(names, BTreeSet::from([Some("one"), Some("two"), Some("b")]));
}

/// The core to vacate is named, so there is no alternative: within the timeout the error names the application that
/// occupies it, and nothing has changed.
#[test]
fn a_core_that_is_kept_is_not_left() {
    let host = Host::begin();
    load_sleeper(&host, "sleeper");
    load(&host, "a", &[]).succeeds();
    let map = host.json(&["map"]);
    let cpus = map.as_array().unwrap().iter().map(|w| w["cpu"].as_i64());
    let cpus: Vec<i64> = cpus.map(Option::unwrap).collect();
    if cpus.contains(&-1) {
        return common::skipped("leaving a core", "its workers have no cores of their own");
    }
    // When it has slept for a second it is seen to stay, and the other core is needed.
    std::thread::sleep(Duration::from_millis(1500));
    let body = |within: &str| {
        let process = std::process::id();
        format!("{{\"process\": {process}, \"timeout\": {within}}}")
    };
    let away = |cpu: &i64| host.post(&format!("/cores/{cpu}/reservation"), &body("0.2"));
    let said: Vec<String> = cpus.iter().map(away).collect();
    for why in [
        "sleeper computes there, or sleeps in the system",
        "others would wait",
    ] {
        let of_it = |s: &&String| s.starts_with("HTTP/1.1 409") && s.contains(why);
        assert_eq!(said.iter().filter(of_it).count(), 1, "{said:?}");
    }
    let wrong = host.post(&format!("/cores/{}/reservation", cpus[0]), &body("-1"));
    assert!(wrong.starts_with("HTTP/1.1 400"), "{wrong}");
    for worker in host.json(&["map"]).as_array().unwrap() {
        assert_eq!(worker["available"], true);
    }
    works(&host, "a");
    // Alone, the sleeper needs but its own.
    host.run(&["unload", "a", "--now"]).succeeds();
    let said: Vec<String> = cpus.iter().map(away).collect();
    let left = |s: &&String| s.starts_with("HTTP/1.1 200");
    assert_eq!(said.iter().filter(left).count(), 1, "{said:?}");
}
