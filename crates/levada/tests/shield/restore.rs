// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests that the system is restored after a shield: when the tool, its guard, or both are killed, after a release,
//! for children and masks that changed meanwhile, and when it cannot be restored.

use crate::common::shield::*;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

#[test]
fn when_the_tool_is_killed_the_guard_restores() {
    let Some(bench) = Bench::new("the tool killed") else {
        return;
    };
    for way in bench.ways() {
        let other = Sleeper::new(&["sleep", "20"]);
        let (mut child, pid) = bench.start(&["--method", way], "exec sleep 20");
        assert_eq!(
            (mask(other.id()), mask(pid)),
            (bench.others(), bench.core.to_string()),
            "{way}"
        );
        kill(child.id() as i32, libc::SIGKILL);
        let took = until("restored", 2, || mask(other.id()) == bench.all);
        child.wait().unwrap();
        println!("restored {took:?} after the tool was killed ({way})");
        bench.same();
        assert_eq!(
            mask(pid),
            bench.all,
            "{way}: the program that is left has all cores again"
        );
        kill(pid, libc::SIGKILL);
    }
}

#[test]
fn when_both_are_killed_restore_does_it() {
    let Some(bench) = Bench::new("both killed") else {
        return;
    };
    for way in bench.ways() {
        let other = Sleeper::new(&["sleep", "20"]);
        let (mut child, pid) = bench.start(&["--method", way], "exec sleep 20");
        let still = levada_shield(&["restore"]);
        assert_eq!(still.status.code(), Some(1));
        assert!(err(&still).contains("still holds"), "{still:?}");
        let guard = guard();
        // Stopped, so that neither can do anything for the other.
        kill(child.id() as i32, libc::SIGSTOP);
        kill(guard, libc::SIGKILL);
        kill(child.id() as i32, libc::SIGKILL);
        child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(
            mask(other.id()),
            bench.others(),
            "{way}: no process was left to restore it"
        );
        let status = levada_shield(&["status"]);
        assert!(out(&status).contains("its holder has ended"), "{status:?}");
        let done = levada_shield(&["restore"]);
        assert!(
            out(&done).contains(&format!("core {} restored", bench.core)),
            "{done:?}"
        );
        bench.same();
        kill(pid, libc::SIGKILL);
        let again = levada_shield(&["restore"]);
        assert_eq!(
            (again.status.code(), out(&again).as_str()),
            (Some(0), "nothing to restore")
        );
    }
}

#[test]
fn a_guard_that_is_killed_has_a_successor() {
    let Some(bench) = Bench::new("the guard killed") else {
        return;
    };
    let other = Sleeper::new(&["sleep", "20"]);
    let (mut child, pid) = bench.start(&["--method", "affinity"], "exec sleep 20");
    let first = guard();
    kill(first, libc::SIGKILL);
    until("another guard", 2, || guard() != first);
    // It watches ...
    let intruder = Sleeper::new(&["taskset", "-c", &bench.core.to_string(), "sleep", "20"]);
    until("evicted", 2, || mask(intruder.id()) == bench.others());
    // ... and restores.
    kill(child.id() as i32, libc::SIGKILL);
    child.wait().unwrap();
    until("restored", 2, || mask(other.id()) == bench.all);
    kill(pid, libc::SIGKILL);
    bench.same();
}

#[test]
fn a_shield_can_be_released_and_its_program_goes_on() {
    let Some(bench) = Bench::new("a release") else {
        return;
    };
    for way in bench.ways() {
        let (child, pid) = bench.start(&["--method", way], "exec sleep 20");
        let again = bench.run(&[], &["true"]);
        assert_eq!(again.status.code(), Some(125));
        assert!(
            err(&again).contains("is shielded already, by process"),
            "{again:?}"
        );
        let done = levada_shield(&["release"]);
        assert_eq!(out(&done), format!("released core {}", bench.core));
        bench.same();
        assert_eq!(mask(pid), bench.all, "{way}");
        kill(pid, libc::SIGTERM);
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.signal(), Some(libc::SIGTERM));
        assert!(err(&done).contains("released"), "{done:?}");
    }
    let (child, pid) = bench.start(&[], "exec sleep 20");
    let json = |words: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&levada_shield(words).stdout).unwrap()
    };
    let done = json(&["release", "--json"]);
    assert_eq!(
        done["released"],
        serde_json::json!([bench.core.to_string()])
    );
    kill(pid, libc::SIGTERM);
    child.wait_with_output().unwrap();
    assert_eq!(
        json(&["restore", "--json"])["restored"],
        serde_json::json!([])
    );
    let refused = json(&["release", "0", "--json"]);
    assert_eq!(refused["outcome"], "refused");
    let none = levada_shield(&["release", "0"]);
    assert!(
        err(&none).contains("there is no shield on core 0"),
        "{none:?}"
    );
}

#[test]
fn the_end_of_a_released_program_leaves_the_next_shield_alone() {
    let Some(bench) = Bench::new("a shield after a release") else {
        return;
    };
    for way in bench.ways() {
        let (first, first_pid) = bench.start(&["--method", way], "exec sleep 20");
        levada_shield(&["release"]);
        let (second, pid) = bench.start(&["--method", way], "exec sleep 20");
        kill(first_pid, libc::SIGTERM);
        first.wait_with_output().unwrap();
        assert_eq!(mask(pid), bench.core.to_string(), "{way}");
        assert_eq!(status()["shields"][0]["program"][0], pid, "{way}");
        kill(pid, libc::SIGTERM);
        second.wait_with_output().unwrap();
        bench.same();
    }
}

#[test]
fn children_born_meanwhile_get_all_cores_and_a_wish_of_one_s_own_is_left() {
    let Some(bench) = Bench::new("children") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!(
        "while [ ! -e {0} ]; do sleep 0.01; done; sleep 20 & echo $! > {0}.child; wait",
        go.display()
    );
    let parent = Sleeper::new(&["sh", "-c", &script]);
    let wishful = Sleeper::new(&["sleep", "20"]);
    let (child, pid) = bench.start(&["--method", "affinity"], "exec sleep 20");
    fs::write(&go, "").unwrap();
    let born = folder.path().join("go.child");
    until("a child", 2, || !text(&born).is_empty());
    let born: i32 = text(&born).parse().unwrap();
    assert_eq!(mask(born), bench.others());
    // 0 is what the shield itself gave on two cores: a wish can be seen where there are more.
    let wish = if bench.core > 1 {
        "0"
    } else {
        bench.all.as_str()
    };
    Command::new("taskset")
        .args(["-pc", wish, &wishful.id().to_string()])
        .output()
        .unwrap();
    kill(pid, libc::SIGTERM);
    child.wait_with_output().unwrap();
    assert_eq!(
        (mask(parent.id()), mask(born)),
        (bench.all.clone(), bench.all.clone())
    );
    assert_eq!(mask(wishful.id()), wish);
    kill(born, libc::SIGKILL);
}

#[test]
fn failed_restores_are_reported_and_the_status_is_the_program_s() {
    let Some(bench) = Bench::new("a ledger spoilt") else {
        return;
    };
    let (child, pid) = bench.start(
        &["--method", "affinity"],
        "trap 'exit 7' USR1; while :; do sleep 0.02; done",
    );
    let aside = LEDGER.to_string() + ".aside";
    fs::rename(LEDGER, &aside).unwrap();
    fs::create_dir(LEDGER).unwrap();
    kill(pid, libc::SIGUSR1);
    let done = child.wait_with_output().unwrap();
    // What the guard does when the tool has gone comes to the same.
    std::thread::sleep(Duration::from_millis(150));
    fs::remove_dir(LEDGER).unwrap();
    fs::rename(&aside, LEDGER).unwrap();
    let restored = levada_shield(&["restore"]);
    assert_eq!(done.status.code(), Some(7), "{done:?}");
    assert!(
        err(&done).contains("belongs to another user, is a link"),
        "{done:?}"
    );
    assert_eq!(restored.status.code(), Some(0), "{restored:?}");
    bench.same();
}
