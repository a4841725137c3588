// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of a core's lease (src/lease/core_lease.h), by its guarantees H1 and H2.

use crate::check::{Barrier, Check, check, spawn};
use crate::harness;
use crate::library::{Library, Owned};
use crate::shadow;
use std::ffi::c_void;
use std::rc::Rc;

harness! {
    /// c/lease.c
    Calls {
        fn make() -> *mut c_void;
        fn free(m: *mut c_void);
        fn size() -> usize;
        fn visit(m: *mut c_void, me: u32, hands_over: u32);
        fn wait(m: *mut c_void, me: u32);
        fn hang(m: *mut c_void, me: u32);
        fn seize(m: *mut c_void, me: u32, from: u32);
        fn wrong(m: *mut c_void) -> u32;
    }
}

#[derive(Clone, Copy)]
enum Process {
    /// Takes the lease and returns it.
    Visits,
    /// The same, and transfers it meanwhile if a process waits.
    HandsOver,
    /// Takes the lease from process 0, which does not answer.
    Seizes,
}
use Process::{HandsOver, Seizes, Visits};

/// Each on a thread of its own, by numbers from 0; the first on the check's.
fn run(library: &Library, barrier: Barrier, processes: &[Process], hangs: bool) {
    shadow::begin(processes.len() + hangs as usize, 0, barrier);
    let c = Calls::of(library);
    let m = c.make();
    // Safety: it lives as long as the lease.
    unsafe { shadow::region("lease", m, c.size()) };
    let lease = Rc::new(Owned::new(c, m, Calls::free));
    let acts = |process: Process, me: u32, lease: &Owned<Calls>| match process {
        Visits => lease.c.visit(lease.m, me, 0),
        HandsOver => lease.c.visit(lease.m, me, 1),
        Seizes => lease.c.seize(lease.m, me, 0),
    };
    let first = hangs as u32;
    if hangs {
        lease.c.hang(lease.m, 0);
    }
    let threads: Vec<_> = (first + 1..)
        .zip(&processes[1..])
        .map(|(me, &process)| {
            let lease = lease.clone();
            spawn(move || acts(process, me, &lease))
        })
        .collect();
    acts(processes[0], first, &lease);
    for thread in threads {
        thread.join().expect("another");
    }
    assert_eq!(lease.c.wrong(lease.m), 0, "one at a time, and all gone");
}

fn two(library: &Library, barrier: Barrier) {
    run(library, barrier, &[Visits, Visits], false);
}
fn three(library: &Library, barrier: Barrier) {
    run(library, barrier, &[Visits, Visits, Visits], false);
}
fn handed_over(library: &Library, barrier: Barrier) {
    run(library, barrier, &[HandsOver, Visits], false);
}
fn both_hand_over(library: &Library, barrier: Barrier) {
    run(library, barrier, &[HandsOver, HandsOver], false);
}
fn seized(library: &Library, barrier: Barrier) {
    run(library, barrier, &[Seizes, Visits], true);
}

const FENCES: Barrier = Barrier::Fences;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("two come", "H1 H2", FENCES, None, 32785, two),
    check("three come", "H1 H2", FENCES, Some(1), 3308, three),
    check("handed over", "H1 H2", FENCES, Some(3), 3029, handed_over),
    check("both hand over", "H1 H2", FENCES, Some(2), 1528, both_hand_over),
    check("seized", "H1 H2", FENCES, Some(3), 1058, seized),
];
