// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the folder in which a host saves its applications: what the next host reports and restores.
//!
//! Failures: files that cannot be written or removed, a folder that is away, a folder that others can change, files
//! that no host has written.

use crate::common::Place;
use crate::common::host::{Host, TOP};
use crate::exit_statuses::code;
use std::time::{Duration, Instant};

/// Killed while three applications run, a fourth has ended and a fifth is unloaded: the three are known
/// to the next host, and run again when that is asked for.
#[test]
fn a_killed_host_is_followed_by_one_that_knows_what_ran() {
    let mut host = Host::begin();
    host.run(&["load", TOP, "--name", "ended"]).succeeds();
    host.until("ended", |a| a["state"] == "ended");
    for name in ["a", "b", "c", "gone"] {
        host.many(name);
    }
    host.run(&["unload", "gone", "--now"]).succeeds();
    // At once: whatever happens now, it does not come again.
    assert!(!host.place.exists("state/gone.json"));
    let start = Instant::now();
    while host.place.exists("state/ended.json") {
        assert!(start.elapsed() < Duration::from_secs(300));
        std::thread::sleep(Duration::from_millis(5));
    }
    let kept = [
        ".journal", ".lock", ".version", "a.json", "b.json", "c.json",
    ];
    assert_eq!(host.place.list("state"), kept);
    // A folder is one host's, whatever its socket.
    host.place
        .run(&["host", "--socket", "other.sock", "--state", "state"])
        .refuses(5, &["state: another host", "--state DIR"]);
    assert_eq!(host.place.list("state"), kept);
    let again = |mut host: Host, more: &[&str]| {
        host.child.kill().unwrap();
        host.child.wait().unwrap();
        let place = std::mem::replace(&mut host.place, Place::new(&[]));
        Host::begin_with(place, more)
    };
    host = again(host, &[]);
    assert_eq!(
        host.json(&["stats"])["host"]["not_restored"],
        serde_json::json!(["a", "b", "c"])
    );
    assert!(host.json(&["list"]).as_array().unwrap().is_empty());
    let said = host.run(&["list"]).succeeds().out.clone();
    let left =
        "3 applications of the last host not loaded again: a, b, c (levada resume NAME loads it";
    assert!(
        said.contains("no application is loaded") && said.contains(left),
        "{said}"
    );
    // The numbers of events start from one with each host.
    let said = host.run(&["events", "--since=1000"]).succeeds().out.clone();
    assert!(said.contains("the numbers have begun again"), "{said}");
    assert!(
        host.run(&["unload", "b"])
            .succeeds()
            .out
            .contains("forgotten")
    );
    host.place.write("state/bad.json", "{");
    host = again(host, &["--restore"]);
    for name in ["a", "c"] {
        host.until(name, |a| a["firings"].as_u64() > Some(1000));
    }
    let events = host.run(&["events"]);
    assert!(
        events
            .succeeds()
            .out
            .contains("bad: cannot be loaded again"),
        "{events:?}"
    );
    let states = host.json(&["list"]);
    let states = states.as_array().unwrap().iter().map(|a| &a["state"]);
    assert_eq!(
        states.collect::<Vec<_>>(),
        ["running", "running", "quarantined"]
    );
    // Told to end, it remembers, too.
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    assert!(host.child.wait().unwrap().success());
    let kept = [".lock", ".version", "a.json", "bad.json", "c.json"];
    assert_eq!(host.place.list("state"), kept);
}

/// As on a disk that is full: a folder lies in the way.
#[test]
fn failed_saves_are_reported_and_retried() {
    let host = Host::begin();
    for name in ["a", "b", "c"] {
        host.many(name);
    }
    let state = |name: &str| host.place.path(&format!("state/{name}"));
    let block = |name: &str| {
        let _ = std::fs::remove_file(state(name));
        std::fs::create_dir(state(name)).unwrap();
    };
    block("a.json");
    block(".b.json.new");
    host.run(&["unload", "a", "--now"]).refuses(
        9,
        &[
            "a is unloaded, but that could not be saved",
            "when this host ends",
        ],
    );
    let paused = host.run(&["pause", "b", "--json"]);
    assert_eq!(code(&paused), (Some(9), "not_saved".into()));
    assert!(host.seen("a").is_null() && host.seen("b")["state"] == "paused");
    assert!(host.said().contains("the state cannot be written"));
    // It cannot at the end, and the host says so.
    let mut host = host;
    let end = |host: &mut Host| {
        // SAFETY: the child has not been waited for.
        unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
        host.until_dead();
        host.child.wait().unwrap().code()
    };
    let place = |host: &Host| host.place.path("state");
    assert_eq!(end(&mut host), Some(9));
    assert!(
        host.said().contains("not saved as it is: "),
        "{}",
        host.said()
    );
    // Where it can be written until then, all is well.
    let folder = place(&host);
    for name in ["a.json", ".b.json.new"] {
        std::fs::remove_dir(folder.join(name)).unwrap();
    }
    let mut host = host.again(&["--restore"]);
    host.until("b", |a| a["state"] == "running");
    host.until("c", |a| a["state"] == "running");
    let text = std::fs::read(folder.join("b.json")).unwrap();
    std::fs::remove_file(folder.join("b.json")).unwrap();
    std::fs::create_dir(folder.join("b.json")).unwrap();
    host.run(&["unload", "b", "--now"])
        .refuses(9, &["could not be saved"]);
    std::fs::remove_dir(folder.join("b.json")).unwrap();
    std::fs::write(folder.join("b.json"), text).unwrap();
    assert_eq!(end(&mut host), Some(0));
    assert!(!folder.join("b.json").exists() && folder.join("c.json").exists());
}

/// Renamed, as a file system that is unmounted: nothing of it is found, and that is not to have been removed.
#[test]
fn a_state_folder_that_is_away_is_told_and_changed_when_it_is_back() {
    let mut host = Host::begin();
    for name in ["a", "b", "c", "d"] {
        host.many(name);
    }
    let load = ["load", "src/p/Many.xdf", "--out=/dev/null", "--isolate"];
    host.run(&[&load[..], &["--name", "iso"]].concat())
        .succeeds();
    let (state, away) = (host.place.path("state"), host.place.path("away"));
    std::fs::rename(&state, &away).unwrap();
    let not_saved = |args: &[&str]| {
        let run = host.run(&[args, &["--json"]].concat());
        assert_eq!(code(&run), (Some(9), "not_saved".into()), "{args:?}");
    };
    not_saved(&["unload", "a", "--now"]);
    not_saved(&["unload", "iso", "--now"]);
    for _ in 0..2 {
        not_saved(&["pause", "b"]);
    }
    assert!(host.seen("a").is_null() && host.seen("b")["state"] == "paused");
    std::fs::rename(&away, &state).unwrap();
    // All is written with the next change that can be.
    host.run(&["pause", "c"]).succeeds();
    let names = |host: &Host| {
        let entries = std::fs::read_dir(host.place.path("state")).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    };
    assert_eq!(names(&host), ["b.json", "c.json", "d.json"]);
    // Or when the host ends.
    std::fs::rename(&state, &away).unwrap();
    host.run(&["unload", "d", "--now"])
        .refuses(9, &["could not be saved", "renamed, removed or unmounted"]);
    std::fs::rename(&away, &state).unwrap();
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    host.until_dead();
    assert_eq!(host.child.wait().unwrap().code(), Some(0));
    assert_eq!(names(&host), ["b.json", "c.json"]);
    let host = host.again(&["--restore"]);
    for name in ["b", "c"] {
        host.until(name, |a| a["state"] == "loaded");
    }
}

#[test]
fn state_that_others_can_change_is_refused_and_what_it_says_is_escaped() {
    use std::os::unix::fs::PermissionsExt;
    let host = Host::begin();
    host.many("a");
    let mut host = host;
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    host.until_dead();
    let folder = host.place.path("state");
    let mode =
        |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o720);
    let second = host
        .place
        .run(&["host", "--socket=h.sock", "--state=state"]);
    second.refuses(5, &["others can write there, too; make it yours alone"]);
    mode(0o700);
    host.place
        .write("state/a.quarantined", "\u{1b}[2Jcleared\u{9b}1m");
    host.place.write("state/\u{1b}[31m.json", "{}");
    let host = host.again(&["--restore"]);
    for args in [
        &["list"][..],
        &["why", "a"],
        &["events"],
        &["list", "--json"],
    ] {
        let out = host.run(args).succeeds().out.clone();
        assert!(
            out.contains("\\u001b[2Jcleared\\u009b1m"),
            "{args:?}: {out}"
        );
    }
    let said = host.said();
    assert!(said.contains("\\u001b[2Jcleared\\u009b1m"), "{said}");
    assert!(
        said.contains("\\u001b[31m.json, which no host has made"),
        "{said}"
    );
    assert!(
        !said.contains('\u{1b}') && !said.contains('\u{9b}'),
        "{said:?}"
    );
    // A message about a file of one line stays short.
    host.place
        .write("deep.toml", &format!("a={}", "[".repeat(50_000)));
    let deep = host.run(&["load", "deep.toml"]);
    deep.refuses(1, &["deep.toml"]);
    assert!(deep.err.len() < 4000, "{}", deep.err.len());
}
