// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the life of a host's applications: loaded, paused, drained, stopped and failing next to others.

use crate::common::host::{Host, TOP, sources};
use crate::common::network;
use serde_json::Value;
use std::time::Duration;

/// The numbers from 1 on, in order, none missing; how many.
fn counted(text: &str) -> usize {
    for (i, line) in text.lines().enumerate() {
        assert_eq!(line, (i + 1).to_string());
    }
    text.lines().count()
}

#[test]
fn an_application_is_loaded_runs_and_ends_and_the_next_one_too() {
    let host = Host::begin();
    for name in ["Top", "second"] {
        let out = format!("{name}.txt");
        let mut args = vec!["load", TOP, "--out", &out];
        if name != "Top" {
            args.extend(["--name", name, "--priority", "-2"]);
        }
        let loaded = host.run(&args);
        let said = format!("loaded {name} (p.Top): ");
        assert!(loaded.succeeds().out.starts_with(&said), "{loaded:?}");
        let seen = host.until(name, |a| a["state"] == "ended");
        assert_eq!(seen["outcome"], "done");
        let text = std::fs::read_to_string(host.place.path(&out)).unwrap();
        assert_eq!(text, "1\n2\n3\n");
    }
    let events = host.run(&["events", "--json"]);
    let kinds: Vec<Value> = events
        .succeeds()
        .out
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap()["event"].clone())
        .collect();
    assert_eq!(kinds, ["loaded", "ended", "loaded", "ended"]);
    assert!(
        host.run(&["unload", "second"])
            .succeeds()
            .out
            .contains("done after")
    );
    host.run(&["unload", "second"])
        .refuses(4, &["no application second", "there are Top"]);
    // One of the same name takes the place of what has ended.
    host.run(&["load", TOP, "--out", "x.txt"]).succeeds();
    assert_eq!(host.json(&["list"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn all_that_have_ended_are_unloaded_and_nothing_that_runs() {
    let host = Host::begin();
    host.run(&["unload", "--ended"]).succeeds();
    host.many("runs");
    host.many("paused");
    host.run(&["pause", "paused"]).succeeds();
    for (name, how) in [("here", "--paused"), ("apart", "--isolate")] {
        let out = format!("{name}.txt");
        let load = ["load", TOP, "--name", name, "--out", &out, how];
        host.run(&load).succeeds();
    }
    host.run(&["resume", "here"]).succeeds();
    for name in ["here", "apart"] {
        host.until(name, |a| a["state"] == "ended");
    }
    host.bad("bad");
    let said = host.run(&["unload", "--ended"]).succeeds().out.clone();
    for line in [
        "unloaded here: done",
        "unloaded apart: done",
        "unloaded bad: ",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let left = host.json(&["list"]);
    let left: Vec<&Value> = left
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["name"])
        .collect();
    assert_eq!(left, ["runs", "paused"]);
    assert_eq!(host.json(&["unload", "--ended"]), serde_json::json!([]));
    host.run(&["unload", "runs", "--ended"])
        .refuses(2, &["--ended"]);
    host.run(&["unload"]).refuses(2, &["NAME"]);
}

#[test]
fn unloading_lets_elements_in_flight_leave() {
    let host = Host::begin();
    for (name, how) in [("a", "--timeout=60"), ("b", "--now")] {
        let out = format!("{name}.txt");
        host.run(&[
            "load",
            "src/p/Many.xdf",
            "--name",
            name,
            "--out",
            &out,
            "--no-fuse",
        ])
        .succeeds();
        host.until(name, |a| a["firings"].as_u64() > Some(10_000));
        let unloaded = host.json(&["unload", name, how]);
        let text = std::fs::read_to_string(host.place.path(&out)).unwrap_or_default();
        let outcome = unloaded["outcome"].as_str().unwrap();
        match name {
            "a" => {
                // Each number was fired for twice: given, and written.
                assert_eq!(outcome, "done");
                assert_eq!(
                    counted(&text) as u64 * 2,
                    unloaded["firings"].as_u64().unwrap()
                );
            }
            _ => assert_eq!(outcome, "stopped"),
        }
        assert!(host.seen(name).is_null());
    }
}

#[test]
fn a_paused_application_stands_still_and_the_others_do_not() {
    let host = Host::begin();
    for name in ["a", "b"] {
        host.many(name);
    }
    // Whether a busy fraction of a worker is reported for the application.
    let computes = |name: &str| {
        let stats = host.json(&["stats"]);
        let workers = stats["worker"].as_array().unwrap().iter();
        let mut actors = workers.flat_map(|w| w["actor"].as_array().unwrap().clone());
        actors.any(|actor| actor["application"] == name && !actor["share"].is_null())
    };
    while !(computes("a") && computes("b")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let paused = host.json(&["pause", "a"]);
    assert_eq!(paused["state"], "paused");
    assert!(!computes("a") && computes("b"));
    let (a, b) = (
        host.seen("a")["firings"].clone(),
        host.seen("b")["firings"].as_u64(),
    );
    host.until("b", |x| x["firings"].as_u64() > b);
    assert_eq!(host.seen("a")["firings"], a);
    assert!(
        host.run(&["why", "a"])
            .succeeds()
            .out
            .contains("a is paused")
    );
    host.run(&["resume", "a"]).succeeds();
    host.until("a", |x| x["firings"].as_u64() > a.as_u64());
    let actor = host.json(&["show", "a"])["actor"][0]["name"]
        .as_str()
        .unwrap()
        .to_string();
    host.run(&["move", "a", &actor, "1"]).succeeds();
    host.run(&["move", "a", &actor, "2"])
        .refuses(4, &["no worker 2", "from 0 to 1"]);
    host.run(&["move", "a", "none", "1"])
        .refuses(4, &["a has no actor none"]);
    let map = host.json(&["map"]);
    let placed: usize = map
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["actor"].as_array().unwrap().len())
        .sum();
    assert_eq!(
        placed,
        2 * host.json(&["show", "b"])["actor"].as_array().unwrap().len()
    );
    // Paused, it can be drained still.
    host.run(&["pause", "b"]).succeeds();
    host.run(&["unload", "b", "--timeout", "60"]).succeeds();
    let table = host.run(&["stats"]);
    assert!(
        table.succeeds().out.contains("1 application loaded"),
        "{table:?}"
    );
}

#[test]
fn an_application_loaded_paused_starts_when_resumed() {
    let host = Host::begin();
    host.run(&["load", TOP, "--name", "a", "--out", "a.txt", "--paused"])
        .succeeds();
    assert_eq!(host.seen("a")["state"], "loaded");
    let resumed = host.json(&["resume", "a"]);
    assert_ne!(resumed["state"], "loaded");
    let seen = host.until("a", |a| a["state"] == "ended");
    assert_eq!(seen["outcome"], "done");
    let text = std::fs::read_to_string(host.place.path("a.txt")).unwrap();
    assert_eq!(text, "1\n2\n3\n");
}

/// Its memory has been given back, and all else is known of it.
#[test]
fn what_has_ended_is_told_as_it_was_and_claims_nothing() {
    let host = Host::begin();
    for (name, more) in [("here", &[][..]), ("apart", &["--isolate"])] {
        let load = ["load", TOP, "--name", name, "--out=/dev/null"];
        let loaded = host.json(&[&load[..], more].concat());
        assert!(loaded["memory"].as_u64() > Some(0), "{loaded}");
        host.until(name, |a| a["state"] == "ended");
        let shown = host.json(&["show", name]);
        assert_eq!(shown["memory"], 0, "{shown}");
        let classes = shown["actor"].as_array().unwrap().iter();
        let classes: Vec<&str> = classes.filter_map(|a| a["class"].as_str()).collect();
        assert!(classes.iter().all(|c| c.contains("p.")), "{shown}");
        let channel = &shown["channel"][0];
        assert_eq!(
            (&channel["from"], &channel["to"]),
            (&"source.Out".into(), &"write.In".into())
        );
    }
    let metrics = host.get("/metrics");
    let memory = "levada_application_memory_bytes{application=\"here\"} 0\n";
    assert!(metrics.contains(memory), "{metrics}");
}

#[test]
fn a_failure_affects_no_other_application() {
    let host = Host::begin();
    host.many("good");
    for i in 0..3 {
        let seen = host.bad(&format!("bad{i}"));
        let outcome = seen["outcome"].as_str().unwrap();
        assert!(
            outcome.contains("division by zero") && outcome.contains("Fail.cal:3"),
            "{outcome}"
        );
    }
    let before = host.seen("good")["firings"].as_u64();
    host.until("good", |a| a["firings"].as_u64() > before);
}

/// Where Orcc's applications end their process, here only they end: well or not.
#[test]
fn source_exit_ends_one_application() {
    let place = sources();
    for (name, code) in [("Leave", 0), ("Quit", 3)] {
        let text = format!(
            "package p;\nimport std.stdio.Source.*;\nactor {name} () int In ==> :\n  action In:[x] ==> \
             guard x < 1000 end\n  action In:[x] ==> guard x = 1000 do source_exit({code}); end\n  \
             action In:[x] ==> guard x > 1000 end\nend\n"
        );
        place.write(&format!("src/p/{name}.cal"), &text);
        let top = network(
            &[
                ("source", "p.Source", &[("n", "2000000000")]),
                ("end", &format!("p.{name}"), &[]),
            ],
            &[("source.Out", "end.In")],
        );
        place.write(&format!("src/p/{name}s.xdf"), &top);
    }
    let host = Host::begin_in(place);
    host.many("good");
    for (network, state, said) in [
        ("Leaves", "ended", ""),
        ("Quits", "failed", "source_exit(3)"),
    ] {
        let file = format!("src/p/{network}.xdf");
        host.run(&["load", &file, "--name", network]).succeeds();
        let seen = host.until(network, |a| a["state"] == state);
        assert!(seen["outcome"].to_string().contains(said), "{seen}");
    }
    let before = host.seen("good")["firings"].as_u64();
    host.until("good", |a| a["firings"].as_u64() > before);
}
