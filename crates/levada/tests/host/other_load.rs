// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of placement next to other load: isolated applications (their use is known before placement), programs
//! without leases (their load is measured), and programs that were announced to the host. Cases: one load, two of a
//! manifest, a running application; too many processes, none, an invalid process, and the host's own.

use crate::common::busy::Busy;
use crate::common::host::{Host, sources};
use crate::common::{network, skipped};
use levada_host::client::{Client, Method};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of equal actors that take most of the time in `Steps`.
const STEPS: usize = 2;

/// `Steps`: numbers, each after some work in each of these. `Three`: the same with one.
fn steps() -> Host {
    let place = sources();
    place.write(
        "src/p/Step.cal",
        "package p;\nactor Step () int In ==> int Out :\n  action In:[y] ==> Out:[x] var int x := y do\n    \
         foreach int i in 1 .. 4000 do x := (x * 75 + 74) mod 65537; end\n  end\nend\n",
    );
    for (name, steps) in [("Steps", STEPS), ("Three", 1)] {
        let names: Vec<String> = (0..steps).map(|i| format!("step{i}")).collect();
        let mut instances = vec![("source", "p.Source", &[("n", "2000000000")][..])];
        instances.extend(names.iter().map(|name| (&**name, "p.Step", &[][..])));
        instances.push(("write", "p.Write", &[]));
        let ends = instances.windows(2).map(|two| {
            let [(from, ..), (to, ..)] = two else {
                unreachable!()
            };
            (format!("{from}.Out"), format!("{to}.In"))
        });
        let ends: Vec<(String, String)> = ends.collect();
        let wires: Vec<(&str, &str)> = ends.iter().map(|(a, b)| (&**a, &**b)).collect();
        let text = network(&instances, &wires);
        let text = text.replace("\"Top\"", &format!("\"{name}\""));
        let file = format!("src/p/{name}.xdf");
        place.write(&file, &text);
        // Next to these computations, the compiler of a load would get almost no CPU time.
        place
            .run(&["build", &file, "--no-fuse", "-o", name])
            .succeeds();
    }
    Host::begin_in(place)
}

fn load(host: &Host, file: &str, name: &str, more: &[&str]) {
    let args = ["load", file, "--name", name, "--no-fuse", "--out=/dev/null"];
    host.run(&[&args[..], more].concat()).succeeds();
}

/// How many of its actors with names that begin so are on each of the two workers.
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

/// Retries until the condition holds: the load of isolated applications has to be measured, and counts only while the
/// other core is idle.
fn until(what: &str, tried: impl Fn() -> bool) {
    let start = Instant::now();
    while !tried() {
        assert!(start.elapsed() < Duration::from_secs(300), "{what}");
        std::thread::sleep(Duration::from_millis(600));
    }
}

#[test]
fn loads_start_where_isolated_applications_leave_more() {
    let host = steps();
    if first_core("the core of a load next to isolated applications", &host).is_none() {
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

/// The number of programs that compute on the core. They leave less than half of what another core leaves, unless
/// other programs use most of that, too.
const PROGRAMS: usize = 12;

/// Two equal actors start on one core that other programs use: both leave it. From the costs of actors alone there is
/// no gain in that: on another core both together need as much as on this one, and more than one of them. The time
/// until then depends on the machine, on which other programs may run, too.
#[test]
fn an_application_has_less_of_a_core_that_programs_use() {
    let host = steps();
    let Some(cpu) = first_core("an application next to programs", &host) else {
        return;
    };
    load(&host, "src/p/Steps.xdf", "steps", &[]);
    let steps: Vec<String> = (0..STEPS).map(|i| format!("step{i}")).collect();
    for step in &steps {
        host.run(&["move", "steps", step, "0"]).succeeds();
    }
    for other in ["source", "write"] {
        host.run(&["move", "steps", other, "1"]).succeeds();
    }
    let _busy = [cpu; PROGRAMS].map(Busy::on);
    for step in &steps {
        host.run(&["move", "steps", step, "--unpin"]).succeeds();
    }
    let start = Instant::now();
    // Once is sufficient: nothing else would move both away.
    loop {
        let [busy, free] = on_each(&host, "steps", "step");
        assert_eq!(busy + free, STEPS);
        if busy == 0 {
            break;
        }
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "{busy} on the core that is used, {free} on the other"
        );
        std::thread::sleep(Duration::from_millis(300));
    }
    println!("after {:.1} s", start.elapsed().as_secs_f64());
}

/// Announces a process to the host, and returns the list of announced ones.
fn tell(socket: &Path, process: &Value) -> Value {
    let body = json!({ "process": process });
    let told = Client::new(socket).call(Method::PUT, "/neighbors", &body);
    told.unwrap()
}

#[test]
fn loads_start_where_announced_programs_leave_more() {
    let host = steps();
    let Some(cpu) = first_core("the core of a load next to programs", &host) else {
        return;
    };
    let busy = [cpu; 3].map(Busy::on);
    let socket = host.place.path("h.sock");
    let mut pids: Vec<u32> = busy.iter().map(|busy| busy.id()).collect();
    pids.sort();
    let own = host.child.id();
    let all: Vec<u32> = pids.iter().copied().chain([own, own]).collect();
    assert_eq!(tell(&socket, &json!(all)), json!({ "process": pids }));
    // Of three actors two would begin on the first worker.
    until("it begins there", || {
        load(&host, "src/p/Three.xdf", "one", &["--paused"]);
        let [busy, free] = on_each(&host, "one", "");
        host.run(&["unload", "one", "--now"]).succeeds();
        free > busy
    });
    for (wrong, why) in [
        (
            json!({ "process": (1..2000).collect::<Vec<u32>>() }),
            "1999 processes are too many",
        ),
        (json!({ "process": [-1] }), "not what is expected here"),
        (json!({ "process": ["sh"] }), "not what is expected here"),
        (json!({}), "missing field `process`"),
    ] {
        let answer = Client::new(&socket).call::<Value>(Method::PUT, "/neighbors", &wrong);
        let said = answer.unwrap_err().error;
        assert!(said.contains(why), "{said}");
    }
    let told: Value = Client::new(&socket).get("/neighbors").unwrap();
    assert_eq!(told, json!({ "process": pids }));
    assert_eq!(tell(&socket, &json!([])), json!({ "process": [] }));
}

/// Of which processes that of an isolated application has been told, as it says itself.
fn told(host: &Host, process: u64) -> Option<Value> {
    let begins = format!("levada-isolated-{}-", host.child.id());
    let folders = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let own = folders.filter(|f| f.file_name().to_string_lossy().starts_with(&begins));
    let sockets = own.map(|folder| Client::new(&folder.path().join("sock")));
    let mut its = sockets.filter(|client| {
        let host = client.get::<Value>("/host");
        host.is_ok_and(|host| host["pid"] == process)
    });
    let told: Value = its.next()?.get("/neighbors").unwrap();
    Some(told["process"].clone())
}

#[test]
fn isolated_applications_are_told_of_their_neighbors() {
    let host = Host::begin();
    let isolated = |name: &str| {
        let args = ["load", "src/p/Many.xdf", "--name", name, "--isolate"];
        host.run(&[&args[..], &["--out=/dev/null"]].concat())
            .succeeds();
        host.seen(name)["isolated"].as_u64().unwrap()
    };
    let until_told = |process: u64, others: &[u64]| {
        let mut all = vec![u64::from(host.child.id())];
        all.extend(others);
        all.sort();
        let what = format!("{process} is told of {all:?}");
        until(&what, || told(&host, process) == Some(json!(all)));
    };
    let first = isolated("first");
    until_told(first, &[]);
    // What runs in the host itself is the host's.
    host.many("here");
    let [second, third] = ["second", "third"].map(isolated);
    until_told(first, &[second, third]);
    until_told(second, &[first, third]);
    until_told(third, &[first, second]);
    host.run(&["unload", "second", "--now"]).succeeds();
    until_told(first, &[third]);
    // A process that ends by itself is noticed as well.
    // SAFETY: it is a live process of this host.
    unsafe { libc::kill(third as i32, libc::SIGKILL) };
    until_told(first, &[]);
}
