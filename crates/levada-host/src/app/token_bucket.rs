// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Token buckets for the limits of an application: its rate and its CPU quota.
//!
//! A bucket fills with time and is drained by what the application does. Debt is capped at one second of credit
//! (`DEBT_MAX_S`), except the CPU time of firings that were running when the application was paused: that is repaid in
//! full.

use crate::app::HostedApp;
use crate::util::lock::lock;
use levada_map::{RATE_BURST_S, RATE_BURST_UNITS};
use std::time::Instant;

/// Unused CPU quota is kept for this number of seconds. Unused rate is kept longer (`RATE_BURST_S`), so that an
/// application that waited for a long firing of another catches up.
const QUOTA_BURST_S: f64 = 0.05;
/// Maximum debt, in seconds of credit.
const DEBT_MAX_S: f64 = 1.0;

/// Fills at `rate` per second, up to `capacity`.
#[derive(Clone, Copy)]
pub(crate) struct TokenBucket {
    pub(crate) rate: f64,
    pub(crate) capacity: f64,
    pub(crate) level: f64,
    /// Maximum debt.
    pub(crate) debt_max: f64,
    /// CPU time used while paused has no maximum debt: it is of firings that were running when the pause was
    /// requested.
    pub(crate) debt_of_firings_unbounded: bool,
    pub(crate) used: f64,
    /// Use per second while it is not paused.
    pub(crate) drain_rate: f64,
    /// Credit that was discarded because the bucket was full.
    pub(crate) overflow: f64,
    /// Initial level; a pause fills the bucket no further.
    pub(crate) initial: f64,
}

impl TokenBucket {
    /// A bucket of units.
    pub(crate) fn of_rate(rate: f64) -> TokenBucket {
        TokenBucket {
            debt_max: (rate * DEBT_MAX_S).max(RATE_BURST_UNITS),
            ..TokenBucket::new(rate, RATE_BURST_S, RATE_BURST_UNITS)
        }
    }

    /// A bucket of core-seconds.
    pub(crate) fn of_share(share: f64) -> TokenBucket {
        TokenBucket {
            debt_max: share * DEBT_MAX_S,
            debt_of_firings_unbounded: true,
            ..TokenBucket::new(share, QUOTA_BURST_S, 0.005)
        }
    }

    /// A new version starts with at most the credit of the previous one, in seconds of this bucket's rate, or with its
    /// debt.
    pub(crate) fn limited_to_credit(mut self, left: Option<f64>) -> TokenBucket {
        self.level = self
            .level
            .min(left.map_or(f64::INFINITY, |seconds| seconds * self.rate));
        if !self.debt_of_firings_unbounded {
            self.level = self.level.max(-self.debt_max);
        }
        self
    }

    /// The same, with the drain rate of the previous version.
    pub(crate) fn with_credit(self, left: Option<Credit>) -> TokenBucket {
        TokenBucket {
            drain_rate: left.map_or(0.0, |left| left.drain_rate),
            ..self.limited_to_credit(left.map(|left| left.current_s()))
        }
    }

    /// The initial level is at most `QUOTA_BURST_S` seconds of credit.
    pub(crate) fn new(rate: f64, kept: f64, least: f64) -> TokenBucket {
        let begins = (rate * QUOTA_BURST_S).max(least);
        TokenBucket {
            rate,
            capacity: (rate * kept).max(least),
            level: begins,
            initial: begins,
            debt_max: 0.0,
            debt_of_firings_unbounded: false,
            used: 0.0,
            drain_rate: 0.0,
            overflow: 0.0,
        }
    }

    /// `used` is the total use, after `seconds` more, in which the application was paused by its limits or not.
    /// Returns whether credit is left.
    pub(crate) fn update(&mut self, seconds: f64, used: f64, held: bool) -> bool {
        if !held && seconds > 0.0 {
            // The use of an application that works in bursts is that of its recent bursts.
            self.drain_rate = ((used - self.used) / seconds).max(self.drain_rate * 0.9);
        }
        let owed = self.level;
        // A counter that restarts gives no credit back.
        self.level += self.rate * seconds - (used - self.used).max(0.0);
        self.overflow += (self.level - self.capacity).max(0.0);
        self.level = self.level.min(self.capacity);
        if !(held && self.debt_of_firings_unbounded) {
            // Existing debt is not forgiven.
            self.level = self.level.max(owed.min(-self.debt_max));
        }
        self.used = used;
        self.level > 0.0
    }

    /// The same after a pause of that many seconds: they repay debt, and fill the bucket up to the initial level at
    /// most. What was used meanwhile is of firings that were running when the pause was requested.
    pub(crate) fn update_after_pause(&mut self, seconds: f64, used: f64) -> bool {
        let (level, lost) = (self.level, self.overflow);
        self.level = level.max((level + self.rate * seconds).min(self.initial));
        self.update(0.0, used, true);
        self.overflow = lost;
        self.level > 0.0
    }

    /// Credit at this total use, in seconds of the rate.
    pub(crate) fn credit_s(&self, used: f64) -> f64 {
        (self.level - (used - self.used).max(0.0)) / self.rate
    }

    /// Seconds until credit is available.
    pub(crate) fn refill_s(&self) -> f64 {
        (-self.level / self.rate).max(0.0)
    }

    /// Seconds until the credit is used up.
    pub(crate) fn drain_s(&self) -> f64 {
        if self.drain_rate > 0.0 {
            self.level.max(0.0) / self.drain_rate
        } else {
            f64::INFINITY
        }
    }
}

/// The remaining credit of a limit: seconds' worth at a time, to which the time since is added.
#[derive(Clone, Copy)]
pub(crate) struct Credit {
    at: Instant,
    seconds: f64,
    drain_rate: f64,
}

impl Credit {
    fn current_s(&self) -> f64 {
        self.seconds + self.at.elapsed().as_secs_f64()
    }
}

/// A bucket at a time.
#[derive(Clone, Copy)]
pub(crate) struct BucketSnapshot {
    pub(crate) at: Instant,
    pub(crate) bucket: TokenBucket,
}

/// The remaining credits of an ended version's rate and quota; its successor gets no more.
pub(crate) fn credits_of(old: &HostedApp) -> [Option<Credit>; 2] {
    let (looked, before) = (
        *lock(&old.recent.buckets),
        *lock(&old.versions.inherited_credits),
    );
    [0, 1].map(|i| match looked[i] {
        Some(BucketSnapshot { at, bucket }) => Some(Credit {
            at,
            seconds: bucket.credit_s(consumed(old, i, &bucket)),
            drain_rate: bucket.drain_rate,
        }),
        // It has not started.
        None => before[i],
    })
}

/// Whether its rate bucket is empty, and the credit that this bucket has discarded until now.
pub(crate) fn rate_bucket_state(hosted: &HostedApp) -> (bool, f64) {
    let rate = lock(&hosted.recent.buckets)[0];
    rate.map_or((false, 0.0), |BucketSnapshot { bucket, .. }| {
        (bucket.level <= 0.0, bucket.overflow)
    })
}

pub(crate) fn busy_s(hosted: &HostedApp) -> f64 {
    let counters = hosted.app.counters().unwrap_or_default();
    counters.busy().as_secs_f64()
}

/// Total use of its rate (0) or of its quota (1). CPU time never decreases.
pub(crate) fn consumed(hosted: &HostedApp, which: usize, bucket: &TokenBucket) -> f64 {
    match which {
        0 => hosted.own_units(),
        _ => busy_s(hosted).max(bucket.used),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_what_it_gets_and_keeps_little() {
        let mut bucket = TokenBucket::new(100.0, QUOTA_BURST_S, 2.0);
        bucket.debt_max = 100.0;
        assert!(bucket.update(0.01, 4.0, false));
        // Drained at 400 per second: the remaining unit lasts 1/400 s.
        assert!((bucket.drain_s() - 2.0 / 400.0).abs() < 1e-9);
        assert!(!bucket.update(0.0, 10.0, false));
        assert!((bucket.refill_s() - 0.04).abs() < 1e-9);
        assert!(bucket.update(0.06, 10.0, true));
        assert_eq!(bucket.overflow, 0.0);
        // It cannot catch up for a long time without use.
        assert!(bucket.update(100.0, 10.0, true));
        assert!(bucket.overflow > 9900.0);
        assert!(!bucket.update(0.0, 15.5, false));
    }

    /// However often it is replaced, all versions together get what one gets.
    #[test]
    fn a_new_version_begins_with_what_the_old_one_has_left() {
        let mut bucket = TokenBucket::of_rate(100.0);
        assert!(bucket.update(0.01, 4.0, false));
        let left = bucket.credit_s(6.0) + 0.01;
        assert!((left - 0.01).abs() < 1e-9, "{left}");
        let level = TokenBucket::of_rate(100.0)
            .limited_to_credit(Some(left))
            .level;
        assert!((level - 1.0).abs() < 1e-9, "{level}");
        // Debt takes no longer to repay if the new rate is lower.
        let owed = bucket.credit_s(1000.0);
        for (bucket, credit_s, refill_s) in [
            (TokenBucket::of_rate(100.0), owed, DEBT_MAX_S),
            (TokenBucket::of_rate(10.0), owed, DEBT_MAX_S),
            (TokenBucket::of_share(0.1), -2.0, 2.0),
        ] {
            let limited = bucket.limited_to_credit(Some(credit_s));
            assert!((limited.refill_s() - refill_s).abs() < 1e-9);
        }
        // But not more than initially.
        let saved = bucket.credit_s(6.0) + 100.0;
        let fresh = TokenBucket::of_rate(100.0).level;
        assert_eq!(
            TokenBucket::of_rate(100.0)
                .limited_to_credit(Some(saved))
                .level,
            fresh
        );
        assert_eq!(
            TokenBucket::of_rate(100.0).limited_to_credit(None).level,
            fresh
        );
    }

    /// After enforcement started late, a minute without it, or a count in thousands: the pause is at most a second.
    #[test]
    fn debt_is_repaid_within_a_second() {
        for mut bucket in [TokenBucket::of_rate(100.0), TokenBucket::of_share(0.3)] {
            let mut used = 6000.0;
            assert!(!bucket.update(0.01, used, false));
            assert!((bucket.refill_s() - DEBT_MAX_S).abs() < 1e-9);
            for _ in 0..60 {
                used += 990.0;
                assert!(!bucket.update(1.0, used, false));
                assert!(bucket.refill_s() <= DEBT_MAX_S + 1e-9);
            }
            assert!(bucket.update(DEBT_MAX_S + 0.01, used, true));
            // The debt is forgiven once: then it gets no more than its limit.
            assert!(!bucket.update(0.0, used + bucket.rate, true));
        }
        // Use while paused makes no difference for a rate, and a counter that restarts gives no credit.
        let mut bucket = TokenBucket::of_rate(100.0);
        assert!(!bucket.update(0.01, 1e6, true));
        assert!((bucket.refill_s() - DEBT_MAX_S).abs() < 1e-9);
        assert!(!bucket.update(0.5, 0.0, true));
        assert!((bucket.refill_s() - DEBT_MAX_S + 0.5).abs() < 1e-9);
        // One unit per ten seconds is waited for, though that takes more than a second.
        let mut seldom = TokenBucket::of_rate(0.1);
        assert!(!seldom.update(0.0, 3.0, false));
        assert!((seldom.refill_s() - 10.0).abs() < 1e-9);
    }

    /// The CPU time of a firing that was running when the pause was requested is repaid in full, and once.
    #[test]
    fn a_long_firing_takes_more_than_a_share_and_is_paid_for() {
        let mut bucket = TokenBucket::of_share(0.5);
        assert!(!bucket.update(0.1, 0.1, false));
        for tenths in 2..=50 {
            assert!(!bucket.update(0.1, f64::from(tenths) * 0.1, true));
        }
        // Five seconds of one core, with a quota of half a core.
        assert!((bucket.refill_s() - 5.0).abs() < 0.1);
        // A pause and resume do not change its debt.
        assert!(!bucket.update(0.1, 5.0, false));
        assert!((bucket.refill_s() - 4.9).abs() < 0.1);
        assert!(bucket.update(5.0, 5.0, true));
    }

    /// A pause repays debt for its duration, and saves no more than the initial level.
    #[test]
    fn a_pause_pays_what_is_owed_and_saves_little() {
        let mut bucket = TokenBucket::of_rate(100.0);
        assert!(!bucket.update(0.0, 55.0, false));
        assert_eq!(bucket.level, -50.0);
        assert!(!bucket.update_after_pause(0.25, 55.0));
        assert_eq!(bucket.level, -25.0);
        // The use of firings that were running is repaid, too.
        assert!(!bucket.update_after_pause(0.0, 60.0));
        assert_eq!(bucket.level, -30.0);
        assert!(bucket.update_after_pause(100.0, 60.0));
        assert_eq!(bucket.level, bucket.initial);
        assert_eq!(bucket.overflow, 0.0);
        // Credit saved before the pause is kept.
        assert!(bucket.update(0.3, 60.0, false));
        assert!(bucket.update_after_pause(100.0, 60.0));
        assert!((bucket.level - 35.0).abs() < 1e-9);
    }
}
