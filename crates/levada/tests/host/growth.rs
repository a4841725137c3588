// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of channels that grow in applications of a host. Also: isolated applications, fixed buffers, the memory limit,
//! and a replacement after a channel has grown.

use crate::common::blocks;
use crate::common::host::Host;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const TOP: &str = "src/p/Top.xdf";
const SAID: &str = "blocks.Data -> parts.Data has grown from 3 elements to 12";

/// Capacities of the channel of the data: now, and at load.
fn capacities(host: &Host, name: &str) -> (Value, Value) {
    let seen = host.json(&["show", name]);
    let channels = seen["channel"].as_array().unwrap();
    let data = channels.iter().find(|c| c["from"] == "blocks.Data");
    let data = data.unwrap();
    (data["capacity"].clone(), data["loaded_capacity"].clone())
}

/// Waits for the event about the last growth of an application; one about an earlier growth may precede it.
fn until_grown(host: &Host, name: &str) {
    let start = Instant::now();
    let is_said = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["event"] == "grown" && event["application"] == name && event["detail"] == SAID
    };
    loop {
        let events = host.run(&["events", "--json"]).succeeds().out.clone();
        if events.lines().any(is_said) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "{events}");
    }
}

fn done(host: &Host, name: &str, options: &[&str]) -> Value {
    host.run(&[&["load", TOP, "--name", name], options].concat())
        .succeeds();
    host.until(name, |a| {
        ["ended", "failed"].map(Value::from).contains(&a["state"])
    })
}

#[test]
fn a_hosted_or_isolated_application_tells_which_channel_has_grown() {
    let host = Host::begin_in(blocks("5", 3));
    for (name, options) in [("hosted", &[][..]), ("isolated", &["--isolate"])] {
        let seen = done(&host, name, options);
        assert_eq!(seen["outcome"], "done");
        until_grown(&host, name);
        assert_eq!(capacities(&host, name), (json!(12), json!(3)));
        let text = host.run(&["show", name]).succeeds().out.clone();
        assert!(text.contains("12 (was 3)"), "{text}");
    }
    let text = host.run(&["events"]).succeeds().out.clone();
    assert!(text.contains(&format!("hosted: {SAID}")), "{text}");
}

#[test]
fn fixed_buffers_end_an_application_with_a_deadlock() {
    let host = Host::begin_in(blocks("5", 3));
    for (name, options) in [
        ("hosted", &["--fixed-buffers"][..]),
        ("isolated", &["--fixed-buffers", "--isolate"]),
    ] {
        let seen = done(&host, name, options);
        let outcome = seen["outcome"].as_str().unwrap();
        assert_eq!(seen["state"], "failed");
        assert!(outcome.contains("buffers are fixed"), "{outcome}");
        assert_eq!(capacities(&host, name), (json!(3), json!(3)));
    }
}

#[test]
fn a_new_version_has_the_capacity_to_which_the_channel_has_grown() {
    let host = Host::begin_in(blocks("1000000000", 3));
    host.run(&["load", TOP, "--name", "a"]).succeeds();
    until_grown(&host, "a");
    let before = host.seen("a")["firings"].as_u64();
    host.run(&["replace", "a", TOP]).succeeds();
    assert_eq!(capacities(&host, "a"), (json!(12), json!(3)));
    host.until("a", |a| a["firings"].as_u64() > before);
    host.run(&["unload", "a", "--now"]).succeeds();
}
