// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of the link between two processes: its doorbells and notifiers, and a stream between them, by
//! the guarantees L1 and L2 of link.h.

use crate::check::{Barrier, Check, check, mortal, spawn};
use crate::harness;
use crate::library::Library;
use crate::shadow;
use loom::thread::JoinHandle;
use std::cell::RefCell;
use std::ffi::c_void;
use std::rc::Rc;

harness! {
    /// c/link.c, c/arena.c
    Calls {
        fn make() -> *mut c_void;
        fn arena() -> *mut c_void;
        fn arena_size() -> usize;
        fn thread(i: u32);
        fn open(m: *mut c_void, side: u32, capacity: u32, threshold: u32) -> u32;
        fn put(m: *mut c_void, side: u32, v: u32) -> u32;
        fn get(m: *mut c_void, side: u32) -> u32;
        fn flush(m: *mut c_void, side: u32);
        fn close(m: *mut c_void, side: u32);
        fn destroy(m: *mut c_void, side: u32) -> u32;
        fn peek(m: *mut c_void, side: u32) -> u32;
        fn try_put(m: *mut c_void, side: u32, v: u32) -> u32;
        fn leave(m: *mut c_void, side: u32) -> u32;
        fn send(m: *mut c_void, side: u32, number: u32) -> u32;
        fn come(m: *mut c_void, side: u32, n: u32);
        fn dies(m: *mut c_void, side: u32);
        fn stop(m: *mut c_void, side: u32);
        fn pushed(m: *mut c_void, side: u32) -> u32;
        fn got(m: *mut c_void, side: u32) -> u32;
        fn wrong(m: *mut c_void, side: u32) -> u32;
        fn let_go(m: *mut c_void, side: u32) -> u32;
        fn status_ended() -> u32;
        fn status_peer() -> u32;
    }
}

const OK: u32 = 0;

/// lvd_side
const PARENT: u32 = 0;
const CHILD: u32 = 1;

/// Two processes, and a stream that both have opened.
#[derive(Clone)]
struct World {
    c: Calls,
    m: *mut c_void,
    notifiers: Rc<RefCell<Vec<JoinHandle<()>>>>,
}

impl World {
    /// The parent has opened it. `others`: threads apart from the check's own and the notifiers.
    /// What comes before `explore` is run in one order.
    fn new(
        library: &Library,
        barrier: Barrier,
        others: usize,
        capacity: u32,
        threshold: u32,
    ) -> World {
        loom::stop_exploring();
        shadow::begin(3 + others, 2, barrier);
        let c = Calls::of(library);
        let m = c.make();
        // Safety: it is static.
        unsafe { shadow::region("memory", c.arena(), c.arena_size()) };
        let notifiers = [PARENT, CHILD].map(|side| spawn(move || c.thread(side)));
        assert_eq!(c.open(m, PARENT, capacity, threshold), OK, "open");
        let notifiers = Rc::new(RefCell::new(notifiers.into()));
        World { c, m, notifiers }
    }

    /// The child opens it, too.
    fn both(self) -> World {
        assert_eq!(self.c.open(self.m, CHILD, 0, 1), OK, "open");
        self
    }

    fn explore(self) -> World {
        loom::explore();
        self
    }

    /// A thread of a side.
    fn spawn<T: Send + 'static>(
        &self,
        body: impl FnOnce(Calls, *mut c_void) -> T + 'static,
    ) -> JoinHandle<T> {
        let (c, m) = (self.c, self.m);
        spawn(move || body(c, m))
    }

    /// All has come, in order.
    fn got(&self, side: u32, count: u32) {
        assert_eq!(self.c.got(self.m, side), count, "elements");
        assert_eq!(self.c.wrong(self.m, side), 0, "what is not as it should be");
    }

    /// The notifiers return.
    fn end(self) {
        loom::stop_exploring();
        self.c.stop(self.m, PARENT);
        self.c.stop(self.m, CHILD);
        for notifier in self.notifiers.take() {
            notifier.join().expect("a notifier");
        }
    }
}

/// The child puts, the parent gets, `count` elements.
fn from_child(library: &Library, barrier: Barrier, capacity: u32, count: u32) {
    let world = World::new(library, barrier, 1, capacity, 1)
        .both()
        .explore();
    let World { c, m, .. } = world;
    let other = world.spawn(move |c, m| {
        for v in 0..count {
            assert_eq!(c.put(m, CHILD, 100 + v), OK);
        }
    });
    for _ in 0..count {
        assert_eq!(c.get(m, PARENT), OK);
    }
    other.join().expect("the child's thread");
    world.got(PARENT, count);
    world.end();
}
fn wakes_receiver(library: &Library, barrier: Barrier) {
    from_child(library, barrier, 1, 1);
}
fn wakes_twice(library: &Library, barrier: Barrier) {
    from_child(library, barrier, 2, 2);
}
fn wakes_sender(library: &Library, barrier: Barrier) {
    from_child(library, barrier, 1, 2);
}

/// The child puts, and ends the stream.
fn closes(library: &Library, barrier: Barrier) {
    puts_and_ends(library, barrier, |c, m| c.close(m, CHILD));
}

/// The same, but it has mapped the stream's memory, and lets go of the stream altogether.
fn frees(library: &Library, barrier: Barrier) {
    puts_and_ends(library, barrier, |c, m| {
        assert_eq!(c.destroy(m, CHILD), OK);
    });
}

fn puts_and_ends(library: &Library, barrier: Barrier, how: fn(Calls, *mut c_void)) {
    let world = World::new(library, barrier, 1, 2, 2).both().explore();
    let World { c, m, .. } = world;
    let other = world.spawn(move |c, m| {
        assert_eq!(c.put(m, CHILD, 100), OK);
        how(c, m);
    });
    let mut status = OK;
    while status == OK {
        status = c.get(m, PARENT);
    }
    assert_eq!(status, c.status_ended());
    other.join().expect("the child's thread");
    world.got(PARENT, 1);
    world.end();
}

/// The child gets one, and takes no more.
fn leaves(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 1, 1).both().explore();
    let World { c, m, .. } = world;
    let other = world.spawn(|c, m| {
        assert_eq!(c.get(m, CHILD), OK);
        c.close(m, CHILD);
    });
    let (mut put, mut status) = (0, OK);
    while status == OK {
        status = c.put(m, PARENT, 100 + put);
        put += 1;
    }
    assert_eq!(status, c.status_peer());
    other.join().expect("the child's thread");
    world.got(CHILD, 1);
    world.end();
}

/// Fewer elements than the receiver's threshold, and the sender flushes.
fn flushes(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 4, 2).both().explore();
    let World { c, m, .. } = world;
    let other = world.spawn(|c, m| {
        assert_eq!(c.put(m, CHILD, 100), OK);
        c.flush(m, CHILD);
    });
    assert_eq!(c.get(m, PARENT), OK);
    other.join().expect("the child's thread");
    world.got(PARENT, 1);
    world.end();
}

/// The other side declares that it will not open the stream, while a thread waits at its end.
fn never_comes(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 1, 1).explore();
    let World { c, m, .. } = world;
    let other = world.spawn(|c, m| assert_eq!(c.leave(m, CHILD), OK));
    assert_eq!(c.get(m, PARENT), c.status_ended());
    other.join().expect("the child's thread");
    world.end();
}

/// The receiver has read an element and lets go of the stream; the sender puts in its place.
fn given_up(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 1, 1).both();
    let World { c, m, .. } = world;
    assert_eq!(c.put(m, CHILD, 100), OK);
    let world = world.explore();
    let other = world.spawn(|c, m| assert_eq!(c.peek(m, PARENT), OK));
    while c.try_put(m, CHILD, 101) == 0 {
        loom::thread::yield_now();
    }
    other.join().expect("the parent's thread");
    world.got(PARENT, 0);
    world.end();
}

/// `count` records, of which `before` are there already, in a channel that holds 64.
fn records(library: &Library, barrier: Barrier, before: u32, count: u32) {
    let world = World::new(library, barrier, 0, 1, 1);
    let World { c, m, .. } = world;
    for n in 0..before {
        assert_eq!(c.send(m, PARENT, n), OK);
    }
    let world = world.explore();
    for n in before..count {
        assert_eq!(c.send(m, PARENT, n), OK);
    }
    c.come(m, CHILD, count);
    world.got(CHILD, 0);
    world.end();
}
fn records_come(library: &Library, barrier: Barrier) {
    records(library, barrier, 0, 2);
}
fn records_wait(library: &Library, barrier: Barrier) {
    records(library, barrier, 64, 66);
}

/// The child puts, and perhaps ends the stream, and dies when it is about to make its store, or ring,
/// number `at`: all that it pushed until then is got, and then its end is seen.
fn dies(library: &Library, barrier: Barrier, at: usize, closes: bool) {
    let world = World::new(library, barrier, 1, 2, 1).both();
    let World { c, m, .. } = world;
    assert_eq!(c.put(m, CHILD, 100), OK);
    assert_eq!(c.get(m, PARENT), OK);
    c.stop(m, CHILD); // with its process all its threads end
    let world = world.explore();
    let other = world.spawn(move |c, m| {
        shadow::dies_at(at);
        mortal(|| {
            if closes {
                c.close(m, CHILD);
            } else {
                assert_eq!(c.put(m, CHILD, 101), OK);
            }
        });
        shadow::is_dead();
        c.dies(m, CHILD);
    });
    let mut status = OK;
    while status == OK {
        status = c.get(m, PARENT);
    }
    assert!(status == c.status_peer() || closes && status == c.status_ended());
    other.join().expect("the child's thread");
    world.got(PARENT, c.pushed(m, CHILD));
    world.end();
}
fn dies_putting<const AT: usize>(library: &Library, barrier: Barrier) {
    dies(library, barrier, AT, false);
}
fn dies_ending<const AT: usize>(library: &Library, barrier: Barrier) {
    dies(library, barrier, AT, true);
}

const FENCES: Barrier = Barrier::Fences;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("wakes the receiver", "L1", FENCES, Some(3), 406, wakes_receiver),
    check("wakes twice", "L1", FENCES, Some(2), 439, wakes_twice),
    check("wakes the sender", "L1", FENCES, Some(1), 214, wakes_sender),
    check("flush", "L1", FENCES, Some(3), 1279, flushes),
    check("end", "L1", FENCES, Some(2), 734, closes),
    check("end and close", "L1", FENCES, Some(1), 277, frees),
    check("leaves", "L1", FENCES, Some(1), 184, leaves),
    check("never comes", "L1", FENCES, Some(0), 34, never_comes),
    check("given up", "C2", FENCES, Some(0), 1, given_up),
    check("records", "L1", FENCES, Some(1), 1053, records_come),
    check("records, more than fit", "L1", FENCES, Some(0), 798, records_wait),
    check("dies putting, at 3", "L2", FENCES, Some(1), 158, dies_putting::<3>),
    check("dies putting, at 4", "L2", FENCES, Some(1), 218, dies_putting::<4>),
    check("dies putting, at 5", "L2", FENCES, Some(1), 218, dies_putting::<5>),
    check("dies putting, at 6", "L2", FENCES, Some(1), 226, dies_putting::<6>),
    check("dies putting, at 7", "L2", FENCES, Some(1), 226, dies_putting::<7>),
    check("dies ending, at 2", "L2", FENCES, Some(1), 158, dies_ending::<2>),
    check("dies ending, at 3", "L2", FENCES, Some(1), 274, dies_ending::<3>),
    check("dies ending, at 4", "L2", FENCES, Some(1), 274, dies_ending::<4>),
    check("dies ending, at 5", "L2", FENCES, Some(1), 72, dies_ending::<5>),
    check("dies ending, at 6", "L2", FENCES, Some(1), 72, dies_ending::<6>),
    check("dies ending, at 7", "L2", FENCES, Some(1), 80, dies_ending::<7>),
    check("dies ending, at 8", "L2", FENCES, Some(1), 80, dies_ending::<8>),
];
