// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of whole applications: loading, starting, coming to rest, pausing, moving, stopping and
//! unloading, with the runtime's own workers and reaper. What is freed is watched: a touch of it
//! afterwards fails the check.

use crate::check::{Barrier, Check, check, spawn};
use crate::harness;
use crate::library::Library;
use crate::shadow;
use std::ffi::c_void;
use std::rc::Rc;

harness! {
    /// c/app.c
    Calls {
        fn make(fenced: u32, workers: u32, net: u32) -> *mut c_void;
        fn arena() -> *mut c_void;
        fn arena_size() -> usize;
        fn threads() -> u32;
        fn thread(i: u32);
        fn start(m: *mut c_void) -> u32;
        fn stop(m: *mut c_void) -> u32;
        fn pause(m: *mut c_void) -> u32;
        fn resume(m: *mut c_void) -> u32;
        fn wait(m: *mut c_void) -> u32;
        fn ended(m: *mut c_void) -> u32;
        fn migrate(m: *mut c_void, actor: u32, worker: u32) -> u32;
        fn worker(m: *mut c_void, actor: u32) -> u32;
        fn fail(m: *mut c_void);
        fn fault(m: *mut c_void) -> u32;
        fn fault_native() -> u32;
        fn status_fault() -> u32;
        fn take(m: *mut c_void, worker: u32) -> u32;
        fn give(m: *mut c_void, worker: u32) -> u32;
        fn destroy(m: *mut c_void);
        fn count();
        fn count_if_free();
        fn counted() -> u32;
        fn runs(m: *mut c_void, actor: u32) -> u32;
        fn got(m: *mut c_void, actor: u32) -> u32;
        fn wrong(m: *mut c_void, actor: u32) -> u32;
        fn told(m: *mut c_void, actor: u32) -> u32;
        fn put(m: *mut c_void, channel: u32, v: u32) -> u32;
        fn end(m: *mut c_void, channel: u32);
        fn get(m: *mut c_void, v: *mut u32) -> u32;
        fn leave(m: *mut c_void);
        fn status_state() -> u32;
        fn status_stopped() -> u32;
        fn status_peer() -> u32;
        fn status_ended() -> u32;
    }
}

const OK: u32 = 0;

/// The networks of c/app.c.
#[derive(Clone, Copy)]
enum Net {
    /// An actor that runs once.
    Once,
    /// An actor that runs until it is asked to give way.
    Busy,
    /// The program's end, an actor.
    Sink,
    /// Twice that.
    Sinks,
    /// An actor, the program's end.
    Source,
    /// Two actors that are deadlocked unless a channel grows.
    Crossing,
}

#[derive(Clone)]
struct App {
    c: Calls,
    m: *mut c_void,
    threads: Rc<Vec<loom::thread::JoinHandle<()>>>,
}

impl App {
    /// A loaded application, on a runtime with threads that are about to begin. `others`: threads of
    /// the check apart from its first. All orders are tried from `explore` to `destroy`, and one order
    /// only before and after.
    fn new(library: &Library, barrier: Barrier, workers: u32, others: usize, net: Net) -> App {
        loom::stop_exploring();
        shadow::begin(2 + workers as usize + others, 0, barrier);
        let c = Calls::of(library);
        let m = c.make((barrier == Barrier::Fences) as u32, workers, net as u32);
        // Safety: it is static.
        unsafe { shadow::region("memory", c.arena(), c.arena_size()) };
        let threads = (0..c.threads()).map(|i| spawn(move || c.thread(i)));
        App {
            c,
            m,
            threads: Rc::new(threads.collect()),
        }
    }

    /// Unloads it, ends the runtime and its threads.
    fn destroy(self) {
        loom::stop_exploring();
        self.destroy_exploring();
    }

    fn destroy_exploring(self) {
        self.c.destroy(self.m);
        for thread in Rc::into_inner(self.threads).expect("the last owner") {
            thread.join().expect("a thread of the runtime");
        }
    }

    /// Another thread of the program.
    fn spawn<T: Send + 'static>(
        &self,
        body: impl FnOnce(Calls, *mut c_void) -> T + 'static,
    ) -> loom::thread::JoinHandle<T> {
        let (c, m) = (self.c, self.m);
        spawn(move || body(c, m))
    }

    fn explore(self) -> App {
        loom::explore();
        self
    }

    /// The same, after it was started.
    fn started(self) -> App {
        assert_eq!(self.c.start(self.m), OK, "start");
        self.explore()
    }

    fn start(&self) {
        assert_eq!(self.c.start(self.m), OK, "start");
    }

    fn wait(&self) -> u32 {
        self.c.wait(self.m)
    }

    /// The sink has got `count` elements, and learned that there are no more.
    fn sank(&self, actor: u32, count: u32) {
        assert_eq!(self.c.got(self.m, actor), count, "elements");
        assert_eq!(self.c.wrong(self.m, actor), 0, "elements that are wrong");
        assert_eq!(self.c.told(self.m, actor), 1, "the end is known");
    }
}

/// Two threads count under one lock, with a runtime that has not begun.
fn lock(library: &Library, barrier: Barrier) {
    shadow::begin(2, 0, barrier);
    let c = Calls::of(library);
    c.make(1, 1, Net::Once as u32);
    // Safety: it is static.
    unsafe { shadow::region("memory", c.arena(), c.arena_size()) };
    let other = spawn(move || c.count());
    c.count();
    other.join().expect("the other thread");
    assert_eq!(c.counted(), 2);
}

/// One counts only if the lock is free.
fn lock_tried(library: &Library, barrier: Barrier) {
    shadow::begin(2, 0, barrier);
    let c = Calls::of(library);
    c.make(1, 1, Net::Once as u32);
    // Safety: it is static.
    unsafe { shadow::region("memory", c.arena(), c.arena_size()) };
    let other = spawn(move || c.count());
    c.count_if_free();
    other.join().expect("the other thread");
    assert!((1..=2).contains(&c.counted()));
}

/// It runs, ends by itself, and is unloaded.
fn runs(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 0, Net::Once).explore();
    app.start();
    assert_eq!(app.wait(), OK);
    assert_eq!(app.c.runs(app.m, 0), 1);
    app.destroy();
}

/// It is unloaded, and the runtime ends.
fn is_destroyed(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 0, Net::Once);
    app.start();
    assert_eq!(app.wait(), OK);
    app.explore().destroy_exploring();
}

/// A thread that only polls the state sees all that was done when the state is ENDED.
fn looks(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 0, Net::Once).explore();
    app.start();
    while app.c.ended(app.m) == 0 {
        loom::thread::yield_now();
    }
    assert_eq!(app.c.runs(app.m, 0), 1);
    app.destroy();
}

/// A thread reports that it fails, and a thread that polls sees the whole report.
fn fails(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 1, Net::Sink).started();
    let other = app.spawn(|c, m| c.fail(m));
    while app.c.fault(app.m) == u32::MAX {
        loom::thread::yield_now();
    }
    assert_eq!(app.c.fault(app.m), app.c.fault_native());
    other.join().expect("the other thread");
    assert_eq!(app.wait(), app.c.status_fault());
    app.destroy();
}

/// One thread starts it, another stops it: it has not run, or has, and nothing of it runs after.
fn start_stop(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 1, Net::Once).explore();
    let other = app.spawn(|c, m| assert_eq!(c.stop(m), OK));
    let started = app.c.start(app.m);
    other.join().expect("the other thread");
    let runs = app.c.runs(app.m, 0);
    let outcome = app.wait();
    if started == OK {
        assert!(outcome == OK && runs == 1 || outcome == app.c.status_stopped() && runs <= 1);
    } else {
        assert_eq!((started, runs), (app.c.status_state(), 0));
        assert_eq!(outcome, app.c.status_stopped());
    }
    app.destroy();
}

/// Two threads stop it at the same time.
fn stop_stop(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 1, Net::Sink).started();
    let other = app.spawn(|c, m| c.stop(m));
    assert_eq!(app.c.stop(app.m), OK);
    assert_eq!(other.join().expect("the other thread"), OK);
    assert_eq!(app.wait(), app.c.status_stopped());
    app.destroy();
}

/// The program pushes and ends its end while the actor comes to rest: all of it arrives.
fn ends_at_rest(library: &Library, barrier: Barrier, count: u32) {
    let app = App::new(library, barrier, 1, 0, Net::Sink).started();
    for v in 0..count {
        assert_eq!(app.c.put(app.m, 0, 100 + v), OK);
    }
    app.c.end(app.m, 0);
    assert_eq!(app.wait(), OK);
    app.sank(0, count);
    app.destroy();
}
fn end_none(library: &Library, barrier: Barrier) {
    ends_at_rest(library, barrier, 0);
}
fn end_one(library: &Library, barrier: Barrier) {
    ends_at_rest(library, barrier, 1);
}

/// The same before the start.
fn ends_before(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 1, Net::Sink).explore();
    let other = app.spawn(|c, m| {
        assert_eq!(c.put(m, 0, 100), OK);
        c.end(m, 0);
    });
    app.start();
    other.join().expect("the other thread");
    assert_eq!(app.wait(), OK);
    app.sank(0, 1);
    app.destroy();
}

/// Two threads of the program, each with an end: whichever is the last, both are heard.
fn two_ends(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 1, Net::Sinks).started();
    let other = app.spawn(|c, m| {
        assert_eq!(c.put(m, 1, 100), OK);
        c.end(m, 1);
    });
    assert_eq!(app.c.put(app.m, 0, 100), OK);
    app.c.end(app.m, 0);
    other.join().expect("the other thread");
    assert_eq!(app.wait(), OK);
    app.sank(0, 1);
    app.sank(1, 1);
    app.destroy();
}

/// The program gets what there is, and leaves, while the actor comes to rest: it is not held up, and
/// not taken for stuck.
fn leaves(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 0, Net::Source);
    app.start();
    let mut v = 0;
    assert_eq!(app.c.get(app.m, &mut v), OK);
    assert_eq!(v, 100);
    let app = app.explore();
    app.c.leave(app.m);
    assert_eq!(app.wait(), OK);
    assert_eq!(app.c.got(app.m, 0), 2, "elements put");
    app.destroy();
}

/// It is stopped while a thread of the program pushes.
fn stop_push(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 1, Net::Sink).started();
    let other = app.spawn(|c, m| {
        for v in 0..3 {
            let status = c.put(m, 0, 100 + v);
            assert!(status == OK || status == c.status_peer());
        }
    });
    assert_eq!(app.c.stop(app.m), OK);
    other.join().expect("the other thread");
    assert_eq!(app.c.wrong(app.m, 0), 0);
    app.destroy();
}

/// It is stopped while a thread of the program waits at its end of it.
fn stop_waiting(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 1, Net::Source).started();
    let other = app.spawn(|c, m| {
        let (mut v, mut status) = (0, OK);
        while status == OK {
            status = c.get(m, &mut v);
        }
        assert!(status == c.status_stopped() || status == c.status_ended());
    });
    assert_eq!(app.c.stop(app.m), OK);
    other.join().expect("the other thread");
    app.destroy();
}

/// Nothing of it runs while it is paused (its state can be read), and what comes meanwhile is not
/// lost.
fn pause_wake(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 1, Net::Sink).started();
    let other = app.spawn(|c, m| {
        assert_eq!(c.put(m, 0, 100), OK);
        c.end(m, 0);
    });
    let paused = app.c.pause(app.m);
    if paused == OK {
        let runs = app.c.runs(app.m, 0);
        assert_eq!(app.c.runs(app.m, 0), runs);
        let resumed = app.c.resume(app.m);
        assert!(resumed == OK || resumed == app.c.status_state());
    }
    other.join().expect("the other thread");
    assert_eq!(app.wait(), OK);
    app.sank(0, 1);
    app.destroy();
}

/// An actor that would run for ever gives way to a command.
fn gives_way(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 0, Net::Busy).started();
    assert_eq!(app.c.pause(app.m), OK);
    let runs = app.c.runs(app.m, 0);
    assert!(runs <= 3);
    assert_eq!(app.c.stop(app.m), OK);
    assert_eq!(app.c.runs(app.m, 0), runs);
    app.destroy();
}

/// One that would run for ever is moved, and then stopped.
fn busy_moves(library: &Library, barrier: Barrier) {
    let app = moved(library, barrier);
    loom::stop_exploring();
    assert_eq!(app.c.stop(app.m), OK);
    app.destroy_exploring();
}
fn busy_moves_and_stops(library: &Library, barrier: Barrier) {
    let app = moved(library, barrier);
    assert_eq!(app.c.stop(app.m), OK);
    app.destroy();
}
fn moved(library: &Library, barrier: Barrier) -> App {
    let app = App::new(library, barrier, 2, 0, Net::Busy).started();
    assert_eq!(app.c.migrate(app.m, 0, 1), OK);
    while app.c.worker(app.m, 0) != 1 {
        loom::thread::yield_now();
    }
    app
}

/// A core is taken while an actor there is woken, and given back: it goes on elsewhere, and nothing is
/// lost.
fn core_taken(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 2, 0, Net::Sink);
    app.start();
    let app = app.explore();
    assert_eq!(app.c.put(app.m, 0, 100), OK);
    assert_eq!(app.c.take(app.m, 0), OK);
    loom::stop_exploring();
    assert_eq!(app.c.worker(app.m, 0), 1);
    assert_eq!(app.c.give(app.m, 0), OK);
    app.c.end(app.m, 0);
    assert_eq!(app.wait(), OK);
    app.sank(0, 1);
    app.destroy_exploring();
}

/// The first channel is full and the second one empty when both actors rest. The worker that finds
/// that exchanges the ring, and both actors see the new one, with its contents.
fn grows(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 0, Net::Crossing).started();
    assert_eq!(app.wait(), OK);
    assert_eq!(app.c.got(app.m, 0), 3, "elements put");
    assert_eq!(app.c.got(app.m, 1), 3, "elements taken");
    assert_eq!(app.c.wrong(app.m, 1), 0, "elements that are wrong");
    app.destroy();
}

/// The same, paused and resumed at any moment.
fn grows_paused(library: &Library, barrier: Barrier) {
    let app = App::new(library, barrier, 1, 0, Net::Crossing).started();
    if app.c.pause(app.m) == OK {
        let resumed = app.c.resume(app.m);
        assert!(resumed == OK || resumed == app.c.status_state());
    }
    assert_eq!(app.wait(), OK);
    assert_eq!(app.c.got(app.m, 1), 3, "elements taken");
    assert_eq!(app.c.wrong(app.m, 1), 0, "elements that are wrong");
    app.destroy();
}

const FENCES: Barrier = Barrier::Fences;
const CORES: Barrier = Barrier::Asymmetric;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("runs and ends", "end", FENCES, Some(0), 240, runs),
    check("runs and ends", "end", CORES, Some(0), 240, runs),
    check("is destroyed", "end", FENCES, Some(0), 6, is_destroyed),
    check("lock", "lock", FENCES, None, 34, lock),
    check("lock, tried", "lock", FENCES, None, 22, lock_tried),
    check("ended, seen by looking", "end", FENCES, Some(0), 256, looks),
    check("fault, seen by looking", "end", FENCES, Some(0), 96, fails),
    check("start meets stop", "end", FENCES, Some(0), 384, start_stop),
    check("stop meets stop", "end", FENCES, Some(0), 6720, stop_stop).soak(),
    check("end of nothing, at rest", "rest", FENCES, Some(0), 240, end_none),
    check("end, at rest", "rest", FENCES, Some(0), 240, end_one),
    check("end, before the start", "rest", FENCES, Some(0), 96, ends_before),
    check("two ends", "rest", FENCES, Some(0), 192, two_ends),
    check("leaves at rest", "rest", FENCES, Some(0), 200, leaves),
    check("stop meets push", "end", FENCES, Some(0), 6944, stop_push).soak(),
    check("stop meets wait", "end", FENCES, Some(0), 22400, stop_waiting).soak(),
    check("pause meets wake", "E1", FENCES, Some(0), 96, pause_wake),
    check("pause meets wake", "E1", CORES, Some(0), 800, pause_wake),
    check("gives way", "way", FENCES, Some(0), 2016, gives_way),
    check("moves, busy", "way", FENCES, Some(0), 6, busy_moves),
    check("moves, busy, and stops", "way", FENCES, Some(0), 23040, busy_moves_and_stops).soak(),
    check("a channel grows", "grow", FENCES, Some(0), 1120, grows),
    check("growth meets pause", "grow", FENCES, Some(0), 1120, grows_paused),
    check("core taken meets wake", "E1 E2", FENCES, Some(0), 69, core_taken),
];
