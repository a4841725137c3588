// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Giving way: a simulation gives its core away again and again. A host maps beside workers: let in once, a thread
//! goes on until a tick of the system's clock, for up to 4 ms, and one for idle time, too, where the worker was
//! interrupted and is not due by its share.
//!
//! Where many others compute, each of them has a turn then, before this goes on. So it keeps the core for longer, the
//! longer it was away: it has a ninth of the time, as long as that takes no more than a tick.

use std::time::{Duration, Instant};

/// After so many steps, about 0.2 ms, the core is given away.
const YIELD_STEPS: usize = 1024;
/// Who was away for so long keeps the core for so many steps more.
const AWAY_PER_EXTRA: Duration = Duration::from_micros(1600);
/// But not more often than that: for about 4 ms.
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
    /// Before each step.
    pub(super) fn before_step(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            let began = Instant::now();
            std::thread::yield_now();
            self.left = next_burst(began.elapsed());
        }
    }
}

/// For how many steps, after it was away for so long.
fn next_burst(away: Duration) -> usize {
    YIELD_STEPS * ((away.as_nanos() / AWAY_PER_EXTRA.as_nanos()) as usize).clamp(1, EXTRA_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_away_for_long_goes_on_for_longer() {
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
