// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of fibers, streams, events and waiting: the runtime's own workers, with fibers on real
//! stacks, and threads of the program.

use crate::check::{Barrier, Check, check, spawn};
use crate::harness;
use crate::library::Library;
use crate::shadow;
use loom::thread::JoinHandle;
use std::ffi::c_void;

harness! {
    /// c/fiber.c
    Calls {
        fn make(fenced: u32, workers: u32, capacity: u32, threshold: u32, count: u32) -> *mut c_void;
        fn fiber(m: *mut c_void, role: u32, worker: u32) -> u32;
        fn stock(m: *mut c_void);
        fn stays(m: *mut c_void, worker: u32, fibers: u32);
        fn ends_by_command(m: *mut c_void);
        fn blocks() -> u32;
        fn block(i: u32) -> *mut c_void;
        fn block_size(i: u32) -> usize;
        fn places(m: *mut c_void) -> u32;
        fn place(m: *mut c_void, i: u32) -> *mut c_void;
        fn place_size() -> usize;
        fn work(m: *mut c_void, worker: u32);
        fn stop(m: *mut c_void);
        fn hurry(m: *mut c_void, worker: u32);
        fn late(ticks: u32);
        fn join(m: *mut c_void, fiber: u32) -> u32;
        fn cancel(m: *mut c_void, fiber: u32);
        fn set(m: *mut c_void, event: u32, data: u32) -> u32;
        fn wait(m: *mut c_void, event: u32, data: *mut u32) -> u32;
        fn tell(m: *mut c_void);
        fn unblock(m: *mut c_void, fiber: u32);
        fn put(m: *mut c_void, v: u32) -> u32;
        fn get(m: *mut c_void) -> u32;
        fn move_to(m: *mut c_void, fiber: u32, worker: u32);
        fn end(m: *mut c_void, why: u32);
        fn fill(m: *mut c_void);
        fn told(m: *mut c_void) -> u32;
        fn got(m: *mut c_void) -> u32;
        fn wrong(m: *mut c_void) -> u32;
        fn data(m: *mut c_void) -> u32;
        fn status(m: *mut c_void, fiber: u32) -> u32;
        fn sent(m: *mut c_void) -> u32;
        fn timers(m: *mut c_void, worker: u32) -> u32;
        fn status_state() -> u32;
        fn status_ended() -> u32;
        fn status_cancelled() -> u32;
        fn status_deadlock() -> u32;
        fn status_stopped() -> u32;
    }
}

const OK: u32 = 0;

/// What a fiber does; the numbers of c/fiber.c.
#[derive(Clone, Copy)]
enum Role {
    PutsAll,
    GetsAll,
    GetsToEnd,
    PutsAndWaits,
    GetsAndSays,
    Waits,
    Says,
    PassesOn,
    WaitsBehind,
    WaitsForAny,
    Tells,
    Joins,
    GetsInTime,
    WaitsThrough,
    TakesAnEnd,
    ClosesAnEnd,
    GetsAndWaits,
    PutsAndSays,
    WaitsUntold,
}
use Role::*;

/// Each block of memory is a region, in the order of their allocation.
const BLOCKS: [&str; 8] = [
    "world", "block 1", "block 2", "block 3", "block 4", "block 5", "block 6", "block 7",
];
const FIBERS: [&str; 3] = ["fiber 0", "fiber 1", "fiber 2"];

/// A stream, if there is one.
#[derive(Clone, Copy)]
struct Stream {
    capacity: u32,
    threshold: u32,
    count: u32,
}
const NONE: Stream = Stream {
    capacity: 0,
    threshold: 0,
    count: 0,
};

struct World {
    c: Calls,
    m: *mut c_void,
}

impl World {
    /// Fibers that are about to begin: what each does, and where. `others` threads beside the
    /// workers and the check's first.
    fn new(
        library: &Library,
        barrier: Barrier,
        workers: u32,
        others: usize,
        stream: Stream,
        fibers: &[(Role, u32)],
    ) -> World {
        shadow::begin(1 + workers as usize + others, 0, barrier);
        let c = Calls::of(library);
        let fenced = (barrier == Barrier::Fences) as u32;
        let Stream {
            capacity,
            threshold,
            count,
        } = stream;
        let m = c.make(fenced, workers, capacity, threshold, count);
        c.stock(m);
        let mut here = [0; 2];
        for (role, worker) in fibers {
            assert_eq!(c.fiber(m, *role as u32, *worker), OK, "start");
            here[*worker as usize] += 1;
        }
        for worker in 0..workers {
            c.stays(m, worker, here[worker as usize]);
        }
        World { c, m }
    }

    /// From now on all of it is watched; the workers begin.
    fn begin(&self, workers: u32) -> Vec<JoinHandle<()>> {
        let World { c, m } = *self;
        // Safety: they live until the next `make`.
        unsafe {
            for i in 0..c.blocks() {
                shadow::region(BLOCKS[i as usize], c.block(i), c.block_size(i));
            }
            for i in 0..c.places(m) {
                shadow::region(FIBERS[i as usize], c.place(m, i), c.place_size());
            }
        }
        let works = (0..workers).map(|i| spawn(move || c.work(m, i)));
        works.collect()
    }
}

fn all(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("a worker");
    }
}

/// A fiber on each of two workers, until both have ended.
fn two_workers(library: &Library, barrier: Barrier, stream: Stream, roles: [Role; 2]) -> World {
    let fibers = [(roles[0], 0), (roles[1], 1)];
    // The check's own thread is the first worker: one thread fewer.
    let world = World::new(library, barrier, 2, 0, stream, &fibers);
    let World { c, m } = world;
    let mut works = world.begin_second();
    c.work(m, 0);
    works.pop().expect("one").join().expect("the second worker");
    world
}

impl World {
    /// As `begin`, of two workers, but the first is the check's own thread.
    fn begin_second(&self) -> Vec<JoinHandle<()>> {
        let World { c, m } = *self;
        self.begin(0);
        vec![spawn(move || c.work(m, 1))]
    }

    fn ok(&self, fiber: u32) {
        assert_eq!(self.c.status(self.m, fiber), OK, "what fiber {fiber} says");
    }
    /// All has come, in order.
    fn got(&self, count: u32) {
        assert_eq!(self.c.got(self.m), count, "elements");
        self.right();
    }
    fn right(&self) {
        assert_eq!(self.c.wrong(self.m), 0, "what is not as it was said to be");
    }
}

/// From a fiber on one worker to a fiber on the other; the receiver sleeps, or the sender.
fn stream_one(library: &Library, barrier: Barrier) {
    let stream = Stream {
        capacity: 1,
        threshold: 1,
        count: 1,
    };
    let world = two_workers(library, barrier, stream, [PutsAll, GetsAll]);
    world.ok(1);
    world.got(1);
}

/// The receiver hears of the end that the sender's return is.
fn stream_ends(library: &Library, barrier: Barrier) {
    let stream = Stream {
        capacity: 2,
        threshold: 2,
        count: 1,
    };
    let world = two_workers(library, barrier, stream, [PutsAll, GetsToEnd]);
    assert_eq!(world.c.status(world.m, 1), world.c.status_ended());
    world.got(1);
}

/// The sender waits for a word of the receiver, which has its elements below its threshold.
fn threshold(library: &Library, barrier: Barrier) {
    let stream = Stream {
        capacity: 2,
        threshold: 2,
        count: 1,
    };
    let world = two_workers(library, barrier, stream, [PutsAndWaits, GetsAndSays]);
    world.ok(0);
    world.got(1);
}

/// The receiver waits for a word of the sender, which has its room below its threshold.
fn threshold_of_room(library: &Library, barrier: Barrier) {
    let stream = Stream {
        capacity: 5,
        threshold: 1,
        count: 5,
    };
    let fibers = [(GetsAndWaits, 0), (PutsAndSays, 1)];
    let world = World::new(library, barrier, 2, 0, stream, &fibers);
    let World { c, m } = world;
    c.fill(m);
    let mut works = world.begin_second();
    c.work(m, 0);
    works.pop().expect("one").join().expect("the second worker");
    world.ok(0);
    world.got(1);
}

/// A thread puts, a fiber gets.
fn from_thread(library: &Library, barrier: Barrier) {
    let stream = Stream {
        capacity: 1,
        threshold: 1,
        count: 2,
    };
    let world = World::new(library, barrier, 1, 0, stream, &[(GetsAll, 0)]);
    let World { c, m } = world;
    let works = world.begin(1);
    for v in 0..2 {
        assert_eq!(c.put(m, 100 + v), OK);
    }
    all(works);
    world.ok(0);
    world.got(2);
}

/// A fiber puts, a thread gets.
fn to_thread(library: &Library, barrier: Barrier) {
    let stream = Stream {
        capacity: 1,
        threshold: 1,
        count: 2,
    };
    let world = World::new(library, barrier, 1, 0, stream, &[(PutsAll, 0)]);
    let World { c, m } = world;
    let works = world.begin(1);
    for _ in 0..2 {
        assert_eq!(c.get(m), OK);
    }
    assert_eq!(c.get(m), c.status_ended());
    all(works);
    world.ok(0);
    world.got(2);
}

/// A fiber is cancelled, about to wait or waiting.
fn cancelled(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 0, NONE, &[(Waits, 0)]);
    let World { c, m } = world;
    let works = world.begin(1);
    c.cancel(m, 0);
    all(works);
    assert_eq!(c.status(m, 0), c.status_cancelled());
}

/// A thread sets, a fiber waits; it has the data, and sees what was done before.
fn event_thread(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 0, NONE, &[(Waits, 0)]);
    let World { c, m } = world;
    let works = world.begin(1);
    c.tell(m);
    assert_eq!(c.set(m, 0, 7), OK);
    all(works);
    world.ok(0);
    world.right();
    assert_eq!(c.data(m), 7);
}

/// A fiber sets, another waits.
fn event_fiber(library: &Library, barrier: Barrier) {
    let world = two_workers(library, barrier, NONE, [Says, Waits]);
    world.ok(1);
    world.right();
    assert_eq!(world.c.data(world.m), 7);
}

/// A fiber sets, a thread waits.
fn event_to_thread(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 0, NONE, &[(Says, 0)]);
    let World { c, m } = world;
    let works = world.begin(1);
    let mut data = 0;
    assert_eq!(c.wait(m, 0, &mut data), OK);
    assert_eq!((data, c.told(m)), (7, 1));
    all(works);
}

/// A fiber waits for the first of two events, and two threads set one each.
fn first_of_two(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 1, NONE, &[(WaitsForAny, 0)]);
    let World { c, m } = world;
    let works = world.begin(1);
    let other = spawn(move || c.set(m, 1, 8));
    c.tell(m);
    assert_eq!(c.set(m, 0, 7), OK);
    assert_eq!(other.join().expect("the other thread"), OK);
    all(works);
    world.ok(0);
    world.right();
}

/// A thread joins a fiber, and sees what it did.
fn join_thread(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 0, NONE, &[(Tells, 0)]);
    let World { c, m } = world;
    let works = world.begin(1);
    assert_eq!(c.join(m, 0), OK);
    assert_eq!(c.told(m), 1);
    all(works);
}

/// A fiber joins another.
fn join_fiber(library: &Library, barrier: Barrier) {
    let world = two_workers(library, barrier, NONE, [Tells, Joins]);
    world.ok(1);
    world.right();
}

/// Two fibers on one worker, one waits for the other, which waits for a thread: the worker goes from
/// fiber to fiber.
fn direct(library: &Library, barrier: Barrier) {
    let fibers = [(PassesOn, 0), (WaitsBehind, 0)];
    let world = World::new(library, barrier, 1, 0, NONE, &fibers);
    let World { c, m } = world;
    let works = world.begin(1);
    assert_eq!(c.set(m, 0, 7), OK);
    all(works);
    world.ok(0);
    world.ok(1);
    assert_eq!(c.data(m), 8);
}

/// A fiber waits with a time limit, which passes while an element comes: it is not lost, nor is the
/// fiber left among those that wait for their time.
fn in_time(library: &Library, barrier: Barrier) {
    let stream = Stream {
        capacity: 1,
        threshold: 1,
        count: 1,
    };
    let world = World::new(library, barrier, 1, 1, stream, &[(GetsInTime, 0)]);
    let World { c, m } = world;
    let works = world.begin(1);
    let clock = spawn(move || {
        c.late(100);
        c.hurry(m, 0);
    });
    assert_eq!(c.put(m, 100), OK);
    clock.join().expect("the clock");
    all(works);
    world.ok(0);
    world.got(1);
    assert_eq!(c.timers(m, 0), 0, "fibers that wait for their time");
}

/// What another thread did while a fiber waited through is seen.
fn through(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 0, NONE, &[(WaitsThrough, 0)]);
    let World { c, m } = world;
    let works = world.begin(1);
    c.tell(m);
    c.unblock(m, 0);
    all(works);
    world.ok(0);
    world.right();
}

/// Who sets an event knocks late, when the fiber that waited for it has gone on, ended, was joined,
/// and is another.
fn late_knock(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 1, NONE, &[(Waits, 0)]);
    let World { c, m } = world;
    c.ends_by_command(m);
    let works = world.begin(1);
    let other = spawn(move || {
        c.tell(m);
        c.set(m, 0, 7)
    });
    assert_eq!(c.join(m, 0), OK);
    assert_eq!(c.fiber(m, WaitsBehind as u32, 0), OK);
    assert_eq!(c.set(m, 1, 8), OK);
    assert_eq!(c.join(m, 1), OK);
    assert_eq!(other.join().expect("the other thread"), OK);
    c.stop(m);
    all(works);
    world.ok(0);
    world.ok(1);
    world.right();
}

/// The application ends while a fiber of it waits, or is about to.
fn ends(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 0, NONE, &[(Waits, 0)]);
    let World { c, m } = world;
    let works = world.begin(1);
    c.end(m, c.status_deadlock());
    // Nothing of it runs any more.
    assert_eq!(c.status(m, 0), c.status_deadlock());
    all(works);
}

/// The application ends while a thread starts a fiber: it is refused, or hears of the end, and has
/// returned when it has ended.
fn ends_at_start(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 1, NONE, &[]);
    let World { c, m } = world;
    c.ends_by_command(m);
    let works = world.begin(1);
    let other = spawn(move || {
        c.end(m, c.status_stopped());
        c.tell(m);
    });
    let started = c.fiber(m, WaitsUntold as u32, 0);
    other.join().expect("the other thread");
    c.stop(m);
    all(works);
    if started == OK {
        assert_eq!(c.status(m, 0), c.status_stopped());
    } else {
        assert_eq!(started, c.status_state());
    }
    world.right();
}

/// Two fibers take one end, one after the other or one alone: each sees what the other did to it.
fn ends_taken(library: &Library, barrier: Barrier) {
    let stream = Stream {
        capacity: 2,
        threshold: 1,
        count: 2,
    };
    let world = two_workers(library, barrier, stream, [TakesAnEnd, TakesAnEnd]);
    let World { c, m } = world;
    let took = (0..2).filter(|i| c.status(m, *i) == OK).count();
    assert!(took >= 1);
    assert_eq!(c.sent(m), took as u32, "elements");
}

/// One of them closes it: then the other does not get it any more.
fn end_closed(library: &Library, barrier: Barrier) {
    let stream = Stream {
        capacity: 2,
        threshold: 1,
        count: 2,
    };
    let world = two_workers(library, barrier, stream, [ClosesAnEnd, ClosesAnEnd]);
    let World { c, m } = world;
    let took = (0..2).filter(|i| c.status(m, *i) == OK).count();
    assert_eq!(took, 1);
    assert_eq!(c.sent(m), 1, "elements");
}

/// A waiting fiber is moved to the other worker, while what it waits for comes.
fn moves(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 2, 0, NONE, &[(Waits, 0)]);
    let World { c, m } = world;
    c.ends_by_command(m);
    let works = world.begin(2);
    c.tell(m);
    c.move_to(m, 0, 1);
    assert_eq!(c.set(m, 0, 7), OK);
    assert_eq!(c.join(m, 0), OK);
    c.stop(m);
    all(works);
    world.ok(0);
    world.right();
}

const FENCES: Barrier = Barrier::Fences;
const CORES: Barrier = Barrier::Asymmetric;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("stream of one", "F1", FENCES, Some(1), 39, stream_one),
    check("stream of one", "F1", CORES, Some(1), 330, stream_one),
    check("stream ends", "F1", FENCES, Some(1), 160, stream_ends),
    check("below the threshold", "F1", FENCES, Some(1), 161, threshold),
    check("below the threshold", "F1", CORES, Some(1), 819, threshold),
    check("room below the threshold", "F1", FENCES, Some(1), 161, threshold_of_room),
    check("room below the threshold", "F1", CORES, Some(1), 811, threshold_of_room),
    check("from a thread", "F1", FENCES, Some(1), 1468, from_thread),
    check("from a thread", "F1", CORES, Some(1), 4092, from_thread),
    check("to a thread", "F1", FENCES, Some(1), 4352, to_thread),
    check("to a thread", "F1", CORES, Some(0), 56, to_thread),
    check("cancel meets wait", "F1", FENCES, Some(2), 147, cancelled),
    check("cancel meets wait", "F1", CORES, Some(2), 231, cancelled),
    check("event, from a thread", "F1", FENCES, Some(3), 573, event_thread),
    check("event, from a thread", "F1", CORES, Some(3), 1200, event_thread),
    check("event, from a fiber", "F1", FENCES, Some(2), 231, event_fiber),
    check("event, to a thread", "C3", FENCES, Some(3), 211, event_to_thread),
    check("event, to a thread", "C3", CORES, Some(3), 382, event_to_thread),
    check("first of two events", "F1", FENCES, Some(1), 104, first_of_two),
    check("join, by a thread", "F2", FENCES, Some(3), 20, join_thread),
    check("join, by a fiber", "F2", FENCES, Some(2), 231, join_fiber),
    check("from fiber to fiber", "F1", FENCES, Some(2), 149, direct),
    check("from fiber to fiber", "F1", CORES, Some(2), 251, direct),
    check("time limit meets push", "F1", FENCES, Some(1), 40, in_time),
    check("waits through", "F1", FENCES, Some(3), 311, through),
    check("late knock", "F1", FENCES, Some(1), 11868, late_knock),
    check("end meets wait", "F1", FENCES, Some(1), 157, ends),
    check("end meets wait", "F1", CORES, Some(1), 157, ends),
    check("end meets start", "F1", FENCES, Some(1), 1680, ends_at_start),
    check("end taken by two", "claim", FENCES, Some(1), 12, ends_taken),
    check("end closed by one", "claim", FENCES, Some(1), 12, end_closed),
    check("waiting, moved", "E2 F1", FENCES, Some(1), 5690, moves),
];
