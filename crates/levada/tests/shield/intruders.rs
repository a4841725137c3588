// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests that no thread enters a shielded core, or, where only affinity masks enforce it, that it is moved away at
//! once: programs that set their own mask, fork storms. Excluded processes stay.

use crate::common::shield::*;
use std::collections::{HashMap, HashSet};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn intruders_are_moved_off_the_core() {
    let Some(bench) = Bench::new("intruders") else {
        return;
    };
    let core = bench.core.to_string();
    for way in bench.ways() {
        let (child, pid) = bench.start(&["--method", way], "sleep 20 & wait");
        let program = stat(&format!("/proc/{pid}/stat"), 4);
        assert_eq!(program, child.id().to_string());
        if way == "affinity" {
            // It may ask, and is moved.
            let intruder = Sleeper::new(&["taskset", "-c", &core, "sleep", "20"]);
            until("it was there", 2, || {
                text(format!("/proc/{}/comm", intruder.id())) == "sleep"
            });
            let took = until("evicted", 2, || mask(intruder.id()) == bench.others());
            println!("evicted within {took:?}");
            // A new login: a session of its own, with all cores whatever its parent had, and children.
            let script = "sleep 20 & sleep 20 & wait";
            let login = Sleeper::new(&["taskset", "-c", &bench.all, "setsid", "sh", "-c", script]);
            let session = || {
                let (mut all, mut at) = (vec![login.id()], 0);
                while let Some(id) = all.get(at) {
                    let children = text(format!("/proc/{id}/task/{id}/children"));
                    all.extend(
                        children
                            .split_whitespace()
                            .filter_map(|w| w.parse::<i32>().ok()),
                    );
                    at += 1;
                }
                all
            };
            let took = until("a login's evicted", 2, || {
                let all = session();
                all.len() == 3 && all.iter().all(|id| mask(*id) == bench.others())
            });
            println!("a login of three processes evicted within {took:?}");
            for id in session() {
                kill(id, libc::SIGKILL);
            }
        } else {
            let done = Command::new("taskset")
                .args(["-c", &core, "true"])
                .output()
                .unwrap();
            assert!(!done.status.success(), "{way}: {done:?}");
        }
        // Children of the program stay with it.
        let children = text(format!("/proc/{pid}/task/{pid}/children"));
        let grandchild: i32 = children.split(' ').next().unwrap().parse().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(mask(grandchild), core, "{way}");
        kill(grandchild, libc::SIGKILL);
        let done = child.wait_with_output().unwrap();
        assert_eq!(
            err(&done).contains("came onto it"),
            way == "affinity",
            "{done:?}"
        );
        bench.same();
    }
}

/// How many fork storms; LEVADA_STORMS asks for more.
fn storms() -> u32 {
    let more = std::env::var("LEVADA_STORMS").ok();
    more.and_then(|n| n.parse().ok()).unwrap_or(4)
}

/// Shells that fork as fast as they can.
fn storm() -> Vec<Sleeper> {
    let script = "while :; do (:) & (exec true) & wait; done";
    (0..3)
        .map(|_| Sleeper::new(&["sh", "-c", script]))
        .collect()
}

#[test]
fn nothing_of_a_fork_storm_stays_on_the_core() {
    let Some(bench) = Bench::new("fork storms") else {
        return;
    };
    for way in bench.ways() {
        let (mut seen_in_all, mut longest_of_all) = (0, Duration::ZERO);
        for _ in 0..storms() {
            let storm = storm();
            let (child, pid) = bench.start(&["-q", "--method", way], "exec sleep 20");
            let mut seen: HashMap<(i32, String), Instant> = HashMap::new();
            let mut looked_at = HashSet::new();
            let mut longest = Duration::ZERO;
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(150) {
                for shell in storm.iter().map(Sleeper::id) {
                    let children = text(format!("/proc/{shell}/task/{shell}/children"));
                    let children = children.split_whitespace().filter_map(|w| w.parse().ok());
                    for id in children.chain([shell]) {
                        let key = (id, stat(&format!("/proc/{id}/stat"), 22));
                        // A process that is being forked is visible before it has its cpuset, and before it runs.
                        let ran = text(format!("/proc/{id}/schedstat"));
                        let has_run = !ran.starts_with("0 ");
                        // At one moment: a process that has ended is reaped soon, and could not be identified later.
                        let status = text(format!("/proc/{id}/status"));
                        let word = |name| {
                            let line = status.lines().find_map(|l| l.strip_prefix(name));
                            line.unwrap_or_default().trim().to_string()
                        };
                        let may = word("Cpus_allowed_list:");
                        if key.1.is_empty() || may.is_empty() {
                            continue;
                        }
                        looked_at.insert(key.clone());
                        if may != bench.all && may != bench.core.to_string() {
                            seen.remove(&key);
                            continue;
                        }
                        // A process that has ended during the sweep and was not reaped yet runs nowhere.
                        if word("State:").starts_with(['Z', 'X']) {
                            continue;
                        }
                        if way != "affinity" {
                            let stat = text(format!("/proc/{id}/stat"));
                            let groups = text(format!("/proc/{id}/cgroup"));
                            assert!(!has_run, "{way}: {id} may run on the core: {stat} {groups}");
                            continue;
                        }
                        let first = seen.entry(key).or_insert_with(Instant::now);
                        longest = longest.max(first.elapsed());
                    }
                }
            }
            // The shells, and of what they forked.
            assert!(looked_at.len() > storm.len(), "{looked_at:?}");
            assert!(
                longest < Duration::from_millis(100),
                "{way}: on the core for {longest:?}"
            );
            seen_in_all += looked_at.len();
            longest_of_all = longest_of_all.max(longest);
            kill(pid, libc::SIGTERM);
            child.wait_with_output().unwrap();
        }
        let all = storms();
        println!(
            "{way}: {all} storms, {seen_in_all} processes, at most {longest_of_all:?} on the core"
        );
        bench.same();
    }
}

#[test]
fn all_threads_of_a_protected_process_stay() {
    let Some(bench) = Bench::new("protected threads") else {
        return;
    };
    let (said, tid) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("another name".into());
    let thread = thread.spawn(move || {
        // SAFETY: has no preconditions.
        said.send(unsafe { libc::gettid() }).unwrap();
        let _ = ended.recv();
    });
    let (me, tid) = (std::process::id(), tid.recv().unwrap());
    for way in bench
        .ways()
        .into_iter()
        .filter(|way| *way != "cgroup-v2-partition")
    {
        let script =
            format!("grep Cpus_allowed_list /proc/{me}/status /proc/{me}/task/{tid}/status");
        let options = ["--method", way, "--exclude", &me.to_string()];
        let done = bench.run(&options, &["sh", "-c", &script]);
        assert_eq!(
            masks(&done),
            [bench.all.clone(), bench.all.clone()],
            "{way}: {done:?}"
        );
        bench.same();
    }
    drop(end);
    thread.unwrap().join().unwrap();
}
