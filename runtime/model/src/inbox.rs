// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of the inbox (levada/inbox.h), by its guarantees I1 to I6.

use crate::check::{Barrier, Check, check, mortal, spawn};
use crate::harness;
use crate::library::{Library, Owned};
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
        fn post_blind(m: *mut c_void, n: u32, level: u32);
        fn take(m: *mut c_void, out: *mut u32) -> u32;
        fn get(m: *mut c_void, out: *mut u32) -> u32;
        fn reap(m: *mut c_void, owner: u32) -> u32;
        fn rest(m: *mut c_void);
    }
}

#[derive(Clone)]
struct Inbox(Rc<Owned<Calls>>);

impl Inbox {
    fn new(library: &Library, barrier: Barrier, threads: usize, sleeps: u32) -> Inbox {
        shadow::begin(threads, 0, barrier);
        let c = Calls::of(library);
        let m = c.make(sleeps);
        // Safety: it lives as long as the inbox.
        unsafe { shadow::region("inbox", m, c.size()) };
        Inbox(Owned::new(c, m, Calls::free))
    }

    /// Fills slot `n` and posts it.
    fn send(&self, n: u32, level: u32) {
        let Owned { c, m, .. } = *self.0;
        c.write(m, n, 100 + n);
        c.post(m, n, level);
    }

    /// Everything that was posted, with its payload checked.
    fn take(&self) -> Vec<u32> {
        let Owned { c, m, .. } = *self.0;
        let mut out = [0; 4];
        let n = c.take(m, out.as_mut_ptr()) as usize;
        for slot in &out[..n] {
            assert_eq!(c.read(m, *slot), 100 + slot, "a payload");
        }
        out[..n].to_vec()
    }

    /// Claims a slot of the first `slots`, fills it and posts it.
    fn claim_and_send(&self, slots: u32, owner: u32, level: u32) {
        let Owned { c, m, .. } = *self.0;
        let n = c.claim(m, slots, owner);
        assert!(n < slots, "a slot");
        c.write(m, n, owner);
        c.post(m, n, level);
    }

    /// The senders of what the receiver takes and gives back, in order.
    fn get(&self) -> Vec<u32> {
        let Owned { c, m, .. } = *self.0;
        let mut out = [0; 4];
        let n = c.get(m, out.as_mut_ptr());
        assert!(n <= 4, "it was taken for corrupt");
        out[..n as usize].iter().map(|got| got & 0xffff).collect()
    }

    /// The same of `n` posts, asleep when there are none.
    fn get_all(&self, n: usize) -> Vec<u32> {
        let Owned { c, m, .. } = *self.0;
        let mut all = vec![];
        while all.len() < n {
            let some = self.get();
            if some.is_empty() {
                c.rest(m);
            }
            all.extend(some);
        }
        all
    }

    /// Receives `n` posts, asleep when there are none.
    fn receive(&self, n: usize) -> Vec<u32> {
        let Owned { c, m, .. } = *self.0;
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

/// The same without a look at what is posted before the post.
fn two_blind(library: &Library, barrier: Barrier) {
    let inbox = Inbox::new(library, barrier, 3, 0);
    let senders = [0, 1].map(|n| {
        let inbox = inbox.clone();
        spawn(move || {
            let Owned { c, m, .. } = *inbox.0;
            c.write(m, n, 100 + n);
            c.post_blind(m, n, 3);
        })
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

/// A slot is claimed, freed, and claimed by another sender, which may write what the first wrote.
fn slots(library: &Library, barrier: Barrier) {
    let inbox = Inbox::new(library, barrier, 2, 0);
    let claim = |owner: u32, inbox: Inbox| {
        move || {
            let Owned { c, m, .. } = *inbox.0;
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

/// Through the receiver: each post once, the slots used again.
fn receiver(library: &Library, barrier: Barrier) {
    let inbox = Inbox::new(library, barrier, 3, 0);
    let senders = [1, 2].map(|owner| {
        let inbox = inbox.clone();
        spawn(move || inbox.claim_and_send(4, owner, 3))
    });
    let mut got = inbox.get_all(2);
    got.sort();
    assert_eq!(got, [1, 2], "each post once");
    for sender in senders {
        sender.join().expect("a sender");
    }
}

/// One sender uses the same slot twice, while the receiver takes, reads and gives back.
fn receiver_slot_again(library: &Library, barrier: Barrier) {
    let inbox = Inbox::new(library, barrier, 2, 0);
    let other = inbox.clone();
    let sender = spawn(move || {
        let Owned { c, m, .. } = *other.0;
        other.claim_and_send(1, 1, 3);
        while c.claim(m, 1, 2) != 0 {
            loom::thread::yield_now();
        }
        c.write(m, 0, 2);
        c.post(m, 0, 3);
    });
    assert_eq!(inbox.get_all(2), [1, 2], "the order of one sender's posts");
    sender.join().expect("the sender");
}

/// A sender dies before its store or wake number `at`, after another one has begun. When it is known
/// to be dead, what it posted is there, and its slot is free.
fn reaps(library: &Library, barrier: Barrier, at: usize) {
    let inbox = Inbox::new(library, barrier, 3, 0);
    let (dying, living) = (inbox.clone(), inbox.clone());
    let first = spawn(move || {
        shadow::dies_at(at);
        mortal(|| dying.claim_and_send(4, 1, 3));
    });
    let second = spawn(move || living.claim_and_send(4, 2, 3));
    let mut got = inbox.get();
    first.join().expect("the one that died");
    let Owned { c, m, .. } = *inbox.0;
    let freed = c.reap(m, 1);
    got.extend(inbox.get());
    second.join().expect("the one that lives");
    got.extend(inbox.get());
    let posted = got.iter().filter(|owner| **owner == 1).count() as u32;
    assert!(posted + freed <= 1, "a slot is posted or reaped");
    assert_eq!(got.iter().filter(|owner| **owner == 2).count(), 1);
    for n in 0..4 {
        assert_eq!(c.claim(m, 4, 3 + n), n, "all slots are free");
    }
}
fn reaps_claiming(library: &Library, barrier: Barrier) {
    reaps(library, barrier, 0);
}
fn reaps_filling(library: &Library, barrier: Barrier) {
    reaps(library, barrier, 1);
}
fn reaps_linking(library: &Library, barrier: Barrier) {
    reaps(library, barrier, 2);
}
fn reaps_posting(library: &Library, barrier: Barrier) {
    reaps(library, barrier, 3);
}
fn reaps_posted(library: &Library, barrier: Barrier) {
    reaps(library, barrier, 4);
}

const FENCES: Barrier = Barrier::Fences;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("one sender", "I1 I3", FENCES, None, 291, one_sender),
    check("two posts", "I1-I3", FENCES, Some(3), 1282, two_posts),
    check("levels", "I1 I2", FENCES, None, 1, levels),
    check("two senders", "I1 I3", FENCES, Some(2), 9894, two_senders),
    check("two senders, blind", "I1 I3", FENCES, Some(2), 7763, two_blind),
    check("dies filling", "I3", FENCES, Some(2), 70, dies_filling),
    check("dies linking", "I3", FENCES, Some(2), 367, dies_linking),
    check("dies posting", "I3", FENCES, Some(2), 367, dies_posting),
    check("dies ringing", "I1 I3", FENCES, Some(2), 2413, dies_ringing),
    check("dies waking", "I1 I3", FENCES, Some(2), 2974, dies_waking),
    check("dies after", "I1 I3", FENCES, Some(2), 7347, dies_after),
    check("slots", "I4", FENCES, None, 21, slots),
    check("receiver", "I1 I3", FENCES, Some(1), 3068, receiver),
    check("receiver, slot again", "I1-I4", FENCES, Some(2), 295, receiver_slot_again),
    check("reaps claiming", "I6", FENCES, Some(1), 26, reaps_claiming),
    check("reaps filling", "I6", FENCES, Some(1), 66, reaps_filling),
    check("reaps linking", "I6", FENCES, Some(1), 68, reaps_linking),
    check("reaps posting", "I6", FENCES, Some(1), 71, reaps_posting),
    check("reaps posted", "I6", FENCES, Some(1), 102, reaps_posted),
];
