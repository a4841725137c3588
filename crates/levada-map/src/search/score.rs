// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The score of a placement, from its rates.

use super::fairness;
use crate::model::machine::Machine;
use crate::model::mix::{Mix, RATE_TOLERANCE};

/// The score of a placement. Reserved rates come first, by priority; then the mean of the log
/// rates, so that 10 % more for one application outweighs 10 % less for another whatever their
/// units are. Identical applications are weighed by `search::fairness`.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Per priority level, highest first: the total shortfall of reserved rates, as fractions of
    /// them.
    shortfall: Vec<f64>,
    pub mean_log_rate: f64,
}

impl Score {
    pub fn of(mix: &Mix, machine: &Machine, rates: &[f64]) -> Score {
        let fastest = machine.fastest();
        let levels = mix.priority_levels();
        let mut shortfall = vec![0.0; levels.len()];
        for (app, &rate) in mix.apps.iter().zip(rates) {
            if let (Some(reserved_rate), Some(level)) = (
                app.reserved_rate,
                levels.iter().position(|&l| l == app.priority),
            ) {
                let most = app.achievable_rate(reserved_rate, fastest);
                // The simulator is not more accurate.
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

    /// No reserved rate is missed.
    pub(crate) fn meets_all_reservations(&self) -> bool {
        self.shortfall
            .iter()
            .all(|shortfall| *shortfall <= SHORTFALL_TOLERANCE)
    }

    /// Better by at least `by`.
    pub fn beats(&self, other: &Score, by: f64) -> bool {
        for (a, b) in self.shortfall.iter().zip(&other.shortfall) {
            if (a - b).abs() > SHORTFALL_TOLERANCE {
                return a < b;
            }
        }
        self.mean_log_rate > other.mean_log_rate + by
    }

    /// Whether no placement within these bounds beats this score: at least this shortfall,
    /// cumulated over the levels from the highest to each, and at most this mean log rate.
    pub(crate) fn dominates(&self, shortfall: &[f64], mean_log_rate: f64) -> bool {
        let mut higher = 0.0;
        let shortfall = shortfall.iter().copied().chain(std::iter::repeat(0.0));
        for (is, least) in self.shortfall.iter().zip(shortfall) {
            // The minimum at this level if the higher levels miss no more than this score does.
            let least = (least - higher).max(0.0);
            if (least - is).abs() > SHORTFALL_TOLERANCE {
                return least > *is;
            }
            higher += is + SHORTFALL_TOLERANCE;
        }
        mean_log_rate <= self.mean_log_rate
    }

    /// Raises the shortfall to a lower bound, cumulated over the levels: while channels drain,
    /// rates are higher than in the steady state.
    pub(crate) fn with_shortfall_at_least(mut self, shortfall: &[f64]) -> Score {
        let mut higher = 0.0;
        for (is, least) in self.shortfall.iter_mut().zip(shortfall) {
            *is = is.max(least - higher);
            higher += *is;
        }
        self
    }

    /// The score with all rates lower by this logarithm.
    pub(crate) fn penalized(mut self, by: f64) -> Score {
        self.mean_log_rate -= by;
        self
    }

    /// The better score; the first if they are equal.
    pub(crate) fn or_better(self, other: Score) -> Score {
        if other.beats(&self, 0.0) { other } else { self }
    }

    /// Whether `other` is better, and by more than `by` in the mean log rate.
    pub(crate) fn trails(&self, other: &Score, by: f64) -> bool {
        other.beats(self, by) && other.mean_log_rate > self.mean_log_rate + by
    }
}

/// Differences in shortfall below this are ignored: the simulator is not more accurate.
const SHORTFALL_TOLERANCE: f64 = RATE_TOLERANCE;

/// In descending order; equal scores keep their order.
pub(crate) fn sorted_best_first<T>(mut all: Vec<(Score, T)>) -> Vec<T> {
    let taken = (0..all.len()).map(|_| {
        let or_better = |best: usize, next: usize| {
            if all[next].0.beats(&all[best].0, 0.0) {
                next
            } else {
                best
            }
        };
        let best = (0..all.len()).reduce(or_better).unwrap_or_default();
        all.remove(best).1
    });
    taken.collect()
}
