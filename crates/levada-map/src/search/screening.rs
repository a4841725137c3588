// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selection among placements of many actors, with a limited number of long simulations.
//!
//! Upper bounds ([`crate::place::bounds`]) need no simulation: candidates are simulated in the
//! order of their bounds, and those with a bound that does not exceed the best score are skipped.
//! With reserved rates the bounds say little, since shortfalls depend on how actors wait for each
//! other; then all candidates are simulated briefly, and at most the better half for long.

use super::parallel::parallel_map;
use super::score::{Score, sorted_best_first};
use crate::model::graph::Placement;
use crate::model::machine::Machine;
use crate::model::mix::Mix;
use crate::place::bounds::UpperBound;
use crate::search::evaluate::Evaluation;

/// Smaller advantages (in the mean log rate) are ignored.
const ADVANTAGE_MIN: f64 = 0.005;
/// Candidates per batch, each on a thread of its own. Constant, so that the result does not depend
/// on the number of cores.
const BATCH: usize = 2;
/// Ratio of a long simulation to a short one.
const SHORT_RUN_DIVISOR: usize = 8;

struct ScreenedPlacement<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    targets: &'a [f64],
    /// Created when the candidate is first simulated; most never are.
    run: Option<Evaluation<'a>>,
    /// Number of steps of a long simulation.
    long_steps: usize,
    /// Number of steps simulated so far.
    steps: usize,
    placement: Placement,
    /// The advantage (in the mean log rate) that this candidate needs over one without a penalty.
    by: f64,
    bound: UpperBound,
}

impl<'a> ScreenedPlacement<'a> {
    fn short_run(&mut self) -> Score {
        self.score_at(self.long_steps / SHORT_RUN_DIVISOR)
    }

    fn long_run(&mut self) -> Score {
        self.score_at(self.long_steps)
    }

    /// Continues to this number of steps; the first third does not count.
    fn score_at(&mut self, steps: usize) -> Score {
        self.skip_to(steps / 3);
        let left = steps - self.steps;
        let (score, _) = self.run().score_next(left);
        self.steps = steps;
        self.adjusted(score)
    }

    fn adjusted(&self, score: Score) -> Score {
        score
            .penalized(self.by)
            .with_shortfall_at_least(&self.bound.shortfall)
    }

    fn skip_to(&mut self, steps: usize) {
        let more = steps - self.steps;
        self.run().skip(more);
        self.steps = steps;
    }

    fn run(&mut self) -> &mut Evaluation<'a> {
        let begin = || {
            Evaluation::begin(
                self.mix,
                self.machine,
                &self.placement,
                self.targets,
                self.long_steps / 3,
            )
        };
        self.run.get_or_insert_with(begin)
    }
}

/// The best candidate after `long` steps. Each comes with the advantage that it needs over one
/// without a penalty.
pub(crate) fn best_screened(
    mix: &Mix,
    machine: &Machine,
    found: Vec<(Placement, f64)>,
    long_steps: usize,
) -> Placement {
    let targets = mix.targets(machine);
    let begun = found.into_iter().map(|(placement, by)| ScreenedPlacement {
        mix,
        machine,
        targets: &targets,
        run: None,
        long_steps,
        steps: 0,
        bound: UpperBound::of(mix, machine, &placement),
        placement,
        by,
    });
    let mut left: Vec<ScreenedPlacement> = begun.collect();
    let reserved = mix.apps.iter().any(|a| a.reserved_rate.is_some());
    let mut looks = left.len();
    if reserved {
        looks = looks.div_ceil(2);
        let mut seen = Vec::new();
        while !left.is_empty() {
            seen.extend(run_batch(&mut left, |one| one.short_run()));
        }
        left = sorted_best_first(seen);
    } else {
        let most = |one: &ScreenedPlacement| one.bound.mean_log_rate - one.by;
        left.sort_by(|a, b| most(b).total_cmp(&most(a)));
    }
    let mut best: Option<(Score, Placement)> = None;
    while !left.is_empty() && looks > 0 {
        looks = looks.saturating_sub(BATCH);
        for (score, one) in run_batch(&mut left, |one| one.long_run()) {
            if best.as_ref().is_none_or(|(best, _)| score.beats(best, 0.0)) {
                best = Some((score, one.placement));
            }
        }
        if let Some((best, _)) = &best {
            let most = |one: &ScreenedPlacement| one.bound.mean_log_rate - one.by - ADVANTAGE_MIN;
            left.retain(|one| !best.dominates(&one.bound.shortfall, most(one)));
        }
    }
    best.map_or_else(Vec::new, |(_, placement)| placement)
}

/// Simulates the next batch in parallel and removes it from the list.
fn run_batch<'a>(
    left: &mut Vec<ScreenedPlacement<'a>>,
    look: impl Fn(&mut ScreenedPlacement<'a>) -> Score + Sync,
) -> Vec<(Score, ScreenedPlacement<'a>)> {
    let now: Vec<ScreenedPlacement> = left.drain(..BATCH.min(left.len())).collect();
    parallel_map(now, |mut one| (look(&mut one), one))
}
