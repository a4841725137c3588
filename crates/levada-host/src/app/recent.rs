// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recent measurements of an application, updated at each sample of the monitor.

use crate::app::idle::IdleDetector;
use crate::app::token_bucket::BucketSnapshot;
use levada_map::Graph;
use levada_sys::Counters;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::Instant;

/// An application counts as starting for this number of seconds.
pub(crate) const STARTUP_S: f64 = 1.0;

#[derive(Default)]
pub(crate) struct RecentStats {
    /// Total CPU time of its actors at the last sample.
    pub busy_ns: AtomicU64,
    /// CPU time and traffic per second.
    pub load: Mutex<Option<Graph>>,
    /// Fraction of each core that its fibers use; for a C program, all its usage.
    pub fiber_load: Mutex<Vec<f64>>,
    /// Idle detection.
    pub idle: Mutex<IdleDetector>,
    /// The token buckets of its rate and its CPU quota at their last update.
    pub buckets: Mutex<[Option<BucketSnapshot>; 2]>,
    /// The enforcement thread.
    pub enforcer: OnceLock<Thread>,
    /// Measured rate in units per second, if a rate is reserved.
    pub measured_rate: Mutex<Option<f64>>,
    /// The last check found the measured rate below the reserved rate, while the application did not wait for its
    /// input or output.
    pub rate_missed: AtomicBool,
    /// Number of times that this began.
    pub rate_miss_count: AtomicU64,
    pub moves: AtomicUsize,
    /// Time of the last move of an actor, and the units done until then.
    pub last_move: Mutex<Option<(Instant, f64)>>,
}

impl RecentStats {
    /// Records a sample.
    pub fn record_busy(&self, counters: &Counters) {
        let busy = counters.busy().as_nanos() as u64;
        self.busy_ns.store(busy, Ordering::Relaxed);
    }
}
