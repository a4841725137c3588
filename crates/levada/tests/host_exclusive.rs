// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Applications that have a core of the host to themselves.

mod common;

use common::host::{Host, TOP};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const MANY: &str = "src/p/Many.xdf";

fn load(host: &Host, name: &str, more: &[&str]) -> common::Run {
    let args = ["load", MANY, "--name", name, "--out", "/dev/null"];
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
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
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
    // Also who was placed by a guess, or comes later.
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
    host.run(&["move", "a", "source", &own])
        .refuses(1, &["move"]);
    // Of two workers one is for all.
    load(&host, "more", &["--exclusive"])
        .refuses(1, &["no core for more alone: of 2 workers 1 is for all"]);
    // A new version has the same core, and nothing comes between.
    for _ in 0..3 {
        host.run(&["replace", "alone", MANY]).succeeds();
        assert_eq!(host.seen("alone")["exclusive"].to_string(), own);
        works(&host, "alone");
        host.run(&["move", "a", "source", &own])
            .refuses(1, &["move"]);
    }
    host.run(&["replace", "a", MANY, "--exclusive"])
        .refuses(1, &["no core for a alone: of 2 workers 1 is for all"]);
    host.run(&["unload", "alone", "--now"]).succeeds();
    // The core is for all again, and the others come to it.
    host.run(&["move", "a", "source", &own]).succeeds();
    load(&host, "more", &["--exclusive"]).succeeds();
    works(&host, "more");
}

#[test]
fn who_fails_or_ends_gives_its_core_back() {
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
fn what_cannot_be_alone_is_refused() {
    let host = Host::begin();
    load(&host, "x", &["--exclusive", "--isolate"]).refuses(1, &["isolated", "--exclusive"]);
    host.place.write("main.c", "int main(void) { return 0; }\n");
    let compile = ["cc", "--hosted", "main.c", "-o", "main.so"];
    host.place.run(&compile).succeeds();
    host.run(&["load", "main.so", "--exclusive"])
        .refuses(1, &["a C program", "--exclusive"]);
    host.place.write(
        "both.toml",
        &format!(
            "[[application]]\nnetwork = \"{MANY}\"\nname = \"m\"\nout = \"/dev/null\"\nexclusive = true\n"
        ),
    );
    host.run(&["load", "both.toml"]).succeeds();
    assert!(host.seen("m")["exclusive"].is_u64());
}
