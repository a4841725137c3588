// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How good a placement is, by the rates that it gives.

use super::fairness;
use crate::model::machine::Machine;
use crate::model::mix::{Mix, RATE_TOLERANCE};

/// How good a placement is: promises first, those of the highest priority before all; then the mean
/// of the logarithms of the rates, so that a tenth more for one application outweighs a tenth less
/// for another, whatever their units are; but of [those that are alike](crate::search::fairness) the slowest counts for more.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// By priority, the highest first: how much of what was promised is missing.
    shortfall: Vec<f64>,
    pub mean_log_rate: f64,
}

impl Score {
    pub fn of(mix: &Mix, machine: &Machine, rates: &[f64]) -> Score {
        let fastest = machine.fastest();
        let levels = mix.priority_levels();
        let mut shortfall = vec![0.0; levels.len()];
        for (app, &rate) in mix.apps.iter().zip(rates) {
            if let (Some(promise), Some(level)) =
                (app.promise, levels.iter().position(|&l| l == app.priority))
            {
                let most = app.achievable_rate(promise, fastest);
                // The simulator is no more exact than this.
                shortfall[level] += (1.0 - RATE_TOLERANCE - (rate / most).min(1.0)).max(0.0);
            }
        }
        Score {
            shortfall,
            mean_log_rate: fairness::fair_mean_log_rate(mix, rates),
        }
    }

    #[cfg(test)]
    pub fn shortfall(&self) -> &[f64] {
        &self.shortfall
    }

    /// None has less missing.
    pub(crate) fn meets_all_reservations(&self) -> bool {
        self.shortfall
            .iter()
            .all(|shortfall| *shortfall <= SHORTFALL_TOLERANCE)
    }

    /// Better by at least so much.
    pub fn beats(&self, other: &Score, by: f64) -> bool {
        for (a, b) in self.shortfall.iter().zip(&other.shortfall) {
            if (a - b).abs() > SHORTFALL_TOLERANCE {
                return a < b;
            }
        }
        self.mean_log_rate > other.mean_log_rate + by
    }

    /// Is that beaten by none with which so much is missing at the least, of the priorities from the highest to each, and that
    /// has no larger mean than this?
    pub(crate) fn dominates(&self, shortfall: &[f64], mean_log_rate: f64) -> bool {
        let mut higher = 0.0;
        let shortfall = shortfall.iter().copied().chain(std::iter::repeat(0.0));
        for (is, least) in self.shortfall.iter().zip(shortfall) {
            // Of this priority, where of the higher ones no more is missing than here.
            let least = (least - higher).max(0.0);
            if (least - is).abs() > SHORTFALL_TOLERANCE {
                return least > *is;
            }
            higher += is + SHORTFALL_TOLERANCE;
        }
        mean_log_rate <= self.mean_log_rate
    }

    /// With as much missing as there is at the least, of the priorities from the highest to each: while channels empty, some
    /// have more than lasts.
    pub(crate) fn with_shortfall_at_least(mut self, shortfall: &[f64]) -> Score {
        let mut higher = 0.0;
        for (is, least) in self.shortfall.iter_mut().zip(shortfall) {
            *is = is.max(least - higher);
            higher += *is;
        }
        self
    }

    /// As if all rates were smaller by so much.
    pub(crate) fn penalized(mut self, by: f64) -> Score {
        self.mean_log_rate -= by;
        self
    }

    /// Among equals the first.
    pub(crate) fn or_better(self, other: Score) -> Score {
        match other.beats(&self, 0.0) {
            true => other,
            false => self,
        }
    }

    /// By at least so much in the rates, and not ahead in what was promised.
    pub(crate) fn trails(&self, other: &Score, by: f64) -> bool {
        other.beats(self, by) && other.mean_log_rate > self.mean_log_rate + by
    }
}

/// Less than this makes no difference to what is missing: the simulator is no more exact.
const SHORTFALL_TOLERANCE: f64 = RATE_TOLERANCE;

/// In order; among equals the first is the first.
pub(crate) fn sorted_best_first<T>(mut all: Vec<(Score, T)>) -> Vec<T> {
    let taken = (0..all.len()).map(|_| {
        let or_better = |best: usize, next: usize| match all[next].0.beats(&all[best].0, 0.0) {
            true => next,
            false => best,
        };
        let best = (0..all.len()).reduce(or_better).unwrap_or_default();
        all.remove(best).1
    });
    taken.collect()
}
