// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where applications of a host are put beside isolated ones that have part of its cores: what these take is known before
//! anybody is placed. Tried are one that is loaded, and two of a manifest.

mod common;

use common::host::{Host, sources};
use common::{network, skipped};
use std::time::{Duration, Instant};

/// `Three`: numbers, each after some work.
fn three() -> Host {
    let place = sources();
    place.write(
        "src/p/Step.cal",
        "package p;\nactor Step () int In ==> int Out :\n  action In:[y] ==> Out:[x] var int x := y do\n    \
         foreach int i in 1 .. 4000 do x := (x * 75 + 74) mod 65537; end\n  end\nend\n",
    );
    let text = network(
        &[
            ("source", "p.Source", &[("n", "2000000000")]),
            ("step0", "p.Step", &[]),
            ("write", "p.Write", &[]),
        ],
        &[("source.Out", "step0.In"), ("step0.Out", "write.In")],
    );
    place.write("src/p/Three.xdf", &text.replace("\"Top\"", "\"Three\""));
    Host::begin_in(place)
}

fn load(host: &Host, file: &str, name: &str, more: &[&str]) {
    let args = ["load", file, "--name", name, "--no-fuse", "--out=/dev/null"];
    host.run(&[&args[..], more].concat()).succeeds();
}

/// How many of its actors whose names begin so are on each of the two workers.
fn on_each(host: &Host, name: &str, begins: &str) -> [usize; 2] {
    let shown = host.json(&["show", name]);
    let mut on = [0; 2];
    for actor in shown["actor"].as_array().unwrap() {
        if actor["name"].as_str().unwrap().starts_with(begins) {
            on[actor["worker"].as_u64().unwrap() as usize] += 1;
        }
    }
    on
}

/// The core of the first worker, where there are two.
fn first_core(what: &str, host: &Host) -> Option<i64> {
    let enough = std::thread::available_parallelism().is_ok_and(|n| n.get() >= 2);
    let cpu = host.json(&["map"])[0]["cpu"].as_i64();
    let cpu = cpu.filter(|cpu| enough && *cpu >= 0);
    if cpu.is_none() {
        skipped(what, "there are no two cores to which workers are pinned");
    }
    cpu
}

/// Tries it until it is so: what isolated ones take has to be seen.
fn until(what: &str, tried: impl Fn() -> bool) {
    let start = Instant::now();
    while !tried() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(600));
    }
}

#[test]
fn whoever_is_loaded_begins_where_isolated_ones_leave_more() {
    let host = three();
    if first_core("who begins beside isolated ones", &host).is_none() {
        return;
    }
    load(&host, "src/p/Three.xdf", "apart", &["--isolate"]);
    for actor in ["source", "step0", "write"] {
        host.run(&["move", "apart", actor, "0"]).succeeds();
    }
    // Of three actors two would begin on the first worker.
    until("it begins there", || {
        load(&host, "src/p/Three.xdf", "one", &["--paused"]);
        let [busy, free] = on_each(&host, "one", "");
        host.run(&["unload", "one", "--now"]).succeeds();
        free > busy
    });
    // And each of two would have a worker for itself.
    let one = |name: &str| {
        format!(
            "[[application]]\nnetwork = \"src/p/Three.xdf\"\nname = \"{name}\"\nout = \"/dev/null\"\nno_fuse = true\n\
             paused = true\n"
        )
    };
    host.place.write("two.toml", &(one("a") + &one("b")));
    until("they begin there", || {
        host.run(&["load", "two.toml"]).succeeds();
        let [a, b] = ["a", "b"].map(|name| on_each(&host, name, ""));
        for name in ["a", "b"] {
            host.run(&["unload", name, "--now"]).succeeds();
        }
        a[1] + b[1] > a[0] + b[0]
    });
}
