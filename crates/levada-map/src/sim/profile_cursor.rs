// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An actor on its way through its application's course. What it takes depends on where it is; so a rate is counted
//! over whole courses, or it would depend on where counting ends.
//!
//! What a course says of a part is a mean, and within it costs vary, too: a block with more coefficients takes longer than the
//! next. Workers whose steps take the same each time fall into step with each other, and have more done than live, or less, as
//! their channels are. So a step takes more or less than that, by chance, but the same chance in each simulation.

use crate::model::cost_profile::CostProfile;

pub struct ProfileCursor<'a> {
    profile: &'a CostProfile,
    actor: usize,
    /// Nanoseconds of a unit, in the mean, where it sits; what channels cost is not among them.
    unit: f64,
    firings: f64,
    /// What it had done, and when, as it was counted from, and as it last came to the end of a course since.
    from: (u64, f64),
    end: Option<(u64, f64)>,
    /// Firings at which the next course ends.
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

    /// Nanoseconds beyond the mean of so many firings, after those that it has done.
    pub fn beyond(&self, done: u64, firings: u64) -> f64 {
        let at = |firings: u64| firings as f64 / self.firings;
        let (from, to) = (at(done), at(done + firings));
        self.unit * self.profile.excess(self.actor, from, to)
    }

    /// What the step that begins after so many firings takes, in shares of the mean.
    pub fn scatter(&self, done: u64) -> f64 {
        // The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
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

    /// It has done so much now.
    pub fn came_to(&mut self, done: u64, now: f64) {
        if done >= self.next {
            self.end = Some((done, now));
            let profile = self.profile.units() * self.firings;
            let had = (done - self.from.0) as f64 / profile;
            self.next = self.end_after(had as u64 + 1);
        }
    }

    /// Firings at the end of so many courses.
    fn end_after(&self, courses: u64) -> u64 {
        let firings = courses as f64 * self.profile.units() * self.firings;
        self.from.0.saturating_add((firings.ceil() as u64).max(1))
    }

    /// Units a nanosecond from where it was counted from to the end of the last course; none if that was none.
    pub fn whole(&self) -> Option<f64> {
        let (done, at) = self.end?;
        let units = (done - self.from.0) as f64 / self.firings;
        Some(units / (at - self.from.1).max(1.0))
    }
}
