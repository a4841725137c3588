// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One check: a small program of two to four threads on the C under test, run under loom in every
//! order of its operations that the C17 memory model allows (or every order with at most `bound`
//! preemptions).

use crate::library::Library;
use crate::shadow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The form of the light and heavy barriers with which a thread goes to sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// Both are seq_cst fences.
    Fences,
    /// A compiler barrier, and a barrier on all cores.
    Asymmetric,
}

/// The body of a check: one execution. It runs as thread 0 and spawns the others.
pub type Body = fn(&Library, Barrier);

pub struct Check {
    pub name: &'static str,
    /// The guarantees of the header that it shows.
    pub shows: &'static str,
    pub barrier: Barrier,
    /// Most preemptions of the orders that are tried; none: all orders.
    pub bound: Option<usize>,
    /// The executions there are at least. Fewer mean that the protocol changed, or that the
    /// exploration was cut short.
    pub executions: u64,
    pub body: Body,
    /// Too long for every commit.
    pub soak: bool,
    /// Explored once for each store at which its thread that dies can end (`death`); `executions` are
    /// those of all.
    pub deaths: bool,
}

impl Check {
    /// Too long for every commit.
    pub const fn soak(mut self) -> Check {
        self.soak = true;
        self
    }

    /// A death at any store.
    pub const fn deaths(mut self) -> Check {
        self.deaths = true;
        self
    }
}

/// name, what it shows, barrier, bound, executions, body
pub const fn check(
    name: &'static str,
    shows: &'static str,
    barrier: Barrier,
    bound: Option<usize>,
    executions: u64,
    body: Body,
) -> Check {
    Check {
        name,
        shows,
        barrier,
        bound,
        executions,
        body,
        soak: false,
        deaths: false,
    }
}

/// How a check can fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Two accesses, one of them a write, neither before the other.
    Race,
    /// All threads sleep, or wait for one that does: a lost wake-up.
    Asleep,
    /// An assertion of the check: a wrong value.
    Value,
    /// A loop waits for what never comes.
    Endless,
    /// Not explored to the end: it proves nothing.
    Unfinished,
}

impl Way {
    fn of(message: &str) -> Way {
        if message.contains("Causality violation") {
            Way::Race
        } else if message.contains("deadlock") {
            Way::Asleep
        } else if message.contains("exceeded maximum number") {
            Way::Endless
        } else if message.contains(UNFINISHED) {
            Way::Unfinished
        } else {
            Way::Value
        }
    }
}

const UNFINISHED: &str = "more executions than";

pub struct Failure {
    pub way: Way,
    pub message: String,
    /// What happened in the execution that failed.
    pub trace: String,
}

pub struct Outcome {
    pub executions: u64,
    pub time: Duration,
    pub failure: Option<Failure>,
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static DEATH: Cell<usize> = const { Cell::new(0) };
    static DIED: Cell<bool> = const { Cell::new(false) };
}

/// The store at which the thread that dies does so, in a check of all deaths.
pub fn death() -> usize {
    DEATH.get()
}

/// Is this thread inside a check? Then a panic is a finding, and is not printed.
pub fn inside() -> bool {
    INSIDE.get()
}

/// Runs a check on a library. Stops with a failure after `limit` executions.
pub fn run(check: &Check, library: &Arc<Library>, limit: u64) -> Outcome {
    let start = Instant::now();
    let (mut executions, mut at) = (0, 0);
    loop {
        DEATH.set(at);
        DIED.set(false);
        let mut outcome = explore(check, library, limit - executions);
        executions += outcome.executions;
        if check.deaths
            && let Some(failure) = &mut outcome.failure
        {
            failure.message = format!("a death at store {at}: {}", failure.message);
        }
        // The thread has not died: it makes no more stores than that.
        if outcome.failure.is_some() || !check.deaths || !DIED.get() {
            return Outcome {
                executions,
                time: start.elapsed(),
                failure: outcome.failure,
            };
        }
        at += 1;
    }
}

fn explore(check: &Check, library: &Arc<Library>, limit: u64) -> Outcome {
    shadow::forget();
    let start = Instant::now();
    // Each round that meets words of shared memory which were not known starts over.
    for _ in 0..1000 {
        let count = Arc::new(AtomicU64::new(0));
        let (body, barrier) = (check.body, check.barrier);
        let (counter, lib) = (count.clone(), library.clone());
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = check.bound;
        builder.max_branches = 5_000;
        builder.max_duration = None;
        builder.max_permutations = None;
        INSIDE.set(true);
        let result = catch_unwind(AssertUnwindSafe(|| {
            builder.check(move || {
                let n = counter.fetch_add(1, Ordering::Relaxed);
                assert!(n < limit, "{UNFINISHED} {limit}");
                shadow::globals(lib.globals());
                body(&lib, barrier);
                assert!(!shadow::news(), "words that were not known");
            })
        }));
        INSIDE.set(false);
        if result.is_err() && shadow::news() {
            continue;
        }
        let failure = result.err().map(|e| {
            let message = e
                .downcast_ref::<String>()
                .cloned()
                .or(e.downcast_ref::<&str>().map(|s| s.to_string()))
                .unwrap_or_else(|| "a panic".to_string());
            Failure {
                way: Way::of(&message),
                message,
                trace: shadow::trace(),
            }
        });
        return Outcome {
            executions: count.load(Ordering::Relaxed),
            time: start.elapsed(),
            failure,
        };
    }
    panic!("{}: the words of shared memory change for ever", check.name);
}

/// Spawns a thread of a check.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + 'static) -> loom::thread::JoinHandle<T> {
    struct Coroutine<F>(F);
    // Safety: the threads of an execution are coroutines of one thread.
    unsafe impl<F> Send for Coroutine<F> {}
    impl<F: FnOnce() -> T, T> Coroutine<F> {
        fn run(self) -> T {
            (self.0)()
        }
    }
    let body = Coroutine(body);
    let thread = loom::thread::Builder::new()
        .stack_size(0x4000)
        .spawn(move || body.run())
        .expect("a thread");
    shadow::has_spawned(thread.thread().id());
    thread
}

/// Waits until threads have ended.
pub fn all<T>(threads: impl IntoIterator<Item = loom::thread::JoinHandle<T>>) -> Vec<T> {
    let ends = threads.into_iter().map(|t| t.join().expect("a thread"));
    ends.collect()
}

/// Runs what may be killed: none if it died.
pub fn mortal<T>(body: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => Some(value),
        Err(e) if e.is::<shadow::Died>() => {
            DIED.set(true);
            None
        }
        Err(e) => std::panic::resume_unwind(e),
    }
}
