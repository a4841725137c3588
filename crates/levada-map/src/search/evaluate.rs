// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The judge: which of some placements is the best, by what the simulator says of them.
//!
//! What fills channels would count as done, in one placement more than in another, and large ones take longer to fill than
//! can be simulated. So a run is begun in its midst, with channels that are half full, and
//!
//! - at a *glance* channels are short: after some milliseconds it goes as it would after a minute, but for what channels even
//!   out, and for whom they keep from starving. That tells most good placements from bad ones: enough to see whether there may
//!   be a better one than that in force.
//! - The *verdict* is that of the channels as they are, empty at first, until all has settled. Of what is mapped anew each
//!   candidate has one, unless it has settled far behind before that: they *race*.
//! - Of many actors who [looks best](crate::search::screening) for some longer time is taken.

use super::parallel::parallel_map;
use super::score::Score;
use crate::model::graph::Placement;
use crate::model::machine::Machine;
use crate::model::mix::{Actor, App, Mix};
use crate::sim::{Simulated, SteadyStateRun, WarmStart, expected, steady_state_steps};
use std::ops::Range;

/// Up to so many actors placements are mended by the simulator's word, up to so many all strategies are compared by it,
/// and with so many of its steps, and more for each actor.
pub(crate) const LOCAL_SEARCH_MAX_ACTORS: usize = 512;
pub(crate) const ALL_STRATEGIES_MAX_ACTORS: usize = 4096;
const BASE_STEPS: usize = 20_000;
const STEPS_PER_ACTOR: usize = 500;
const LARGE_STEPS_PER_ACTOR: usize = 100;
/// Not more than so many.
const QUICK_STEPS_MAX: usize = 300_000;
/// Where that says too little of an application, or it has not come through its course, more of them, up to so many.
const EVALUATION_STEPS_MAX: usize = 400_000;
/// And of more actors than are mended, whose candidates are looked at but once.
pub(crate) const LARGE_MIX_STEPS: usize = 1_000_000;
/// Many are looked at for so many times as long before anybody is moved.
const STEADY_STEPS_FACTOR: usize = 4;
/// Who is behind by this share does not catch up, if both seem to have settled.
const ELIMINATION_GAP: f64 = 0.3;

/// Who could have come to so many units, and has come to none, is kept from it.
const EXPECTED_UNITS_MIN: f64 = 20.0;
/// So many firings say what a rate is, also where they are less than a unit.
const FIRINGS_MIN: f64 = 20.0;

/// What is known of each application.
struct Confidence<'a> {
    result: &'a Simulated,
    /// The rates that they should have.
    targets: &'a [f64],
    /// Whether it shares a core with one of a higher priority.
    outranked: &'a [bool],
}

/// Of each application.
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
    /// Has it come so far in the time that was simulated?
    fn is(&self, app: usize) -> bool {
        let came_to_a_unit = self.result.rates[app] * self.result.seconds >= 1.0;
        self.result.firings[app] >= FIRINGS_MIN || came_to_a_unit && self.result.settled(app)
    }

    /// Or had each of them time enough for it? And have they come to the end of their courses?
    fn all(&self) -> bool {
        let had_time = |app: usize| self.targets[app] * self.result.seconds >= EXPECTED_UNITS_MIN;
        self.result.whole && (0..self.targets.len()).all(|app| self.is(app) || had_time(app))
    }

    /// Others go before it, and some actor of it has not had its turn, though it could have fired often.
    fn starves(&self, mix: &Mix, app: usize) -> bool {
        let firings = mix.apps[app].actors.iter().map(Actor::firing);
        let longest = firings.fold(0.0, f64::max);
        self.outranked[app]
            && self.result.slowest[app] == 0.0
            && self.result.seconds * 1e9 >= FIRINGS_MIN * longest
    }

    /// Beside short firings a long one may not have come to its end even in so many steps: of that
    /// nothing is known but that it has no higher rate, and that is no reason against the placement.
    fn score(&self, mix: &Mix, machine: &Machine) -> Score {
        let rate = |app: usize| {
            let (rate, target) = (self.result.rates[app], self.targets[app]);
            match self.is(app) {
                _ if self.starves(mix, app) => 0.0,
                true => rate,
                false => rate.max(target.min(0.5 / self.result.seconds.max(1e-9))),
            }
        };
        let rates: Vec<f64> = (0..self.targets.len()).map(rate).collect();
        Score::of(mix, machine, &rates)
    }
}

/// What short channels say.
pub(crate) fn quick_score(mix: &Mix, machine: &Machine, placement: &[u32]) -> Score {
    score_after(mix, machine, placement, quick_steps(mix.actors()))
}

/// The same for so many steps.
pub(crate) fn score_after(mix: &Mix, machine: &Machine, placement: &[u32], steps: usize) -> Score {
    let targets = mix.targets(machine);
    let mut run = Evaluation::begin(mix, machine, placement, &targets, 0);
    run.skip(steps / 3);
    run.look(steps - steps / 3)
}

/// What lasts.
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
    let result = expected(mix, machine, placement, machine.scheduling);
    Score::of(mix, machine, &result.rates)
}

/// Steps that are simulated of so many actors.
fn quick_steps(actors: usize) -> usize {
    match actors {
        0..=LOCAL_SEARCH_MAX_ACTORS => BASE_STEPS + STEPS_PER_ACTOR * actors,
        _ => (BASE_STEPS + LARGE_STEPS_PER_ACTOR * actors).min(QUICK_STEPS_MAX),
    }
}

/// Steps for which a part with so many actors is looked at, of a whole with more than are mended.
pub(crate) fn steps_of_part(actors: usize, whole: usize) -> usize {
    (LARGE_MIX_STEPS * actors / whole).max(BASE_STEPS)
}

/// A placement that is looked at for longer and longer.
pub(crate) struct Evaluation<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    targets: &'a [f64],
    outranked: Vec<bool>,
    simulated: WarmStart<'a>,
    steps: usize,
}

impl<'a> Evaluation<'a> {
    /// From the midst of a run, or from its beginning where so many steps that are not looked at are enough for that.
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
            simulated: match WarmStart::fill_steps(mix) <= warm {
                true => WarmStart::empty(mix, machine, placement),
                false => WarmStart::begin(mix, machine, placement),
            },
            steps: 0,
        }
    }

    /// So many steps further on.
    pub fn skip(&mut self, steps: usize) {
        self.simulated.skip(steps);
        self.steps += steps;
    }

    /// By the next so many steps, or more where these say too little.
    pub fn look(&mut self, mut steps: usize) -> Score {
        loop {
            let (score, known) = self.score_next(steps);
            if known || self.steps >= EVALUATION_STEPS_MAX {
                return score;
            }
            steps *= 2;
        }
    }

    /// By the next so many steps, and whether these say enough.
    pub fn score_next(&mut self, steps: usize) -> (Score, bool) {
        let result = self.simulated.count_steps(steps);
        self.steps += steps;
        let known = Confidence {
            result: &result,
            targets: self.targets,
            outranked: &self.outranked,
        };
        (known.score(self.mix, self.machine), known.all())
    }
}

/// The one with the best verdict, and that, if it is better than what there is. All are simulated side by side. Given up is
/// only who seems to have settled, far behind another that does: who has not may come to anything, where channels are short,
/// or long, for what goes through them.
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
        let score_after = parallel_map(racing, |(mut run, placement): (SteadyStateRun, _)| {
            (run.try_result(), run, placement)
        });
        for (result, run, placement) in score_after {
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
