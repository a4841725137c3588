// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of misbehaving clients: requests that are too large, incomplete, slow, not JSON, or too many; paths that
//! are not text.

use crate::common::Run;
use crate::common::host::{Host, TOP, pipe, rogues, sources};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn hostile_clients_get_an_answer_and_harm_nothing() {
    let host = Host::begin();
    host.many("good");
    for (body, status, part) in [
        ("", "400", "EOF"),
        ("{", "400", "EOF"),
        ("[1]", "400", "not what is expected"),
        ("{\"netwark\":1}", "400", "unknown field"),
        (
            "{\"network\":\"x\",\"within\":1}",
            "400",
            "unknown key `within`; since 0.2 it is `timeout`",
        ),
        ("{\"network\":7}", "400", "invalid type"),
        ("{\"network\":\"x\"}", "400", "whole path"),
        (
            "{\"network\":\"x\",\"directory\":\"relative\"}",
            "400",
            "whole path",
        ),
        (
            "{\"network\":\"x\\u0000y\",\"directory\":\"/tmp\"}",
            "400",
            "network has a NUL character",
        ),
        (
            "{\"network\":\"x\",\"directory\":\"/tmp\\u0000\"}",
            "400",
            "directory has a NUL character",
        ),
        (
            "{\"network\":\"x\",\"directory\":\"/tmp\",\"in\":\"a\\u0000\"}",
            "400",
            "in has a NUL character",
        ),
        (
            "{\"network\":\"x\",\"directory\":\"/tmp\",\"out\":\"\\u0000\"}",
            "400",
            "out has a NUL character",
        ),
        (
            "{\"network\":\"x\",\"directory\":\"/tmp\",\"set\":{\"a\\u0000\":1}}",
            "400",
            "set has a NUL character",
        ),
        ("[]", "400", "expected an object"),
        ("[\"x\", [], \"/tmp\"]", "400", "expected an object"),
        (
            "{\"network\":\"\",\"directory\":\"/tmp\"}",
            "400",
            "names no network",
        ),
        (
            "{\"network\":\"x\",\"directory\":\"/tmp\",\"name\":\"a b\"}",
            "400",
            "not a valid name",
        ),
    ] {
        let answer = host.post("/applications", body);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{body}: {answer}"
        );
        assert!(
            answer.contains(part) && answer.contains("\"error\""),
            "{body}: {answer}"
        );
    }
    let long = format!(
        "{{\"network\":\"{}\",\"directory\":\"/tmp\"}}",
        "x".repeat(900_000)
    );
    let answer = host.post("/applications", &long);
    assert!(answer.contains("network is longer than a path"), "{answer}");
    let large = format!("{{\"network\":\"{}\"}}", "x".repeat(2 << 20));
    assert!(
        host.post("/applications", &large)
            .starts_with("HTTP/1.1 413")
    );
    assert!(host.get("/nothing").contains("see /openapi.json"));
    assert!(host.post("/map", "").starts_with("HTTP/1.1 405"));
    for since in ["x", "-1", "1.5", "", "18446744073709551616"] {
        let answer = host.get(&format!("/events?since={since}"));
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("is no number of an event"), "{answer}");
        assert!(!answer.contains("deserialize"), "{answer}");
    }
    assert!(host.get("/events?since=0").starts_with("HTTP/1.1 200"));
    assert!(host.get("/applications/none").starts_with("HTTP/1.1 404"));
    for text in [
        "",
        "\0\0\0\0",
        "GET",
        "GET / HTTP/9\r\n\r\n",
        "POST /applications HTTP/1.1\r\ncontent-length: 9\r\n\r\n{",
    ] {
        host.raw(text.as_bytes());
    }
    // Half requests, kept open, and more of them than there are places.
    let mut held = Vec::new();
    for i in 0..200 {
        let mut stream = UnixStream::connect(host.place.path("h.sock")).unwrap();
        let _ = stream.write_all(if i % 2 == 0 { b"GET /ho" } else { b"" });
        held.push(stream);
    }
    let mut refused = false;
    for stream in &mut held[128..] {
        let mut text = [0; 512];
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let n = stream.read(&mut text).unwrap_or(0);
        refused |= String::from_utf8_lossy(&text[..n]).contains("too many connections");
    }
    assert!(refused);
    // Whether or not the command's request has arrived by then; until some of the silent clients are disconnected.
    for _ in 0..20 {
        let list = host.run(&["list"]);
        if list.code != Some(0) {
            list.refuses(13, &["too many connections", "try again later"]);
        }
    }
    drop(held);
    let start = Instant::now();
    while !host.get("/host").starts_with("HTTP/1.1 200") {
        assert!(start.elapsed() < Duration::from_secs(300));
    }
    let before = host.seen("good")["firings"].as_u64();
    host.until("good", |a| a["firings"].as_u64() > before);
}

/// A host with an application `stuck`, which has an action that does not end.
fn with_one_stuck() -> Host {
    let host = Host::begin_with(rogues(), &["--action-time-limit=0"]);
    let load = [
        "load",
        "src/p/Rogue3.xdf",
        "--name=stuck",
        "--out=/dev/null",
    ];
    host.run(&load).succeeds();
    host.until("stuck", |a| a["firings"].as_u64() > Some(9));
    host
}

/// A client that disconnects while its request is pending frees its slot. One that only closes its sending side is
/// answered.
#[test]
fn a_disconnected_client_frees_its_slot() {
    let host = with_one_stuck();
    let asked = |within: f64| {
        let path = format!("/applications/stuck?timeout={within}");
        format!("DELETE {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    };
    let answer = host.raw(asked(3.0).as_bytes());
    assert!(answer.contains("still after 3s"), "{answer}");
    let has_place = || host.get("/host").starts_with("HTTP/1.1 200");
    for _ in 0..2 {
        let ask = |_| {
            let mut stream = UnixStream::connect(host.place.path("h.sock")).unwrap();
            let _ = stream.write_all(asked(86400.0).as_bytes());
            stream
        };
        let held: Vec<UnixStream> = (0..140).map(ask).collect();
        let start = Instant::now();
        while has_place() {
            assert!(start.elapsed() < Duration::from_secs(300), "they wait not");
        }
        drop(held);
        let start = Instant::now();
        while !has_place() {
            assert!(start.elapsed() < Duration::from_secs(300), "no place");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    host.run(&["unload", "stuck", "--now"]);
}

/// A client that requests an immediate end and disconnects leaves nothing pending for its timeout: the number of such
/// waits is bounded, and further requests to end are still served.
#[test]
fn few_threads_wait_for_immediate_unloads() {
    let host = with_one_stuck();
    host.many("other");
    let ask = |_| {
        let mut stream = UnixStream::connect(host.place.path("h.sock")).unwrap();
        let path = "/applications/stuck?now=true&timeout=86400";
        let _ = write!(stream, "DELETE {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream
    };
    let tasks = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", host.child.id()));
        tasks.unwrap().count()
    };
    let before = tasks();
    for _ in 0..3 {
        let held: Vec<UnixStream> = (0..100).map(ask).collect();
        drop(held);
        let start = Instant::now();
        std::thread::sleep(Duration::from_secs(2));
        while !host.get("/host").starts_with("HTTP/1.1 200") {
            assert!(start.elapsed() < Duration::from_secs(300), "no place");
        }
    }
    let start = Instant::now();
    while tasks() > before + 150 {
        assert!(start.elapsed() < Duration::from_secs(300), "{}", tasks());
        std::thread::sleep(Duration::from_millis(50));
    }
    host.run(&["unload", "stuck", "--now", "--timeout=60"])
        .refuses(8, &["stuck is ending still after 1s"]);
    host.run(&["unload", "other", "--now"]).succeeds();
}

/// What a host takes at a time is less than what a text may be.
#[test]
fn a_manifest_that_is_too_large_is_told_so() {
    let host = Host::begin();
    let one = |i: usize| format!("[[application]]\nnetwork = \"x.xdf\"\nname = \"a{i}\"\n");
    let text: String = (0..20_000).map(one).collect();
    host.place.write("many.toml", &text);
    host.run(&["load", "many.toml"])
        .refuses(1, &["1 MiB", "many.toml", "several"]);
}

/// JSON has no such text: that is told, from wherever it comes.
#[test]
fn a_folder_that_is_no_text_is_told() {
    let host = Host::begin();
    let folder = host
        .place
        .path("")
        .join(std::ffi::OsStr::from_bytes(b"f\xff"));
    std::fs::create_dir(&folder).unwrap();
    let socket = host.place.path("h.sock");
    let manifest = "[[application]]\nnetwork = \"x.xdf\"\n";
    std::fs::write(folder.join("x.toml"), manifest).unwrap();
    let top = host.place.path(TOP);
    for (args, inside) in [
        (&["x.xdf"][..], true),
        (&["x.toml"], true),
        (&["--out"], false),
    ] {
        let mut command = host.place.command(&["load", "--socket"]);
        command.arg(&socket).args(args);
        if inside {
            command.current_dir(&folder);
        } else {
            command.arg(folder.join("x")).arg(&top);
        }
        let run = Run::new(command.output().unwrap());
        run.refuses(1, &["is no text in UTF-8", "a link"]);
    }
}

/// What HEAD answers is what GET does, without the body; and it follows nothing.
#[test]
fn the_head_of_an_answer_can_be_asked_for_alone() {
    let host = Host::begin();
    host.many("one");
    for path in [
        "/host",
        "/applications/one",
        "/events",
        "/events?follow=true",
        "/openapi.json",
    ] {
        let head = format!("HEAD {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = host.raw(head.as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(
            head.contains("content-type: ") && body.is_empty(),
            "{answer}"
        );
    }
    // Requests of Levada 0.1.
    let answer = host.get("/beside");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(
        answer.contains("there is no /beside: see /openapi.json"),
        "{answer}"
    );
    let answer = host.post("/applications/one/pause?within=1", "");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("since 0.2 it is `timeout`"), "{answer}");
    let answer = host.raw(b"HEAD /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let answer = host.post("/host", "");
    assert!(answer.contains("\r\nallow: GET,HEAD\r\n"), "{answer}");
}

/// Of a manifest all are seen or none, at any moment of its load, however it ends: it is loaded, its client is killed
/// meanwhile, or the last of its applications is refused when all others are there.
#[test]
fn all_applications_of_a_manifest_are_visible_or_none() {
    const EACH: usize = 10;
    let host = Host::begin();
    let manifest = |name: &str, more: &str| {
        let one = |i: usize, more: &str| {
            format!(
                "[[application]]\nname = \"{name}-{i}\"\nnetwork = \"src/p/Many.xdf\"\nout = \"/dev/null\"\n\
                 paused = true\n{more}\n"
            )
        };
        let first: String = (1..EACH).map(|i| one(i, "")).collect();
        let file = format!("{name}.toml");
        host.place.write(&file, &(first + &one(EACH, more)));
        file
    };
    let counts = || {
        let mut counts = std::collections::BTreeMap::new();
        for one in host.json(&["list"]).as_array().unwrap() {
            let name = one["name"].as_str().unwrap();
            let owner = name.split('-').next().unwrap().to_string();
            *counts.entry(owner).or_insert(0) += 1;
        }
        counts
    };
    let good = |name: String| {
        let file = manifest(&name, "");
        host.run(&["load", &file]).succeeds();
    };
    let killed = |name: String, after: Duration| {
        let file = manifest(&name, "");
        let mut command = host.place.command(&["load", &file, "--socket", "h.sock"]);
        let mut client = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        client.kill().unwrap();
        client.wait().unwrap();
    };
    let refused = |name: String| {
        let file = manifest(&name, "isolate = true\nmemory = 1000");
        host.run(&["load", &file])
            .refuses(6, &["and may have 1000"]);
    };
    // It is compiled once.
    good("first".to_string());
    std::thread::scope(|scope| {
        let loads = [
            scope.spawn(|| (0..3).for_each(|i| good(format!("good{i}")))),
            scope.spawn(|| (0..3).for_each(|i| refused(format!("refused{i}")))),
            scope.spawn(|| {
                (0..8).for_each(|i| killed(format!("killed{i}"), Duration::from_millis(10 * i)));
            }),
        ];
        while loads.iter().any(|l| !l.is_finished()) {
            let counts = counts();
            assert!(counts.values().all(|n| *n == EACH), "{counts:?}");
        }
    });
    // What killed clients have asked for may come still.
    let counts = counts();
    assert!(counts.values().all(|n| *n == EACH), "{counts:?}");
    assert!(counts.contains_key("good2") && !counts.keys().any(|n| n.starts_with("refused")));
}

#[test]
fn core_usage_by_others_must_be_valid_numbers_one_per_core() {
    let host = Host::begin();
    for (usage, why) in [
        (
            "[-1]",
            "core_usage_by_others has -1: each is a number from 0 to 1000",
        ),
        ("[0, 1001]", "core_usage_by_others has 1001"),
        (
            "[0, 0, 0]",
            "core_usage_by_others has 3 numbers, and there are 2 workers",
        ),
    ] {
        let directory = host.place.path("");
        let request = serde_json::json!({"network": "src/p/Top.xdf", "directory": directory});
        let request =
            request
                .to_string()
                .replacen('{', &format!("{{\"core_usage_by_others\": {usage}, "), 1);
        let answer = host.post("/applications", &request);
        assert!(
            answer.starts_with("HTTP/1.1 400") && answer.contains(why),
            "{answer}"
        );
    }
}

/// The compiler of its natives would wait without end: the client is told that the host is ending.
#[test]
fn a_client_that_is_not_waited_for_at_the_end_gets_an_error() {
    let place = sources();
    place.write(
        "src/p/Slow.cal",
        "package p;\nactor Slow () ==> :\n  @native procedure slow() end\n  action ==> do slow(); end\nend\n",
    );
    place.write("natives/slow.c", "#include \"slow.h\"\n");
    let header = pipe(&place, "natives/slow.h");
    let mut host = Host::begin_in(place);
    let load = ["load", "src/p/Slow.cal", "--socket=h.sock"];
    let asks = host.place.command(&load).stderr(Stdio::piped()).spawn();
    // Its reader exists.
    let begun = || {
        let mut file = std::fs::File::options();
        let file = file
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&header);
        file.ok()
    };
    let start = Instant::now();
    let _header = loop {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "no compiler was started"
        );
        match begun() {
            Some(file) => break file,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    // SAFETY: a child of ours that has not been waited for.
    unsafe { libc::kill(host.child.id() as i32, libc::SIGTERM) };
    let run = Run::new(asks.unwrap().wait_with_output().unwrap());
    run.refuses(5, &["is not waited for: the host ends"]);
    host.until_dead();
}
