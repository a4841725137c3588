// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How good a placement is, by the rates that it gives.

use super::fairness;
use crate::model::machine::Machine;
use crate::model::mix::{KEPT, Mix};

/// How good a placement is: promises first, those of the highest priority before all; then the mean
/// of the logarithms of the rates, so that a tenth more for one application outweighs a tenth less
/// for another, whatever their units are; but of [those that are alike](crate::search::fairness) the slowest counts for more.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// By priority, the highest first: how much of what was promised is missing.
    missing: Vec<f64>,
    pub mean: f64,
}

impl Score {
    pub fn of(mix: &Mix, machine: &Machine, rates: &[f64]) -> Score {
        let fastest = machine.fastest();
        let levels = mix.levels();
        let mut missing = vec![0.0; levels.len()];
        for (app, &rate) in mix.apps.iter().zip(rates) {
            if let (Some(promise), Some(level)) =
                (app.promise, levels.iter().position(|&l| l == app.priority))
            {
                let most = app.within_reach(promise, fastest);
                // The simulator is no more exact than this.
                missing[level] += (1.0 - KEPT - (rate / most).min(1.0)).max(0.0);
            }
        }
        Score {
            missing,
            mean: fairness::mean(mix, rates),
        }
    }

    #[cfg(test)]
    pub fn missing(&self) -> &[f64] {
        &self.missing
    }

    /// None has less missing.
    pub(crate) fn keeps_all(&self) -> bool {
        self.missing.iter().all(|missing| *missing <= MISSING)
    }

    /// Better by at least so much.
    pub fn beats(&self, other: &Score, by: f64) -> bool {
        for (a, b) in self.missing.iter().zip(&other.missing) {
            if (a - b).abs() > MISSING {
                return a < b;
            }
        }
        self.mean > other.mean + by
    }

    /// Is that beaten by none with which so much is missing at the least, of the priorities from the highest to each, and that
    /// has no larger mean than this?
    pub(crate) fn is_out_of_reach(&self, missing: &[f64], mean: f64) -> bool {
        let mut higher = 0.0;
        let missing = missing.iter().copied().chain(std::iter::repeat(0.0));
        for (is, least) in self.missing.iter().zip(missing) {
            // Of this priority, where of the higher ones no more is missing than here.
            let least = (least - higher).max(0.0);
            if (least - is).abs() > MISSING {
                return least > *is;
            }
            higher += is + MISSING;
        }
        mean <= self.mean
    }

    /// With as much missing as there is at the least, of the priorities from the highest to each: while channels empty, some
    /// have more than lasts.
    pub(crate) fn missing_at_least(mut self, missing: &[f64]) -> Score {
        let mut higher = 0.0;
        for (is, least) in self.missing.iter_mut().zip(missing) {
            *is = is.max(least - higher);
            higher += *is;
        }
        self
    }

    /// As if all rates were smaller by so much.
    pub(crate) fn less(mut self, by: f64) -> Score {
        self.mean -= by;
        self
    }

    /// Among equals the first.
    pub(crate) fn better(self, other: Score) -> Score {
        match other.beats(&self, 0.0) {
            true => other,
            false => self,
        }
    }

    /// By at least so much in the rates, and not ahead in what was promised.
    pub(crate) fn is_behind(&self, other: &Score, by: f64) -> bool {
        other.beats(self, by) && other.mean > self.mean + by
    }
}

/// Less than this makes no difference to what is missing: the simulator is no more exact.
const MISSING: f64 = KEPT;

/// In order; among equals the first is the first.
pub(crate) fn best_first<T>(mut all: Vec<(Score, T)>) -> Vec<T> {
    let taken = (0..all.len()).map(|_| {
        let better = |best: usize, next: usize| match all[next].0.beats(&all[best].0, 0.0) {
            true => next,
            false => best,
        };
        let best = (0..all.len()).reduce(better).unwrap_or_default();
        all.remove(best).1
    });
    taken.collect()
}
