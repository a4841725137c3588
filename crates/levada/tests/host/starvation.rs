// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests that an application that shares a worker with one of higher priority that always computes is moved. The
//! time until then is printed.

use crate::common::host::{Host, sources};
use crate::common::network;
use std::time::Instant;

/// Numbers, each after some work, in three steps; and one step that takes whole milliseconds.
fn busy() -> Host {
    let place = sources();
    for (name, work) in [("Step", 2_000), ("Whole", 2_000_000)] {
        let text = format!(
            "package p;\nactor {name} () int In ==> int Out :\n  action In:[y] ==> Out:[x] var int x := y do\n    \
             foreach int i in 1 .. {work} do x := (x * 75 + 74) mod 65537; end\n  end\nend\n"
        );
        place.write(&format!("src/p/{name}.cal"), &text);
    }
    for (name, step) in [("Steps", "p.Step"), ("Always", "p.Whole")] {
        let text = network(
            &[
                ("source", "p.Source", &[("n", "2000000000")]),
                ("one", step, &[]),
                ("two", "p.Step", &[]),
                ("write", "p.Write", &[]),
            ],
            &[
                ("source.Out", "one.In"),
                ("one.Out", "two.In"),
                ("two.Out", "write.In"),
            ],
        );
        let text = text.replace("\"Top\"", &format!("\"{name}\""));
        place.write(&format!("src/p/{name}.xdf"), &text);
    }
    Host::begin_in(place)
}

#[test]
fn a_starved_application_gets_turns_again() {
    let host = busy();
    let load = |network: &str, name: &str, priority: &str| {
        let args = ["load", network, "--name", name, "--priority", priority];
        host.run(&[&args[..], &["--no-fuse", "--out=/dev/null"]].concat())
            .succeeds();
    };
    let others = ["a", "b", "c"];
    for name in others {
        load("src/p/Steps.xdf", name, "0");
    }
    load("src/p/Always.xdf", "always", "5");
    for round in 0..3 {
        let start = Instant::now();
        for name in others {
            let firings = |a: &serde_json::Value| a["firings"].as_u64().unwrap();
            let before = firings(&host.seen(name));
            host.until(name, |now| firings(now) > before + 400);
        }
        println!("round {round}: {:.2} s", start.elapsed().as_secs_f64());
    }
}
