// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For how long a machine is simulated: so many steps, or until its rates have settled, or from the midst of a run on.

use super::{Simulated, Simulator};
use crate::model::machine::{Machine, Scheduling};
use crate::model::mix::Mix;

/// Rates have settled where the slowest actor is behind the mean by no more than this.
const SETTLED_GAP: f64 = 0.05;
/// Simulations go on for so many times their steps until then.
const EXTENSION_MAX: usize = 32;
/// Steps from which it is known what is to be expected: at least, and for each actor. In much fewer, some who are about to come to wait
/// seem to have settled.
const STEADY_STEPS_MIN: usize = 300_000;
const STEADY_STEPS_PER_ACTOR: usize = 60;
/// Steps in which an actor fills a channel, while others empty it.
const FILL_STEPS: usize = 8;

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
        self.slowest[app] >= (1.0 - SETTLED_GAP) * self.rates[app]
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
    let mut sim = Simulator::new(mix, machine, placement, scheduling).started();
    sim.run(steps / 3);
    sim.count_steps(steps - steps / 3)
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
    let mut run = SteadyStateRun::begin(mix, machine, placement, scheduling, steps);
    loop {
        if let Some(made) = run.try_result() {
            return made;
        }
    }
}

/// A simulation until the rates have settled, looked at on the way: who sees enough gives it up.
pub(crate) struct SteadyStateRun<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    placement: &'a [u32],
    run: Simulator<'a>,
    steps: usize,
    /// So many of them were made to warm up, and so many were looked at last.
    warm: usize,
    window: usize,
    warm_started: bool,
}

impl<'a> SteadyStateRun<'a> {
    pub fn begin(
        mix: &'a Mix,
        machine: &'a Machine,
        placement: &'a [u32],
        scheduling: Scheduling,
        steps: usize,
    ) -> SteadyStateRun<'a> {
        SteadyStateRun {
            mix,
            machine,
            placement,
            run: Simulator::new(mix, machine, placement, scheduling).started(),
            steps,
            warm: 0,
            window: 0,
            warm_started: false,
        }
    }

    /// A first one while it warms up, which makes no difference to those that come.
    pub fn quick_result(&mut self) -> Simulated {
        let warm = self.steps / 3;
        self.run.run(warm / 3);
        self.warm = warm;
        self.run.count_steps(warm - warm / 3)
    }

    /// For twice as many steps as the last time; none: it has not settled yet.
    pub fn try_result(&mut self) -> Option<Simulated> {
        if self.window == 0 {
            self.run.run(self.steps / 3 - self.warm);
            self.window = self.steps - self.steps / 3;
        } else {
            self.window *= 2;
        }
        let made = self.run.count_steps(self.window);
        let settled = made.all_settled();
        let enough = self.window >= EXTENSION_MAX / 2 * self.steps || settled && made.whole;
        if enough && (settled || self.warm_started) {
            return Some(made);
        }
        if !self.warm_started && (enough || !made.all_fire()) {
            let how = self.run.scheduling;
            let anew = Simulator::new(self.mix, self.machine, self.placement, how);
            self.run = anew.half_full().started();
            (self.warm, self.window) = (0, 0);
            self.warm_started = true;
        }
        None
    }
}

/// Steps from which it is known what is to be expected of so many actors.
pub(crate) fn steady_state_steps(mix: &Mix) -> usize {
    STEADY_STEPS_MIN.max(STEADY_STEPS_PER_ACTOR * mix.actors())
}

/// What a placement can be expected to give: simulated for so long that a glance at it is no longer taken for how it goes.
pub fn expected(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
    scheduling: Scheduling,
) -> Simulated {
    simulate_until_settled(mix, machine, placement, scheduling, steady_state_steps(mix))
}

/// A simulation that is begun amid a run, with short channels, and looked at as it goes on:
/// the filling of channels is not counted as something done.
pub(crate) struct WarmStart<'a>(Simulator<'a>);

impl<'a> WarmStart<'a> {
    pub fn begin(mix: &'a Mix, machine: &'a Machine, placement: &[u32]) -> WarmStart<'a> {
        let begun = Simulator::new(mix, machine, placement, machine.scheduling);
        WarmStart(begun.with_short_channels().half_full().started())
    }

    /// The same with channels that are empty at first, which are to fill in the steps that are not looked at.
    pub fn empty(mix: &'a Mix, machine: &'a Machine, placement: &[u32]) -> WarmStart<'a> {
        let begun = Simulator::new(mix, machine, placement, machine.scheduling);
        WarmStart(begun.with_short_channels().started())
    }

    /// How many steps fill them, about: each actor as many as there are channels before it, each in its parts.
    pub fn fill_steps(mix: &Mix) -> usize {
        let each = mix.apps.iter().map(|a| a.actors.len() * a.actors.len());
        FILL_STEPS * each.sum::<usize>()
    }

    pub fn skip(&mut self, steps: usize) {
        self.0.run(steps);
    }

    /// By the next so many steps.
    pub fn count_steps(&mut self, steps: usize) -> Simulated {
        self.0.count_steps(steps)
    }
}
