// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of calls to a core (src/rpc/call.c): what is sent and comes back, cancelled or late; and of urgent
//! ones (src/sched/priority_worker.c).

use crate::check::{Barrier, Check, check, spawn};
use crate::harness;
use crate::library::Library;
use crate::world::{self, CORES, FENCES, NONE, OK, World};

harness! {
    /// c/call.c
    Calls {
        fn call(worker: u32, procedure: u32, v: u32, urgent: bool) -> u32;
        fn finish(timeout_ns: i64, v: u32) -> u32;
        fn returned() -> u32;
        fn cancel_call();
        fn register() -> u32;
        fn find() -> u32;
        fn find_none() -> u32;
    }
}

/// What a fiber does; the numbers of c/call.c.
#[derive(Clone, Copy)]
enum Role {
    CallsOther,
    CallsInTime,
    Waits,
    Says,
}
use Role::*;

impl world::Role for Role {
    fn number(self) -> u32 {
        self as u32
    }
}

/// Procedures, by the same.
const RETURNS: u32 = 0;
const WAITS: u32 = 1;
const SAYS: u32 = 2;

/// `workers` that run calls alone. `others`: threads of the check apart from its own.
fn callees(library: &Library, barrier: Barrier, workers: u32, others: usize) -> World {
    World::new::<Role>(library, barrier, workers, others, NONE, &[])
}

/// A thread calls, and has the result.
fn returns(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = callees(library, barrier, 1, 0).served(|_, _| {
        assert_eq!(own.call(0, RETURNS, 21, false), OK);
        assert_eq!(own.finish(-1, 21), OK);
    });
    world.right();
}

/// A fiber calls the other core.
fn from_fiber(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 2, 0, NONE, &[(CallsOther, 0)])
        .served(|c, m| assert_eq!(c.join(m, 0), OK));
    world.ok(0);
    world.right();
}

/// A call is cancelled before it arrives, begins to wait, or waits: it hears of it in any case.
fn cancel_start(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = callees(library, barrier, 1, 0).served(|c, _| {
        assert_eq!(own.call(0, WAITS, 21, false), OK);
        own.cancel_call();
        assert_eq!(own.finish(-1, 21), c.status_cancelled());
    });
    world.right();
}

/// One is cancelled that returns; the next one, of the same record, is not.
fn cancel_return(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = callees(library, barrier, 1, 1).served(|c, m| {
        assert_eq!(own.call(0, RETURNS, 21, false), OK);
        let other = spawn(move || own.cancel_call());
        assert_eq!(own.returned(), OK);
        other.join().expect("the other thread");
        assert_eq!(own.finish(-1, 21), OK);
        assert_eq!(own.call(0, WAITS, 22, false), OK);
        assert_eq!(c.set(m, 0, 7), OK);
        assert_eq!(own.finish(-1, 22), OK);
    });
    world.right();
}

/// A thread waits with a time limit, which passes while the call returns.
fn in_time(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = callees(library, barrier, 1, 1).served(|c, _| {
        assert_eq!(own.call(0, RETURNS, 21, false), OK);
        let clock = spawn(move || c.late(100));
        let mut status = own.finish(10, 21);
        if status == c.status_time() {
            own.cancel_call();
            status = own.finish(-1, 21);
        }
        assert_eq!(status, OK);
        clock.join().expect("the clock");
    });
    world.right();
}

/// A fiber waits with a time limit, which passes while a thread lets the call return; then it cancels
/// it. Either way it returns once.
fn in_time_by_fiber(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 2, 1, NONE, &[(CallsInTime, 0)]).served(|c, m| {
        let clock = spawn(move || c.late(100));
        assert_eq!(c.set(m, 0, 7), OK);
        assert_eq!(c.join(m, 0), OK);
        clock.join().expect("the clock");
    });
    let status = world.c.status(world.m, 0);
    assert!(status == OK || status == world.c.status_cancelled());
    world.right();
}

/// The first urgent call: its worker is started, and runs it. The fiber that waits for its event resumes.
fn urgent(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = World::new(library, barrier, 1, 1, NONE, &[(Waits, 0)]);
    world.c.tell(world.m);
    world.c.ends_by_command(world.m);
    let world = world.meanwhile(|c, m| {
        let urgent = spawn(move || c.thread(0));
        assert_eq!(own.call(0, SAYS, 21, true), OK);
        assert_eq!(c.join(m, 0), OK);
        assert_eq!(own.finish(-1, 21), OK);
        loom::stop_exploring();
        c.stop(m);
        urgent.join().expect("the urgent worker");
    });
    world.ok(0);
    world.right();
}

/// Two threads have the first urgent fibers: one worker is started, and runs both.
fn two_urgent(library: &Library, barrier: Barrier) {
    let world = callees(library, barrier, 1, 2);
    let World { c, m, .. } = world;
    c.ends_by_command(m);
    world.watch();
    let urgent = spawn(move || c.thread(0));
    let other = spawn(move || {
        assert_eq!(c.start_as(m, 1, Waits as u32, 0, true), OK);
        assert_eq!(c.join(m, 1), OK);
    });
    assert_eq!(c.start_as(m, 0, Says as u32, 0, true), OK);
    assert_eq!(c.join(m, 0), OK);
    other.join().expect("the other thread");
    c.stop_urgent(m);
    urgent.join().expect("the urgent worker");
    world.ok(0);
    world.ok(1);
    world.right();
}

/// A procedure is looked for by its name while it is registered.
fn registered(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = callees(library, barrier, 1, 0);
    world.watch();
    let other = spawn(move || assert!(own.find_none() == 1 || own.find() == 1));
    assert_eq!(own.register(), OK);
    other.join().expect("the other thread");
    assert_eq!(own.find(), 1);
}

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("returns", "F2", FENCES, Some(1), 262, returns),
    check("returns", "F2", CORES, Some(1), 262, returns),
    check("fiber to fiber", "F2", FENCES, Some(0), 16, from_fiber),
    check("cancel meets start", "F1", FENCES, Some(1), 288, cancel_start),
    check("cancel meets start", "F1", CORES, Some(1), 732, cancel_start),
    check("cancel meets return", "F1", FENCES, Some(0), 24, cancel_return),
    check("time limit meets return", "F1", FENCES, Some(1), 252, in_time),
    check("fiber's time limit, cancel", "F1", FENCES, Some(0), 16, in_time_by_fiber),
    check("urgent", "F1", FENCES, Some(0), 12, urgent),
    check("two urgent", "F1", FENCES, Some(0), 48, two_urgent),
    check("name, registered", "name", FENCES, None, 6, registered),
];
