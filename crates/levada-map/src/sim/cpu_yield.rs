// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Regular sched_yield calls of a simulation, since a host maps while its workers run. A thread
//! that got a core keeps it until a timer tick, for up to 4 ms, which delays a worker that wakes up
//! there.
//!
//! With many other programs each yield may cost a turn of all of them. The next burst is therefore
//! longer the longer the thread was away: about a ninth of the time, up to one tick.

use std::time::{Duration, Instant};

/// Steps between yields, about 0.2 ms.
const YIELD_STEPS: usize = 1024;
/// Time away that extends the next burst by another `YIELD_STEPS`.
const AWAY_PER_EXTRA: Duration = Duration::from_micros(1600);
/// Maximum length of a burst in multiples of `YIELD_STEPS`, about 4 ms.
const EXTRA_MAX: usize = 20;

pub(super) struct CpuYield {
    left: usize,
}

impl Default for CpuYield {
    fn default() -> CpuYield {
        CpuYield { left: YIELD_STEPS }
    }
}

impl CpuYield {
    /// To be called before each step.
    pub(super) fn before_step(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            let began = Instant::now();
            std::thread::yield_now();
            self.left = next_burst(began.elapsed());
        }
    }
}

/// Number of steps until the next yield, after `away`.
fn next_burst(away: Duration) -> usize {
    YIELD_STEPS * ((away.as_nanos() / AWAY_PER_EXTRA.as_nanos()) as usize).clamp(1, EXTRA_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_absence_extends_the_next_burst() {
        let next_burst = |ms: f64| {
            next_burst(Duration::from_secs_f64(ms / 1e3)) as f64 / YIELD_STEPS as f64 * 0.2
        };
        assert_eq!(next_burst(0.0), 0.2);
        assert_eq!(next_burst(1.5), 0.2);
        assert!((0.4..=0.6).contains(&next_burst(4.0)));
        assert!((3.5..=4.0).contains(&next_burst(30.0)));
        assert!((3.5..=4.0).contains(&next_burst(3000.0)));
    }
}
