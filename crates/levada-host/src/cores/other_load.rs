// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The load that isolated applications and other programs put on the cores, and the capacity that they leave.

use crate::context::HostContext;
use crate::context::isolated_processes::IsolatedProcesses;
use crate::util::lock::lock;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A measurement that is older than this is ignored.
const MEASUREMENT_AGE_MAX: Duration = Duration::from_secs(2);

/// A process that uses a smaller fraction of a core is ignored.
const USAGE_FRACTION_MIN: f64 = 0.05;

impl HostContext {
    /// The CPUs that are reserved. A worker that is not pinned to a CPU has none.
    pub fn reserved_cpus(&self) -> BTreeSet<i32> {
        let open = self.runtime.available_workers();
        let closed = (0..self.runtime.workers()).filter(|worker| !open.contains(worker));
        let cpus = closed.filter_map(|w| self.runtime.worker_counters(w).ok());
        cpus.map(|c| c.cpu).filter(|&cpu| cpu >= 0).collect()
    }

    pub fn isolated_processes(&self) -> Option<&dyn IsolatedProcesses> {
        self.isolated.get().map(|processes| &**processes)
    }

    /// The capacity of each worker's core that isolated applications leave.
    pub fn left_by_isolated(&self, now: bool) -> Vec<f64> {
        let mut left = vec![1.0; self.machine.workers()];
        let taken = self
            .isolated_processes()
            .map(|processes| processes.cpu_usage(now));
        let Some(taken) = taken.filter(|taken| !taken.is_empty()) else {
            return left;
        };
        for (worker, left) in left.iter_mut().enumerate() {
            let cpu = self.runtime.worker_counters(worker as u32).map(|c| c.cpu);
            if let Some(parts) = cpu.ok().and_then(|cpu| taken.get(&cpu)) {
                *left = fair_share_left(parts.clone());
            }
        }
        left
    }

    /// The capacity of each worker's core that isolated applications and other programs leave; the latter if measured
    /// recently.
    pub fn available(&self) -> Vec<f64> {
        if self.machine.workers() < 2 {
            return vec![1.0; self.machine.workers()];
        }
        let mut left = self.left_by_isolated(true);
        let seen = lock(&self.recent_available);
        if let Some((_, seen)) = seen
            .as_ref()
            .filter(|(at, _)| at.elapsed() < MEASUREMENT_AGE_MAX)
        {
            let both = left.iter_mut().zip(seen);
            both.for_each(|(left, seen)| *left = left.min(*seen));
        }
        left
    }

    /// Records the capacity that the monitor has measured.
    pub fn record_available(&self, left: Vec<f64>) {
        let mut seen = lock(&self.recent_available);
        *seen = Some((Instant::now(), left));
    }
}

/// Fraction of a core that one more CPU-bound process would get if the given processes share it max-min fairly. The
/// result is the same before and after that process has joined, so it does not migrate because of load that it caused
/// itself.
fn fair_share_left(mut parts: Vec<f64>) -> f64 {
    parts.retain(|part| *part >= USAGE_FRACTION_MIN);
    parts.sort_by(f64::total_cmp);
    let mut left = 1.0;
    for (i, part) in parts.iter().enumerate() {
        let turn = left / (parts.len() - i + 1) as f64;
        if *part >= turn {
            return turn;
        }
        left -= part;
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_core_a_turn_is_left_whoever_takes_it() {
        let left = |parts: &[f64]| (fair_share_left(parts.to_vec()) * 1000.0).round() as u32;
        for (parts, is) in [
            (&[][..], 1000),
            (&[0.01, 0.02], 1000),
            (&[0.3], 700),
            // Alone, and after another process has joined.
            (&[1.0], 500),
            (&[0.5], 500),
            (&[0.5, 0.5], 333),
            (&[0.333_4, 0.333_4], 333),
            // A process with small demand gets it.
            (&[0.9, 0.1], 450),
            (&[0.45, 0.1], 450),
            (&[0.2, 0.2], 600),
            // More than one core, as a process that is not pinned may seem to use.
            (&[2.0], 500),
        ] {
            assert_eq!(left(parts), is, "{parts:?}");
        }
    }
}
