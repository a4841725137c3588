// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of several shields at a time with each method that works here: they end in any order, by themselves, by a
//! release, or by kills of their tools and guards, and each restores its own changes. Errors: a second shield on
//! the last core, on the same core, or by another method.

use crate::common::shield::*;
use crate::common::skipped;
use std::process::Stdio;

/// A bench on a machine with more cores than two shields need.
fn roomy(test: &str) -> Option<Bench> {
    let bench = Bench::new(test)?;
    if bench.core < 2 {
        skipped(test, "two shields at a time need three cores");
        return None;
    }
    Some(bench)
}

/// All cores but these.
fn but(bench: &Bench, taken: &[u32]) -> String {
    let cores: Vec<u32> = (0..=bench.core).filter(|c| !taken.contains(c)).collect();
    let set: levada_cores::CoreSet = cores.into_iter().collect();
    set.to_string()
}

#[test]
fn the_last_core_is_not_shielded_and_the_first_shield_stays() {
    let Some(bench) = Bench::new("a shield on the last core") else {
        return;
    };
    for way in bench.ways() {
        let (child, pid) = bench.start(&["--method", way], "exec sleep 20");
        let all = bench.others();
        let done = levada_shield(&[&all, "--", "true"]);
        assert_eq!(done.status.code(), Some(125), "{done:?}");
        let said = format!("core {} is shielded already", bench.core);
        assert!(
            err(&done).contains("would leave no core for everything else"),
            "{done:?}"
        );
        assert!(err(&done).contains(&said), "{done:?}");
        let chosen = levada_shield(&["--cores", &bench.core.to_string(), "--", "true"]);
        assert_eq!(chosen.status.code(), Some(125), "{chosen:?}");
        assert!(err(&chosen).contains("which shields have"), "{chosen:?}");
        let same = bench.run(&[], &["true"]);
        assert!(err(&same).contains(&said), "{same:?}");
        assert_eq!(mask(pid), bench.core.to_string(), "{way}");
        kill(pid, libc::SIGTERM);
        child.wait_with_output().unwrap();
        bench.same();
    }
}

#[test]
fn two_programs_are_alone_and_either_may_end_first() {
    let Some(bench) = roomy("two shields") else {
        return;
    };
    let (one, two) = (bench.core, bench.core - 1);
    for way in bench.ways() {
        for first_ends in [one, two] {
            let other = Sleeper::new(&["sleep", "60"]);
            let narrow = Sleeper::new(&["taskset", "-c", &format!("0,{one}"), "sleep", "60"]);
            until("its mask", 2, || mask(narrow.id()) == format!("0,{one}"));
            let (first, pid) = bench.start_on(one, &["--method", way], "exec sleep 60");
            // The way is that of the first.
            let (second, second_pid) = bench.start_on(two, &[], "exec sleep 60");
            let both = || {
                (
                    mask(pid),
                    mask(second_pid),
                    mask(other.id()),
                    mask(narrow.id()),
                )
            };
            let at = format!("{way}, {first_ends} ends first");
            let are = |rest: &str, narrow: &str| {
                (
                    one.to_string(),
                    two.to_string(),
                    rest.to_string(),
                    narrow.to_string(),
                )
            };
            // In groups, an older kernel forgets until the last has ended what mask was asked for.
            let forgets = !remembers() && way != "affinity";
            let narrow_is = |wish: String| if forgets { mask(narrow.id()) } else { wish };
            let both_free = but(&bench, &[one, two]);
            assert_eq!(both(), are(&both_free, &narrow_is("0".into())), "{at}");
            let json = status();
            assert_eq!(json["shields"].as_array().unwrap().len(), 2, "{json}");
            assert_eq!(json["shields"][1]["method"], way, "{json}");
            let (ends, stays) = if first_ends == one {
                ((first, pid), (second, second_pid))
            } else {
                ((second, second_pid), (first, pid))
            };
            kill(ends.1, libc::SIGTERM);
            let said = ends.0.wait_with_output().unwrap();
            assert!(
                err(&said).contains(&format!("core {first_ends} restored")),
                "{said:?}"
            );
            let left = if first_ends == one { two } else { one };
            assert_eq!(mask(other.id()), but(&bench, &[left]), "{at}");
            assert_eq!(mask(stays.1), left.to_string(), "{at}");
            let wish = if left == one {
                "0".to_string()
            } else {
                format!("0,{one}")
            };
            assert_eq!(mask(narrow.id()), narrow_is(wish), "{at}");
            kill(stays.1, libc::SIGTERM);
            stays.0.wait_with_output().unwrap();
            assert_eq!(mask(other.id()), bench.all, "{at}");
            assert_eq!(mask(narrow.id()), format!("0,{one}"), "{at}");
            bench.same();
        }
    }
}

/// Whether the kernel itself knows what mask was asked for; an older one forgets it in groups.
fn remembers() -> bool {
    let release = text("/proc/sys/kernel/osrelease");
    let numbers: Vec<u32> = release
        .split(['.', '-'])
        .filter_map(|n| n.parse().ok())
        .take(2)
        .collect();
    numbers >= vec![6, 2]
}

#[test]
fn a_kill_does_not_affect_the_other_shield() {
    let Some(bench) = roomy("one of two tools killed") else {
        return;
    };
    let (one, two) = (bench.core, bench.core - 1);
    for way in bench.ways() {
        let other = Sleeper::new(&["sleep", "60"]);
        let (mut first, pid) = bench.start_on(one, &["--method", way], "exec sleep 60");
        let (mut second, second_pid) = bench.start_on(two, &[], "exec sleep 60");
        // The tool alone: its guard gives back what is its own.
        kill(first.id() as i32, libc::SIGKILL);
        first.wait().unwrap();
        until("the first restored", 5, || {
            mask(other.id()) == but(&bench, &[two])
        });
        assert_eq!(mask(second_pid), two.to_string(), "{way}");
        kill(pid, libc::SIGKILL);
        // Tool and guard of one, while another one holds.
        let (third, third_pid) = bench.start_on(one, &[], "exec sleep 60");
        let json = status();
        let all = json["shields"].as_array().unwrap();
        let text_of_two = two.to_string();
        let of_two = all.iter().find(|s| s["cores"] == text_of_two.as_str());
        let guard = of_two.unwrap()["guard"].as_i64().unwrap() as i32;
        kill(second.id() as i32, libc::SIGSTOP);
        kill(guard, libc::SIGKILL);
        kill(second.id() as i32, libc::SIGKILL);
        second.wait().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(
            mask(other.id()),
            but(&bench, &[one, two]),
            "{way}: no process restores it"
        );
        let done = levada_shield(&["restore"]);
        assert!(
            out(&done).starts_with(&format!("core {two} restored")),
            "{done:?}"
        );
        assert_eq!(mask(other.id()), but(&bench, &[one]), "{way}");
        assert_eq!(mask(third_pid), one.to_string(), "{way}");
        kill(second_pid, libc::SIGKILL);
        kill(third_pid, libc::SIGTERM);
        third.wait_with_output().unwrap();
        bench.same();
    }
}

#[test]
fn shields_raised_at_the_same_moment_are_raised_one_after_the_other() {
    let Some(bench) = roomy("shields at the same moment") else {
        return;
    };
    for way in bench.ways() {
        let cores = [bench.core, bench.core - 1];
        let started = cores.map(|core| {
            let script = [
                "sh",
                "-c",
                "grep Cpus_allowed_list /proc/$$/status; sleep 0.3",
            ];
            let mut command = bench.shield_on(core, &["--method", way], &script);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        });
        for (child, core) in started.into_iter().zip(cores) {
            let done = child.wait_with_output().unwrap();
            assert!(done.status.success(), "{done:?}");
            assert_eq!(masks(&done), [core.to_string()], "{way}: {done:?}");
        }
        bench.same();
    }
}

#[test]
fn one_of_several_is_released_by_its_core() {
    let Some(bench) = roomy("a release of one of two") else {
        return;
    };
    let (one, two) = (bench.core, bench.core - 1);
    for way in bench.ways() {
        let (first, pid) = bench.start_on(one, &["--method", way], "exec sleep 60");
        let (second, second_pid) = bench.start_on(two, &[], "exec sleep 60");
        let done = levada_shield(&["release", &one.to_string()]);
        assert_eq!(out(&done), format!("released core {one}"), "{done:?}");
        assert_eq!(
            (mask(pid), mask(second_pid)),
            (but(&bench, &[two]), two.to_string()),
            "{way}"
        );
        let wrong = if way == "affinity" {
            "cpuset-v1"
        } else {
            "affinity"
        };
        let refused = bench
            .shield_on(one, &["--method", wrong], &["true"])
            .output()
            .unwrap();
        let said = format!("that on core {two} holds by {way}");
        assert!(err(&refused).contains(&said), "{refused:?}");
        let done = levada_shield(&["release"]);
        assert_eq!(out(&done), format!("released core {two}"), "{done:?}");
        for (child, pid) in [(first, pid), (second, second_pid)] {
            assert_eq!(mask(pid), bench.all, "{way}");
            kill(pid, libc::SIGTERM);
            child.wait_with_output().unwrap();
        }
        bench.same();
    }
}

#[test]
fn a_choice_of_cores_leaves_out_those_that_are_shielded() {
    let Some(bench) = roomy("a choice next to a shield") else {
        return;
    };
    let (child, pid) = bench.start(&[], "exec sleep 60");
    let words = [
        "--cores",
        "1",
        "--",
        "sh",
        "-c",
        "grep Cpus_allowed_list /proc/$$/status",
    ];
    let done = levada_shield(&words);
    assert!(done.status.success(), "{done:?}");
    assert_ne!(masks(&done), [bench.core.to_string()], "{done:?}");
    kill(pid, libc::SIGTERM);
    child.wait_with_output().unwrap();
    bench.same();
}
