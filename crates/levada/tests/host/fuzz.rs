// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random requests: corrupted valid ones, and invalid ones. Whatever arrives on its socket, the host answers the
//! next request, its applications continue, and replies conform to the interface's description.
//!
//! `LEVADA_FUZZ=N` sends N requests; `LEVADA_SEED` selects others.

use crate::common::chance::Chance;
use crate::common::host::Host;
use serde_json::Value;
use std::io::Write;
use std::os::unix::net::UnixStream;

const METHODS: [&str; 7] = [
    "GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "G\u{e9}T",
];
const PATHS: [&str; 25] = [
    "/host",
    "/applications",
    "/manifest",
    "/applications/other",
    "/applications/other/pause",
    "/applications/other/resume",
    "/applications/other/move",
    "/applications/other/replace",
    "/applications/other/why",
    "/applications/%00",
    "/applications/%ff%fe",
    "/applications/..%2f..%2fetc",
    "/map",
    "/neighbors",
    "/stats",
    "/metrics",
    "/events",
    "/openapi.json",
    "*",
    "//",
    "/applications//",
    "/nothing",
    "/cores/x/reservation",
    "/cores/9999/reservation",
    "/cores/-1/reservation",
];
const QUERIES: [&str; 9] = [
    "",
    "?timeout=0.01",
    "?timeout=-1",
    "?timeout=1e308",
    "?timeout=NaN",
    "?now=maybe",
    "?since=18446744073709551616",
    "?=&&=%",
    "?now=true&timeout=0.01",
];
const BODIES: [&str; 12] = [
    "",
    "null",
    "{}",
    "[]",
    "{\"network\":\"src/p/Top.xdf\",\"directory\":\"/\",\"timeout\":1e300}",
    "{\"network\":\"src/p/Top.xdf\",\"directory\":\"/\",\"timeout\":-0.5}",
    "{\"network\":\"/dev/zero\",\"directory\":\"/\",\"timeout\":0.2}",
    "{\"network\":\"x\",\"directory\":\"/\",\"rate\":1e400}",
    "{\"application\":[]}",
    "{\"application\":[{\"network\":\"a\"},{\"network\":\"b\",\"name\":\"\\ud800\"}]}",
    "{\"actor\":\"source\",\"worker\":4294967296}",
    "{\"load\":{\"network\":\"x\",\"directory\":\"/\"},\"timeout\":1e19}",
];

/// Requests that are right, of applications of their own. In place of `@` comes the folder.
const RIGHT: [(&str, &str, &str, &str); 10] = [
    ("POST", "/applications", "", LOAD),
    (
        "POST",
        "/manifest",
        "",
        "{\"application\":[{\"name\":\"one\",\"network\":\"src/p/Many.xdf\",\"directory\":\"@\"},\
         {\"name\":\"two\",\"network\":\"src/p/Many.xdf\",\"directory\":\"@\",\"paused\":true}]}",
    ),
    (
        "POST",
        "/applications/fuzzed/replace",
        "",
        "{\"timeout\":0.5,\"load\":{\"network\":\"src/p/Many.xdf\",\"directory\":\"@\"}}",
    ),
    ("POST", "/applications/fuzzed/pause", "", ""),
    ("POST", "/applications/fuzzed/resume", "", ""),
    (
        "POST",
        "/applications/fuzzed/move",
        "",
        "{\"actor\":\"source\",\"worker\":1}",
    ),
    ("GET", "/applications/fuzzed/why", "", ""),
    ("DELETE", "/applications/fuzzed", "?now=true", ""),
    ("DELETE", "/applications/one", "?now=true", ""),
    ("DELETE", "/applications/two", "?timeout=0.2", ""),
];
const LOAD: &str = "{\"name\":\"fuzzed\",\"network\":\"src/p/Many.xdf\",\"directory\":\"@\"}";

/// A request that is right, or could be meant so; and its method and path.
fn meant(chance: &mut Chance, folder: &str) -> (Vec<u8>, &'static str, &'static str) {
    if chance.below(3) == 0 {
        let (method, path, query, body) = chance.of(&RIGHT);
        let body = body.replace('@', folder);
        let length = body.len();
        let request = format!(
            "{method} {path}{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        return (request.into_bytes(), method, path);
    }
    let (method, path) = (chance.of(&METHODS), chance.of(&PATHS));
    let query = chance.of(&QUERIES);
    let body = match chance.below(20) {
        0 => "[".repeat(100_000),
        1 => format!("{{\"network\":\"{}\"}}", "x".repeat(chance.below(3 << 20))),
        _ => chance.of(&BODIES).to_string(),
    };
    let length = match chance.below(10) {
        0 => "18446744073709551617".to_string(),
        1 => (body.len() + 1 + chance.below(1000)).to_string(),
        2 => "-1".to_string(),
        _ => body.len().to_string(),
    };
    let how = match chance.below(6) {
        0 => "transfer-encoding: chunked\r\n".to_string(),
        1 => format!("content-length: 3\r\ncontent-length: {length}\r\n"),
        2 => format!(
            "content-length: {length}\r\nx: {}\r\n",
            "y".repeat(chance.below(200_000))
        ),
        _ => format!("content-length: {length}\r\n"),
    };
    let request = format!(
        "{method} {path}{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{how}\r\n{body}"
    );
    (request.into_bytes(), method, path)
}

/// An error is an object that says what is wrong, in JSON; but what is no HTTP, or has too large a head, has no
/// answer but its status.
fn check_error(method: &str, answer: &str) -> bool {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    if !head.contains("content-type") && body.is_empty() {
        assert!(
            ["400", "414", "431"]
                .iter()
                .any(|s| head.starts_with(&format!("http/1.1 {s}"))),
            "{answer}"
        );
        return false;
    }
    assert!(head.contains("content-type: application/json"), "{answer}");
    if method == "HEAD" {
        return true;
    }
    let body: Value = serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"));
    assert!(
        body["error"].as_str().is_some_and(|e| !e.is_empty()),
        "{answer}"
    );
    true
}

/// What is said of a path in the document.
fn documented<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    let all = document["paths"].as_object().unwrap();
    let found = all.iter().find(|(template, _)| {
        let (a, b) = (template.split('/'), path.split('/'));
        a.clone().count() == b.clone().count()
            && a.zip(b)
                .all(|(a, b)| a == b || (a.starts_with('{') && !b.is_empty()))
    });
    found.map(|(_, item)| item)
}

/// Whether an answer is one that the document tells of.
fn check_documented(document: &Value, method: &str, path: &str, answer: &str) {
    let status = answer.split(' ').nth(1).unwrap_or_default();
    if !status.starts_with('2') && !check_error(method, answer) {
        return;
    }
    let Some(item) = documented(document, path) else {
        return assert_eq!(status, "404", "{method} {path}: {answer}");
    };
    let all = item.as_object().unwrap();
    let operation = match all.get(&method.to_lowercase()) {
        Some(operation) => operation,
        None => {
            assert_eq!(status, "405", "{method} {path}: {answer}");
            // What can be done instead is said, by the names that the document has.
            let allow = answer.lines().find_map(|line| line.strip_prefix("allow: "));
            let mut allowed: Vec<String> = allow
                .unwrap_or_default()
                .split(',')
                .map(str::to_lowercase)
                .collect();
            allowed.sort();
            let mut told: Vec<&String> = all.keys().collect();
            told.sort();
            assert_eq!(allowed.iter().collect::<Vec<_>>(), told, "{answer}");
            all.values().find(|o| o.get("responses").is_some()).unwrap()
        }
    };
    let said = operation["responses"].get(status);
    assert!(
        said.is_some(),
        "{status} is not documented: {method} {path}: {answer}"
    );
}

/// Some bytes are others, gone, or there twice.
fn spoil(chance: &mut Chance, bytes: &mut Vec<u8>) {
    for _ in 0..chance.below(4) {
        let at = chance.below(bytes.len().clamp(1, 200));
        match chance.below(4) {
            _ if at >= bytes.len() => {}
            0 => bytes[at] = chance.below(256) as u8,
            1 => bytes.truncate(at),
            2 => drop(bytes.remove(at)),
            _ => bytes.extend_from_within(at..bytes.len().min(at + 40)),
        }
    }
}

#[test]
fn whatever_is_asked_the_host_lives_and_the_others_go_on() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let (many, seed) = (
        number("LEVADA_FUZZ").unwrap_or(200),
        number("LEVADA_SEED").unwrap_or(7),
    );
    let mut chance = Chance(seed.max(1));
    let mut host = Host::begin();
    for name in ["good", "other"] {
        host.many(name);
    }
    let folder = host.place.path("").display().to_string();
    let load = LOAD.replace('@', &folder);
    let loaded = host.post("/applications", &load);
    assert!(loaded.starts_with("HTTP/1.1 201"), "{loaded}");
    let answer = host.get("/openapi.json");
    let document: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let mut held = std::collections::VecDeque::new();
    for i in 0..many {
        let (mut request, method, path) = meant(&mut chance, &folder);
        if i % 3 == 0 {
            let answer = host.raw(&request);
            check_documented(&document, method, path, &answer);
            continue;
        }
        spoil(&mut chance, &mut request);
        if chance.below(8) == 0 {
            // Half of it, and then nothing for some time.
            let mut stream = UnixStream::connect(host.place.path("h.sock")).unwrap();
            stream
                .set_write_timeout(Some(std::time::Duration::from_millis(100)))
                .unwrap();
            let _ = stream.write(&request[..request.len() / 2]);
            held.push_back(stream);
            held.truncate(20);
        } else if !request.windows(6).any(|w| w == b"follow") {
            let answer = host.raw(&request);
            let error = answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 5");
            // Of what was spoilt there may be several answers, or none to see.
            if error && !request.starts_with(b"HEAD") && answer.matches("HTTP/1.1 ").count() == 1 {
                check_error("", &answer);
            }
        }
        if i % 20 == 0 {
            assert!(
                host.child.try_wait().unwrap().is_none(),
                "seed {seed}, request {i}"
            );
            let answer = host.get("/host");
            assert!(
                answer.starts_with("HTTP/1.1 200"),
                "seed {seed}, request {i}: {answer}"
            );
        }
    }
    // Each path with each method, also those that chance has not met.
    for path in PATHS.iter().filter(|p| p.starts_with('/')) {
        for method in ["GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS"] {
            let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
            let request = head + "content-length: 0\r\n\r\n";
            if method != "DELETE" || !path.ends_with("/other") {
                check_documented(&document, method, path, &host.raw(request.as_bytes()));
            }
        }
    }
    let slow = &document["paths"]["/applications"]["post"]["responses"];
    assert!(
        ["408", "413", "503"].iter().all(|s| slow.get(s).is_some()),
        "{slow}"
    );
    drop(held);
    // What was done to those of its own keeps none from being loaded again.
    let _ = host.raw(
        b"DELETE /applications/fuzzed?now=true HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    );
    let loaded = host.post("/applications", &load);
    assert!(loaded.starts_with("HTTP/1.1 201"), "{loaded}");
    let before = host.seen("good")["firings"].as_u64();
    assert!(before.is_some());
    host.until("good", |a| a["firings"].as_u64() > before);
}
