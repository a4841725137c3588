// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of the lock of MCAPI's endpoints (mcapi/domain/owner_lock.h), by its guarantees M1 and M2.

use crate::check::{Barrier, Check, check, spawn};
use crate::harness;
use crate::library::{Library, Owned};
use crate::shadow;
use std::ffi::c_void;
use std::rc::Rc;

harness! {
    /// c/lock.c
    Calls {
        fn make(fenced: u32) -> *mut c_void;
        fn free(m: *mut c_void);
        fn size() -> usize;
        fn add(m: *mut c_void, thread: u32) -> u32;
    }
}

#[derive(Clone)]
struct Lock(Rc<Owned<Calls>>);

impl Lock {
    fn add(&self, thread: u32) -> u32 {
        self.0.c.add(self.0.m, thread)
    }
}

/// Thread 0, the owner, enters so often, and each of the others; a word inside is added to.
fn enter(library: &Library, barrier: Barrier, owner: u32, others: &[u32]) {
    shadow::begin(1 + others.len(), 0, barrier);
    let c = Calls::of(library);
    let m = c.make((barrier == Barrier::Fences) as u32);
    // Safety: it lives as long as the lock.
    unsafe { shadow::region("lock", m, c.size()) };
    let lock = Lock(Owned::new(c, m, Calls::free));
    let threads: Vec<_> = (1..)
        .zip(others)
        .map(|(thread, &times)| {
            let lock = lock.clone();
            spawn(move || {
                for _ in 0..times {
                    lock.add(thread);
                }
            })
        })
        .collect();
    for _ in 0..owner {
        lock.add(0);
    }
    for thread in threads {
        thread.join().expect("another");
    }
    assert_eq!(
        lock.add(0),
        owner + others.iter().sum::<u32>(),
        "all that was added"
    );
}

fn another(library: &Library, barrier: Barrier) {
    enter(library, barrier, 1, &[1]);
}
fn owner_twice(library: &Library, barrier: Barrier) {
    enter(library, barrier, 2, &[1]);
}
fn other_twice(library: &Library, barrier: Barrier) {
    enter(library, barrier, 2, &[2]);
}
fn two_others(library: &Library, barrier: Barrier) {
    enter(library, barrier, 1, &[1, 1]);
}

const FENCES: Barrier = Barrier::Fences;
const ALL_CORES: Barrier = Barrier::Asymmetric;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("another comes", "M1 M2", FENCES, None, 1315, another),
    check("another comes", "M1 M2", ALL_CORES, None, 10800, another),
    check("the owner twice", "M1 M2", FENCES, Some(3), 253, owner_twice),
    check("the owner twice", "M1 M2", ALL_CORES, Some(3), 820, owner_twice),
    check("both twice", "M1 M2", FENCES, Some(2), 69, other_twice),
    check("both twice", "M1 M2", ALL_CORES, Some(2), 187, other_twice),
    check("two others", "M1 M2", FENCES, Some(2), 104, two_others),
    check("two others", "M1 M2", ALL_CORES, Some(2), 323, two_others),
];
