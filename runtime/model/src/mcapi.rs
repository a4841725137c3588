// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of what the processes of an MCAPI domain share: an endpoint's queue, by the guarantees Q1 and
//! Q2 of shm_queue.c; the table of endpoints, what becomes of a dead process, and the bells, by D1 to
//! D4 of domain.h.

use crate::check::{Barrier, Check, all, check, death, mortal, spawn};
use crate::harness;
use crate::library::Library;
use crate::shadow;
use loom::thread::JoinHandle;
use std::ffi::c_void;

harness! {
    /// c/mcapi.c, c/arena.c
    Calls {
        fn make(all_cores: u32, joined: u32);
        fn arena() -> *mut c_void;
        fn arena_size() -> usize;
        fn thread(i: u32);
        fn am(process: u32);
        fn join();
        fn create(port: u32) -> u32;
        fn delete(endpoint: u32);
        fn try_send(to: u32, v: u32) -> u32;
        fn send(to: u32, v: u32) -> u32;
        fn try_receive(at: u32) -> u32;
        fn receive(at: u32) -> u32;
        fn wait_empty(at: u32) -> u32;
        fn free(endpoint: u32) -> u32;
        fn find(node: u32, port: u32) -> u32;
        fn is(endpoint: u32) -> u32;
        fn was(endpoint: u32) -> u32;
        fn wait_found(node: u32, port: u32) -> u32;
        fn bury(process: u32);
        fn left(process: u32) -> u32;
        fn wait_gone(process: u32);
        fn dies(process: u32);
        fn stop();
        fn status_peer() -> u32;
        fn status_time() -> u32;
    }
}

const OK: u32 = 0;
const PORT: u32 = 7;
const SLOTS: u32 = 2;

/// A domain that `joined` of three processes have entered; the check's own thread is process 0. What
/// comes before `loom::explore` is run in one order.
fn domain(library: &Library, barrier: Barrier, threads: usize, joined: u32) -> Calls {
    loom::stop_exploring();
    shadow::begin(threads, 3, barrier);
    let c = Calls::of(library);
    c.make((barrier == Barrier::Asymmetric) as u32, joined);
    // Safety: it is static.
    unsafe { shadow::region("memory", c.arena(), c.arena_size()) };
    c
}

/// A thread of a process.
fn of<T: Send + 'static>(
    c: Calls,
    process: u32,
    body: impl FnOnce(Calls) -> T + 'static,
) -> JoinHandle<T> {
    spawn(move || {
        c.am(process);
        body(c)
    })
}

/// Each in turn.
const ANY: usize = usize::MAX;

/// A thread of a process that dies when it is about to make its store, or wake, number `at`.
fn dying(c: Calls, process: u32, at: usize, body: impl FnOnce(Calls) + 'static) -> JoinHandle<()> {
    of(c, process, move |c| {
        shadow::dies_at(if at == ANY { death() } else { at });
        mortal(|| body(c));
        shadow::is_dead();
        c.dies(process);
    })
}

// ---- the queue ---------------------------------------------------------------------------------

fn one_sender(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 2, 2);
    let e = c.create(PORT);
    loom::explore();
    let sender = of(c, 1, move |c| assert_eq!(c.send(e, 100), OK));
    assert_eq!(c.receive(e), 100);
    sender.join().expect("the sender");
    assert_eq!(c.free(e), SLOTS, "slots");
}

/// More than there are slots: the sender waits for room.
fn one_sender_waits(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 2, 2);
    let e = c.create(PORT);
    assert_eq!(c.try_send(e, 100), OK);
    assert_eq!(c.try_send(e, 101), OK);
    assert_eq!(c.try_send(e, 102), c.status_time());
    loom::explore();
    let sender = of(c, 1, move |c| assert_eq!(c.send(e, 102), OK));
    for v in 100..103 {
        assert_eq!(c.receive(e), v, "in turn");
    }
    sender.join().expect("the sender");
    assert_eq!(c.free(e), SLOTS, "slots");
}

/// Nothing but the one slot that becomes free tells the sender.
fn one_slot_free(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 2, 2);
    let e = c.create(PORT);
    assert_eq!(c.try_send(e, 100), OK);
    assert_eq!(c.try_send(e, 101), OK);
    loom::explore();
    let sender = of(c, 1, move |c| assert_eq!(c.send(e, 102), OK));
    assert_eq!(c.receive(e), 100);
    sender.join().expect("the sender");
    assert_eq!(c.free(e), 0, "slots");
}

fn two_senders(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 3, 3);
    let e = c.create(PORT);
    loom::explore();
    let senders = [1, 2].map(|p| of(c, p, move |c| assert_eq!(c.send(e, 100 + p), OK)));
    let mut got = [c.receive(e), c.receive(e)];
    got.sort();
    assert_eq!(got, [101, 102], "each once");
    all(senders);
    assert_eq!(c.free(e), SLOTS, "slots");
}

/// A sender dies, another lives. All that was posted comes, once, and all slots come back.
fn sender_dies<const AT: usize>(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 3, 3);
    let e = c.create(PORT);
    loom::explore();
    let dead = dying(c, 1, AT, move |c| assert_eq!(c.send(e, 101), OK));
    let living = of(c, 2, move |c| assert_eq!(c.send(e, 102), OK));
    let mut got = vec![c.receive(e)];
    dead.join().expect("the one that died");
    c.bury(1);
    while !got.contains(&102) {
        got.push(c.receive(e));
    }
    living.join().expect("the one that lives");
    got.extend(Some(c.try_receive(e)).filter(|v| *v != 0));
    got.sort();
    assert!(got == [102] || got == [101, 102], "each once: {got:?}");
    assert_eq!(c.try_receive(e), 0);
    assert_eq!(c.free(e), SLOTS, "slots");
    assert_eq!(c.left(1), 0, "what it had");
}

/// A receiver dies while it takes what has come; a sender goes on meanwhile. The next receiver at its
/// place gets nothing of it, and has all slots.
fn receiver_dies<const AT: usize>(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 3, 3);
    c.am(1);
    let e = c.create(PORT);
    c.am(0);
    assert_eq!(c.try_send(e, 100), OK);
    loom::explore();
    let dead = dying(c, 1, AT, move |c| assert_eq!(c.receive(e), 100));
    let sender = of(c, 2, move |c| {
        let status = c.try_send(e, 102);
        assert!([OK, c.status_peer(), c.status_time()].contains(&status));
    });
    dead.join().expect("the one that died");
    c.bury(1);
    let next = c.create(PORT);
    assert_ne!(next, e);
    assert_eq!(c.try_send(next, 103), OK);
    sender.join().expect("the sender");
    assert_eq!(
        c.wait_empty(next),
        103,
        "and not what was for the former one"
    );
}

/// A sender dies, and a third process cleans up after it: the receiver, woken by a doorbell, frees its slots.
fn others_bury<const AT: usize>(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 3, 3);
    let e = c.create(PORT);
    assert_eq!(c.try_send(e, 100), OK);
    loom::explore();
    let dead = dying(c, 1, AT, move |c| assert_eq!(c.send(e, 101), OK));
    let burier = of(c, 2, move |c| {
        dead.join().expect("the one that died");
        c.bury(1);
    });
    let sum = c.wait_empty(e);
    burier.join().expect("the process that cleans up");
    let sum = sum + c.wait_empty(e);
    assert!(sum == 100 || sum == 201, "each once: {sum}");
    assert_eq!(c.try_receive(e), 0);
}

/// Two threads of a process that has not sent there yet.
fn two_threads(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 3, 2);
    let e = c.create(PORT);
    loom::explore();
    let senders = [101, 102].map(|v| of(c, 1, move |c| assert_eq!(c.try_send(e, v), OK)));
    all(senders);
    assert_eq!(c.wait_empty(e), 203, "each once");
}

/// An endpoint is deleted, and another created at its place, while a process sends to it.
fn deleted_meets_send(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 2, 2);
    let e = c.create(PORT);
    loom::explore();
    let sender = of(c, 1, move |c| {
        let status = c.send(e, 101);
        assert!(status == OK || status == c.status_peer());
    });
    c.delete(e);
    let next = c.create(PORT);
    sender.join().expect("the sender");
    assert_ne!(next, e);
    assert_eq!(c.try_receive(next), 0, "what was for the former one");
    assert_eq!(c.free(next), SLOTS, "slots");
}

// ---- names -------------------------------------------------------------------------------------

/// A process that waits for an endpoint finds it initialised.
fn created_meets_find(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 2, 2);
    loom::explore();
    let creator = of(c, 1, move |c| c.create(PORT));
    let e = c.wait_found(1, PORT);
    assert_eq!(creator.join().expect("the creator"), e, "the one, whole");
}

/// The place is used again: whatever is found is the former one, or the next, whole.
fn used_again_meets_find(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 2, 2);
    c.am(1);
    let e = c.create(PORT);
    c.am(0);
    loom::explore();
    let creator = of(c, 1, move |c| {
        c.delete(e);
        c.create(PORT)
    });
    let found = c.wait_found(1, PORT);
    let next = creator.join().expect("the creator");
    // What was found of one that goes away meanwhile is no more than its handle.
    assert!(found == e || found == next || found == 1, "one of them");
    assert_eq!(c.find(1, PORT), next);
}

/// The same for another name, the port `port` of node `node`: it is not confused with the former one.
fn used_again_as(library: &Library, barrier: Barrier, nodes: u32, node: u32, port: u32) {
    let c = domain(library, barrier, 2, nodes);
    c.am(1);
    let e = c.create(PORT);
    c.am(0);
    loom::explore();
    let creator = of(c, 1, move |c| {
        c.delete(e);
        c.am(node);
        c.create(port)
    });
    let found = c.find(node, port);
    let next = creator.join().expect("the creator");
    assert!(found == 0 || found == 1 || found == next, "the next one");
    assert_eq!(c.find(node, port), next);
    assert_eq!(c.find(1, PORT), 0);
}
fn used_again_elsewhere(library: &Library, barrier: Barrier) {
    used_again_as(library, barrier, 2, 1, PORT + 1);
}
fn used_again_by_another(library: &Library, barrier: Barrier) {
    used_again_as(library, barrier, 3, 2, PORT);
}

/// A process dies while it creates an endpoint: no process finds it incomplete, and its place is free.
fn creator_dies<const AT: usize>(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 2, 2);
    loom::explore();
    let creator = dying(c, 1, AT, move |c| assert_ne!(c.create(PORT), 0));
    assert_ne!(c.find(1, PORT), 1, "half of it");
    creator.join().expect("the one that died");
    c.bury(1);
    assert_eq!(c.find(1, PORT), 0);
    assert_eq!(c.left(1), 0, "what it had");
    assert_ne!(c.create(PORT), 0);
    assert_ne!(c.create(PORT + 1), 0, "all places");
}

// ---- death -------------------------------------------------------------------------------------

/// A process dies while it cleans up after a dead one; a third completes it.
fn burier_dies<const AT: usize>(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 2, 3);
    c.am(2);
    let e = c.create(PORT);
    c.am(0);
    c.dies(2);
    loom::explore();
    let dead = dying(c, 1, AT, |c| c.bury(2));
    c.bury(2);
    assert_eq!(c.left(2), 0, "what the first had");
    dead.join().expect("the one that died");
    c.bury(1);
    assert_eq!(c.left(1), 0, "what the second had");
    assert_eq!(c.find(2, PORT), 0);
    assert_eq!(c.try_send(e, 1), c.status_peer());
}

/// An endpoint of a process that has died has not been deleted: a sender to it gets the status.
fn died_not_deleted(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 2, 3);
    c.am(1);
    let e = c.create(PORT);
    c.am(0);
    c.dies(1);
    loom::explore();
    let sender = of(c, 2, move |c| assert_eq!(c.was(e), 0));
    c.bury(1);
    sender.join().expect("the sender");
    assert_eq!((c.is(e), c.was(e)), (0, 0));
}

/// Two senders have died. The receiver, notified of the first death, finds the second sender dead, too, and
/// has then seen what that one had posted: its slot is not free before that is received.
fn second_death(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 2, 3);
    let e = c.create(PORT);
    c.dies(1);
    c.bury(1);
    loom::explore();
    let others = of(c, 2, move |c| {
        assert_eq!(c.try_send(e, 102), OK);
        c.dies(2);
        c.am(0);
        c.bury(2);
    });
    let got = c.try_receive(e);
    others.join().expect("the others");
    assert_eq!(c.free(e), SLOTS - (got == 0) as u32, "slots");
    assert_eq!(got + c.try_receive(e), 102, "once");
}

/// A sender waits for room at an endpoint of a process that dies: the sender's own notifier tells it.
fn told(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 3, 2);
    c.am(1);
    let e = c.create(PORT);
    c.am(0);
    assert_eq!(c.try_send(e, 100), OK);
    assert_eq!(c.try_send(e, 101), OK);
    let notifier = of(c, 0, |c| c.thread(0));
    loom::explore();
    let dead = of(c, 1, |c| c.dies(1));
    assert_eq!(c.send(e, 102), c.status_peer());
    loom::stop_exploring();
    dead.join().expect("the one that died");
    c.stop();
    notifier.join().expect("the notifier");
}

/// A process dies while it joins: the other processes learn of it, and nothing is left.
fn joiner_dies<const AT: usize>(library: &Library, barrier: Barrier) {
    let c = domain(library, barrier, 3, 1);
    let notifier = of(c, 0, |c| c.thread(0));
    loom::explore();
    dying(c, 1, AT, |c| c.join())
        .join()
        .expect("the one that died");
    c.wait_gone(1);
    loom::stop_exploring();
    c.stop();
    notifier.join().expect("the notifier");
}

const FENCES: Barrier = Barrier::Fences;
const ALL_CORES: Barrier = Barrier::Asymmetric;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("one sender", "Q1 D4", FENCES, Some(3), 94, one_sender),
    check("one sender", "Q1 D4", ALL_CORES, Some(2), 91, one_sender),
    check("one sender waits for room", "Q1 D4", FENCES, Some(2), 694, one_sender_waits),
    check("one sender waits for room", "Q1 D4", ALL_CORES, Some(1), 366, one_sender_waits),
    check("one slot free", "D4", FENCES, Some(2), 54, one_slot_free),
    check("one slot free", "D4", ALL_CORES, Some(1), 17, one_slot_free),
    check("two senders", "Q1 D4", FENCES, Some(1), 378, two_senders),
    check("two threads of a process", "Q1", FENCES, Some(1), 108, two_threads),
    check("sender dies, at 0", "Q1 Q2", FENCES, Some(1), 23, sender_dies::<0>),
    check("sender dies, at 2", "Q1 Q2", FENCES, Some(1), 23, sender_dies::<2>),
    check("sender dies, at 5", "Q1 Q2", FENCES, Some(1), 98, sender_dies::<5>),
    check("sender dies, at 6", "Q1 Q2", FENCES, Some(1), 98, sender_dies::<6>),
    check("sender dies, at 7", "Q1 Q2", FENCES, Some(1), 98, sender_dies::<7>),
    check("sender dies, at 9", "Q1 Q2", FENCES, Some(1), 98, sender_dies::<9>),
    check("sender dies, others bury, at 1", "D3 D4 Q2", FENCES, Some(2), 22, others_bury::<1>),
    check("sender dies, others bury, at 5", "D3 D4 Q2", FENCES, Some(2), 312, others_bury::<5>),
    check("sender dies, others bury, at 9", "D3 D4 Q2", FENCES, Some(2), 312, others_bury::<9>),
    check("receiver dies, at 1", "Q2", FENCES, Some(1), 313, receiver_dies::<1>),
    check("receiver dies, at 2", "Q2", FENCES, Some(1), 268, receiver_dies::<2>),
    check("receiver dies, at 4", "Q2", FENCES, Some(1), 268, receiver_dies::<4>),
    check("receiver dies, at 9", "Q2", FENCES, Some(1), 268, receiver_dies::<9>),
    check("receiver dies, at 13", "Q2", FENCES, Some(1), 401, receiver_dies::<13>),
    check("delete meets send", "Q2 D2", FENCES, Some(2), 557, deleted_meets_send),
    check("create meets find", "D2 D4", FENCES, Some(2), 19, created_meets_find),
    check("create meets find", "D2 D4", ALL_CORES, Some(1), 9, created_meets_find),
    check("used again meets find", "D2", FENCES, Some(2), 295, used_again_meets_find),
    check("used again, another port", "D2", FENCES, Some(2), 26, used_again_elsewhere),
    check("used again, another port", "D2", ALL_CORES, Some(2), 26, used_again_elsewhere),
    check("used again, another node", "D2", FENCES, Some(2), 50, used_again_by_another),
    check("used again, another node", "D2", ALL_CORES, Some(2), 50, used_again_by_another),
    check("creator dies, at 40", "D2 D3", FENCES, Some(2), 1, creator_dies::<40>),
    check("creator dies, at 120", "D2 D3", FENCES, Some(2), 1, creator_dies::<120>),
    check("burier dies, at 2", "D1 D3", FENCES, Some(1), 6, burier_dies::<2>),
    check("burier dies, at 6", "D1 D3", FENCES, Some(1), 6, burier_dies::<6>),
    check("burier dies, at 25", "D1 D3", FENCES, Some(1), 10, burier_dies::<25>),
    check("died, not deleted", "D3", FENCES, Some(2), 6, died_not_deleted),
    check("died, not deleted", "D3", ALL_CORES, Some(2), 6, died_not_deleted),
    check("a second death", "D3 Q2", FENCES, Some(2), 45, second_death),
    check("a second death", "D3 Q2", ALL_CORES, Some(1), 14, second_death),
    check("told of a death", "D3 D4", FENCES, Some(1), 201, told),
    check("told of a death", "D3 D4", ALL_CORES, Some(0), 6, told),
    check("joiner dies, at 5", "D3", FENCES, Some(1), 84, joiner_dies::<5>),
    check("joiner dies, at 25", "D3", FENCES, Some(1), 65, joiner_dies::<25>),
    check("joiner dies, at 35", "D3", FENCES, Some(1), 1218, joiner_dies::<35>),
    check("joiner dies, at 55", "D3", FENCES, Some(1), 1951, joiner_dies::<55>),
    check("sender dies, at any store", "D3 D4 Q2", FENCES, Some(2), 9831, others_bury::<ANY>)
        .deaths().soak(),
    check("receiver dies, at any store", "Q2", FENCES, Some(1), 6896, receiver_dies::<ANY>)
        .deaths().soak(),
    check("creator dies, at any store", "D2 D3", FENCES, Some(2), 84, creator_dies::<ANY>)
        .deaths().soak(),
    check("burier dies, at any store", "D1 D3", FENCES, Some(1), 326, burier_dies::<ANY>)
        .deaths().soak(),
    check("joiner dies, at any store", "D3", FENCES, Some(1), 27652, joiner_dies::<ANY>)
        .deaths().soak(),
];
