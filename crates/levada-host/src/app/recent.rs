// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What was seen of an application lately, from look to look.

use crate::app::idle::Resting;
use crate::app::token_bucket::Looked;
use levada_map::Graph;
use levada_sys::Counters;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::Instant;

/// For so many seconds after its start.
pub(crate) const BEGINS: f64 = 1.0;

#[derive(Default)]
pub(crate) struct Lately {
    /// What all of it had computed when it was looked at last.
    pub busy_ns: AtomicU64,
    /// What it does in a second.
    pub rate: Mutex<Option<Graph>>,
    /// The part of each core that its fibers take: of a C program, all that it computes there.
    pub fibers: Mutex<Vec<f64>>,
    /// Whether it has nothing to do.
    pub resting: Mutex<Resting>,
    /// Its rate and its share, as they were when they were looked at.
    pub limits: Mutex<[Option<Looked>; 2]>,
    /// The thread that looks after these.
    pub keeper: OnceLock<Thread>,
    /// Units a second, where it is promised some.
    pub pace: Mutex<Option<f64>>,
    /// It had less than it is promised when that was last judged, and did not wait for its input or for who takes its
    /// output.
    pub is_late: AtomicBool,
    /// How often that began.
    pub late: AtomicU64,
    pub moves: AtomicUsize,
    /// When one of its actors was moved last, and what it had done until then.
    pub moved: Mutex<Option<(Instant, f64)>>,
}

impl Lately {
    /// It has been looked at.
    pub fn saw(&self, counters: &Counters) {
        let busy = counters.busy().as_nanos() as u64;
        self.busy_ns.store(busy, Ordering::Relaxed);
    }
}
