// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of the calls of MCAPI's nodes and of their end (mcapi/domain/call_guard.h), by its guarantee N1.

use crate::check::{Barrier, Check, check, spawn};
use crate::harness;
use crate::library::{Library, Owned};
use crate::shadow;
use std::ffi::c_void;
use std::rc::Rc;

harness! {
    /// c/visit.c
    Calls {
        fn make(fenced: u32) -> *mut c_void;
        fn free(m: *mut c_void);
        fn size() -> usize;
        fn visit(m: *mut c_void, thread: u32) -> u32;
        fn call(m: *mut c_void) -> u32;
        fn end(m: *mut c_void) -> u32;
    }
}

#[derive(Clone)]
struct Node(Rc<Owned<Calls>>);

/// What a call found: the node's word as it was, or that it has ended.
const GONE: u32 = 0;

/// A thread makes this number of calls, short or long; the other one ends the node.
fn meet(library: &Library, barrier: Barrier, short: u32, long: u32, threads: u32) {
    shadow::begin(1 + threads as usize, 0, barrier);
    let c = Calls::of(library);
    let m = c.make((barrier == Barrier::Fences) as u32);
    // Safety: it lives as long as the node.
    unsafe { shadow::region("node", m, c.size()) };
    let node = Node(Owned::new(c, m, Calls::free));
    let callers: Vec<_> = (0..threads)
        .map(|thread| {
            let Node(node) = node.clone();
            spawn(move || {
                for _ in 0..short {
                    assert_ne!(node.c.visit(node.m, thread), GONE, "a short call");
                }
                for _ in 0..long {
                    assert_ne!(node.c.call(node.m), GONE, "a long call");
                }
            })
        })
        .collect();
    node.0.c.end(node.0.m);
    for caller in callers {
        caller.join().expect("a caller");
    }
}

fn short(library: &Library, barrier: Barrier) {
    meet(library, barrier, 1, 0, 1);
}
fn long(library: &Library, barrier: Barrier) {
    meet(library, barrier, 0, 1, 1);
}
fn both(library: &Library, barrier: Barrier) {
    meet(library, barrier, 1, 1, 1);
}
fn two_threads(library: &Library, barrier: Barrier) {
    meet(library, barrier, 1, 0, 2);
}

const FENCES: Barrier = Barrier::Fences;
const ALL_CORES: Barrier = Barrier::Asymmetric;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("a short call", "N1", FENCES, None, 40, short),
    check("a short call", "N1", ALL_CORES, None, 133, short),
    check("a long call", "N1", FENCES, None, 40, long),
    check("a long call", "N1", ALL_CORES, None, 133, long),
    check("one and the other", "N1", FENCES, Some(2), 43, both),
    check("one and the other", "N1", ALL_CORES, Some(2), 78, both),
    check("two threads", "N1", FENCES, Some(2), 134, two_threads),
    check("two threads", "N1", ALL_CORES, Some(2), 338, two_threads),
];
