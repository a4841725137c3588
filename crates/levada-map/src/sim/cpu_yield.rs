// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Giving way: a simulation gives its core away again and again. A host maps beside workers: let in once, a thread
//! goes on until a tick of the system's clock, for up to 4 ms, and one for idle time, too, where the worker was
//! interrupted and is not due by its share.
//!
//! Where many others compute, each of them has a turn then, before this goes on. So it keeps the core for longer, the
//! longer it was away: it has a ninth of the time, as long as that takes no more than a tick.

use std::time::{Duration, Instant};

/// After so many steps, about 0.2 ms, the core is given away.
const STEPS: usize = 1024;
/// Who was away for so long keeps the core for so many steps more.
const AWAY: Duration = Duration::from_micros(1600);
/// But not more often than that: for about 4 ms.
const MOST: usize = 20;

pub(super) struct Way {
    left: usize,
}

impl Default for Way {
    fn default() -> Way {
        Way { left: STEPS }
    }
}

impl Way {
    /// Before each step.
    pub(super) fn give(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            let began = Instant::now();
            std::thread::yield_now();
            self.left = keeps(began.elapsed());
        }
    }
}

/// For how many steps, after it was away for so long.
fn keeps(away: Duration) -> usize {
    STEPS * ((away.as_nanos() / AWAY.as_nanos()) as usize).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_away_for_long_goes_on_for_longer() {
        let keeps = |ms: f64| keeps(Duration::from_secs_f64(ms / 1e3)) as f64 / STEPS as f64 * 0.2;
        assert_eq!(keeps(0.0), 0.2);
        assert_eq!(keeps(1.5), 0.2);
        assert!((0.4..=0.6).contains(&keeps(4.0)));
        assert!((3.5..=4.0).contains(&keeps(30.0)));
        assert!((3.5..=4.0).contains(&keeps(3000.0)));
    }
}
