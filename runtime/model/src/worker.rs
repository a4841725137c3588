// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of workers, entities, settling and the wait: the runtime's own loop on two workers, with
//! one channel between a source and a sink.

use crate::check::{Barrier, Check, check, spawn};
use crate::harness;
use crate::library::{Library, Owned};
use crate::shadow;
use loom::thread::JoinHandle;
use std::ffi::c_void;
use std::rc::Rc;

harness! {
    /// c/worker.c
    Calls {
        fn status_ended() -> u32;
        fn status_fault() -> u32;
        fn status_deadlock() -> u32;
        fn make(fenced: u32, capacity: u32, count: u32, source: u32, sink: u32) -> *mut c_void;
        fn free(m: *mut c_void);
        fn size() -> usize;
        fn channel_at(m: *mut c_void) -> *mut c_void;
        fn channel_size() -> usize;
        fn ring_at(m: *mut c_void) -> *mut c_void;
        fn ring_size(m: *mut c_void) -> usize;
        fn move_sink(m: *mut c_void, to: u32);
        fn for_ever(m: *mut c_void, source_ends: u32);
        fn outside(m: *mut c_void, i: u32);
        fn got(m: *mut c_void) -> u32;
        fn wrong(m: *mut c_void) -> u32;
        fn sink_stops(m: *mut c_void);
        fn alone(m: *mut c_void);
        fn sink_refuses(m: *mut c_void);
        fn outcome(m: *mut c_void) -> u32;
        fn phase(m: *mut c_void) -> u32;
        fn wake(m: *mut c_void, i: u32);
        fn let_rest(m: *mut c_void);
        fn work(m: *mut c_void, worker: u32);
        fn put(m: *mut c_void, v: u32) -> u32;
        fn get(m: *mut c_void, v: *mut u32) -> u32;
        fn end(m: *mut c_void);
        fn keep(m: *mut c_void);
        fn stop(m: *mut c_void) -> u32;
        fn stop_late(m: *mut c_void) -> u32;
        fn is_busy(m: *mut c_void);
        fn is_stuck(m: *mut c_void);
        fn says(m: *mut c_void);
        fn await_said(m: *mut c_void);
        fn pause(m: *mut c_void) -> u32;
        fn resume(m: *mut c_void) -> u32;
        fn put_so_far(m: *mut c_void) -> u32;
    }
}

const SOURCE: u32 = 0;
const SINK: u32 = 1;
const OK: u32 = 0;
/// lvd_app_phase
const ENDING: u32 = 2;

#[derive(Clone)]
struct World(Rc<Owned<Calls>>);

impl World {
    /// A source on worker 0 and a sink on `sink`, `count` elements over a channel of `capacity`.
    fn new(
        library: &Library,
        barrier: Barrier,
        threads: usize,
        capacity: u32,
        count: u32,
        sink: u32,
    ) -> World {
        shadow::begin(threads, 0, barrier);
        let c = Calls::of(library);
        let fenced = (barrier == Barrier::Fences) as u32;
        let m = c.make(fenced, capacity, count, 0, sink);
        World(Owned::new(c, m, Calls::free))
    }

    /// From now on all of it is watched.
    fn watch(&self) {
        let Owned { c, m, .. } = *self.0;
        // Safety: they live as long as the world.
        unsafe {
            shadow::region("world", m, c.size());
            shadow::region("channel", c.channel_at(m), c.channel_size());
            shadow::region("elements", c.ring_at(m), c.ring_size(m));
        }
    }

    fn work(&self, worker: u32) {
        let Owned { c, m, .. } = *self.0;
        c.work(m, worker);
    }

    fn start(&self, worker: u32) -> JoinHandle<()> {
        let world = self.clone();
        spawn(move || world.work(worker))
    }

    fn stop<const N: usize>(&self, workers: [JoinHandle<()>; N]) {
        let Owned { c, m, .. } = *self.0;
        assert_eq!(c.stop(m) as usize, N, "workers that stop");
        for worker in workers {
            worker.join().expect("a worker");
        }
    }

    fn check(&self, count: u32) {
        let Owned { c, m, .. } = *self.0;
        assert_eq!(c.got(m), count, "elements");
        assert_eq!(c.wrong(m), 0, "elements that were not the next");
    }
}

/// Source and sink on two workers, which sleep when they have nothing to do.
fn two_workers(library: &Library, barrier: Barrier, capacity: u32, count: u32) {
    let world = World::new(library, barrier, 2, capacity, count, 1);
    let Owned { c, m, .. } = *world.0;
    world.watch();
    c.wake(m, SOURCE);
    c.wake(m, SINK);
    let second = world.start(1);
    world.work(0);
    second.join().expect("the second worker");
    world.check(count);
}
fn pipeline_one(library: &Library, barrier: Barrier) {
    two_workers(library, barrier, 1, 1);
}
fn pipeline_two(library: &Library, barrier: Barrier) {
    two_workers(library, barrier, 1, 2);
}

/// The source has the sink moved to its own worker while both work.
fn moves(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 2, 1, 2, 1);
    let Owned { c, m, .. } = *world.0;
    c.move_sink(m, 0);
    c.sink_stops(m);
    world.watch();
    c.wake(m, SOURCE);
    c.wake(m, SINK);
    let second = world.start(1);
    world.work(0);
    second.join().expect("the second worker");
    world.check(2);
}

/// The application comes to rest, not before all has arrived; then its end is noticed, and the
/// workers obey a command from outside.
fn comes_to_rest(library: &Library, barrier: Barrier, count: u32, source_ends: bool) {
    let world = World::new(library, barrier, 3, 1, count, 1);
    let Owned { c, m, .. } = *world.0;
    c.for_ever(m, source_ends as u32);
    world.watch();
    c.wake(m, SOURCE);
    c.wake(m, SINK);
    c.let_rest(m);
    let workers = [0, 1].map(|i| world.start(i));
    c.keep(m);
    assert_eq!(c.phase(m), ENDING);
    world.check(count);
    world.stop(workers);
}
fn rest_waiting(library: &Library, barrier: Barrier) {
    comes_to_rest(library, barrier, 1, false);
}
fn rest_ended(library: &Library, barrier: Barrier) {
    comes_to_rest(library, barrier, 1, true);
}
fn rest_two(library: &Library, barrier: Barrier) {
    comes_to_rest(library, barrier, 2, false);
}

/// The source waits for room that no actor will make: the application ends with that status.
fn stuck(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 3, 1, 2, 1);
    let Owned { c, m, .. } = *world.0;
    c.for_ever(m, 0);
    c.sink_refuses(m);
    world.watch();
    c.wake(m, SOURCE);
    c.wake(m, SINK);
    c.let_rest(m);
    let workers = [0, 1].map(|i| world.start(i));
    c.keep(m);
    assert_eq!(c.outcome(m), c.status_deadlock());
    world.stop(workers);
}

/// The same on one worker: its actors need no barrier among themselves; the thread that started the
/// application may be the last to leave.
fn stuck_near(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 2, 1, 2, 0);
    let Owned { c, m, .. } = *world.0;
    c.for_ever(m, 0);
    c.alone(m);
    c.sink_refuses(m);
    world.watch();
    c.wake(m, SOURCE);
    c.wake(m, SINK);
    let worker = world.start(0);
    c.let_rest(m);
    c.keep(m);
    assert_eq!(c.outcome(m), c.status_deadlock());
    world.stop([worker]);
}

/// A thread that has no part in the application wakes it while it comes to rest on one worker: it may
/// be the last to leave, and then it looks at what the worker did.
fn guest_wakes(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 2, 1, 2, 0);
    let Owned { c, m, .. } = *world.0;
    c.for_ever(m, 0);
    c.alone(m);
    world.watch();
    c.wake(m, SOURCE);
    c.wake(m, SINK);
    let worker = world.start(0);
    c.let_rest(m);
    c.wake(m, SINK);
    c.keep(m);
    assert_eq!(c.phase(m), ENDING);
    world.check(2);
    world.stop([worker]);
}

/// The program's thread puts, a worker's sink gets.
fn from_outside(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 2, 1, 2, 1);
    let Owned { c, m, .. } = *world.0;
    c.outside(m, SOURCE);
    world.watch();
    c.wake(m, SINK);
    let worker = world.start(1);
    for v in 0..2 {
        assert_eq!(c.put(m, 100 + v), OK);
    }
    worker.join().expect("the worker");
    world.check(2);
}

/// A worker's source puts, the program's thread gets, until the source ends.
fn to_outside(library: &Library, barrier: Barrier) {
    let world = World::new(library, barrier, 2, 1, 2, 1);
    let Owned { c, m, .. } = *world.0;
    c.for_ever(m, 1);
    c.outside(m, SINK);
    c.alone(m);
    world.watch();
    c.wake(m, SOURCE);
    let worker = world.start(0);
    for v in 0..2 {
        let mut got = 0;
        assert_eq!(c.get(m, &mut got), OK);
        assert_eq!(got, 100 + v, "an element's value");
    }
    let mut nothing = 0;
    assert_eq!(c.get(m, &mut nothing), c.status_ended());
    world.stop([worker]);
}

/// Both actors on the only worker, which obeys until it is told to stop.
fn alone(library: &Library, barrier: Barrier, count: u32) -> World {
    let world = World::new(library, barrier, 2, 1, count, 0);
    world.0.c.for_ever(world.0.m, 0);
    world.0.c.alone(world.0.m);
    world
}

/// A worker that is kept busy for ever obeys a command all the same.
fn busy_obeys(library: &Library, barrier: Barrier) {
    let world = alone(library, barrier, 0);
    let Owned { c, m, .. } = *world.0;
    c.is_busy(m);
    world.watch();
    c.wake(m, SOURCE);
    let worker = world.start(0);
    world.stop([worker]);
}

/// One that is stuck is told by its clock.
fn stuck_obeys(library: &Library, barrier: Barrier) {
    let world = alone(library, barrier, 0);
    let Owned { c, m, .. } = *world.0;
    c.is_stuck(m);
    world.watch();
    c.wake(m, SOURCE);
    let worker = world.start(0);
    world.stop([worker]);
}

/// A thread that polls whether a command is done, and was not woken, sees what the command did.
fn command_seen(library: &Library, barrier: Barrier) {
    let world = alone(library, barrier, 0);
    let Owned { c, m, .. } = *world.0;
    world.watch();
    let worker = world.start(0);
    assert_eq!(c.stop_late(m), 1, "workers that stop");
    worker.join().expect("the worker");
}

/// While it is paused nothing of it runs, and what it did before is seen.
fn paused(library: &Library, barrier: Barrier) {
    let world = alone(library, barrier, 1);
    let Owned { c, m, .. } = *world.0;
    world.watch();
    c.wake(m, SOURCE);
    c.wake(m, SINK);
    let worker = world.start(0);
    assert_eq!(c.pause(m), OK);
    assert!(c.put_so_far(m) <= 1, "elements");
    world.stop([worker]);
}

/// The same of one that runs: what the sink does after it has said so is over.
fn paused_running(library: &Library, barrier: Barrier) {
    let world = alone(library, barrier, 0);
    let Owned { c, m, .. } = *world.0;
    c.says(m);
    world.watch();
    c.wake(m, SINK);
    let worker = world.start(0);
    c.await_said(m);
    assert_eq!(c.pause(m), OK);
    assert_eq!(c.got(m), 1, "times that it ran");
    world.stop([worker]);
}

/// The same of one that runs until it is asked to give way.
fn paused_busy(library: &Library, barrier: Barrier) {
    let world = alone(library, barrier, 0);
    let Owned { c, m, .. } = *world.0;
    c.is_busy(m);
    world.watch();
    c.wake(m, SOURCE);
    let worker = world.start(0);
    c.await_said(m);
    assert_eq!(c.pause(m), OK);
    let times = c.put_so_far(m);
    assert_eq!(c.stop(m), 1, "workers that stop");
    assert_eq!(c.put_so_far(m), times, "times that it ran");
    worker.join().expect("the worker");
}

/// It is paused before its worker begins: that may have its sink in hand, and hold it, or not yet.
fn paused_at_first(library: &Library, barrier: Barrier) -> (World, JoinHandle<()>) {
    let world = alone(library, barrier, 0);
    let Owned { c, m, .. } = *world.0;
    c.says(m);
    world.watch();
    c.wake(m, SINK);
    assert_eq!(c.pause(m), OK);
    let worker = world.start(0);
    (world, worker)
}

/// It is resumed, paused and resumed again while its worker takes up what it has held: that runs.
fn resumed(library: &Library, barrier: Barrier) {
    let (world, worker) = paused_at_first(library, barrier);
    let Owned { c, m, .. } = *world.0;
    assert_eq!(c.resume(m), OK);
    assert_eq!(c.pause(m), OK);
    assert_eq!(c.resume(m), OK);
    c.await_said(m);
    world.stop([worker]);
}

/// What is looked at while it is paused is looked at before it goes on, also where its worker held nothing.
fn resumed_seen(library: &Library, barrier: Barrier) {
    let (world, worker) = paused_at_first(library, barrier);
    let Owned { c, m, .. } = *world.0;
    assert_eq!(c.got(m), 0, "times that it ran");
    assert_eq!(c.resume(m), OK);
    c.await_said(m);
    world.stop([worker]);
}

const FENCES: Barrier = Barrier::Fences;
const CORES: Barrier = Barrier::Asymmetric;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("one element", "E1", FENCES, Some(2), 265, pipeline_one),
    check("one element", "E1", CORES, Some(1), 337, pipeline_one),
    check("two elements", "E1", FENCES, Some(1), 668, pipeline_two),
    check("two elements", "E1", CORES, Some(1), 5544, pipeline_two),
    check("from outside", "E1 C3", FENCES, Some(1), 334, from_outside),
    check("from outside", "E1 C3", CORES, Some(1), 3062, from_outside),
    check("comes to rest", "rest", FENCES, Some(1), 1140, rest_waiting),
    check("comes to rest after two", "rest", CORES, Some(0), 16, rest_two),
    check("comes to rest, ended", "rest", FENCES, Some(1), 1724, rest_ended),
    check("stuck", "rest", FENCES, Some(1), 464, stuck),
    check("stuck on one worker", "rest", CORES, Some(2), 235, stuck_near),
    check("a guest wakes", "rest", FENCES, Some(2), 1131, guest_wakes),
    check("to outside", "E1 C3", CORES, Some(1), 25124, to_outside),
    check("sink moves", "E1 E2", FENCES, Some(0), 32, moves),
    check("busy, obeys", "way", FENCES, Some(1), 23, busy_obeys),
    check("stuck, obeys", "way", FENCES, Some(1), 25, stuck_obeys),
    check("command seen", "way", FENCES, Some(1), 81, command_seen),
    check("paused", "pause", FENCES, Some(1), 73, paused),
    check("paused", "pause", CORES, Some(1), 220, paused),
    check("paused, running", "pause", FENCES, Some(1), 48, paused_running),
    check("paused, running", "pause", CORES, Some(1), 65, paused_running),
    check("paused, busy", "pause", FENCES, Some(1), 601, paused_busy),
    check("resumed", "pause", FENCES, Some(1), 710, resumed),
    check("resumed", "pause", CORES, Some(1), 1668, resumed),
    check("resumed, seen", "pause", FENCES, Some(1), 744, resumed_seen),
    check("resumed, seen", "pause", CORES, Some(1), 1246, resumed_seen),
    check("sink moves", "E1 E2", CORES, Some(1), 16064, moves).soak(),
];
