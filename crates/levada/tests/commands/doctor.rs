// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada doctor`: its report on the machine.

use crate::common::numbers;

#[test]
fn doctor_finds_a_compiler_and_a_cache() {
    let place = numbers();
    let json = place.run(&["doctor", "--json"]).succeeds().json();
    assert_eq!(json["ready"], true);
    let state = |what: &str| {
        let list = json["findings"].as_array().unwrap();
        let found = list.iter().find(|f| f["what"] == what);
        found.unwrap_or_else(|| panic!("{what}"))["state"].clone()
    };
    assert_eq!(state("C compiler"), "ok");
    assert_eq!(state("cache"), "ok");
    for what in [
        "cores",
        "membarrier",
        "memfd",
        "max_map_count",
        "fibers",
        "urgent fibers",
        "real time",
        "perf",
    ] {
        state(what);
    }
    // What is advised says what to do.
    for finding in json["findings"].as_array().unwrap() {
        assert_eq!(
            finding["state"] == "ok",
            finding["help"].is_null(),
            "{finding}"
        );
    }
    let text = place.run(&["doctor"]);
    assert!(text.succeeds().out.contains("ready to run networks"));
    let mut without = place.command(&["doctor"]);
    let output = without.env("CC", "/nowhere/cc").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("missing  C compiler"));
}
