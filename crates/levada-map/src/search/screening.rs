// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Of placements of many actors the one that looks best: there is time for a look at some of them, a long one each.
//!
//! What no schedule can give is [known](crate::place::bounds) without one: who may be the best, whoever goes first on its cores, is
//! looked at first, and who cannot be better than what was seen, not at all. Where rates are promised, that says little: what is
//! missing depends on how actors come to wait for each other. Then a short look at all comes first, and who looks best is looked at
//! further: half of them at the most.

use super::parallel::side_by_side;
use super::score::{Score, best_first};
use crate::model::graph::Placement;
use crate::model::machine::Machine;
use crate::model::mix::Mix;
use crate::place::bounds::Reach;
use crate::search::evaluate::Run;

/// What looks less than this better is no better.
const ALIKE: f64 = 0.005;
/// So many are looked at at once, each on a thread of its own; how many cores there are makes no difference to who wins.
const AT_ONCE: usize = 2;
/// A short look is this part of a long one.
const SHORT: usize = 8;

struct Looked<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    targets: &'a [f64],
    /// Begun when it is looked at: most are not.
    run: Option<Run<'a>>,
    /// Steps of a long look.
    long: usize,
    /// So many steps that it has gone.
    steps: usize,
    placement: Placement,
    /// By how much it has to be better than who has to be by nothing.
    by: f64,
    reach: Reach,
}

impl<'a> Looked<'a> {
    fn at_a_glance(&mut self) -> Score {
        self.look(self.long / SHORT)
    }

    fn at_length(&mut self) -> Score {
        self.look(self.long)
    }

    /// Until it has gone so many steps; what it did in the first third of these does not count.
    fn look(&mut self, steps: usize) -> Score {
        self.go_on_to(steps / 3);
        let left = steps - self.steps;
        let (score, _) = self.run().seen(left);
        self.steps = steps;
        self.judged(score)
    }

    fn judged(&self, score: Score) -> Score {
        score.less(self.by).missing_at_least(&self.reach.missing)
    }

    fn go_on_to(&mut self, steps: usize) {
        let more = steps - self.steps;
        self.run().go_on(more);
        self.steps = steps;
    }

    fn run(&mut self) -> &mut Run<'a> {
        let begin = || {
            Run::begin(
                self.mix,
                self.machine,
                &self.placement,
                self.targets,
                self.long / 3,
            )
        };
        self.run.get_or_insert_with(begin)
    }
}

/// The one that looks best in so many steps, of many actors: each has to be better by so much than one that has to be by
/// nothing.
pub(crate) fn best_looking(
    mix: &Mix,
    machine: &Machine,
    found: Vec<(Placement, f64)>,
    long: usize,
) -> Placement {
    let targets = mix.targets(machine);
    let begun = found.into_iter().map(|(placement, by)| Looked {
        mix,
        machine,
        targets: &targets,
        run: None,
        long,
        steps: 0,
        reach: Reach::of(mix, machine, &placement),
        placement,
        by,
    });
    let mut left: Vec<Looked> = begun.collect();
    let promised = mix.apps.iter().any(|a| a.promise.is_some());
    let mut looks = left.len();
    if promised {
        looks = looks.div_ceil(2);
        let mut seen = Vec::new();
        while !left.is_empty() {
            seen.extend(at_once(&mut left, |one| one.at_a_glance()));
        }
        left = best_first(seen);
    } else {
        let most = |one: &Looked| one.reach.mean - one.by;
        left.sort_by(|a, b| most(b).total_cmp(&most(a)));
    }
    let mut best: Option<(Score, Placement)> = None;
    while !left.is_empty() && looks > 0 {
        looks = looks.saturating_sub(AT_ONCE);
        for (score, one) in at_once(&mut left, |one| one.at_length()) {
            if best.as_ref().is_none_or(|(best, _)| score.beats(best, 0.0)) {
                best = Some((score, one.placement));
            }
        }
        if let Some((best, _)) = &best {
            let most = |one: &Looked| one.reach.mean - one.by - ALIKE;
            left.retain(|one| !best.is_out_of_reach(&one.reach.missing, most(one)));
        }
    }
    best.map_or_else(Vec::new, |(_, placement)| placement)
}

/// Looks at the first of these, side by side, and takes them away.
fn at_once<'a>(
    left: &mut Vec<Looked<'a>>,
    look: impl Fn(&mut Looked<'a>) -> Score + Sync,
) -> Vec<(Score, Looked<'a>)> {
    let now: Vec<Looked> = left.drain(..AT_ONCE.min(left.len())).collect();
    side_by_side(now, |mut one| (look(&mut one), one))
}
