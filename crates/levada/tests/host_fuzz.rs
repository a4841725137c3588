// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests by chance: right ones that were spoilt, and wrong ones. Whatever comes over its socket, the
//! host answers the next one, and its applications go on.
//!
//! `LEVADA_FUZZ=N` sends so many, `LEVADA_SEED` begins elsewhere.

mod common;

use common::chance::Chance;
use common::host::Host;
use std::io::Write;
use std::os::unix::net::UnixStream;

const METHODS: [&str; 7] = [
    "GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "G\u{e9}T",
];
const PATHS: [&str; 20] = [
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
    "/stats",
    "/metrics",
    "/events",
    "/openapi.json",
    "*",
    "//",
    "/applications//",
];
const QUERIES: [&str; 9] = [
    "",
    "?within=0.01",
    "?within=-1",
    "?within=1e308",
    "?within=NaN",
    "?now=maybe",
    "?since=18446744073709551616",
    "?=&&=%",
    "?now=true&within=0.01",
];
const BODIES: [&str; 12] = [
    "",
    "null",
    "{}",
    "[]",
    "{\"network\":\"src/p/Top.xdf\",\"directory\":\"/\",\"within\":1e300}",
    "{\"network\":\"src/p/Top.xdf\",\"directory\":\"/\",\"within\":-0.5}",
    "{\"network\":\"/dev/zero\",\"directory\":\"/\",\"within\":0.2}",
    "{\"network\":\"x\",\"directory\":\"/\",\"rate\":1e400}",
    "{\"application\":[]}",
    "{\"application\":[{\"network\":\"a\"},{\"network\":\"b\",\"name\":\"\\ud800\"}]}",
    "{\"actor\":\"source\",\"worker\":4294967296}",
    "{\"load\":{\"network\":\"x\",\"directory\":\"/\"},\"within\":1e19}",
];

/// A request as it could be meant.
fn meant(chance: &mut Chance) -> Vec<u8> {
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
    format!("{method} {path}{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{how}\r\n{body}")
        .into_bytes()
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
    let mut held = std::collections::VecDeque::new();
    for i in 0..many {
        let mut request = meant(&mut chance);
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
            host.raw(&request);
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
    drop(held);
    let before = host.seen("good")["firings"].as_u64();
    assert!(before.is_some());
    host.until("good", |a| a["firings"].as_u64() > before);
}
