// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who does something by its name to an application that is on the way (it is loaded, or a restore is to load it)
//! waits until it has begun, and is told in words why it takes so long.

mod common;

use common::host::{Host, compiled, sources};
use common::{Place, Run};
use serde_json::Value;
use std::time::{Duration, Instant};

/// It takes as long to be opened as there is a file `shut`, and runs until it is asked to end.
const GATE: &str = r#"
#include <levada/fiber.h>
#include <levada/native.h>
#include <levada/program.h>
#include <unistd.h>
__attribute__((constructor)) static void gate(void) {
  while (access("shut", F_OK) == 0) usleep(1000);
}
int main(void) {
  while (!lvd_app_drains(lvd_app_here()) && lvd_fiber_sleep(1000000) == LVD_OK) {}
  return 0;
}
"#;

fn gated() -> Place {
    let place = sources();
    for name in ["gate", "gate2"] {
        compiled(&place, name, GATE);
    }
    place
}

fn shut(host: &Host, shut: bool) {
    match shut {
        true => host.place.write("shut", ""),
        false => std::fs::remove_file(host.place.path("shut")).unwrap(),
    }
}

fn runs(seen: &Value) -> bool {
    seen["state"] == "running"
}

const REPLACE: [&str; 3] = ["replace", "b", "src/p/Many.xdf"];

/// All that waits for `b`, which says so when it has waited for long enough.
fn refused(host: &Host, why: &str) {
    for what in [&REPLACE[..], &["pause", "b"]] {
        host.run(&[what, &["--within=0.1"]].concat())
            .refuses(1, &[why, "try again, or wait longer"]);
    }
}

/// The same, which have come before it could be done; `open` lets them.
fn waits(host: &Host, open: impl FnOnce()) {
    std::thread::scope(|scope| {
        let replaces = scope.spawn(|| host.run(&REPLACE));
        let moves = scope.spawn(|| host.run(&["move", "b", "source", "1"]));
        open();
        replaces.join().unwrap().succeeds();
        moves.join().unwrap().succeeds();
    });
    host.until("b", runs);
}

/// `a`, which takes long, is restored before `b` and `c`. It has a process of its own: what opens code in the host
/// holds up there whatever begins a thread.
#[test]
fn who_is_to_be_restored_is_waited_for() {
    let host = Host::begin_in(gated());
    host.run(&["load", "gate.so", "--name=a", "--isolate"])
        .succeeds();
    host.many("b");
    host.many("c");
    shut(&host, true);
    let host = host.again(&["--restore=all"]);
    let why = "b is not loaded yet: it is to be loaded again";
    refused(&host, why);
    host.run(&["pause", "b", "--within=0.1"])
        .refuses(1, &["levada resume b loads it at once"]);
    let said = host.run(&["why", "b"]);
    let said: &Run = said.succeeds();
    assert!(said.out.contains("b is not loaded: is to be"), "{said:?}");
    host.run(&["pause", "a", "--within=0.1"])
        .refuses(1, &["a is being loaded", "try again, or wait longer"]);
    // Who is not wanted any more is not loaded.
    host.run(&["unload", "c"]).succeeds();
    waits(&host, || shut(&host, false));
    host.until("a", runs);
    assert!(host.seen("c").is_null());
    host.run(&["pause", "c"])
        .refuses(1, &["no application c is loaded"]);
}

/// What is left and not to be loaded is told as such, and nobody waits for it.
#[test]
fn who_is_not_loaded_again_is_told_as_such() {
    let host = Host::begin();
    host.many("b");
    let host = host.again(&[]);
    let why = "b is not loaded: the last host had loaded it";
    let commands: [&[&str]; 4] = [
        &REPLACE,
        &["pause", "b"],
        &["move", "b", "source", "1"],
        &["show", "b"],
    ];
    for command in commands {
        host.run(command).refuses(
            1,
            &[why, "levada resume b loads it, levada unload b forgets it"],
        );
    }
    assert!(host.run(&["why", "b"]).succeeds().out.contains(why));
    host.run(&["resume", "b"]).succeeds();
    host.run(&REPLACE).succeeds();
    host.until("b", runs);
}

/// Two that are begun together: `b` is there, and waits for the other one, which takes long.
fn begins(host: &Host, then: impl FnOnce()) -> Run {
    let text = "[[application]]\nnetwork = \"src/p/Many.xdf\"\nname = \"b\"\nout = \"/dev/null\"\n\
                [[application]]\nnetwork = \"gate.so\"\nname = \"a\"\nisolate = true\n";
    host.place.write("two.toml", text);
    // It is compiled already.
    host.many("b");
    host.run(&["unload", "b", "--now"]).succeeds();
    shut(host, true);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| host.run(&["load", "two.toml"]));
        let start = Instant::now();
        while host.run(&["show", "b"]).code != Some(0) {
            assert!(start.elapsed() < Duration::from_secs(60), "b is not there");
            std::thread::sleep(Duration::from_millis(10));
        }
        // Who names it is told of it; who lists all sees both or none.
        assert!(host.seen("b").is_null());
        then();
        load.join().unwrap()
    })
}

#[test]
fn who_has_not_begun_is_not_replaced_before() {
    let host = Host::begin_in(gated());
    let loaded = begins(&host, || {
        refused(&host, "b is being loaded");
        host.run(&["unload", "b", "--within=0.1"])
            .refuses(1, &["b is being loaded"]);
        waits(&host, || shut(&host, false));
    });
    loaded.succeeds();
    host.until("a", runs);
}

/// While a new version waits for its moment, it is the old one that runs.
#[test]
fn who_is_being_replaced_goes_at_once_with_its_new_version() {
    let place = sources();
    // It never asks whether it is to end.
    place.write(
        "b.c",
        "#include <levada/fiber.h>\nint main(void) {\n  while (lvd_fiber_sleep(1000000) == LVD_OK) {}\n  \
         return 0;\n}\n",
    );
    place
        .run(&["cc", "--hosted", "-O2", "b.c", "-o", "b.so"])
        .succeeds();
    let host = Host::begin_in(place);
    host.run(&["load", "b.so", "--name=b"]).succeeds();
    let replaced = std::thread::scope(|scope| {
        let replaces = scope.spawn(|| host.run(&["replace", "b", "b.so"]));
        host.until("b", |b| b["state"] == "draining");
        for what in ["pause", "unload", "resume"] {
            host.run(&[what, "b", "--within=0.1"])
                .refuses(1, &["b is being replaced", "try again, or wait longer"]);
        }
        host.run(&["unload", "b", "--now"]).succeeds();
        replaces.join().unwrap()
    });
    replaced.refuses(1, &["b has ended before it was replaced"]);
    assert!(host.seen("b").is_null());
    assert!(!host.place.exists("state/b.json"));
}

/// A load that fails takes back what it has loaded, and not what has the name since.
#[test]
fn who_has_the_name_since_is_not_taken_back() {
    let host = Host::begin_in(gated());
    let loaded = begins(&host, || {
        host.run(&["unload", "b", "--now"]).succeeds();
        host.many("b");
        assert_eq!(host.seen("b")["state"], "running");
        shut(&host, false);
    });
    loaded.refuses(1, &["b has been unloaded before it began"]);
    assert!(host.seen("a").is_null());
    let number = host.until("b", runs)["number"].clone();
    host.run(&REPLACE).succeeds();
    assert!(host.until("b", runs)["number"].as_u64() > number.as_u64());
}

/// One that is not to begin is unloaded while the others of its manifest begin, at once or when it is kept for the next host:
/// it is not loaded, so nobody is, and no host loads it again.
#[test]
fn who_is_paused_and_unloaded_amid_its_manifest_is_not_loaded() {
    let host = Host::begin_in(gated());
    host.many("b");
    host.run(&["unload", "b", "--now"]).succeeds();
    let mut text = "[[application]]\nnetwork = \"src/p/Many.xdf\"\nname = \"b\"\nout = \"/dev/null\"\npaused = true\n".to_string();
    for name in ["c", "d", "e", "f"] {
        text += "[[application]]\nnetwork = \"gate.so\"\nisolate = true\n";
        text += &format!("name = \"{name}\"\n");
    }
    host.place.write("five.toml", &text);
    for settled in [false, true] {
        shut(&host, true);
        let loaded = std::thread::scope(|scope| {
            let load = scope.spawn(|| host.run(&["load", "five.toml"]));
            let there = |path: &str| host.get(path).starts_with("HTTP/1.1 200");
            let start = Instant::now();
            while !there("/applications/b") || settled && !host.place.exists("state/b.json") {
                assert!(start.elapsed() < Duration::from_secs(60), "b is not there");
            }
            let delete =
                "DELETE /applications/b?now=true HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            let unloaded = host.raw(delete.as_bytes());
            assert!(unloaded.starts_with("HTTP/1.1 200"), "{unloaded}");
            shut(&host, false);
            load.join().unwrap()
        });
        loaded.refuses(1, &["b has been unloaded before it began"]);
        assert_eq!(host.json(&["list"]), serde_json::json!([]));
        assert_eq!(kept(&host), [""; 0]);
    }
}

/// Whom the next host loads.
fn kept(host: &Host) -> Vec<String> {
    let mut names = host.place.list("state");
    names.retain(|name| name.ends_with(".json"));
    names
}

/// An isolated one says nothing while the code of its new version is opened, for longer than it is waited for; and takes over
/// after all.
#[test]
fn who_takes_over_after_all_is_remembered() {
    let host = Host::begin_in(gated());
    host.run(&["load", "gate.so", "--name=a", "--isolate"])
        .succeeds();
    let before = host.seen("a")["network"].clone();
    shut(&host, true);
    host.run(&["replace", "a", "gate2.so", "--priority=3", "--within=0.1"])
        .refuses(
            1,
            &["a goes on as it was, and was not replaced in the time that its process had"],
        );
    shut(&host, false);
    host.until("a", |a| a["network"] != before && runs(a));
    let start = Instant::now();
    let remembers = || std::fs::read_to_string(host.place.path("state/a.json")).unwrap();
    while !remembers().contains("gate2.so") {
        assert!(start.elapsed() < Duration::from_secs(60), "{}", remembers());
        std::thread::sleep(Duration::from_millis(10));
    }
    let host = host.again(&["--restore"]);
    let seen = host.until("a", runs);
    assert!(seen["network"] != before && seen["priority"] == 3, "{seen}");
}
