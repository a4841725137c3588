// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evaluation of candidate placements by simulation.
//!
//! Filling channels must not count as progress, and large channels take longer to fill than can be
//! simulated. There are two measures:
//!
//! - The *quick score*: the simulation starts with short, half-full channels and reaches its steady
//!   state within milliseconds. It ignores what large channels even out and which actors they keep
//!   from starving. It is sufficient to decide whether a better placement than the current one may
//!   exist.
//! - The *steady score*: channels of full size, empty at first, simulated until the rates have
//!   settled. New mappings are chosen by it, by successive elimination: candidates that settled far
//!   behind the best one are dropped early.
//!
//! For mixes with many actors see [`crate::search::screening`].

use super::parallel::parallel_map;
use super::score::Score;
use crate::model::graph::Placement;
use crate::model::machine::Machine;
use crate::model::mix::{Actor, App, Mix};
use crate::sim::{Simulated, SteadyStateRun, WarmStart, simulate_steady_state, steady_state_steps};
use std::ops::Range;

/// Limits on the number of actors, for local search by steady scores and for comparing all
/// strategies; and the number of steps of a quick score: constant part, part per actor, and part
/// per actor in large mixes.
pub(crate) const LOCAL_SEARCH_MAX_ACTORS: usize = 512;
pub(crate) const ALL_STRATEGIES_MAX_ACTORS: usize = 4096;
const BASE_STEPS: usize = 20_000;
const STEPS_PER_ACTOR: usize = 500;
const LARGE_STEPS_PER_ACTOR: usize = 100;
/// Maximum number of steps of a quick score in a large mix.
const QUICK_STEPS_MAX: usize = 300_000;
/// Maximum number of steps if the result does not cover all applications or cost profiles.
const EVALUATION_STEPS_MAX: usize = 400_000;
/// Total steps for a mix that is too large for local search; each candidate is simulated once.
pub(crate) const LARGE_MIX_STEPS: usize = 1_000_000;
/// Before actors of a large mix are moved, it is simulated for this multiple of the quick steps.
const STEADY_STEPS_FACTOR: usize = 4;
/// A settled candidate with a mean log rate that is lower by this much is eliminated.
const ELIMINATION_GAP: f64 = 0.3;

/// An application that should have completed this number of units and completed none is starved.
const EXPECTED_UNITS_MIN: f64 = 20.0;
/// This number of firings determines a rate even within one unit.
const FIRINGS_MIN: f64 = 20.0;

/// Which rates of a simulation are reliable.
struct Confidence<'a> {
    result: &'a Simulated,
    /// The target rates, in units per second.
    targets: &'a [f64],
    /// Whether the application shares a core with one of higher priority.
    outranked: &'a [bool],
}

/// For each application, whether it shares a core with one of higher priority.
fn outranked(mix: &Mix, machine: &Machine, placement: &[u32]) -> Vec<bool> {
    let mut highest = vec![i32::MIN; machine.workers()];
    let ranges = mix.ranges();
    for (app, range) in mix.apps.iter().zip(&ranges) {
        for &core in &placement[range.clone()] {
            let highest = &mut highest[core as usize];
            *highest = app.priority.max(*highest);
        }
    }
    let apps = mix.apps.iter().zip(ranges);
    let shares = |(app, range): (&App, Range<usize>)| {
        let mut cores = placement[range].iter();
        cores.any(|&core| highest[core as usize] > app.priority)
    };
    apps.map(shares).collect()
}

impl Confidence<'_> {
    /// Whether the simulated time was sufficient for a reliable rate of this application.
    fn is_reliable(&self, app: usize) -> bool {
        let came_to_a_unit = self.result.rates[app] * self.result.seconds >= 1.0;
        self.result.firings[app] >= FIRINGS_MIN || came_to_a_unit && self.result.settled(app)
    }

    /// Whether all rates are reliable or had sufficient time, and all cost profiles were completed.
    fn is_complete(&self) -> bool {
        let had_time = |app: usize| self.targets[app] * self.result.seconds >= EXPECTED_UNITS_MIN;
        self.result.whole
            && (0..self.targets.len()).all(|app| self.is_reliable(app) || had_time(app))
    }

    /// True if the application shares a core with one of higher priority and some actor of it never
    /// fired, although it had time for many firings.
    fn starves(&self, mix: &Mix, app: usize) -> bool {
        let firings = mix.apps[app].actors.iter().map(Actor::firing);
        let longest = firings.fold(0.0, f64::max);
        self.outranked[app]
            && self.result.slowest[app] == 0.0
            && self.result.seconds * 1e9 >= FIRINGS_MIN * longest
    }

    /// If a long firing did not complete within the simulation, only an upper bound of the rate is
    /// known; this must not count against the placement.
    fn score(&self, mix: &Mix, machine: &Machine) -> Score {
        let rate = |app: usize| {
            let (rate, target) = (self.result.rates[app], self.targets[app]);
            match self.is_reliable(app) {
                _ if self.starves(mix, app) => 0.0,
                true => rate,
                false => rate.max(target.min(0.5 / self.result.seconds.max(1e-9))),
            }
        };
        let rates: Vec<f64> = (0..self.targets.len()).map(rate).collect();
        Score::of(mix, machine, &rates)
    }
}

/// The score with short channels.
pub(crate) fn quick_score(mix: &Mix, machine: &Machine, placement: &[u32]) -> Score {
    score_after(mix, machine, placement, quick_steps(mix.actors()))
}

/// The same for a given number of steps.
pub(crate) fn score_after(mix: &Mix, machine: &Machine, placement: &[u32], steps: usize) -> Score {
    let targets = mix.targets(machine);
    let mut run = Evaluation::begin(mix, machine, placement, &targets, 0);
    run.skip(steps / 3);
    run.score_until_reliable(steps - steps / 3)
}

/// The score in the steady state.
pub(crate) fn steady_score(mix: &Mix, machine: &Machine, placement: &[u32]) -> Score {
    let actors = mix.actors();
    if actors > LOCAL_SEARCH_MAX_ACTORS {
        return score_after(
            mix,
            machine,
            placement,
            STEADY_STEPS_FACTOR * quick_steps(actors),
        );
    }
    let result = simulate_steady_state(mix, machine, placement, machine.scheduling);
    Score::of(mix, machine, &result.rates)
}

/// Number of steps of a quick score.
fn quick_steps(actors: usize) -> usize {
    match actors {
        0..=LOCAL_SEARCH_MAX_ACTORS => BASE_STEPS + STEPS_PER_ACTOR * actors,
        _ => (BASE_STEPS + LARGE_STEPS_PER_ACTOR * actors).min(QUICK_STEPS_MAX),
    }
}

/// Number of steps for a part of a large mix, in proportion to its actors.
pub(crate) fn steps_of_part(actors: usize, whole: usize) -> usize {
    (LARGE_MIX_STEPS * actors / whole).max(BASE_STEPS)
}

/// An evaluation that can be continued step by step.
pub(crate) struct Evaluation<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    targets: &'a [f64],
    outranked: Vec<bool>,
    simulated: WarmStart<'a>,
    steps: usize,
}

impl<'a> Evaluation<'a> {
    /// Starts with half-full channels; or with empty ones, if `warm` steps suffice to fill them.
    pub fn begin(
        mix: &'a Mix,
        machine: &'a Machine,
        placement: &[u32],
        targets: &'a [f64],
        warm: usize,
    ) -> Evaluation<'a> {
        Evaluation {
            mix,
            machine,
            targets,
            outranked: outranked(mix, machine, placement),
            simulated: if WarmStart::fill_steps(mix) <= warm {
                WarmStart::empty(mix, machine, placement)
            } else {
                WarmStart::begin(mix, machine, placement)
            },
            steps: 0,
        }
    }

    /// Simulates steps that are not counted.
    pub fn skip(&mut self, steps: usize) {
        self.simulated.skip(steps);
        self.steps += steps;
    }

    /// The score over the next `steps` steps, or more if the result is not reliable.
    pub fn score_until_reliable(&mut self, mut steps: usize) -> Score {
        loop {
            let (score, known) = self.score_next(steps);
            if known || self.steps >= EVALUATION_STEPS_MAX {
                return score;
            }
            steps *= 2;
        }
    }

    /// The score over the next `steps` steps, and whether it is reliable.
    pub fn score_next(&mut self, steps: usize) -> (Score, bool) {
        let result = self.simulated.count_steps(steps);
        self.steps += steps;
        let known = Confidence {
            result: &result,
            targets: self.targets,
            outranked: &self.outranked,
        };
        (known.score(self.mix, self.machine), known.is_complete())
    }
}

/// The candidate with the best steady score and that score, if it is better than `than`. Candidates
/// run in parallel, in rounds. Only candidates that have settled far behind another settled one are
/// eliminated: before that, results depend on the lengths of the channels.
pub(crate) fn successive_elimination<'a>(
    mix: &'a Mix,
    machine: &'a Machine,
    found: &'a [Placement],
    than: Option<&Score>,
) -> Option<(Score, &'a Placement)> {
    let score = |result: &Simulated| Score::of(mix, machine, &result.rates);
    let begun = parallel_map(found.iter().collect(), |placement| {
        let how = machine.scheduling;
        let mut run = SteadyStateRun::begin(mix, machine, placement, how, steady_state_steps(mix));
        let result = run.quick_result();
        (score(&result), result.all_settled(), (run, placement))
    });
    let settled = begun.iter().filter(|(_, seems_settled, _)| *seems_settled);
    let seen = settled.map(|(seen, ..)| seen.clone());
    let first = seen.chain(than.cloned()).reduce(Score::or_better);
    let may_win = |seen: &Score, seems_settled: bool| match &first {
        Some(first) if seems_settled => !seen.trails(first, ELIMINATION_GAP),
        _ => true,
    };
    let racing = begun
        .into_iter()
        .filter(|(seen, seems_settled, _)| may_win(seen, *seems_settled));
    let mut racing: Vec<_> = racing.map(|(.., one)| one).collect();
    let mut ahead = than.cloned();
    let mut best = None;
    while !racing.is_empty() {
        let mut on = Vec::new();
        let results = parallel_map(racing, |(mut run, placement): (SteadyStateRun, _)| {
            (run.try_result(), run, placement)
        });
        for (result, run, placement) in results {
            let Some(result) = result else {
                on.push((run, placement));
                continue;
            };
            let score = score(&result);
            if ahead.as_ref().is_none_or(|ahead| score.beats(ahead, 0.0)) {
                (ahead, best) = (Some(score), Some(placement));
            }
        }
        racing = on;
    }
    ahead.zip(best)
}
