// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each method on a simulated machine: its effect, and that lowering the shield leaves nothing
//! behind.

use super::list::check_unshielded;
use super::method::Method;
use super::restore::{self, Restored};
use super::*;
use crate::cpu_set::CoreSet;
use crate::machine::Kernel;
use crate::topology::Topology;
use crate::undo_log::UndoLog;
use crate::undo_log::format::{Entry, ProcessId, ShieldRecord};

use crate::test_machine::{TestMachine, set};

fn machine() -> TestMachine {
    let fake = TestMachine::new("0-3");
    fake.task(1, 1, 0, "init", "0-3");
    fake.kernel_thread(2, "kthreadd", "0-3", true);
    fake.kernel_thread(30, "ksoftirqd/3", "3", false);
    fake.task(100, 100, 1, "lame", "0-3");
    fake.task(100, 101, 1, "lame", "0-3");
    fake.task(200, 200, 1, "pinned", "3");
    fake.proc("irq/7/smp_affinity_list", "0-3");
    fake
}

fn request() -> Request {
    Request {
        cores: set("3"),
        ..Request::default()
    }
}

struct Up {
    raised: Raised,
    undo_log: UndoLog,
    before: String,
}

impl Up {
    fn cores(&self, fake: &TestMachine) -> CoreSet {
        let record = fake.record(&self.undo_log);
        record.shield(self.undo_log.number).unwrap().cores.clone()
    }
}

fn raise(fake: &TestMachine, request: &Request) -> Result<Up, Error> {
    let before = fake.everything();
    let mut undo_log = fake.log_of(&request.cores.to_string());
    let record = fake.record(&undo_log);
    let others = set("0-3")
        .without(&request.cores)
        .without(&record.cores_of_others(undo_log.number));
    let raised = raise_with(&fake.machine, request, &others, &mut undo_log)?;
    Ok(Up {
        raised,
        undo_log,
        before,
    })
}

/// Moves a running program onto its core.
fn admit(fake: &TestMachine, up: &Up, pid: i32) {
    let mut undo_log = UndoLog::of(&up.undo_log.path, up.undo_log.number, None);
    let inside = up.raised.inside.as_ref();
    take_in(
        &fake.machine,
        &mut undo_log,
        inside,
        &up.cores(fake),
        pid,
        None,
        None,
    )
    .unwrap();
}

/// Moves only one thread of it.
fn admit_thread(fake: &TestMachine, up: &Up, pid: i32, tid: i32) {
    let mut undo_log = UndoLog::of(&up.undo_log.path, up.undo_log.number, None);
    let inside = up.raised.inside.as_ref();
    let one = Some(tid);
    take_in(
        &fake.machine,
        &mut undo_log,
        inside,
        &up.cores(fake),
        pid,
        one,
        None,
    )
    .unwrap();
}

#[test]
fn a_thread_is_alone_without_the_rest_of_its_process() {
    let of_101 = Request {
        pid: Some(100),
        thread: Some(101),
        ..request()
    };
    for version_1 in [true, false] {
        let fake = machine();
        if version_1 {
            fake.with_cpusets()
        } else {
            fake.with_version_2("cpu cpuset memory")
        }
        let up = raise(&fake, &of_101).unwrap();
        // A partition cannot hold a single thread, so the next method is used.
        let method = if version_1 {
            Method::Cpusets
        } else {
            Method::Affinity
        };
        assert_eq!(up.raised.method, method, "{:?}", up.raised.reasons);
        admit_thread(&fake, &up, 100, 101);
        assert_eq!((fake.mask(101), fake.mask(100)), (set("3"), set("0-2")));
        assert_eq!(fake.mask(200), set("0-2"));
        lower(&fake, &up);
        assert_eq!(fake.everything(), up.before);
    }
}

#[test]
fn the_holder_of_a_shield_for_its_parent_is_not_part_of_the_program() {
    let fake = machine();
    let own = std::process::id() as i32;
    fake.task(own, own, 100, "levada", "0-3");
    fake.task(102, 102, 100, "child", "0-3");
    let wanted = Request {
        pid: Some(100),
        method: Some(Method::Affinity),
        ..request()
    };
    let up = raise(&fake, &wanted).unwrap();
    admit(&fake, &up, 100);
    assert_eq!(fake.mask(own), set("0-2"));
    assert_eq!((fake.mask(100), fake.mask(102)), (set("3"), set("0-3")));
    lower(&fake, &up);
    assert_eq!(fake.everything(), up.before);
}

fn lower(fake: &TestMachine, up: &Up) -> Restored {
    let restored = restore::restore_shield(&fake.machine, &up.undo_log)
        .unwrap()
        .unwrap();
    assert_eq!(restored.failed, Vec::<String>::new());
    restored
}

#[test]
fn a_partition_is_the_first_choice() {
    let fake = machine();
    fake.with_version_2("cpu cpuset memory");
    let up = raise(&fake, &request()).unwrap();
    assert_eq!(up.raised.method, Method::Partition);
    assert_eq!(fake.text("sys/fs/cgroup/levada-shield-3/cpuset.cpus"), "3");
    assert_eq!(
        fake.text("sys/fs/cgroup/levada-shield-3/cpuset.cpus.partition"),
        "isolated"
    );
    assert_eq!(fake.text("proc/irq/7/smp_affinity_list"), "0-2");
    admit(&fake, &up, 100);
    assert_eq!(fake.mask(101), set("3"));
    lower(&fake, &up);
    assert!(!fake.exists("sys/fs/cgroup/levada-shield-3"));
    assert_eq!(fake.mask(101), set("0-3"));
    assert_eq!(fake.text("proc/irq/7/smp_affinity_list"), "0-3");
    assert_eq!(
        fake.text("sys/fs/cgroup/cgroup.subtree_control"),
        "-cpuset",
        "as it is written"
    );
}

#[test]
fn several_cores_are_a_partition_that_balances() {
    let fake = machine();
    fake.with_version_2("cpuset");
    let wanted = Request {
        cores: set("2-3"),
        ..request()
    };
    raise(&fake, &wanted).unwrap();
    assert_eq!(
        fake.text("sys/fs/cgroup/levada-shield-2-3/cpuset.cpus.partition"),
        "root"
    );
}

#[test]
fn an_invalid_partition_is_given_up_for_affinities() {
    let fake = machine();
    fake.with_version_2("cpuset");
    let says = "isolated invalid (Parent is not a partition root)".to_string();
    *fake.machine.kernel.partition_says.borrow_mut() = Some(says.clone());
    let up = raise(&fake, &request()).unwrap();
    assert_eq!(up.raised.method, Method::Affinity);
    assert_eq!(
        up.raised.reasons[0],
        (Method::Partition, format!("the partition is {says}"))
    );
    assert!(
        !fake.exists("sys/fs/cgroup/levada-shield-3"),
        "nothing of it stays"
    );
    assert_eq!(fake.mask(100), set("0-2"));
    lower(&fake, &up);
}

#[test]
fn cpusets_of_version_1_come_next() {
    let fake = machine();
    fake.with_cpusets();
    let up = raise(&fake, &request()).unwrap();
    assert_eq!(up.raised.method, Method::Cpusets);
    assert_eq!(up.raised.reasons[0].0, Method::Partition);
    let swept = &up.raised.swept;
    assert_eq!((swept.threads, swept.kernel_threads), (4, 1));
    assert_eq!(fake.group(101), "sys/fs/cgroup/cpuset/levada-others");
    assert_eq!(fake.mask(200), set("0-2"));
    assert_eq!(
        fake.text("sys/fs/cgroup/cpuset/levada-others/cpuset.mems"),
        "0"
    );
    admit(&fake, &up, 100);
    assert_eq!(fake.mask(100), set("3"));
    lower(&fake, &up);
    assert_eq!(
        fake.everything(),
        up.before,
        "masks come back by themselves"
    );
}

#[test]
fn masks_discarded_by_a_cpuset_are_logged() {
    // An older kernel discards all masks; every version discards those of kernel threads.
    for (release, forgotten) in [("5.10.0-fake", 200), ("6.12.1-fake", 40)] {
        let fake = machine();
        fake.kernel_thread(40, "kcompactd0", "0-1", true);
        fake.with_cpusets();
        fake.proc("sys/kernel/osrelease", release);
        let before = fake.mask(forgotten);
        let up = raise(&fake, &request()).unwrap();
        fake.set_mask(forgotten, "0-3");
        lower(&fake, &up);
        assert_eq!(fake.mask(forgotten), before, "{release}");
        assert_eq!(fake.everything(), up.before, "{release}");
    }
}

#[test]
fn failed_cpusets_leave_nothing_behind() {
    let shared = |fake: &TestMachine| {
        let docker = fake.machine.sys.join("fs/cgroup/cpuset/docker");
        fake.machine.kernel.make_dir(&docker).unwrap();
        fake.sys("fs/cgroup/cpuset/docker/cpuset.cpus", "0-3");
    };
    let refused =
        |fake: &TestMachine| fake.refuses("sys/fs/cgroup/cpuset/levada-shield-3", libc::EACCES);
    for (spoil, said) in [
        (&shared as &dyn Fn(&TestMachine), "docker"),
        (&refused, "no cpuset can be made"),
    ] {
        let fake = machine();
        fake.with_cpusets();
        spoil(&fake);
        let up = raise(&fake, &request()).unwrap();
        assert_eq!(up.raised.method, Method::Affinity);
        let (method, why) = &up.raised.reasons[1];
        assert_eq!(
            (*method, why.contains(said)),
            (Method::Cpusets, true),
            "{why}"
        );
        assert!(!fake.exists("sys/fs/cgroup/cpuset/levada-others"));
        lower(&fake, &up);
        assert_eq!(fake.everything(), up.before);
    }
}

#[test]
fn without_cgroups_affinities_are_swept_and_come_back() {
    let fake = machine();
    let up = raise(&fake, &request()).unwrap();
    assert_eq!(up.raised.method, Method::Affinity);
    assert_eq!(fake.mask(100), set("0-2"));
    assert_eq!(fake.mask(200), set("0-2"));
    admit(&fake, &up, 100);
    assert_eq!((fake.mask(100), fake.mask(101)), (set("3"), set("3")));
    lower(&fake, &up);
    assert_eq!(fake.everything(), up.before);
}

#[test]
fn without_privileges_own_processes_are_moved_and_no_interrupt() {
    let fake = machine();
    fake.proc("self/status", "CapEff:\t0000000000000000\n");
    let up = raise(&fake, &request()).unwrap();
    assert_eq!(up.raised.method, Method::Own);
    assert!(up.raised.reasons[2].1.contains("CAP_SYS_NICE"));
    assert_eq!(fake.text("proc/irq/7/smp_affinity_list"), "0-3");
    lower(&fake, &up);
    assert_eq!(fake.everything(), up.before);
}

#[test]
fn a_requested_method_is_the_only_one_tried() {
    let fake = machine();
    let wanted = Request {
        method: Some(Method::Cpusets),
        ..request()
    };
    let before = fake.everything();
    let refused = raise(&fake, &wanted).err().unwrap();
    assert!(
        refused
            .what
            .contains("cpusets of version 1 are not mounted"),
        "{refused}"
    );
    assert_eq!(fake.everything(), before);
    let wanted = Request {
        apart: true,
        ..request()
    };
    let refused = raise(&fake, &wanted).err().unwrap();
    assert!(refused.what.contains("deadlines need"), "{refused}");
    assert_eq!(fake.everything(), before);
}

#[test]
fn a_target_core_is_used_with_cgroups_too() {
    let fake = machine();
    fake.with_cpusets();
    fake.last_core(100, 3);
    let wanted = Request {
        lightest: Some(1),
        ..request()
    };
    let before = fake.everything();
    let up = raise(&fake, &wanted).unwrap();
    assert_eq!(fake.mask(100), set("1"));
    assert_eq!(fake.mask(101), set("0-2"));
    lower(&fake, &up);
    assert_eq!(fake.everything(), before);
}

#[test]
fn the_protected_stay_in_the_base_and_forbid_a_partition() {
    let fake = machine();
    fake.with_cpusets();
    let wanted = Request {
        exclude: vec!["init".into(), "200".into()],
        ..request()
    };
    let up = raise(&fake, &wanted).unwrap();
    assert_eq!((fake.mask(1), fake.mask(200)), (set("0-3"), set("3")));
    assert_eq!(fake.mask(100), set("0-2"));
    lower(&fake, &up);
    let fake = machine();
    fake.with_version_2("cpuset");
    let up = raise(&fake, &wanted).unwrap();
    assert_eq!(up.raised.method, Method::Affinity);
}

#[test]
fn invalid_requests_are_refused() {
    let topology = |online: &str, allowed: &str| Topology {
        online: set(online),
        allowed: set(allowed),
        cores: Vec::new(),
    };
    let none = CoreSet::default();
    for (cores, online, allowed, said) in [
        ("", "0-3", "0-3", "no core is named"),
        (
            "7",
            "0-3",
            "0-3",
            "there is no core 7: this machine has cores 0-3",
        ),
        ("3-5", "0-3", "0-3", "there are no cores 4-5"),
        ("0", "0", "0", "core 0 is the only one"),
        ("0-3", "0-3", "0-3", "cores 0-3 would leave no core"),
        (
            "3",
            "0-3",
            "0-1",
            "this process may not use core 3: it may use cores 0-1",
        ),
        ("0-1", "0-3", "0-1", "would leave no core"),
    ] {
        let refused = check(&set(cores), &topology(online, allowed), &none).unwrap_err();
        assert!(refused.what.contains(said), "{cores}: {refused}");
    }
    assert_eq!(
        check(&set("1,3"), &topology("0-3", "0-3"), &none).unwrap(),
        set("0,2")
    );
    // With other cores shielded already.
    let with_shielded = |cores: &str, shielded_cores: &str| {
        check(&set(cores), &topology("0-3", "0-1"), &set(shielded_cores))
    };
    assert_eq!(with_shielded("1", "2-3").unwrap(), set("0"));
    let refused = with_shielded("0-1", "2-3").unwrap_err();
    let said = "cores 0-1 would leave no core for everything else: cores 2-3 are shielded already";
    assert_eq!(refused.what, said);
}

#[test]
fn a_core_that_is_shielded_already_is_named_with_its_holder() {
    let fake = TestMachine::new("0-3");
    fake.task(50, 50, 1, "levada", "0-3");
    let held = ShieldRecord {
        cores: set("3"),
        tool: Some(ProcessId {
            pid: 50,
            start: fake.start(50),
        }),
        ..ShieldRecord::default()
    };
    let same = check_unshielded(&fake.machine, &held, &set("2-3")).unwrap_err();
    assert_eq!(same.what, "core 3 is shielded already, by process 50");
    assert!(check_unshielded(&fake.machine, &held, &set("1")).is_ok());
}

// ---- several at a time -------------------------------------------------------------------------

/// A machine for each method.
fn machines() -> [(Method, TestMachine); 3] {
    let made = |method| {
        let fake = machine();
        match method {
            Method::Partition => fake.with_version_2("cpu cpuset memory"),
            Method::Cpusets => fake.with_cpusets(),
            Method::Affinity | Method::Own => {}
        }
        fake.proc("irq/8/smp_affinity_list", "2");
        (method, fake)
    };
    [Method::Partition, Method::Cpusets, Method::Affinity].map(made)
}

fn on(cores: &str) -> Request {
    Request {
        cores: set(cores),
        ..Request::default()
    }
}

#[test]
fn two_shields_end_in_either_order_and_restore_all() {
    for last_first in [true, false] {
        for (method, fake) in machines() {
            let at = format!("{method:?}, the last one first: {last_first}");
            fake.task(300, 300, 1, "critical", "0-3");
            fake.task(301, 301, 1, "critical, too", "0-3");
            let first = raise(&fake, &on("3")).unwrap();
            admit(&fake, &first, 300);
            assert_eq!(fake.mask(100), set("0-2"), "{at}");
            let second = raise(&fake, &on("2")).unwrap();
            assert_eq!(
                (second.raised.method, first.raised.method),
                (method, method),
                "{at}"
            );
            admit(&fake, &second, 301);
            let masks = || [300, 301, 100, 101, 200].map(|id| fake.mask(id).to_string());
            assert_eq!(masks(), ["3", "2", "0-1", "0-1", "0-1"], "{at}");
            assert_eq!(fake.text("proc/irq/7/smp_affinity_list"), "0-1", "{at}");
            // It had only core 2.
            assert_eq!(fake.text("proc/irq/8/smp_affinity_list"), "0-1", "{at}");
            if last_first {
                lower(&fake, &second);
                assert_eq!(masks(), ["3", "0-2", "0-2", "0-2", "0-2"], "{at}");
                assert_eq!(fake.text("proc/irq/8/smp_affinity_list"), "2", "{at}");
                lower(&fake, &first);
            } else {
                lower(&fake, &first);
                assert_eq!(masks(), ["0-1,3", "2", "0-1,3", "0-1,3", "3"], "{at}");
                assert_eq!(fake.text("proc/irq/7/smp_affinity_list"), "0-1,3", "{at}");
                lower(&fake, &second);
            }
            assert!(!fake.log_path().exists(), "{at}");
            let before = first
                .before
                .replace("subtree_control cpu\n", "subtree_control -cpuset\n");
            assert_eq!(fake.everything(), before, "{at}");
        }
    }
}

/// Until its method is in the log, a shield is being raised and no other one may begin.
#[test]
fn a_shield_is_raised_when_its_method_is_logged() {
    for (method, fake) in machines() {
        let up = raise(&fake, &on("3")).unwrap();
        let text = std::fs::read_to_string(&up.undo_log.path).unwrap();
        let last = text.lines().last().unwrap_or("");
        assert_eq!(last, Entry::Method(method.name().into()).line(3).trim_end());
        assert!(text.contains("smp_affinity_list"), "{text}");
        lower(&fake, &up);
    }
}

#[test]
fn three_shields_leave_one_core_and_come_back_one_by_one() {
    for order in [[3, 2, 1], [1, 2, 3], [2, 3, 1], [2, 1, 3]] {
        for (method, fake) in machines() {
            let ups: Vec<Up> = ["3", "2", "1"]
                .map(|core| raise(&fake, &on(core)).unwrap())
                .into();
            assert_eq!(fake.mask(101), set("0"), "{method:?}");
            let mut back = set("0");
            for core in order {
                let up = ups.iter().find(|u| u.undo_log.number == core).unwrap();
                lower(&fake, up);
                back = back.or(&CoreSet::one(core));
                assert_eq!(fake.mask(101), back, "{method:?} {order:?} {core}");
            }
            assert_eq!(fake.mask(200), set("3"));
            assert!(!fake.log_path().exists());
        }
    }
}

#[test]
fn a_thread_created_under_two_shields_gets_the_mask_of_its_parent() {
    let fake = machine();
    let first = raise(&fake, &on("3")).unwrap();
    fake.task(400, 400, 100, "born under one", "0-2");
    let second = raise(&fake, &on("2")).unwrap();
    fake.task(401, 401, 100, "born under two", "0-1");
    assert_eq!(fake.mask(400), set("0-1"));
    lower(&fake, &first);
    assert_eq!(
        (fake.mask(400), fake.mask(401)),
        (set("0-1,3"), set("0-1,3"))
    );
    // A third shield gets the cores of the first: no original mask is lost.
    let third = raise(&fake, &on("3")).unwrap();
    assert_eq!((fake.mask(400), fake.mask(401)), (set("0-1"), set("0-1")));
    lower(&fake, &second);
    assert_eq!((fake.mask(400), fake.mask(401)), (set("0-2"), set("0-2")));
    lower(&fake, &third);
    assert_eq!((fake.mask(400), fake.mask(401)), (set("0-3"), set("0-3")));
}

#[test]
fn two_threads_of_one_process_have_a_core_each() {
    for version_1 in [true, false] {
        let fake = machine();
        fake.task(100, 102, 1, "lame", "0-3");
        if version_1 {
            fake.with_cpusets();
        }
        let of = |cores: &str, tid: i32| Request {
            pid: Some(100),
            thread: Some(tid),
            ..on(cores)
        };
        let first = raise(&fake, &of("3", 101)).unwrap();
        admit_thread(&fake, &first, 100, 101);
        let second = raise(&fake, &of("2", 102)).unwrap();
        admit_thread(&fake, &second, 100, 102);
        let masks = || [100, 101, 102].map(|id| fake.mask(id).to_string());
        assert_eq!(masks(), ["0-1", "3", "2"], "{version_1}");
        lower(&fake, &first);
        assert_eq!(masks(), ["0-1,3", "0-1,3", "2"], "{version_1}");
        lower(&fake, &second);
        assert_eq!(fake.everything(), first.before);
    }
}

#[test]
fn a_kernel_thread_that_stays_in_its_group_gets_its_mask_back() {
    let fake = machine();
    fake.with_cpusets();
    fake.stays_in_its_group(2);
    let first = raise(&fake, &on("3")).unwrap();
    assert_eq!(fake.mask(2), set("0-2"));
    let second = raise(&fake, &on("2")).unwrap();
    assert_eq!(fake.mask(2), set("0-1"));
    lower(&fake, &first);
    assert_eq!(fake.mask(2), set("0-1,3"));
    lower(&fake, &second);
    assert_eq!(fake.everything(), first.before);
}

#[test]
fn a_thread_that_changed_its_mask_under_two_shields_is_left_alone() {
    let fake = machine();
    let first = raise(&fake, &on("3")).unwrap();
    let second = raise(&fake, &on("2")).unwrap();
    fake.set_mask(100, "1");
    lower(&fake, &first);
    assert_eq!(fake.mask(100), set("1"));
    lower(&fake, &second);
    assert_eq!(fake.mask(100), set("1"));
    assert_eq!(fake.mask(101), set("0-3"));
}

#[test]
fn a_thread_pinned_by_one_shield_stays_pinned_when_another_ends() {
    for (method, fake) in machines() {
        fake.last_core(100, 3);
        let pinning = Request {
            lightest: Some(1),
            ..on("3")
        };
        let first = raise(&fake, &pinning).unwrap();
        let second = raise(&fake, &on("2")).unwrap();
        assert_eq!(fake.mask(100), set("1"), "{method:?}");
        lower(&fake, &second);
        assert_eq!(fake.mask(100), set("1"), "{method:?}");
        lower(&fake, &first);
        assert_eq!(fake.mask(100), set("0-3"), "{method:?}");
        // In the other order.
        let first = raise(&fake, &pinning).unwrap();
        let second = raise(&fake, &on("2")).unwrap();
        lower(&fake, &first);
        assert_eq!(fake.mask(100), set("0-1,3"), "{method:?}");
        lower(&fake, &second);
        assert_eq!(fake.mask(100), set("0-3"), "{method:?}");
    }
}

#[test]
fn all_shields_use_the_same_method() {
    let fake = machine();
    fake.with_cpusets();
    let by_masks = Request {
        method: Some(Method::Affinity),
        ..on("3")
    };
    let first = raise(&fake, &by_masks).unwrap();
    let second = raise(&fake, &on("2")).unwrap();
    assert_eq!(second.raised.method, Method::Affinity);
    lower(&fake, &second);
    let before = fake.everything();
    let by_groups = Request {
        method: Some(Method::Cpusets),
        ..on("2")
    };
    let refused = raise(&fake, &by_groups).err().unwrap();
    let said = "core 2 cannot be shielded: that on core 3 holds by affinity";
    assert_eq!(refused.what, said);
    let deadline = Request {
        apart: true,
        ..on("2")
    };
    let refused = raise(&fake, &deadline).err().unwrap();
    assert!(refused.what.contains("deadlines need"), "{refused}");
    assert!(refused.help.unwrap().contains("hold in one way"));
    restore::restore_shield(&fake.machine, &UndoLog::of(&fake.log_path(), 2, None)).unwrap();
    assert_eq!(fake.everything(), before);
    lower(&fake, &first);
}

#[test]
fn two_abandoned_shields_are_restored_separately() {
    for (method, fake) in machines() {
        let before = fake.everything();
        raise(&fake, &on("3")).unwrap();
        raise(&fake, &on("2")).unwrap();
        for number in [3, 2] {
            // Killed during a restoration, and repeated: changes made already are recognized.
            let undo_log = UndoLog::of(&fake.log_path(), number, None);
            drop(restore::undo(&fake.machine, &undo_log).unwrap());
            let again = restore::restore_shield(&fake.machine, &undo_log).unwrap();
            assert_eq!(again.unwrap().changed, 0, "{method:?}");
        }
        let before = before.replace("subtree_control cpu\n", "subtree_control -cpuset\n");
        assert_eq!(fake.everything(), before, "{method:?}");
    }
}
