// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of the inbox (levada/inbox.h), by its guarantees I1 to I4.

use crate::check::{Barrier, Check, check, mortal, spawn};
use crate::harness;
use crate::library::Library;
use crate::shadow;
use std::ffi::c_void;
use std::rc::Rc;

harness! {
    /// c/inbox.c
    Calls {
        fn make(sleeps: u32) -> *mut c_void;
        fn free(m: *mut c_void);
        fn size() -> usize;
        fn claim(m: *mut c_void, slots: u32, owner: u32) -> u32;
        fn give_back(m: *mut c_void, n: u32);
        fn write(m: *mut c_void, n: u32, v: u32);
        fn read(m: *mut c_void, n: u32) -> u32;
        fn post(m: *mut c_void, n: u32, level: u32);
        fn take(m: *mut c_void, out: *mut u32) -> u32;
        fn rest(m: *mut c_void);
    }
}

#[derive(Clone)]
struct Inbox(Rc<Owned>);

struct Owned {
    c: Calls,
    m: *mut c_void,
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.c.free(self.m);
    }
}

impl Inbox {
    fn new(library: &Library, barrier: Barrier, threads: usize, sleeps: u32) -> Inbox {
        shadow::begin(threads, 0, barrier);
        let c = Calls::of(library);
        let m = c.make(sleeps);
        // Safety: it lives as long as the inbox.
        unsafe { shadow::region("inbox", m, c.size()) };
        Inbox(Rc::new(Owned { c, m }))
    }

    /// Fills slot `n` and posts it.
    fn send(&self, n: u32, level: u32) {
        let Owned { c, m } = *self.0;
        c.write(m, n, 100 + n);
        c.post(m, n, level);
    }

    /// Everything that was posted, with its payload checked.
    fn take(&self) -> Vec<u32> {
        let Owned { c, m } = *self.0;
        let mut out = [0; 4];
        let n = c.take(m, out.as_mut_ptr()) as usize;
        for slot in &out[..n] {
            assert_eq!(c.read(m, *slot), 100 + slot, "a payload");
        }
        out[..n].to_vec()
    }

    /// Receives `n` posts, asleep when there are none.
    fn receive(&self, n: usize) -> Vec<u32> {
        let Owned { c, m } = *self.0;
        let mut all = vec![];
        while all.len() < n {
            let some = self.take();
            if some.is_empty() {
                c.rest(m);
            }
            all.extend(some);
        }
        all
    }
}

/// One sender, a receiver that sleeps.
fn one_sender(library: &Library, barrier: Barrier) {
    let inbox = Inbox::new(library, barrier, 2, 0);
    let other = inbox.clone();
    let sender = spawn(move || other.send(0, 3));
    assert_eq!(inbox.receive(1), [0]);
    sender.join().expect("the sender");
}

/// The receiver takes between two posts or after, and never sleeps on what is there. The count of
/// its sleeps passes 2^32 meanwhile.
fn two_posts(library: &Library, barrier: Barrier) {
    let inbox = Inbox::new(library, barrier, 2, u32::MAX - 1);
    let other = inbox.clone();
    let sender = spawn(move || {
        other.send(0, 3);
        other.send(1, 3);
    });
    assert_eq!(inbox.receive(2), [0, 1], "the order of one sender's posts");
    sender.join().expect("the sender");
}

/// What is more urgent overtakes, at most.
fn levels(library: &Library, barrier: Barrier) {
    let inbox = Inbox::new(library, barrier, 2, 0);
    let other = inbox.clone();
    let sender = spawn(move || {
        other.send(0, 0);
        other.send(1, 7);
    });
    sender.join().expect("the sender");
    assert_eq!(inbox.receive(2), [1, 0], "the most urgent first");
}

fn two_senders(library: &Library, barrier: Barrier) {
    let inbox = Inbox::new(library, barrier, 3, 0);
    let senders = [0, 1].map(|n| {
        let inbox = inbox.clone();
        spawn(move || inbox.send(n, 3))
    });
    let mut got = inbox.receive(2);
    got.sort();
    assert_eq!(got, [0, 1], "each post once");
    for sender in senders {
        sender.join().expect("a sender");
    }
}

/// A sender dies when it is about to make its store or wake number `at`; another lives. The receiver gets
/// what the living one posted, and what the dead one posted is whole.
fn dies(library: &Library, barrier: Barrier, at: usize) {
    let inbox = Inbox::new(library, barrier, 3, 0);
    let (dying, living) = (inbox.clone(), inbox.clone());
    let first = spawn(move || {
        shadow::dies_at(at);
        mortal(|| dying.send(0, 3));
    });
    let second = spawn(move || living.send(1, 3));
    let mut got = vec![];
    while !got.contains(&1) {
        got.extend(inbox.receive(1));
    }
    first.join().expect("the one that died");
    second.join().expect("the one that lives");
    got.extend(inbox.take());
    got.sort();
    assert!(got == [1] || got == [0, 1], "each post once: {got:?}");
}
fn dies_filling(library: &Library, barrier: Barrier) {
    dies(library, barrier, 0);
}
fn dies_linking(library: &Library, barrier: Barrier) {
    dies(library, barrier, 1);
}
fn dies_posting(library: &Library, barrier: Barrier) {
    dies(library, barrier, 2);
}
fn dies_ringing(library: &Library, barrier: Barrier) {
    dies(library, barrier, 3);
}
fn dies_waking(library: &Library, barrier: Barrier) {
    dies(library, barrier, 4);
}
fn dies_after(library: &Library, barrier: Barrier) {
    dies(library, barrier, 5);
}

/// A slot is claimed, freed, and claimed by another, who may write what the first wrote.
fn slots(library: &Library, barrier: Barrier) {
    let inbox = Inbox::new(library, barrier, 2, 0);
    let claim = |owner: u32, inbox: Inbox| {
        move || {
            let Owned { c, m } = *inbox.0;
            loop {
                let n = c.claim(m, 1, owner);
                if n < 1 {
                    c.write(m, n, owner);
                    assert_eq!(c.read(m, n), owner, "a slot has one owner");
                    c.give_back(m, n);
                    return;
                }
                loom::thread::yield_now();
            }
        }
    };
    let other = spawn(claim(1, inbox.clone()));
    claim(2, inbox.clone())();
    other.join().expect("the other owner");
}

const FENCES: Barrier = Barrier::Fences;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("one sender", "I1 I3", FENCES, None, 291, one_sender),
    check("two posts", "I1-I3", FENCES, Some(3), 1282, two_posts),
    check("levels", "I1 I2", FENCES, None, 1, levels),
    check("two senders", "I1 I3", FENCES, Some(2), 9894, two_senders),
    check("dies filling", "I3", FENCES, Some(2), 70, dies_filling),
    check("dies linking", "I3", FENCES, Some(2), 367, dies_linking),
    check("dies posting", "I3", FENCES, Some(2), 367, dies_posting),
    check("dies ringing", "I1 I3", FENCES, Some(2), 2413, dies_ringing),
    check("dies waking", "I1 I3", FENCES, Some(2), 2974, dies_waking),
    check("dies after", "I1 I3", FENCES, Some(2), 7347, dies_after),
    check("slots", "I4", FENCES, None, 21, slots),
];
