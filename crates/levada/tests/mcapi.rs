// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada mcapi` with live nodes and one that was killed. The nodes are processes of this program, which
//! calls the library and starts itself again: the variable NODE_OF tells which of the two it is. So it has a main
//! function.

mod common;

use common::Place;
use levada_sys as _; // brings the C library
use libtest_mimic::{Arguments, Trial};
use std::ffi::c_void;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::ptr::null;

#[repr(C)]
#[derive(Default)]
struct Info([u32; 6]);

unsafe extern "C" {
    fn mcapi_initialize(
        domain: u32,
        node: u32,
        attributes: *const c_void,
        parameters: *const u32,
        info: *mut Info,
        status: *mut u32,
    );
    fn mcapi_finalize(status: *mut u32);
    fn mcapi_endpoint_create(port: u32, status: *mut u32) -> u32;
    fn mcapi_msg_send(
        from: u32,
        to: u32,
        buffer: *const c_void,
        size: usize,
        priority: u32,
        status: *mut u32,
    );
    fn mcapi_msg_recv(
        from: u32,
        buffer: *mut c_void,
        size: usize,
        received: *mut usize,
        status: *mut u32,
    );
}

const SUCCESS: u32 = 1;

/// A node with one endpoint, 1: two messages wait there, and one of 100 bytes was received.
fn node(domain: u32, id: u32) {
    let (mut info, mut status, mut size) = (Info::default(), 0, 0);
    let mut bytes = [0u8; 100];
    // SAFETY: all pointers are valid for each call.
    unsafe {
        mcapi_initialize(domain, id, null(), null(), &mut info, &mut status);
        assert_eq!(status, SUCCESS);
        let e = mcapi_endpoint_create(1, &mut status);
        assert_eq!(status, SUCCESS);
        for _ in 0..3 {
            mcapi_msg_send(e, e, bytes.as_ptr().cast(), 100, 1, &mut status);
            assert_eq!(status, SUCCESS);
        }
        mcapi_msg_recv(e, bytes.as_mut_ptr().cast(), 100, &mut size, &mut status);
        assert_eq!((status, size), (SUCCESS, 100));
    }
}

/// The domain in which a process that a test starts is a node.
const NODE_OF: &str = "LEVADA_TEST_DOMAIN";

fn main() -> ExitCode {
    if let Ok(domain) = std::env::var(NODE_OF) {
        node(domain.parse().unwrap(), 2);
        println!("ready");
        std::thread::sleep(std::time::Duration::from_secs(60));
        return ExitCode::SUCCESS;
    }
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let tests = vec![
        trial(
            "list_shows_live_processes_and_clean_removes_dead_ones",
            list_shows_live_nodes_and_clean_removes_dead_ones,
        ),
        trial(
            "clean_leaves_those_alone_who_live_beside_a_dead_one",
            clean_keeps_live_nodes_of_a_domain_with_a_dead_one,
        ),
        trial("watch_tells_who_has_left", watch_shows_nodes_that_have_left),
        trial(
            "doctor_says_what_limits_domains_and_queues",
            doctor_says_what_limits_domains_and_queues,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

fn start(domain: u32) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(NODE_OF, domain.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.is_ok_and(|l| l == "ready")));
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A domain that no other test uses: two for each test process.
fn domain(which: u32) -> u32 {
    0x4000_0000 + std::process::id() * 4 + which
}

fn list_shows_live_nodes_and_clean_removes_dead_ones() {
    let place = Place::new(&[]);
    let number = domain(0);
    let name = number.to_string();
    let none = format!("there is no domain {name}");
    for command in ["list", "clean"] {
        place.run(&["mcapi", command, &name]).refuses(1, &[&none]);
    }
    let child = start(number);
    let json = place
        .run(&["mcapi", "list", &name, "--json"])
        .succeeds()
        .json();
    let seen = &json["domains"][0];
    assert_eq!(seen["domain"], number);
    assert_eq!((&seen["processes"], &seen["dead"]), (&1.into(), &0.into()));
    assert_eq!(seen["nodes"][0]["node"], 2);
    assert_eq!(seen["nodes"][0]["process"], child.id());
    let endpoint = &seen["endpoints"][0];
    assert_eq!(
        (&endpoint["node"], &endpoint["port"]),
        (&2.into(), &1.into())
    );
    assert_eq!(endpoint["waiting"], 2);
    assert_eq!(
        (&endpoint["received"], &endpoint["received_bytes"]),
        (&1.into(), &100.into())
    );
    assert_eq!(endpoint["per_second"], 0.0);
    // It lives: nothing of it is taken away.
    let run = place.run(&["mcapi", "clean", &name]);
    assert_eq!(
        run.succeeds().out,
        format!("domain {name}: nothing to remove\n")
    );
    kill(child);
    let run = place.run(&["mcapi", "list", &name]);
    let text = &run.succeeds().out;
    assert!(
        text.contains("1 process, shm, 1 dead (levada mcapi clean"),
        "{text}"
    );
    assert!(text.contains("2:1"), "{text}");
    let run = place.run(&["mcapi", "clean", &name, "--json"]);
    let cleared = &run.succeeds().json()["domains"][0];
    assert_eq!(cleared["processes"], 1);
    assert_eq!(
        (&cleared["nodes"], &cleared["endpoints"]),
        (&1.into(), &1.into())
    );
    assert_eq!(cleared["gone"], true);
    place.run(&["mcapi", "list", &name]).refuses(1, &[&none]);
}

fn clean_keeps_live_nodes_of_a_domain_with_a_dead_one() {
    let place = Place::new(&[]);
    let number = domain(1);
    let name = number.to_string();
    let first = start(number);
    node(number, 1);
    kill(first);
    let run = place.run(&["mcapi", "clean", &name, "--json"]);
    assert_eq!(run.succeeds().json()["domains"][0]["gone"], false);
    let json = place
        .run(&["mcapi", "list", &name, "--json"])
        .succeeds()
        .json();
    let nodes = json["domains"][0]["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 1, "{json}");
    assert_eq!(
        (&nodes[0]["node"], &nodes[0]["alive"]),
        (&1.into(), &true.into())
    );
    assert_eq!(json["domains"][0]["endpoints"][0]["waiting"], 2);
    let mut status = 0;
    // SAFETY: the pointer is valid.
    unsafe { mcapi_finalize(&mut status) };
    assert_eq!(status, SUCCESS);
}

/// This includes nodes with remains that other processes have already removed.
fn watch_shows_nodes_that_have_left() {
    let number = domain(2);
    let name = number.to_string();
    let child = start(number);
    let process = child.id();
    let mut watching = Command::new(env!("CARGO_BIN_EXE_levada"))
        .args(["mcapi", "watch", &name, "--json", "--interval", "0.05"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    // A minute of them, at most.
    let mut looks = lines
        .take(1200)
        .map(|l| serde_json::from_str::<serde_json::Value>(&l.unwrap()).unwrap());
    let there = |look: &serde_json::Value| look["domains"][0]["nodes"][0]["process"] == process;
    assert!(looks.any(|look| there(&look) && look["left"].as_array().unwrap().is_empty()));
    kill(child);
    assert!(looks.any(|look| look["domains"][0]["dead"] == 1));
    let place = Place::new(&[]);
    place.run(&["mcapi", "clean", &name]).succeeds();
    let last = looks.find(|look| !look["left"].as_array().unwrap().is_empty());
    let left = &last.unwrap()["left"][0];
    assert_eq!(
        (&left["node"], &left["process"]),
        (&2.into(), &process.into())
    );
    assert_eq!(
        (&left["domain"], &left["ended"]),
        (&number.into(), &true.into())
    );
    watching.kill().unwrap();
    watching.wait().unwrap();
}

fn doctor_says_what_limits_domains_and_queues() {
    let place = Place::new(&[]);
    let json = place.run(&["doctor", "--json"]).json();
    let findings = json["findings"].as_array().unwrap();
    for what in ["/dev/shm", "message queues"] {
        let finding = findings.iter().find(|f| f["what"] == what).unwrap();
        assert!(!finding["found"].as_str().unwrap().is_empty());
        assert_eq!(
            finding["help"].is_null(),
            finding["state"] == "ok",
            "{finding}"
        );
    }
}
