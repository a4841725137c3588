// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Of placements of many actors the one that looks best: there is time for a look at some of them, a long one each.
//!
//! What no schedule can give is [known](crate::place::bounds) without one: who may be the best, whoever goes first on its cores, is
//! looked at first, and who cannot be better than what was seen, not at all. Where rates are promised, that says little: what is
//! missing depends on how actors come to wait for each other. Then a short look at all comes first, and who looks best is looked at
//! further: half of them at the most.

use super::parallel::parallel_map;
use super::score::{Score, sorted_best_first};
use crate::model::graph::Placement;
use crate::model::machine::Machine;
use crate::model::mix::Mix;
use crate::place::bounds::UpperBound;
use crate::search::evaluate::Evaluation;

/// What looks less than this better is no better.
const ADVANTAGE_MIN: f64 = 0.005;
/// So many are looked at at once, each on a thread of its own; how many cores there are makes no difference to who wins.
const BATCH: usize = 2;
/// A short look is this part of a long one.
const SHORT_RUN_DIVISOR: usize = 8;

struct ScreenedPlacement<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    targets: &'a [f64],
    /// Begun when it is looked at: most are not.
    run: Option<Evaluation<'a>>,
    /// Steps of a long look.
    long_steps: usize,
    /// So many steps that it has gone.
    steps: usize,
    placement: Placement,
    /// By how much it has to be better than who has to be by nothing.
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

    /// Until it has gone so many steps; what it did in the first third of these does not count.
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

/// The one that looks best in so many steps, of many actors: each has to be better by so much than one that has to be by
/// nothing.
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
    let promised = mix.apps.iter().any(|a| a.promise.is_some());
    let mut looks = left.len();
    if promised {
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

/// Looks at the first of these, side by side, and takes them away.
fn run_batch<'a>(
    left: &mut Vec<ScreenedPlacement<'a>>,
    look: impl Fn(&mut ScreenedPlacement<'a>) -> Score + Sync,
) -> Vec<(Score, ScreenedPlacement<'a>)> {
    let now: Vec<ScreenedPlacement> = left.drain(..BATCH.min(left.len())).collect();
    parallel_map(now, |mut one| (look(&mut one), one))
}
