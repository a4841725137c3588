// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of fibers, streams, events and waiting: the runtime's own workers, with fibers on real
//! stacks, and threads of the program.

use crate::check::{Barrier, Check, check, spawn};
use crate::harness;
use crate::library::Library;
use crate::world::{self, CORES, FENCES, NONE, OK, World, stream};
use std::ffi::c_void;

harness! {
    /// c/fiber.c
    Calls {
        fn any(m: *mut c_void, timeout_ns: i64, which: *mut u32) -> u32;
        fn unblock(m: *mut c_void, fiber: u32);
        fn put(m: *mut c_void, v: u32) -> u32;
        fn get(m: *mut c_void) -> u32;
        fn move_to(m: *mut c_void, fiber: u32, worker: u32);
        fn end(m: *mut c_void, why: u32);
        fn fill(m: *mut c_void);
        fn sent(m: *mut c_void) -> u32;
        fn timers(m: *mut c_void, worker: u32) -> u32;
    }
}

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
    WaitsForAnyInTime,
    WaitsForElementOrEvent,
}
use Role::*;

impl world::Role for Role {
    fn number(self) -> u32 {
        self as u32
    }
}

/// A fiber on each of two workers, until both have ended.
fn two_workers(
    library: &Library,
    barrier: Barrier,
    stream: world::Stream,
    roles: [Role; 2],
) -> World {
    let fibers = [(roles[0], 0), (roles[1], 1)];
    World::new(library, barrier, 2, 0, stream, &fibers).alone()
}

/// One on the only worker.
fn one(library: &Library, barrier: Barrier, others: usize, role: Role) -> World {
    World::new(library, barrier, 1, others, NONE, &[(role, 0)])
}
/// From a fiber on one worker to a fiber on the other; the receiver sleeps, or the sender.
fn stream_one(library: &Library, barrier: Barrier) {
    let world = two_workers(library, barrier, stream(1, 1, 1), [PutsAll, GetsAll]);
    world.ok(1);
    world.got(1);
}

/// The receiver hears of the end that the sender's return is.
fn stream_ends(library: &Library, barrier: Barrier) {
    let world = two_workers(library, barrier, stream(2, 2, 1), [PutsAll, GetsToEnd]);
    world.says(1, world.c.status_ended());
    world.got(1);
}

/// The sender waits for a word of the receiver, which has its elements below its threshold.
fn threshold(library: &Library, barrier: Barrier) {
    let roles = [PutsAndWaits, GetsAndSays];
    let world = two_workers(library, barrier, stream(2, 2, 1), roles);
    world.ok(0);
    world.got(1);
}

/// The receiver waits for a word of the sender, which has its room below its threshold.
fn threshold_of_room(library: &Library, barrier: Barrier) {
    let fibers = [(GetsAndWaits, 0), (PutsAndSays, 1)];
    let world = World::new(library, barrier, 2, 0, stream(5, 1, 5), &fibers);
    Calls::of(library).fill(world.m);
    world.alone();
    world.ok(0);
    world.got(1);
}

/// A thread puts, a fiber gets.
fn from_thread(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let fibers = [(GetsAll, 0)];
    let world = World::new(library, barrier, 1, 0, stream(1, 1, 2), &fibers).meanwhile(|_, m| {
        for v in 0..2 {
            assert_eq!(own.put(m, 100 + v), OK);
        }
    });
    world.ok(0);
    world.got(2);
}

/// A fiber puts, a thread gets.
fn to_thread(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let fibers = [(PutsAll, 0)];
    let world = World::new(library, barrier, 1, 0, stream(1, 1, 2), &fibers).meanwhile(|c, m| {
        for _ in 0..2 {
            assert_eq!(own.get(m), OK);
        }
        assert_eq!(own.get(m), c.status_ended());
    });
    world.ok(0);
    world.got(2);
}

/// A fiber is cancelled, about to wait or waiting.
fn cancelled(library: &Library, barrier: Barrier) {
    let world = one(library, barrier, 0, Waits).meanwhile(|c, m| c.cancel(m, 0));
    world.says(0, world.c.status_cancelled());
}

/// A thread sets, a fiber waits; it has the data, and sees what was done before.
fn event_thread(library: &Library, barrier: Barrier) {
    let world = one(library, barrier, 0, Waits).meanwhile(|c, m| {
        c.tell(m);
        assert_eq!(c.set(m, 0, 7), OK);
    });
    world.ok(0);
    world.right();
    assert_eq!(world.c.data(world.m), 7);
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
    one(library, barrier, 0, Says).meanwhile(|c, m| {
        let mut data = 0;
        assert_eq!(c.wait(m, 0, &mut data), OK);
        assert_eq!((data, c.told(m)), (7, 1));
    });
}

/// A fiber waits for the first of two events, and two threads set one each.
fn first_of_two(library: &Library, barrier: Barrier) {
    let world = one(library, barrier, 1, WaitsForAny).meanwhile(|c, m| {
        let other = spawn(move || c.set(m, 1, 8));
        c.tell(m);
        assert_eq!(c.set(m, 0, 7), OK);
        assert_eq!(other.join().expect("the other thread"), OK);
    });
    world.ok(0);
    world.right();
}

/// A thread waits for the first of two events, and a fiber sets one, another thread the other: it
/// knows which, and sees what was done before.
fn any_by_thread(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    one(library, barrier, 1, Says).meanwhile(|c, m| {
        let other = spawn(move || c.set(m, 1, 8));
        let mut which = 9;
        assert_eq!(own.any(m, -1, &mut which), OK);
        assert!(which == 1 || c.told(m) == 1);
        assert_eq!(other.join().expect("the other thread"), OK);
    });
}

/// A thread waits for one of two, once more for the other, in a bed where a late waker may knock.
fn any_twice(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    one(library, barrier, 1, Says).meanwhile(|c, m| {
        let other = spawn(move || c.set(m, 1, 8));
        for _ in 0..2 {
            let mut which = 9;
            assert_eq!(own.any(m, -1, &mut which), OK);
            let mut data = 0;
            assert_eq!(c.wait(m, which, &mut data), OK);
            assert_eq!(data, 7 + which);
        }
        assert_eq!(c.told(m), 1);
        assert_eq!(other.join().expect("the other thread"), OK);
    });
}

/// A thread waits for one of two with a time limit, which passes while one is set: it is that one, or
/// the time; and what is set is not lost.
fn any_in_time(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    one(library, barrier, 1, Says).meanwhile(|c, m| {
        let clock = spawn(move || c.late(100));
        let (mut which, mut data) = (9, 0);
        let status = own.any(m, 10, &mut which);
        assert!(status == OK && which == 0 || status == c.status_time());
        assert_eq!(c.wait(m, 0, &mut data), OK);
        assert_eq!((data, c.told(m)), (7, 1));
        clock.join().expect("the clock");
    });
}

/// A fiber waits for one of two with a time limit, which passes while a thread sets one.
fn any_in_time_by_fiber(library: &Library, barrier: Barrier) {
    let world = one(library, barrier, 1, WaitsForAnyInTime).meanwhile(|c, m| {
        let clock = spawn(move || c.late(100));
        c.tell(m);
        assert_eq!(c.set(m, 0, 7), OK);
        clock.join().expect("the clock");
    });
    world.ok(0);
    world.right();
    let timers = Calls::of(library).timers(world.m, 0);
    assert_eq!(timers, 0, "fibers that wait for their time");
}

/// A fiber waits for elements or an event, and both come.
fn element_or_event(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let fibers = [(WaitsForElementOrEvent, 0)];
    let world = World::new(library, barrier, 1, 1, stream(1, 1, 1), &fibers).meanwhile(|c, m| {
        let other = spawn(move || own.put(m, 100));
        c.tell(m);
        assert_eq!(c.set(m, 0, 7), OK);
        assert_eq!(other.join().expect("the other thread"), OK);
    });
    world.ok(0);
    world.got(1);
}

/// A thread joins a fiber, and sees what it did.
fn join_thread(library: &Library, barrier: Barrier) {
    one(library, barrier, 0, Tells).meanwhile(|c, m| {
        assert_eq!(c.join(m, 0), OK);
        assert_eq!(c.told(m), 1);
    });
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
    let world = World::new(library, barrier, 1, 0, NONE, &fibers)
        .meanwhile(|c, m| assert_eq!(c.set(m, 0, 7), OK));
    world.ok(0);
    world.ok(1);
    assert_eq!(world.c.data(world.m), 8);
}

/// A fiber waits with a time limit, which passes while an element comes: it is not lost, nor is the
/// fiber left among those that wait for their time.
fn in_time(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let fibers = [(GetsInTime, 0)];
    let world = World::new(library, barrier, 1, 1, stream(1, 1, 1), &fibers).meanwhile(|c, m| {
        let clock = spawn(move || c.late(100));
        assert_eq!(own.put(m, 100), OK);
        clock.join().expect("the clock");
    });
    world.ok(0);
    world.got(1);
    let timers = own.timers(world.m, 0);
    assert_eq!(timers, 0, "fibers that wait for their time");
}

/// What another thread did while a fiber waited through is seen.
fn through(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = one(library, barrier, 0, WaitsThrough).meanwhile(|c, m| {
        c.tell(m);
        own.unblock(m, 0);
    });
    world.ok(0);
    world.right();
}

/// The wake-up of an event comes late: the fiber that waited for it has resumed, ended and been joined,
/// and its place belongs to another fiber.
fn late_knock(library: &Library, barrier: Barrier) {
    let world = one(library, barrier, 1, Waits).served(|c, m| {
        let other = spawn(move || {
            c.tell(m);
            c.set(m, 0, 7)
        });
        assert_eq!(c.join(m, 0), OK);
        assert_eq!(c.fiber(m, WaitsBehind as u32, 0), OK);
        assert_eq!(c.set(m, 1, 8), OK);
        assert_eq!(c.join(m, 1), OK);
        assert_eq!(other.join().expect("the other thread"), OK);
    });
    world.ok(0);
    world.ok(1);
    world.right();
}

/// The application ends while a fiber of it waits, or is about to.
fn ends(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    one(library, barrier, 0, Waits).meanwhile(|c, m| {
        own.end(m, c.status_deadlock());
        // Nothing of it runs any more.
        assert_eq!(c.status(m, 0), c.status_deadlock());
    });
}

/// The application ends while a thread starts a fiber: it is refused, or hears of the end, and has
/// returned when it has ended.
fn ends_at_start(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let mut started = OK;
    let world = World::new::<Role>(library, barrier, 1, 1, NONE, &[]).served(|c, m| {
        let other = spawn(move || {
            own.end(m, c.status_stopped());
            c.tell(m);
        });
        started = c.fiber(m, WaitsUntold as u32, 0);
        other.join().expect("the other thread");
    });
    if started == OK {
        world.says(0, world.c.status_stopped());
    } else {
        assert_eq!(started, world.c.status_state());
    }
    world.right();
}

/// Two fibers take one end, one after the other or one alone: each sees what the other did to it.
fn ends_taken(library: &Library, barrier: Barrier) {
    let roles = [TakesAnEnd, TakesAnEnd];
    let World { c, m, .. } = two_workers(library, barrier, stream(2, 1, 2), roles);
    let took = (0..2).filter(|i| c.status(m, *i) == OK).count();
    assert!(took >= 1);
    assert_eq!(Calls::of(library).sent(m), took as u32, "elements");
}

/// One of them closes it: then the other does not get it any more.
fn end_closed(library: &Library, barrier: Barrier) {
    let roles = [ClosesAnEnd, ClosesAnEnd];
    let World { c, m, .. } = two_workers(library, barrier, stream(2, 1, 2), roles);
    let took = (0..2).filter(|i| c.status(m, *i) == OK).count();
    assert_eq!(took, 1);
    assert_eq!(Calls::of(library).sent(m), 1, "elements");
}

/// A waiting fiber is moved to the other worker, while what it waits for comes.
fn moves(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = World::new(library, barrier, 2, 0, NONE, &[(Waits, 0)]).served(|c, m| {
        c.tell(m);
        own.move_to(m, 0, 1);
        assert_eq!(c.set(m, 0, 7), OK);
        assert_eq!(c.join(m, 0), OK);
    });
    world.ok(0);
    world.right();
}

/// The application comes to rest by itself: the reaper ends it, and it says why.
fn rests(library: &Library, barrier: Barrier, fibers: &[(Role, u32)]) -> (World, u32) {
    let world = World::new(library, barrier, 2, 0, NONE, fibers);
    let mut outcome = OK;
    let world = world.served(|c, m| {
        c.let_rest(m);
        c.await_end(m);
        loom::stop_exploring();
        c.end_reaper(m);
        c.keep(m);
        outcome = c.app_wait(m);
    });
    world.right();
    (world, outcome)
}

/// The application ends when all fibers have ended, and not before. No deadlock is reported while a
/// wake-up is under way.
fn rests_ended(library: &Library, barrier: Barrier) {
    let (world, outcome) = rests(library, barrier, &[(Says, 0), (Waits, 1)]);
    assert_eq!(outcome, OK);
    world.ok(1);
}

/// The application ends when all fibers wait for each other: each wait fails, and all fibers return
/// before the end.
fn rests_deadlocked(library: &Library, barrier: Barrier) {
    let (world, outcome) = rests(library, barrier, &[(Waits, 0), (WaitsBehind, 1)]);
    let deadlock = world.c.status_deadlock();
    assert_eq!(outcome, deadlock);
    world.says(0, deadlock);
    world.says(1, deadlock);
}

/// One that is open is looked into when rest lasts, and only then: not while a fiber that a thread has
/// woken is on its way.
fn suspect(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 1, 1, NONE, &[(Waits, 0)]);
    world.c.is_open(world.m);
    let world = world.served(|c, m| {
        let reaper = spawn(move || c.keep(m));
        c.let_rest(m);
        c.late(30_000_000);
        c.tell(m);
        assert_eq!(c.set(m, 0, 7), OK);
        assert_eq!(c.join(m, 0), OK);
        loom::stop_exploring();
        c.end_reaper(m);
        reaper.join().expect("the reaper");
    });
    world.ok(0);
    world.right();
}

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("stream of one", "F1", FENCES, Some(2), 2030, stream_one),
    check("stream of one", "F1", CORES, Some(1), 354, stream_one),
    check("stream ends", "F1", FENCES, Some(1), 35, stream_ends),
    check("below the threshold", "F1", FENCES, Some(1), 73, threshold),
    check("below the threshold", "F1", CORES, Some(1), 883, threshold),
    check("room below the threshold", "F1", FENCES, Some(1), 73, threshold_of_room),
    check("room below the threshold", "F1", CORES, Some(1), 883, threshold_of_room),
    check("from a thread", "F1", FENCES, Some(1), 442, from_thread),
    check("from a thread", "F1", CORES, Some(1), 3758, from_thread),
    check("to a thread", "F1", FENCES, Some(1), 4384, to_thread),
    check("to a thread", "F1", CORES, Some(0), 56, to_thread),
    check("cancel meets wait", "F1", FENCES, Some(2), 72, cancelled),
    check("cancel meets wait", "F1", CORES, Some(2), 247, cancelled),
    check("event, from a thread", "F1", FENCES, Some(3), 465, event_thread),
    check("event, from a thread", "F1", CORES, Some(3), 1574, event_thread),
    check("event, from a fiber", "F1", FENCES, Some(2), 174, event_fiber),
    check("event, to a thread", "C3", FENCES, Some(3), 211, event_to_thread),
    check("event, to a thread", "C3", CORES, Some(3), 450, event_to_thread),
    check("first of two events", "F1", FENCES, Some(2), 538, first_of_two),
    check("any, by a thread", "F1", FENCES, Some(1), 378, any_by_thread),
    check("any, by a thread", "F1", CORES, Some(1), 488, any_by_thread),
    check("any, twice", "F1", FENCES, Some(0), 4, any_twice),
    check("any meets time limit", "F1", FENCES, Some(1), 291, any_in_time),
    check("any, fiber, meets time limit", "F1", FENCES, Some(2), 531, any_in_time_by_fiber),
    check("element or event", "F1", FENCES, Some(1), 106, element_or_event),
    check("join, by a thread", "F2", FENCES, Some(3), 20, join_thread),
    check("join, by a fiber", "F2", FENCES, Some(2), 174, join_fiber),
    check("from fiber to fiber", "F1", FENCES, Some(2), 80, direct),
    check("from fiber to fiber", "F1", CORES, Some(2), 283, direct),
    check("time limit meets push", "F1", FENCES, Some(1), 10, in_time),
    check("waits through", "F1", FENCES, Some(3), 430, through),
    check("late knock", "F1", FENCES, Some(1), 14892, late_knock),
    check("end meets wait", "F1", FENCES, Some(1), 35, ends),
    check("end meets wait", "F1", CORES, Some(1), 157, ends),
    check("end meets start", "F1", FENCES, Some(1), 990, ends_at_start),
    check("end taken by two", "claim", FENCES, Some(2), 27, ends_taken),
    check("end closed by one", "claim", FENCES, Some(2), 27, end_closed),
    check("rest, all ended", "rest", FENCES, Some(1), 90, rests_ended),
    check("rest, deadlock", "rest", FENCES, Some(2), 230, rests_deadlocked),
    check("rest, suspect", "rest", FENCES, Some(0), 1, suspect),
    check("waiting, moved", "E2 F1", FENCES, Some(1), 2000, moves),
    check("waiting, moved", "E2 F1", CORES, Some(1), 10398, moves).soak(),
];
