// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of core leases: other processes share the cores with a host.

use crate::common;
use crate::common::host::{Host, TOP, sources};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A network in a process of its own, that computes until it is ended.
struct Program(Child);

impl Program {
    fn begin(host: &Host) -> Program {
        let mut command = host
            .place
            .command(&["run", "src/p/Many.xdf", "--out", "/dev/null"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Program(command.spawn().unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn leases(host: &Host) -> Vec<Value> {
    let workers = host.json(&["stats"])["worker"].as_array().unwrap().clone();
    let known = |w: Value| (!w["lease"].is_null()).then(|| w["lease"].clone());
    workers.into_iter().filter_map(known).collect()
}

fn total(host: &Host, how: &str) -> u64 {
    leases(host).iter().map(|l| l[how].as_u64().unwrap()).sum()
}

fn until(host: &Host, good: impl Fn() -> bool) {
    let start = Instant::now();
    while !good() {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "{:?}",
            leases(host)
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn firings(host: &Host) -> u64 {
    let shown = host.json(&["show", "busy"]);
    shown["actor"][0]["firings"].as_u64().unwrap()
}

/// Its workers have no core of their own where there are fewer of these.
fn has_cores() -> bool {
    let enough = std::thread::available_parallelism().is_ok_and(|n| n.get() >= 2);
    if !enough {
        eprintln!("skipped: there are no two cores");
    }
    enough
}

#[test]
fn another_program_gets_its_turns() {
    if !has_cores() {
        return;
    }
    let host = Host::begin();
    host.many("busy");
    assert!(leases(&host).is_empty(), "no other process wants the cores");
    let program = Program::begin(&host);
    let number = program.0.id();
    until(&host, || total(&host, "transfers") >= 10);
    until(&host, || {
        leases(&host).iter().any(|l| l["process"] == number)
    });
    until(&host, || {
        leases(&host)
            .iter()
            .any(|l| l["process"] == host.child.id())
    });
    let said = host.run(&["stats"]);
    assert!(said.out.contains("lease of"), "{said:?}");
    let metrics = host.get("/metrics");
    assert!(
        metrics.contains("levada_lease_transfers_total{cpu="),
        "{metrics}"
    );
    drop(program); // killed
    let before = firings(&host);
    until(&host, || firings(&host) > before + 100_000);
    until(&host, || {
        leases(&host).iter().all(|l| l["process"] != number)
    });
    host.run(&["load", TOP, "--out", "/dev/null", "--name", "few"])
        .succeeds();
    host.until("few", |a| a["outcome"] == "done");
}

/// What is reserved for it is kept where it does not wait for two cores in turn: it is put on one, though it has
/// next to nothing to do there.
#[test]
fn an_application_with_a_promised_rate_stays_together_next_to_programs() {
    if !has_cores() {
        return;
    }
    let place = sources();
    place.write(
        "src/p/Tick.cal",
        "package p;\nactor Tick () int In ==> :\n  @native procedure tick() end\n  \
         action In:[x] ==> do tick(); end\nend\n",
    );
    place.write(
        "natives/tick.c",
        "#include <levada/native.h>\nvoid tick(void) { lvd_app_progress(lvd_current_app(), \"tick\", 1); }\n",
    );
    let text = common::network(
        &[
            ("source", "p.Source", &[("n", "2000000000")]),
            ("tick", "p.Tick", &[]),
        ],
        &[("source.Out", "tick.In")],
    );
    // Two at a time.
    let short = "dst-port=\"In\"><Attribute kind=\"Value\" name=\"bufferSize\"><Expr kind=\"Literal\" \
                 literal-kind=\"Integer\" value=\"2\"/></Attribute></Connection>";
    place.write("src/p/Ticks.xdf", &text.replace("dst-port=\"In\"/>", short));
    let host = Host::begin_in(place);
    let load = ["load", "src/p/Ticks.xdf", "--name", "ticks", "--no-fuse"];
    let load = [&load[..], &["--rate", "1000"]].concat();
    host.run(&load).succeeds();
    let seats = || {
        let shown = host.json(&["show", "ticks"]);
        let actors = shown["actor"].as_array().unwrap();
        actors
            .iter()
            .map(|a| a["worker"].clone())
            .collect::<Vec<_>>()
    };
    let programs = [Program::begin(&host), Program::begin(&host)];
    until(&host, || total(&host, "transfers") >= 100);
    for actor in [&["tick", "1"], &["source", "0"]] {
        host.run(&["move", "ticks", actor[0], actor[1]]).succeeds();
    }
    // Each goes when its worker next has it in hand.
    until(&host, || seats() == [0, 1]);
    for actor in ["tick", "source"] {
        host.run(&["move", "ticks", actor, "--unpin"]).succeeds();
    }
    until(&host, || seats().iter().all(|seat| *seat == seats()[0]));
    drop(programs);
}

#[test]
fn a_host_that_is_killed_leaves_its_programs_running() {
    if !has_cores() {
        return;
    }
    let mut host = Host::begin();
    host.many("busy");
    let mut program = Program::begin(&host);
    until(&host, || total(&host, "transfers") >= 2);
    host.child.kill().unwrap();
    host.child.wait().unwrap();
    let ticks = |process: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap()..].split(' ').collect();
        fields[12].parse::<u64>().unwrap()
    };
    let (number, before, start) = (program.0.id(), ticks(program.0.id()), Instant::now());
    while ticks(number) < before + 20 {
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "it stands still"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(program.0.try_wait().unwrap().is_none());
}

#[test]
fn isolated_applications_share_the_cores_too() {
    if !has_cores() {
        return;
    }
    let host = Host::begin();
    // On each of the two cores: where there is an idle one, it is there.
    let all = ["busy", "busier", "busiest"];
    all.iter().for_each(|name| host.many(name));
    let args = [
        "load",
        "src/p/Many.xdf",
        "--isolate",
        "--name",
        "alone",
        "--out",
        "/dev/null",
    ];
    host.run(&args).succeeds();
    until(&host, || total(&host, "transfers") >= 10);
    let before = firings(&host);
    until(&host, || firings(&host) > before + 100_000);
    host.run(&["unload", "alone", "--now"]).succeeds();
    for name in all {
        host.run(&["unload", name, "--now"]).succeeds();
    }
}
