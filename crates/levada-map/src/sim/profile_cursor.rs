// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The position of an actor in the cost profile of its application. Its cost depends on the
//! position, so rates are measured over whole profiles.
//!
//! The cost of a part is a mean; the steps within vary, for example with the number of coefficients
//! of a block. With constant step costs, workers would fall into lockstep and be faster or slower
//! than in reality. A pseudo-random factor per step prevents this; it is the same in each
//! simulation.

use crate::model::cost_profile::CostProfile;

pub struct ProfileCursor<'a> {
    profile: &'a CostProfile,
    actor: usize,
    /// Mean nanoseconds per unit on its core, without channel costs.
    unit: f64,
    firings: f64,
    /// Firings and time when counting started, and at the end of the last profile completed since.
    from: (u64, f64),
    end: Option<(u64, f64)>,
    /// Number of firings at which the current profile ends.
    next: u64,
}

impl ProfileCursor<'_> {
    pub fn new(profile: &CostProfile, actor: usize, unit: f64, firings: f64) -> ProfileCursor<'_> {
        let mut along = ProfileCursor {
            profile,
            actor,
            unit,
            firings,
            from: (0, 0.0),
            end: None,
            next: 0,
        };
        along.count_from(0, 0.0);
        along
    }

    /// Nanoseconds in excess of the mean for `firings` firings after the first `done`.
    pub fn beyond(&self, done: u64, firings: u64) -> f64 {
        let at = |firings: u64| firings as f64 / self.firings;
        let (from, to) = (at(done), at(done + firings));
        self.unit * self.profile.excess(self.actor, from, to)
    }

    /// The cost of the step after `done` firings, as a factor of its mean.
    pub fn scatter(&self, done: u64) -> f64 {
        // The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
        let mut bits =
            done.wrapping_add((self.actor as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let chance = (bits >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + self.profile.spread() * (2.0 * chance - 1.0)
    }

    pub fn count_from(&mut self, done: u64, now: f64) {
        self.from = (done, now);
        self.end = None;
        self.next = self.end_after(1);
    }

    /// Records that the actor has made `done` firings at the time `now`.
    pub fn came_to(&mut self, done: u64, now: f64) {
        if done >= self.next {
            self.end = Some((done, now));
            let profile = self.profile.units() * self.firings;
            let had = (done - self.from.0) as f64 / profile;
            self.next = self.end_after(had as u64 + 1);
        }
    }

    /// Number of firings at the end of this number of profiles.
    fn end_after(&self, rounds: u64) -> u64 {
        let firings = rounds as f64 * self.profile.units() * self.firings;
        self.from.0.saturating_add((firings.ceil() as u64).max(1))
    }

    /// Units per nanosecond from the start of counting to the end of the last completed profile;
    /// none if no profile was completed.
    pub fn whole(&self) -> Option<f64> {
        let (done, at) = self.end?;
        let units = (done - self.from.0) as f64 / self.firings;
        Some(units / (at - self.from.1).max(1.0))
    }
}
