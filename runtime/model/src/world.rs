// SPDX-License-Identifier: Apache-2.0 OR MIT
//! World: workers with the runtime's own loop, fibers on real stacks, and threads of the program; what
//! the checks of fibers, calls and stealing have in common.

use crate::check::{Barrier, all, spawn};
use crate::harness;
use crate::library::Library;
use crate::shadow;
use loom::thread::JoinHandle;
use std::ffi::c_void;

harness! {
    /// c/world.c, c/arena.c
    Calls {
        fn make(fenced: u32, workers: u32, capacity: u32, threshold: u32, count: u32) -> *mut c_void;
        fn arena() -> *mut c_void;
        fn arena_size() -> usize;
        fn thread(i: u32);
        fn start_as(m: *mut c_void, n: u32, role: u32, worker: u32, urgent: bool) -> u32;
        fn fiber(m: *mut c_void, role: u32, worker: u32) -> u32;
        fn stays(m: *mut c_void, worker: u32, fibers: u32);
        fn ends_by_command(m: *mut c_void);
        fn places(m: *mut c_void) -> u32;
        fn place(m: *mut c_void, i: u32) -> *mut c_void;
        fn place_size() -> usize;
        fn work(m: *mut c_void, worker: u32);
        fn stop(m: *mut c_void);
        fn stop_urgent(m: *mut c_void);
        fn let_rest(m: *mut c_void);
        fn await_end(m: *mut c_void);
        fn is_open(m: *mut c_void);
        fn keep(m: *mut c_void);
        fn end_reaper(m: *mut c_void);
        fn app_wait(m: *mut c_void) -> u32;
        fn late(ns: u32);
        fn join(m: *mut c_void, fiber: u32) -> u32;
        fn cancel(m: *mut c_void, fiber: u32);
        fn set(m: *mut c_void, event: u32, data: u32) -> u32;
        fn wait(m: *mut c_void, event: u32, data: *mut u32) -> u32;
        fn tell(m: *mut c_void);
        fn told(m: *mut c_void) -> u32;
        fn got(m: *mut c_void) -> u32;
        fn wrong(m: *mut c_void) -> u32;
        fn data(m: *mut c_void) -> u32;
        fn status(m: *mut c_void, fiber: u32) -> u32;
        fn status_state() -> u32;
        fn status_ended() -> u32;
        fn status_cancelled() -> u32;
        fn status_deadlock() -> u32;
        fn status_stopped() -> u32;
        fn status_time() -> u32;
        fn status_fault() -> u32;
    }
}

pub const OK: u32 = 0;
pub const FENCES: Barrier = Barrier::Fences;
pub const CORES: Barrier = Barrier::Asymmetric;

const FIBERS: [&str; 4] = ["fiber 0", "fiber 1", "fiber 2", "fiber 3"];

/// A stream, if there is one.
#[derive(Clone, Copy)]
pub struct Stream {
    pub capacity: u32,
    pub threshold: u32,
    pub count: u32,
}

pub const NONE: Stream = stream(0, 0, 0);

pub const fn stream(capacity: u32, threshold: u32, count: u32) -> Stream {
    Stream {
        capacity,
        threshold,
        count,
    }
}

/// What a fiber does, by the number that the suite's harness gives it.
pub trait Role: Copy {
    fn number(self) -> u32;
}

#[derive(Clone, Copy)]
pub struct World {
    pub c: Calls,
    pub m: *mut c_void,
    workers: u32,
}

impl World {
    /// Fibers that are about to begin: what each does, and where. `others`: threads apart from the
    /// workers and the check's first.
    pub fn new<R: Role>(
        library: &Library,
        barrier: Barrier,
        workers: u32,
        others: usize,
        stream: Stream,
        fibers: &[(R, u32)],
    ) -> World {
        shadow::begin(1 + workers as usize + others, 0, barrier);
        let c = Calls::of(library);
        let fenced = (barrier == Barrier::Fences) as u32;
        let m = c.make(
            fenced,
            workers,
            stream.capacity,
            stream.threshold,
            stream.count,
        );
        let mut here = [0; 2];
        for (role, worker) in fibers {
            assert_eq!(c.fiber(m, role.number(), *worker), OK, "start");
            here[*worker as usize] += 1;
        }
        for worker in 0..workers {
            c.stays(m, worker, here[worker as usize]);
        }
        World { c, m, workers }
    }

    /// From now on all of it is watched.
    pub fn watch(&self) {
        let World { c, m, .. } = *self;
        // Safety: they are there as long as the library is loaded.
        unsafe {
            shadow::region("memory", c.arena(), c.arena_size());
            for i in 0..c.places(m) {
                shadow::region(FIBERS[i as usize], c.place(m, i), c.place_size());
            }
        }
    }

    /// The workers begin, each on a thread of its own, those from `first` on.
    pub fn begin(&self, first: u32) -> Vec<JoinHandle<()>> {
        let World { c, m, workers } = *self;
        self.watch();
        let works = (first..workers).map(|i| spawn(move || c.work(m, i)));
        works.collect()
    }

    /// The workers run until they end; the check's thread does something meanwhile.
    pub fn meanwhile(self, body: impl FnOnce(Calls, *mut c_void)) -> World {
        let works = self.begin(0);
        body(self.c, self.m);
        all(works);
        self
    }

    /// The same, until they are told to end.
    pub fn served(self, body: impl FnOnce(Calls, *mut c_void)) -> World {
        self.c.ends_by_command(self.m);
        self.meanwhile(|c, m| {
            body(c, m);
            c.stop(m);
        })
    }

    /// Two workers, until their fibers have ended; the first is the check's own thread: one fewer.
    pub fn alone(self) -> World {
        let works = self.begin(1);
        self.c.work(self.m, 0);
        all(works);
        self
    }

    pub fn ok(&self, fiber: u32) {
        self.says(fiber, OK);
    }
    pub fn says(&self, fiber: u32, status: u32) {
        assert_eq!(
            self.c.status(self.m, fiber),
            status,
            "what fiber {fiber} says"
        );
    }
    /// All has come, in order.
    pub fn got(&self, count: u32) {
        assert_eq!(self.c.got(self.m), count, "elements");
        self.right();
    }
    pub fn right(&self) {
        assert_eq!(self.c.wrong(self.m), 0, "what is not as it was said to be");
    }
}
