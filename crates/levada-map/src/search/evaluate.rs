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

use super::parallel::side_by_side;
use super::score::Score;
use crate::model::graph::Placement;
use crate::model::machine::Machine;
use crate::model::mix::{Actor, App, Mix};
use crate::sim::{Midway, Settling, Simulated, expected, expecting};
use std::ops::Range;

/// Up to so many actors placements are mended by the simulator's word, up to so many all strategies are compared by it,
/// and with so many of its steps, and more for each actor.
pub(crate) const MENDED: usize = 512;
pub(crate) const ALL_TRIED: usize = 4096;
const STEPS: usize = 20_000;
const STEPS_EACH: usize = 500;
const FEWER_EACH: usize = 100;
/// Not more than so many.
const MANY: usize = 300_000;
/// Where that says too little of an application, or it has not come through its course, more of them, up to so many.
const LONGEST: usize = 400_000;
/// And of more actors than are mended, whose candidates are looked at but once.
pub(crate) const ONCE: usize = 1_000_000;
/// Many are looked at for so many times as long before anybody is moved.
const LASTING: usize = 4;
/// Who is behind by this share does not catch up, if both seem to have settled.
const BEHIND: f64 = 0.3;

/// Who could have come to so many units, and has come to none, is kept from it.
const ENOUGH: f64 = 20.0;
/// So many firings say what a rate is, also where they are less than a unit.
const FIRINGS: f64 = 20.0;

/// What is known of each application.
struct Known<'a> {
    made: &'a Simulated,
    /// The rates that they should have.
    targets: &'a [f64],
    /// Whether it shares a core with one of a higher priority.
    behind: &'a [bool],
}

/// Of each application.
fn behind(mix: &Mix, machine: &Machine, placement: &[u32]) -> Vec<bool> {
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

impl Known<'_> {
    /// Has it come so far in the time that was simulated?
    fn is(&self, app: usize) -> bool {
        let came_to_a_unit = self.made.rates[app] * self.made.seconds >= 1.0;
        self.made.firings[app] >= FIRINGS || came_to_a_unit && self.made.settled(app)
    }

    /// Or had each of them time enough for it? And have they come to the end of their courses?
    fn all(&self) -> bool {
        let had_time = |app: usize| self.targets[app] * self.made.seconds >= ENOUGH;
        self.made.whole && (0..self.targets.len()).all(|app| self.is(app) || had_time(app))
    }

    /// Others go before it, and some actor of it has not had its turn, though it could have fired often.
    fn starves(&self, mix: &Mix, app: usize) -> bool {
        let firings = mix.apps[app].actors.iter().map(Actor::firing);
        let longest = firings.fold(0.0, f64::max);
        self.behind[app]
            && self.made.slowest[app] == 0.0
            && self.made.seconds * 1e9 >= FIRINGS * longest
    }

    /// Beside short firings a long one may not have come to its end even in so many steps: of that
    /// nothing is known but that it has no higher rate, and that is no reason against the placement.
    fn score(&self, mix: &Mix, machine: &Machine) -> Score {
        let rate = |app: usize| {
            let (rate, target) = (self.made.rates[app], self.targets[app]);
            match self.is(app) {
                _ if self.starves(mix, app) => 0.0,
                true => rate,
                false => rate.max(target.min(0.5 / self.made.seconds.max(1e-9))),
            }
        };
        let rates: Vec<f64> = (0..self.targets.len()).map(rate).collect();
        Score::of(mix, machine, &rates)
    }
}

/// What short channels say.
pub(crate) fn glance(mix: &Mix, machine: &Machine, placement: &[u32]) -> Score {
    looked(mix, machine, placement, usual(mix.actors()))
}

/// The same for so many steps.
pub(crate) fn looked(mix: &Mix, machine: &Machine, placement: &[u32], steps: usize) -> Score {
    let targets = mix.targets(machine);
    let mut run = Run::begin(mix, machine, placement, &targets, 0);
    run.go_on(steps / 3);
    run.look(steps - steps / 3)
}

/// What lasts.
pub(crate) fn verdict(mix: &Mix, machine: &Machine, placement: &[u32]) -> Score {
    let actors = mix.actors();
    if actors > MENDED {
        return looked(mix, machine, placement, LASTING * usual(actors));
    }
    let made = expected(mix, machine, placement, machine.scheduling);
    Score::of(mix, machine, &made.rates)
}

/// Steps that are simulated of so many actors.
fn usual(actors: usize) -> usize {
    match actors {
        0..=MENDED => STEPS + STEPS_EACH * actors,
        _ => (STEPS + FEWER_EACH * actors).min(MANY),
    }
}

/// Steps for which a part with so many actors is looked at, of a whole with more than are mended.
pub(crate) fn steps_of_part(actors: usize, whole: usize) -> usize {
    (ONCE * actors / whole).max(STEPS)
}

/// A placement that is looked at for longer and longer.
pub(crate) struct Run<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    targets: &'a [f64],
    behind: Vec<bool>,
    simulated: Midway<'a>,
    steps: usize,
}

impl<'a> Run<'a> {
    /// From the midst of a run, or from its beginning where so many steps that are not looked at are enough for that.
    pub fn begin(
        mix: &'a Mix,
        machine: &'a Machine,
        placement: &[u32],
        targets: &'a [f64],
        warm: usize,
    ) -> Run<'a> {
        Run {
            mix,
            machine,
            targets,
            behind: behind(mix, machine, placement),
            simulated: match Midway::fill(mix) <= warm {
                true => Midway::empty(mix, machine, placement),
                false => Midway::begin(mix, machine, placement),
            },
            steps: 0,
        }
    }

    /// So many steps further on.
    pub fn go_on(&mut self, steps: usize) {
        self.simulated.go_on(steps);
        self.steps += steps;
    }

    /// By the next so many steps, or more where these say too little.
    pub fn look(&mut self, mut steps: usize) -> Score {
        loop {
            let (score, known) = self.seen(steps);
            if known || self.steps >= LONGEST {
                return score;
            }
            steps *= 2;
        }
    }

    /// By the next so many steps, and whether these say enough.
    pub fn seen(&mut self, steps: usize) -> (Score, bool) {
        let made = self.simulated.counted(steps);
        self.steps += steps;
        let known = Known {
            made: &made,
            targets: self.targets,
            behind: &self.behind,
        };
        (known.score(self.mix, self.machine), known.all())
    }
}

/// The one with the best verdict, and that, if it is better than what there is. All are simulated side by side. Given up is
/// only who seems to have settled, far behind another that does: who has not may come to anything, where channels are short,
/// or long, for what goes through them.
pub(crate) fn race<'a>(
    mix: &'a Mix,
    machine: &'a Machine,
    found: &'a [Placement],
    than: Option<&Score>,
) -> Option<(Score, &'a Placement)> {
    let score = |made: &Simulated| Score::of(mix, machine, &made.rates);
    let begun = side_by_side(found.iter().collect(), |placement| {
        let how = machine.scheduling;
        let mut run = Settling::begin(mix, machine, placement, how, expecting(mix));
        let made = run.glance();
        (score(&made), made.all_settled(), (run, placement))
    });
    let settled = begun.iter().filter(|(_, seems_settled, _)| *seems_settled);
    let seen = settled.map(|(seen, ..)| seen.clone());
    let first = seen.chain(than.cloned()).reduce(Score::better);
    let may_win = |seen: &Score, seems_settled: bool| match &first {
        Some(first) if seems_settled => !seen.is_behind(first, BEHIND),
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
        let looked = side_by_side(racing, |(mut run, placement): (Settling, _)| {
            (run.look(), run, placement)
        });
        for (made, run, placement) in looked {
            let Some(made) = made else {
                on.push((run, placement));
                continue;
            };
            let score = score(&made);
            if ahead.as_ref().is_none_or(|ahead| score.beats(ahead, 0.0)) {
                (ahead, best) = (Some(score), Some(placement));
            }
        }
        racing = on;
    }
    ahead.zip(best)
}
