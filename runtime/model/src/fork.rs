// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of forks (src/fork/deque.c), by its guarantees D1 to D3.

use crate::check::{Barrier, Check, check, spawn};
use crate::harness;
use crate::library::{Library, Owned};
use crate::shadow;
use std::ffi::c_void;
use std::rc::Rc;

harness! {
    /// c/fork.c
    Calls {
        fn make(people: u32, asked: u32, deep: u32) -> *mut c_void;
        fn free(m: *mut c_void);
        fn size() -> usize;
        fn be(m: *mut c_void, i: u32);
        fn fork(m: *mut c_void, n: u32);
        fn join(m: *mut c_void, n: u32) -> u32;
        fn steal(m: *mut c_void, from: u32) -> u32;
        fn take(m: *mut c_void, from: u32) -> u32;
        fn private(m: *mut c_void) -> u32;
    }
}

#[derive(Clone)]
struct Forks(Rc<Owned<Calls>>);

const NO_CALL: u32 = 99;

impl Forks {
    /// The owner, which is the caller, and thieves. Call `deep` forks the next one.
    fn new(library: &Library, barrier: Barrier, threads: usize, asked: bool, deep: u32) -> Forks {
        shadow::begin(threads, 0, barrier);
        let c = Calls::of(library);
        let m = c.make(threads as u32, asked as u32, deep);
        // Safety: it lives as long as the forks.
        unsafe { shadow::region("forks", m, c.size()) };
        c.be(m, 0);
        Forks(Owned::new(c, m, Calls::free))
    }

    /// Thief `i` tries so often.
    fn thief(&self, i: u32, tries: u32) -> loom::thread::JoinHandle<u32> {
        let forks = self.clone();
        spawn(move || {
            let Owned { c, m, .. } = *forks.0;
            c.be(m, i);
            (0..tries).map(|_| c.steal(m, 0)).sum()
        })
    }

    /// Thief `i` tries once, and does not ask.
    fn taker(&self, i: u32) -> loom::thread::JoinHandle<u32> {
        let forks = self.clone();
        spawn(move || {
            let Owned { c, m, .. } = *forks.0;
            c.be(m, i);
            c.take(m, 0)
        })
    }

    fn fork(&self, n: u32) {
        let Owned { c, m, .. } = *self.0;
        c.fork(m, n);
    }

    fn join(&self, n: u32) {
        let Owned { c, m, .. } = *self.0;
        assert_eq!(
            c.join(m, n),
            100 + n,
            "the call, once, with what was before it"
        );
    }
}

/// One fork that is public at once, and a thief that tries once, or comes late.
fn taken(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 2, true, NO_CALL);
    let thief = forks.thief(1, 1);
    forks.fork(0);
    forks.join(0);
    thief.join().expect("the thief");
}

/// The slot is used again, by a fork that may be taken too.
fn used_again(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 2, true, NO_CALL);
    let thief = forks.thief(1, 2);
    for n in 0..2 {
        forks.fork(n);
        forks.join(n);
    }
    thief.join().expect("the thief");
}

/// Nothing is public until a thief asks; then the owner's next fork or join gives.
fn asked(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 2, false, NO_CALL);
    let thief = forks.thief(1, 2);
    forks.fork(0);
    forks.fork(1);
    forks.join(1);
    forks.join(0);
    thief.join().expect("the thief");
}

/// An ask is never lost: after it, the second fork from now has made something public.
fn served(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 2, false, NO_CALL);
    forks.fork(0);
    let thief = forks.thief(1, 1);
    forks.fork(1);
    let took = thief.join().expect("the thief");
    forks.fork(2);
    let Owned { c, m, .. } = *forks.0;
    assert!(
        took == 1 || c.private(m) == 0,
        "a request for work is served"
    );
    for n in [2, 1, 0] {
        forks.join(n);
    }
}

fn two_ask(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 3, false, NO_CALL);
    forks.fork(0);
    let thieves = [1, 2].map(|i| forks.thief(i, 1));
    forks.fork(1);
    let took: u32 = thieves.map(|t| t.join().expect("a thief")).iter().sum();
    forks.fork(2);
    let Owned { c, m, .. } = *forks.0;
    assert!(
        took > 0 || c.private(m) == 0,
        "a request for work is served"
    );
    for n in [2, 1, 0] {
        forks.join(n);
    }
}

/// Several are public, thieves take from the far end, the owner takes back from the near one.
fn taken_back(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 3, true, NO_CALL);
    forks.fork(0);
    let thieves = [1, 2].map(|i| forks.thief(i, 1));
    forks.fork(1);
    forks.join(1);
    forks.join(0);
    for thief in thieves {
        thief.join().expect("a thief");
    }
}

fn three_thieves(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 4, true, NO_CALL);
    let thieves = [1, 2, 3].map(|i| forks.taker(i));
    forks.fork(0);
    forks.join(0);
    for thief in thieves {
        thief.join().expect("a thief");
    }
}

fn three_thieves_for_two(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 4, true, NO_CALL);
    forks.fork(0);
    let thieves = [1, 2, 3].map(|i| forks.thief(i, 1));
    forks.fork(1);
    forks.join(1);
    forks.join(0);
    for thief in thieves {
        thief.join().expect("a thief");
    }
}

/// What was taken forks again, and the owner, which waits for it, takes that fork from the thief.
fn leaps(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 2, true, 0);
    let thief = forks.thief(1, 1);
    forks.fork(0);
    let Owned { c, m, .. } = *forks.0;
    assert_eq!(c.join(m, 0), 101 + 21, "the call and the one in it");
    thief.join().expect("the thief");
}

/// The same, with another thief at the owner's deque and at the first thief's.
fn leaps_and_steals(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 3, true, 0);
    let thief = forks.thief(1, 1);
    let other = forks.clone();
    let second = spawn(move || {
        let Owned { c, m, .. } = *other.0;
        c.be(m, 2);
        c.steal(m, 1)
    });
    forks.fork(0);
    let Owned { c, m, .. } = *forks.0;
    assert_eq!(c.join(m, 0), 101 + 21, "the call and the one in it");
    thief.join().expect("the thief");
    second.join().expect("the second thief");
}

/// There is room for three; the others are called directly.
fn full(library: &Library, barrier: Barrier) {
    let forks = Forks::new(library, barrier, 2, true, NO_CALL);
    forks.fork(0);
    forks.fork(1);
    let thief = forks.thief(1, 1);
    for n in 2..5 {
        forks.fork(n);
    }
    for n in (0..5).rev() {
        forks.join(n);
    }
    thief.join().expect("the thief");
}

const FENCES: Barrier = Barrier::Fences;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("taken once", "D1 D2", FENCES, None, 82681, taken),
    check("used again", "D1 D2", FENCES, Some(1), 688, used_again),
    check("deep: used again", "D1 D2", FENCES, Some(2), 6660, used_again).soak(),
    check("asked", "D1-D3", FENCES, Some(2), 150, asked),
    check("served", "D3", FENCES, Some(2), 11, served),
    check("two ask", "D1-D3", FENCES, Some(1), 28, two_ask),
    check("taken back", "D1 D2", FENCES, Some(1), 1880, taken_back),
    check("deep: taken back", "D1 D2", FENCES, Some(2), 4846, taken_back).soak(),
    check("three thieves", "D1 D2", FENCES, Some(1), 3027, three_thieves),
    check("deep: three thieves", "D1 D2", FENCES, Some(1), 6978, three_thieves_for_two).soak(),
    check("leaps", "D1 D2", FENCES, Some(1), 777, leaps),
    check("deep: leaps", "D1 D2", FENCES, Some(2), 3521, leaps).soak(),
    check("leaps and steals", "D1 D2", FENCES, Some(1), 8353, leaps_and_steals),
    check("full", "D1 D2", FENCES, Some(1), 1223, full),
];
