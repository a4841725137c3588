// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For how long a machine is simulated: so many steps, or until its rates have settled, or from the midst of a run on.

use super::{Machinery, Simulated};
use crate::model::machine::{Machine, Scheduling};
use crate::model::mix::Mix;

/// Rates have settled where the slowest actor is behind the mean by no more than this.
const UNSETTLED: f64 = 0.05;
/// Simulations go on for so many times their steps until then.
const LONGER: usize = 32;
/// Steps from which it is known what is to be expected: at least, and for each actor. In much fewer, some who are about to come to wait
/// seem to have settled.
const EXPECTED: usize = 300_000;
const EXPECTED_EACH: usize = 60;
/// Steps in which an actor fills a channel, while others empty it.
const FILLS: usize = 8;

impl Simulated {
    pub(crate) fn all_settled(&self) -> bool {
        (0..self.rates.len()).all(|app| self.settled(app))
    }

    /// But for who gets nothing at all.
    fn all_fire(&self) -> bool {
        let mut rates = self.rates.iter().zip(&self.slowest);
        rates.all(|(&rate, &slowest)| slowest > 0.0 || rate == 0.0)
    }

    /// Do all actors of this application come to as many units as the others?
    pub fn settled(&self, app: usize) -> bool {
        self.slowest[app] >= (1.0 - UNSETTLED) * self.rates[app]
    }
}

/// Runs so many steps, a third of them to warm up.
pub fn simulate(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
    scheduling: Scheduling,
    steps: usize,
) -> Simulated {
    let mut sim = Machinery::new(mix, machine, placement, scheduling).started();
    sim.run(steps / 3);
    sim.counted(steps - steps / 3)
}

/// The same, for up to `LONGER` times as many steps, until the rates have settled: where there are many actors,
/// channels take long to fill. Where that is not long enough, or somebody has not fired at all, as the last of
/// thousands in a row, it begins anew as amid a run.
pub fn simulate_until_settled(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
    scheduling: Scheduling,
    steps: usize,
) -> Simulated {
    let mut run = Settling::begin(mix, machine, placement, scheduling, steps);
    loop {
        if let Some(made) = run.look() {
            return made;
        }
    }
}

/// A simulation until the rates have settled, looked at on the way: who sees enough gives it up.
pub(crate) struct Settling<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    placement: &'a [u32],
    run: Machinery<'a>,
    steps: usize,
    /// So many of them were made to warm up, and so many were looked at last.
    warm: usize,
    window: usize,
    midway: bool,
}

impl<'a> Settling<'a> {
    pub fn begin(
        mix: &'a Mix,
        machine: &'a Machine,
        placement: &'a [u32],
        scheduling: Scheduling,
        steps: usize,
    ) -> Settling<'a> {
        Settling {
            mix,
            machine,
            placement,
            run: Machinery::new(mix, machine, placement, scheduling).started(),
            steps,
            warm: 0,
            window: 0,
            midway: false,
        }
    }

    /// A first one while it warms up, which makes no difference to those that come.
    pub fn glance(&mut self) -> Simulated {
        let warm = self.steps / 3;
        self.run.run(warm / 3);
        self.warm = warm;
        self.run.counted(warm - warm / 3)
    }

    /// For twice as many steps as the last time; none: it has not settled yet.
    pub fn look(&mut self) -> Option<Simulated> {
        if self.window == 0 {
            self.run.run(self.steps / 3 - self.warm);
            self.window = self.steps - self.steps / 3;
        } else {
            self.window *= 2;
        }
        let made = self.run.counted(self.window);
        let settled = made.all_settled();
        let enough = self.window >= LONGER / 2 * self.steps || settled && made.whole;
        if enough && (settled || self.midway) {
            return Some(made);
        }
        if !self.midway && (enough || !made.all_fire()) {
            let how = self.run.scheduling;
            let anew = Machinery::new(self.mix, self.machine, self.placement, how);
            self.run = anew.amid().started();
            (self.warm, self.window) = (0, 0);
            self.midway = true;
        }
        None
    }
}

/// Steps from which it is known what is to be expected of so many actors.
pub(crate) fn expecting(mix: &Mix) -> usize {
    EXPECTED.max(EXPECTED_EACH * mix.actors())
}

/// What a placement can be expected to give: simulated for so long that a glance at it is no longer taken for how it goes.
pub fn expected(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
    scheduling: Scheduling,
) -> Simulated {
    simulate_until_settled(mix, machine, placement, scheduling, expecting(mix))
}

/// A simulation that is begun amid a run, with short channels, and looked at as it goes on:
/// the filling of channels is not counted as something done.
pub(crate) struct Midway<'a>(Machinery<'a>);

impl<'a> Midway<'a> {
    pub fn begin(mix: &'a Mix, machine: &'a Machine, placement: &[u32]) -> Midway<'a> {
        let begun = Machinery::new(mix, machine, placement, machine.scheduling);
        Midway(begun.shortened().amid().started())
    }

    /// The same with channels that are empty at first, which are to fill in the steps that are not looked at.
    pub fn empty(mix: &'a Mix, machine: &'a Machine, placement: &[u32]) -> Midway<'a> {
        let begun = Machinery::new(mix, machine, placement, machine.scheduling);
        Midway(begun.shortened().started())
    }

    /// How many steps fill them, about: each actor as many as there are channels before it, each in its parts.
    pub fn fill(mix: &Mix) -> usize {
        let each = mix.apps.iter().map(|a| a.actors.len() * a.actors.len());
        FILLS * each.sum::<usize>()
    }

    pub fn go_on(&mut self, steps: usize) {
        self.0.run(steps);
    }

    /// By the next so many steps.
    pub fn counted(&mut self, steps: usize) -> Simulated {
        self.0.counted(steps)
    }
}
