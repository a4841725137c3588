// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests that applications lose no elements and are not paused while others are loaded and unloaded. The lateness
//! of their elements, by the elements' own time stamps, is printed; `make bench SUITE=standing` measures it.

use crate::common::host::{Host, sources};
use std::path::Path;

const ELEMENTS: usize = 5000;

#[test]
fn running_applications_lose_no_elements_during_loads() {
    let late = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/cal/late");
    let late = std::fs::canonicalize(late).unwrap();
    let network = |name: &str| late.join("src/late").join(name).display().to_string();
    let place = sources();
    place.write("numbers.txt", &"1\n".repeat(50_000));
    let host = Host::begin_in(place);
    let load = |file: &str, name: &str, more: &[&str]| {
        let network = network(file);
        let args = ["load", &network, "--name", name];
        host.run(&[&args[..], more].concat()).succeeds();
    };
    let names = ["a", "b", "c"];
    for name in names {
        load("Late.xdf", name, &["--out", &format!("{name}.txt")]);
    }
    let mut loads = 0;
    while names.iter().any(|n| host.seen(n)["state"] == "running") {
        let other = format!("other{loads}");
        load(
            "Copy.xdf",
            &other,
            &["--in", "numbers.txt", "--out", "/dev/null"],
        );
        host.run(&["unload", &other, "--now"]).succeeds();
        loads += 1;
    }
    let mut all: Vec<i64> = Vec::new();
    for name in names {
        assert_eq!(host.seen(name)["outcome"], "done");
        let text = std::fs::read_to_string(host.place.path(&format!("{name}.txt"))).unwrap();
        let of: Vec<i64> = text.lines().map(|l| l.parse().unwrap()).collect();
        assert_eq!(of.len(), ELEMENTS, "{name} has lost elements");
        // None came before it was due.
        assert!(of.iter().all(|late| *late >= 0));
        all.extend(of);
    }
    let events = host.run(&["events", "--json"]);
    for what in ["paused", "failed"] {
        let told = format!("\"event\":\"{what}\"");
        assert!(!events.out.contains(&told), "{events:?}");
    }
    assert!(loads > 0);
    all.sort_unstable();
    let at = |part: f64| all[((all.len() - 1) as f64 * part) as usize] as f64 / 1e6;
    println!(
        "{loads} loads: late by {:.2} ms (median), {:.2} (99.9 %), {:.2} (the most)",
        at(0.5),
        at(0.999),
        at(1.0)
    );
}
