// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who computes for this host in processes of their own: what it has to know of them where it gives cores away, and
//! where it places what computes here.

use crate::context::Shared;
use crate::context::isolated_processes::Beside;
use crate::util::lock::lock;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What was seen of others for longer than this ago is not so any more.
const LATELY: Duration = Duration::from_secs(2);

/// Who takes less of a core than this takes nothing of it.
const NOTHING: f64 = 0.05;

impl Shared {
    /// The cores that are not for all. A worker that has no core of its own is nowhere.
    pub fn closed(&self) -> BTreeSet<i32> {
        let open = self.runtime.open();
        let closed = (0..self.runtime.workers()).filter(|worker| !open.contains(worker));
        let cpus = closed.filter_map(|w| self.runtime.worker_counters(w).ok());
        cpus.map(|c| c.cpu).filter(|&cpu| cpu >= 0).collect()
    }

    pub fn beside(&self) -> Option<&dyn Beside> {
        self.beside.get().map(|beside| &**beside)
    }

    /// What those leave of each worker's core for what computes here.
    pub fn left_beside(&self, now: bool) -> Vec<f64> {
        let mut left = vec![1.0; self.machine.workers()];
        let taken = self.beside().map(|beside| beside.taken(now));
        let Some(taken) = taken.filter(|taken| !taken.is_empty()) else {
            return left;
        };
        for (worker, left) in left.iter_mut().enumerate() {
            let cpu = self.runtime.worker_counters(worker as u32).map(|c| c.cpu);
            if let Some(parts) = cpu.ok().and_then(|cpu| taken.get(&cpu)) {
                *left = left_by(parts.clone());
            }
        }
        left
    }

    /// What they, and other programs, as far as those were felt lately, leave of each worker's core.
    pub fn left(&self) -> Vec<f64> {
        if self.machine.workers() < 2 {
            return vec![1.0; self.machine.workers()];
        }
        let mut left = self.left_beside(true);
        let seen = lock(&self.left_lately);
        if let Some((_, seen)) = seen.as_ref().filter(|(at, _)| at.elapsed() < LATELY) {
            let both = left.iter_mut().zip(seen);
            both.for_each(|(left, seen)| *left = left.min(*seen));
        }
        left
    }

    /// Remembers what was seen of all of them where something runs.
    pub fn see_left(&self, left: Vec<f64>) {
        let mut seen = lock(&self.left_lately);
        *seen = Some((Instant::now(), left));
    }
}

/// What those who take these parts of a core leave of it for one more, who could use it all. They take turns, so of two
/// who want more neither has less than the other. It is the same whether or not that one is there already: who had all
/// before, and yields half of it, says no more and no less then. So nobody goes there and comes back for what he
/// has brought about himself.
fn left_by(mut parts: Vec<f64>) -> f64 {
    parts.retain(|part| *part >= NOTHING);
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
        let left = |parts: &[f64]| (left_by(parts.to_vec()) * 1000.0).round() as u32;
        for (parts, is) in [
            (&[][..], 1000),
            (&[0.01, 0.02], 1000),
            (&[0.3], 700),
            // Alone, and when somebody has come.
            (&[1.0], 500),
            (&[0.5], 500),
            (&[0.5, 0.5], 333),
            (&[0.333_4, 0.333_4], 333),
            // Who wants little has that.
            (&[0.9, 0.1], 450),
            (&[0.45, 0.1], 450),
            (&[0.2, 0.2], 600),
            // More than there is, as who is not pinned may seem to take.
            (&[2.0], 500),
        ] {
            assert_eq!(left(parts), is, "{parts:?}");
        }
    }
}
