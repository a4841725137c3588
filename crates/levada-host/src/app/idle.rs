// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Idle detection.
//!
//! An application that uses next to no CPU time and waits for its input or output keeps its place when others are
//! mapped, and is not part of the mapping: its cost per unit would make the mapper move it for nothing. When it
//! becomes active it is mapped again.
//!
//! An application that waits part of the time is paced from outside (a clock, its input, the consumer of its
//! output). Its CPU usage does not grow when more cores are available, so its recent peak is its demand.

use std::time::Instant;

/// In nanoseconds of CPU time per second: below the first the application becomes idle, above the second it becomes
/// active; in between its state does not change.
const IDLE_NS_PER_S: f64 = 1e6;
const ACTIVE_NS_PER_S: f64 = 1e7;
/// An application that was ready at this number of samples in a row is starved, not idle.
const STARVED_SAMPLES: u32 = 3;
/// An application that waits at this fraction of the samples is paced from outside. The fraction is an exponential
/// mean over `MEAN_SAMPLES` samples, and is valid after a quarter of them.
const PACED_WAIT_FRACTION: f64 = 0.1;
const MEAN_SAMPLES: u32 = 16;
/// Time constant, in seconds, with which the peak usage decays: of alternating seconds of work and waiting, the work
/// counts.
const PEAK_DECAY_S: f64 = 15.0;

#[derive(Default)]
pub(crate) struct IdleDetector {
    idle: bool,
    /// The fraction of the samples at which it waited, and their number.
    wait_fraction: f64,
    samples: u32,
    /// Recent peak usage in nanoseconds per second, and its time.
    peak_ns_per_s: f64,
    peak_at: Option<Instant>,
    /// Number of samples in a row at which it did not wait.
    ready_in_a_row: u32,
}

impl IdleDetector {
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// The recent peak usage in nanoseconds per second, if the application is paced from outside; none if it was ready
    /// at each sample.
    pub fn paced_demand(&self) -> Option<f64> {
        let waits = self.samples >= MEAN_SAMPLES / 4
            && self.wait_fraction >= PACED_WAIT_FRACTION
            && self.ready_in_a_row < MEAN_SAMPLES;
        (self.idle || waits).then(|| self.decayed_peak())
    }

    fn decayed_peak(&self) -> f64 {
        let since = self.peak_at.map_or(0.0, |at| at.elapsed().as_secs_f64());
        self.peak_ns_per_s * (-since / PEAK_DECAY_S).exp()
    }

    /// `takes` is the usage in nanoseconds per second, `waits` whether all actors wait now. Returns whether the
    /// application has become active again.
    pub fn sample(&mut self, takes: f64, waits: bool) -> bool {
        self.peak_ns_per_s = takes.max(self.decayed_peak());
        self.peak_at = Some(Instant::now());
        self.samples = (self.samples + 1).min(MEAN_SAMPLES);
        self.wait_fraction +=
            (f64::from(u8::from(waits)) - self.wait_fraction) / f64::from(self.samples);
        self.ready_in_a_row = if waits { 0 } else { self.ready_in_a_row + 1 };
        let was = self.idle;
        let begins = takes > ACTIVE_NS_PER_S || self.ready_in_a_row >= STARVED_SAMPLES;
        self.idle = !begins && (was || (waits && takes < IDLE_NS_PER_S));
        was && !self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_without_work_is_idle_until_it_works() {
        let mut one = IdleDetector::default();
        assert!(!one.sample(5e8, true) && !one.is_idle());
        assert!(!one.sample(5e6, true) && !one.is_idle());
        assert!(!one.sample(0.0, false) && !one.is_idle(), "it has no turn");
        assert!(!one.sample(0.0, true) && one.is_idle());
        // Some work, which is not done yet at one sample.
        assert!(!one.sample(5e6, false) && one.is_idle());
        assert!(!one.sample(5e6, false) && one.is_idle());
        assert!(!one.sample(5e6, true) && one.is_idle());
        assert!(one.sample(2e7, true) && !one.is_idle());
        assert!(!one.sample(2e7, true) && !one.is_idle());
    }

    #[test]
    fn an_application_that_waits_at_times_is_paced_from_outside() {
        let mut one = IdleDetector::default();
        // Every application waits when it starts.
        (0..3).for_each(|_| assert!(!one.sample(1e9, true)));
        assert_eq!(one.paced_demand(), None);
        (0..60).for_each(|_| assert!(!one.sample(1e9, false)));
        assert_eq!(one.paced_demand(), None);
        // A clock lets it run in four of five milliseconds.
        (0..40).for_each(|i| assert!(!one.sample(8e8, i % 5 == 0)));
        assert!(one.paced_demand().is_some_and(|most| most > 7e8));
        // It waits for some seconds, and continues.
        (0..10).for_each(|_| assert!(!one.sample(5e6, true)));
        assert!(one.paced_demand().is_some_and(|most| most > 6e8));
        // It is always ready.
        (0..16).for_each(|_| assert!(!one.sample(5e8, false)));
        assert_eq!(one.paced_demand(), None);
    }

    #[test]
    fn a_starved_application_is_not_idle() {
        let mut one = IdleDetector::default();
        one.sample(0.0, true);
        assert!(one.is_idle());
        let begins = [false; 5].map(|waits| one.sample(0.0, waits));
        assert_eq!(begins, [false, false, true, false, false]);
        assert!(!one.is_idle());
    }
}
