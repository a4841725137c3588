// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of a shield on a core that a host uses: the host vacates it and returns.

use crate::common;
use crate::common::host::Host;
use crate::common::shield::*;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn until(what: &str, good: impl Fn() -> bool) {
    let start = Instant::now();
    while !good() {
        assert!(start.elapsed() < Duration::from_secs(300), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The host's worker on that core.
fn worker(host: &Host, core: u32) -> Value {
    let map = host.json(&["map"]);
    let on = |w: &&Value| w["cpu"] == core;
    map.as_array()
        .unwrap()
        .iter()
        .find(on)
        .cloned()
        .unwrap_or_default()
}

fn worker_cores(host: &Host) -> Vec<i64> {
    let map = host.json(&["map"]);
    let all = map
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["cpu"].as_i64().unwrap());
    all.filter(|cpu| *cpu >= 0).collect()
}

fn is_open(host: &Host, core: u32) -> bool {
    worker(host, core)["available"] == true
}

fn works(host: &Host) {
    let before = host.seen("busy")["firings"].as_u64();
    host.until("busy", |a| a["firings"].as_u64() > before);
}

fn raise(bench: &Bench, host: &Host, way: &str) -> Child {
    let mut command = bench.shield(&["--method", way], &["sleep", "60"]);
    command.env("LEVADA_HOST", host.place.path("h.sock"));
    let said = std::fs::File::create(host.place.path("said")).unwrap();
    command.stderr(said);
    command.stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_host_leaves_the_core_and_comes_back() {
    let Some(bench) = Bench::new("a shield next to a host") else {
        return;
    };
    let host = Host::begin();
    host.many("busy");
    if worker(&host, bench.core).is_null() {
        return common::skipped(
            "a shield next to a host",
            "its workers have no cores of their own",
        );
    }
    for way in bench.ways() {
        for signal in [libc::SIGTERM, libc::SIGKILL] {
            let mut shield = raise(&bench, &host, way);
            until("it leaves", || !is_open(&host, bench.core));
            until("its actors move", || {
                worker(&host, bench.core)["actor"]
                    .as_array()
                    .is_some_and(Vec::is_empty)
            });
            works(&host);
            let left = format!("(process {}) has left core {}", host.child.id(), bench.core);
            until("it is told", || {
                let said = std::fs::read_to_string(host.place.path("said"));
                said.is_ok_and(|said| said.contains(&left))
            });
            // SAFETY: a child of ours that has not been waited for.
            unsafe { libc::kill(shield.id() as i32, signal) };
            shield.wait().unwrap();
            until("it comes back", || is_open(&host, bench.core));
            works(&host);
            until("the guard has restored", || {
                !std::path::Path::new(LEDGER).exists()
            });
        }
    }
    drop(host);
    bench.same();
}

#[test]
fn the_cores_where_a_host_works_are_told() {
    let host = Host::begin();
    host.many("busy");
    let cpu = worker_cores(&host);
    if cpu.is_empty() {
        return common::skipped("a host's cores", "its workers have no cores of their own");
    }
    let status = |more: &[&str]| {
        let mut command = Command::new(LEVADA);
        command.args(["shield", "status"]).args(more);
        command.env("LEVADA_HOST", host.place.path("h.sock"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let told: Value = serde_json::from_str(&status(&["--json"])).unwrap();
    for core in told["cores"].as_array().unwrap() {
        let process = cpu
            .contains(&core["core"].as_i64().unwrap())
            .then(|| host.child.id());
        assert_eq!(
            core["host"]["process"].as_u64(),
            process.map(u64::from),
            "{told}"
        );
    }
    let told = status(&[]);
    let works = format!("a host works there (process {}): ", host.child.id());
    assert_eq!(told.matches(&works).count(), cpu.len(), "{told}");
}

#[test]
fn a_core_is_left_to_a_process_as_long_as_it_lives() {
    let host = Host::begin();
    host.many("busy");
    let map = host.json(&["map"]);
    let cpu = map[1]["cpu"].as_i64().unwrap();
    if cpu < 0 {
        return common::skipped("leaving a core", "its workers have no cores of their own");
    }
    let away = |process: u32| {
        let body = json!({ "process": process }).to_string();
        host.post(&format!("/cores/{cpu}/reservation"), &body)
    };
    let mut lives = Command::new("sleep").arg("60").spawn().unwrap();
    let said = away(lives.id());
    assert!(said.contains("\"worker\":1"), "{said}");
    assert!(away(lives.id()).contains("409"), "it is away already");
    let other = map[0]["cpu"].as_i64().unwrap();
    let body = json!({ "process": lives.id() }).to_string();
    let last = host.post(&format!("/cores/{other}/reservation"), &body);
    assert!(
        last.contains("409") && last.contains("the only one left"),
        "{last}"
    );
    works(&host);
    lives.kill().unwrap();
    lives.wait().unwrap();
    until("it comes back", || is_open(&host, cpu as u32));
    // An application that is gone already.
    assert!(away(lives.id()).contains("400"));
    assert!(host.post("/cores/99999/reservation", &body).contains("404"));
    assert!(host.post("/cores/x/reservation", &body).contains("400"));
    assert!(is_open(&host, cpu as u32));
    // Taken back by its name.
    let again = away(std::process::id());
    assert!(again.contains("\"worker\":1"), "{again}");
    let delete =
        format!("DELETE /cores/{cpu}/reservation HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(host.raw(delete.as_bytes()).contains("200"));
    assert!(is_open(&host, cpu as u32));
    assert!(host.raw(delete.as_bytes()).contains("404"));
    works(&host);
}
