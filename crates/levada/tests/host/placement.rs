// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the placement of a running host: written to a file, edited, and applied.

use crate::common;
use crate::common::host::Host;

const MANY_XDF: &str = "src/p/Many.xdf";

fn load(host: &Host, name: &str, more: &[&str]) -> common::Run {
    let args = ["load", MANY_XDF, "--name", name, "--out", "/dev/null"];
    host.run(&[&args[..], more].concat())
}

/// Where each actor is that has this name.
fn workers(host: &Host, name: &str) -> Vec<(String, u64)> {
    let shown = host.json(&["show", name]);
    let actors = shown["actor"].as_array().unwrap();
    let at = |a: &serde_json::Value| {
        (
            a["name"].as_str().unwrap().to_string(),
            a["worker"].as_u64().unwrap(),
        )
    };
    actors.iter().map(at).collect()
}

#[test]
fn what_is_written_is_given_back_as_edited() {
    let host = Host::begin();
    load(&host, "a", &["--no-fuse"]).succeeds();
    load(&host, "b", &["--no-fuse"]).succeeds();
    host.run(&["map", "--write", "all.toml"]).succeeds();
    let text = std::fs::read_to_string(host.place.path("all.toml")).unwrap();
    assert!(
        text.contains("[\"a\"]") && text.contains("[\"b\"]"),
        "{text}"
    );
    host.run(&["unload", "a", "--now"]).succeeds();
    // What is kept there is not moved, however busy that worker is.
    let edited = text
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some((actor, _)) => format!("{actor} = 0\n"),
            None => format!("{line}\n"),
        })
        .collect::<String>();
    host.place.write("all.toml", &edited);
    load(&host, "a", &["--no-fuse", "--placement", "all.toml"]).succeeds();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let at = workers(&host, "a");
    assert_eq!(at.len(), 2, "{at:?}");
    assert!(at.iter().all(|(_, worker)| *worker == 0), "{at:?}");
    // One that a run has recorded knows only the network's name.
    host.run(&["unload", "a", "--now"]).succeeds();
    host.place
        .write("run.toml", &edited.replace("[\"a\"]", "[\"p.Many\"]"));
    load(&host, "a", &["--no-fuse", "--placement", "run.toml"]).succeeds();
    let at = workers(&host, "a");
    assert!(at.iter().all(|(_, worker)| *worker == 0), "{at:?}");
}

/// Each alone would begin on both workers.
#[test]
fn applications_of_a_manifest_start_where_they_stay() {
    let host = Host::begin();
    let one = |name: &str| {
        format!(
            "[[application]]\nnetwork = \"{MANY_XDF}\"\nname = \"{name}\"\nout = \"/dev/null\"\n\
             no_fuse = true\npaused = true\n"
        )
    };
    host.place.write("two.toml", &(one("a") + &one("b")));
    host.run(&["load", "two.toml"]).succeeds();
    let seats = |name: &str| workers(&host, name).into_iter().map(|(_, worker)| worker);
    let (a, b): (Vec<u64>, Vec<u64>) = (seats("a").collect(), seats("b").collect());
    assert!(a == [a[0]; 2] && b == [1 - a[0]; 2], "{a:?} {b:?}");
}

#[test]
fn a_wrong_placement_is_told_and_loads_nothing() {
    let host = Host::begin();
    for (text, words) in [
        ("[a]\nsource = 99\n", "core 99"),
        ("[a]\nnone = 0\n", "actor none"),
        ("[other]\nsource = 0\n", "application other"),
        ("source = 0\n", "a placement has a table"),
        ("[a\n", "p.toml"),
    ] {
        host.place.write("p.toml", text);
        let told = load(&host, "a", &["--placement", "p.toml"]);
        assert!(
            told.code != Some(0) && told.err.contains(words),
            "{text}: {told:?}"
        );
    }
    let told = load(&host, "a", &["--placement", "/dev/zero"]);
    let refused = told.code == Some(3) && told.err.contains("/dev/zero: it is no file");
    assert!(refused, "{told:?}");
    let told = load(&host, "a", &["--placement", "nowhere.toml"]);
    assert!(told.err.contains("nowhere.toml"), "{told:?}");
    assert_eq!(host.json(&["list"]).as_array().map(Vec::len), Some(0));
}

/// For an actor that could run but has no worker, the report says so and names the actor that occupies it; it does
/// not say that the actor waits for a channel that has all it needs.
#[test]
fn a_late_application_is_told_what_occupies_its_core() {
    let host = Host::begin();
    for (name, priority) in [("behind", "0"), ("hog", "3")] {
        let file = format!("{name}.toml");
        let text = format!("[{name}]\nsource = 0\nwrite = 0\n");
        host.place.write(&file, &text);
        let more = ["--no-fuse", "--placement", &file, "--priority", priority];
        load(&host, name, &more).succeeds();
    }
    let start = std::time::Instant::now();
    loop {
        let why = host.run(&["why", "behind"]).succeeds().out.clone();
        assert!(!why.contains("cycle"), "{why}");
        let used = "worker 0 was recently used ";
        if why.contains("turn on worker 0") && why.contains(used) && why.contains("% by hog") {
            return;
        }
        assert!(start.elapsed().as_secs() < 300, "{why}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// The workers of two actors, and where each must stay.
fn seats(host: &Host, name: &str) -> Vec<(u64, Option<u64>)> {
    let shown = host.json(&["show", name]);
    let actors = shown["actor"].as_array().unwrap();
    let at = |a: &serde_json::Value| (a["worker"].as_u64().unwrap(), a["pin"].as_u64());
    actors.iter().map(at).collect()
}

fn until(what: &str, good: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !good() {
        assert!(start.elapsed().as_secs() < 300, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// All on one worker is what no mapper would do, and so stays only since it is wanted.
#[test]
fn a_moved_actor_stays_until_it_is_unpinned() {
    let host = Host::begin();
    for name in ["a", "b"] {
        load(&host, name, &["--no-fuse"]).succeeds();
        for actor in ["source", "write"] {
            let told = host.run(&["move", name, actor, "0"]);
            assert!(told.succeeds().out.contains("stays there"), "{told:?}");
        }
    }
    let all_there = |name| seats(&host, name) == [(0, Some(0)), (0, Some(0))];
    until("they come to it", || all_there("a") && all_there("b"));
    // The mapper looks often meanwhile.
    let start = std::time::Instant::now();
    while start.elapsed().as_secs() < 2 {
        assert!(all_there("a") && all_there("b"));
    }
    for told in [host.run(&["show", "a"]), host.run(&["map"])] {
        assert!(told.succeeds().out.contains("pinned"), "{told:?}");
    }
    // A new version has them where they were, and a wrong request changes nothing.
    host.run(&["replace", "a", MANY_XDF, "--no-fuse"])
        .succeeds();
    assert!(all_there("a"), "{:?}", seats(&host, "a"));
    host.run(&["move", "a", "source", "99"])
        .refuses(4, &["there is no worker 99"]);
    host.run(&["move", "a", "none", "--unpin"])
        .refuses(4, &["no actor none"]);
    host.run(&["move", "a", "source"]).refuses(2, &["WORKER"]);
    host.run(&["move", "a", "source", "1", "--unpin"])
        .refuses(2, &["--unpin"]);
    for body in [
        r#"{"actor": "source"}"#,
        r#"{"actor": "source", "worker": 1, "unpin": true}"#,
    ] {
        let told = host.post("/applications/a/move", body);
        assert!(told.starts_with("HTTP/1.1 400"), "{told}");
    }
    assert!(all_there("a"));
    for actor in ["source", "write"] {
        let told = host.run(&["move", "b", actor, "--unpin"]);
        assert!(told.succeeds().out.contains("the mapper"), "{told:?}");
    }
    until("an actor leaves", || seats(&host, "b").contains(&(1, None)));
    assert!(all_there("a"));
}
