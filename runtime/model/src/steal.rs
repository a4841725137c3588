// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of stealing (src/fork/steal.c) and of what stands on top of forks (src/fork/parallel_for.c), with the
//! runtime's own workers: no worker sleeps while a fork is public, a worker steps back while a thread
//! has its place and then comes back, what is abandoned is not touched any more, what is cancelled
//! does not begin. The deque itself is fork.rs's.

use crate::check::{Barrier, Check, all, check, spawn};
use crate::harness;
use crate::library::Library;
use crate::world::{self, FENCES, NONE, OK, World};
use std::ffi::c_void;

harness! {
    /// c/steal.c
    Calls {
        fn has_forked(m: *mut c_void, n: u32, worker: u32, at: u32);
        fn calls(nest: u32, set: u32, fail: u32);
        fn fork(n: u32);
        fn join_call(n: u32) -> u32;
        fn thread_ends();
        fn use_again(m: *mut c_void, fiber: u32);
        fn ask(n: u32);
        fn scope_begin();
        fn scope_end();
        fn scope_cancel();
        fn is_cancelled() -> u32;
        fn made(n: u32) -> u32;
        fn each(n: u32);
        fn reduce(n: u32) -> u32;
    }
}

/// What a fiber does; the numbers of c/steal.c.
#[derive(Clone, Copy)]
enum Role {
    Waits,
    Joins,
    Fails,
}
use Role::*;

impl world::Role for Role {
    fn number(self) -> u32 {
        self as u32
    }
}

/// LVD_NOWHERE
const NO_WORKER: u32 = u32::MAX;
const FIRST: u32 = 0;

/// A thread of the program, on the first core; the worker of the other core is the thief. The thread
/// waits until the thief has taken what it forks.
fn thief(library: &Library, barrier: Barrier, body: impl FnOnce(Calls, World)) {
    let own = Calls::of(library);
    let world = World::new::<Role>(library, barrier, 2, 0, NONE, &[]);
    world.c.ends_by_command(world.m);
    body(own, world);
}

fn made_elsewhere(own: Calls, world: World, n: u32) {
    let mut data = 0;
    own.fork(n);
    assert_eq!(world.c.wait(world.m, n, &mut data), OK);
    assert_eq!(data, 7 + n);
    assert_eq!(own.join_call(n), 100 + n, "the call, once");
}

/// The program's first fork, while the worker falls asleep, which knows of no forks yet.
fn first_fork(library: &Library, barrier: Barrier) {
    thief(library, barrier, |own, world| {
        own.calls(0, 1, 0);
        let works = world.begin(1);
        made_elsewhere(own, world, 0);
        world.c.stop(world.m);
        all(works);
    });
}

/// A thread forks for the first time where there is a thief, which looks while its deque is enlisted.
fn begins(library: &Library, barrier: Barrier) {
    thief(library, barrier, |own, world| {
        own.has_forked(world.m, 1, 1, 1);
        own.calls(0, 1, 0);
        let works = world.begin(1);
        made_elsewhere(own, world, 0);
        world.c.stop(world.m);
        all(works);
    });
}

/// The worker sleeps, or is about to, as one that would steal.
fn wakes(library: &Library, barrier: Barrier, forks: u32) {
    thief(library, barrier, |own, world| {
        own.has_forked(world.m, FIRST, NO_WORKER, 0);
        own.has_forked(world.m, 1, 1, 1);
        own.calls(0, 3, 0);
        let works = world.begin(1);
        for n in 0..forks {
            made_elsewhere(own, world, n);
        }
        world.c.stop(world.m);
        all(works);
    });
}
fn wakes_once(library: &Library, barrier: Barrier) {
    wakes(library, barrier, 1);
}
fn wakes_twice(library: &Library, barrier: Barrier) {
    wakes(library, barrier, 2);
}

/// A worker does not steal while a thread computes in its place; when the thread ends, it does.
fn steps_back(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = World::new::<Role>(library, barrier, 2, 1, NONE, &[]);
    let World { c, m, .. } = world;
    own.has_forked(m, FIRST, NO_WORKER, 0);
    own.has_forked(m, 1, 0, 0);
    own.has_forked(m, 2, NO_WORKER, 1);
    own.calls(0, 1, 0);
    world.watch();
    let worker = spawn(move || c.work(m, 0));
    let other = spawn(move || made_elsewhere(own, world, 0));
    own.thread_ends();
    other.join().expect("the other thread");
    c.stop(m);
    worker.join().expect("the worker");
}

/// The same, when the thread waits for a call that was taken, which has forked another and wants it
/// made elsewhere.
fn waits(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = World::new::<Role>(library, barrier, 2, 0, NONE, &[]);
    own.has_forked(world.m, FIRST, NO_WORKER, 0);
    own.has_forked(world.m, 1, 0, 0);
    own.has_forked(world.m, 2, 1, 1);
    own.calls(1, 2, 0);
    world.served(|_, _| {
        own.fork(0);
        assert_eq!(own.join_call(0), 100, "the call, once");
    });
}

/// A fiber on each of the workers' cores that forks; both have forked before.
fn forking_fiber(library: &Library, barrier: Barrier, role: Role) -> (Calls, World) {
    let own = Calls::of(library);
    let world = World::new(library, barrier, 2, 0, NONE, &[(role, 0)]);
    own.has_forked(world.m, 1, 0, 0);
    own.has_forked(world.m, 2, 1, 1);
    (own, world)
}

/// A fiber waits with a fork open, which the other worker may take meanwhile.
fn open(library: &Library, barrier: Barrier) {
    let (_, world) = forking_fiber(library, barrier, Waits);
    let world = world.served(|c, m| {
        assert_eq!(c.set(m, 1, 7), OK);
        assert_eq!(c.join(m, 0), OK);
    });
    world.ok(0);
    world.right();
}

/// A fiber waits for a call that was taken.
fn joins(library: &Library, barrier: Barrier) {
    let (_, world) = forking_fiber(library, barrier, Joins);
    let world = world.served(|c, m| assert_eq!(c.join(m, 0), OK));
    world.ok(0);
    world.right();
}

/// A fiber is abandoned with a fork open, which may be taken: its stack is used again only if no
/// thief works for it.
fn abandoned(library: &Library, barrier: Barrier) {
    let (own, world) = forking_fiber(library, barrier, Fails);
    world.served(|c, m| {
        assert_eq!(c.join(m, 0), c.status_fault());
        own.use_again(m, 0);
    });
}

/// A call that was taken is abandoned, and the join returns the status.
fn fails(library: &Library, barrier: Barrier) {
    let (own, world) = forking_fiber(library, barrier, Joins);
    own.calls(0, 0, 1);
    world.served(|c, m| assert_eq!(c.join(m, 0), c.status_fault()));
    assert_eq!(own.made(0), 1);
}

/// Cancelling takes effect: the owner does not make a call that has not begun then. `workers`: with a
/// thief, which may have taken it.
fn cancels(library: &Library, barrier: Barrier, stolen: bool) {
    let own = Calls::of(library);
    let world = World::new::<Role>(library, barrier, 2, 1, NONE, &[]);
    let World { c, m, .. } = world;
    c.ends_by_command(m);
    own.has_forked(m, FIRST, NO_WORKER, 0);
    own.has_forked(m, 1, 1, 1);
    own.scope_begin();
    let works = if stolen {
        world.begin(1)
    } else {
        world.watch();
        vec![]
    };
    let other = spawn(move || own.scope_cancel());
    own.fork(0);
    let late = own.is_cancelled() == 1 && !stolen;
    let result = own.join_call(0);
    let made = own.made(0);
    assert!(result == 100 && made == 1 || made == 0 || stolen);
    assert!(!late || made == 0, "what is cancelled does not begin");
    other.join().expect("the other thread");
    own.scope_end();
    c.stop(m);
    all(works);
}
fn cancelled(library: &Library, barrier: Barrier) {
    cancels(library, barrier, false);
}
fn cancelled_and_stolen(library: &Library, barrier: Barrier) {
    cancels(library, barrier, true);
}

/// The same while a thief asks for work: the first of two is given, the second stays the owner's.
fn cancelled_and_asked(library: &Library, barrier: Barrier) {
    let own = Calls::of(library);
    let world = World::new::<Role>(library, barrier, 2, 1, NONE, &[]);
    own.has_forked(world.m, FIRST, NO_WORKER, 0);
    own.has_forked(world.m, 1, 1, 1);
    own.scope_begin();
    own.ask(1);
    world.watch();
    let other = spawn(move || own.scope_cancel());
    own.fork(0);
    own.fork(1);
    let late = own.is_cancelled() == 1;
    for n in [1, 0] {
        own.join_call(n);
        assert!(
            !late || own.made(n) == 0,
            "what is cancelled does not begin"
        );
    }
    other.join().expect("the other thread");
    own.scope_end();
}

/// A range is gone through once, by two.
fn range(library: &Library, barrier: Barrier) {
    thief(library, barrier, |own, world| {
        own.has_forked(world.m, FIRST, NO_WORKER, 0);
        own.has_forked(world.m, 1, 1, 1);
        let works = world.begin(1);
        own.each(4);
        for n in 0..4 {
            assert_eq!(own.made(n), 1, "each once");
        }
        world.c.stop(world.m);
        all(works);
    });
}

/// The same, with a result.
fn reduces(library: &Library, barrier: Barrier) {
    thief(library, barrier, |own, world| {
        own.has_forked(world.m, FIRST, NO_WORKER, 0);
        own.has_forked(world.m, 1, 1, 1);
        let works = world.begin(1);
        assert_eq!(own.reduce(4), 15);
        world.c.stop(world.m);
        all(works);
    });
}

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("first fork", "D3", FENCES, Some(1), 2816, first_fork),
    check("begins with a thief", "D3", FENCES, Some(1), 1264, begins),
    check("fork wakes", "D3", FENCES, Some(1), 480, wakes_once),
    check("fork wakes twice", "D3", FENCES, Some(0), 160, wakes_twice),
    check("steps back, thread ends", "D3", FENCES, Some(1), 2976, steps_back),
    check("steps back, thread waits", "D3", FENCES, Some(0), 9, waits),
    check("waits with a fork open", "D1 D2", FENCES, Some(0), 4, open),
    check("waits for what is taken", "D1 D2", FENCES, Some(0), 4, joins),
    check("abandoned with a fork open", "D2", FENCES, Some(0), 4, abandoned),
    check("what is taken fails", "D2", FENCES, Some(0), 4, fails),
    check("cancelled", "cancel", FENCES, Some(2), 15, cancelled),
    check("cancelled and stolen", "cancel", FENCES, Some(0), 2, cancelled_and_stolen),
    check("cancelled and asked", "cancel", FENCES, Some(2), 167, cancelled_and_asked),
    check("range", "D1 D2", FENCES, Some(1), 325, range),
    check("reduction", "D1 D2", FENCES, Some(0), 3, reduces),
];
