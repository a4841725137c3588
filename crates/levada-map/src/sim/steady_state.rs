// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a mix is simulated: a number of steps, or until its rates have settled, or from
//! half-full channels on.

use super::{Simulated, Simulator};
use crate::model::machine::{Machine, Scheduling};
use crate::model::mix::Mix;

/// Rates have settled if the slowest actor of each application is at most this fraction below the
/// mean.
const SETTLED_GAP: f64 = 0.05;
/// Maximum extension of a simulation, as a factor of its steps.
const EXTENSION_MAX: usize = 32;
/// Number of steps of a steady-state simulation: minimum, and per actor. With far fewer steps,
/// rates may seem settled shortly before actors start to wait.
const STEADY_STEPS_MIN: usize = 300_000;
const STEADY_STEPS_PER_ACTOR: usize = 60;
/// Number of steps in which an actor fills a channel that is being emptied.
const FILL_STEPS: usize = 8;

impl Simulated {
    pub(crate) fn all_settled(&self) -> bool {
        (0..self.rates.len()).all(|app| self.settled(app))
    }

    /// Except applications that make no progress at all.
    fn all_fire(&self) -> bool {
        let mut rates = self.rates.iter().zip(&self.slowest);
        rates.all(|(&rate, &slowest)| slowest > 0.0 || rate == 0.0)
    }

    /// Whether all actors of the application have nearly the same rate.
    pub fn settled(&self, app: usize) -> bool {
        self.slowest[app] >= (1.0 - SETTLED_GAP) * self.rates[app]
    }
}

/// Simulates `steps` steps; the first third is warm-up and does not count.
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

/// The same for up to `EXTENSION_MAX` times as many steps, until the rates have settled: with many
/// actors, channels take long to fill. If that is not sufficient, or some actor never fired,
/// restarts with half-full channels.
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

/// A simulation until the rates have settled, with intermediate results, so that the caller can
/// abandon it.
pub(crate) struct SteadyStateRun<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    placement: &'a [u32],
    run: Simulator<'a>,
    steps: usize,
    /// Number of warm-up steps made, and of steps in the last window.
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

    /// An intermediate result during the warm-up, which does not affect later ones.
    pub fn quick_result(&mut self) -> Simulated {
        let warm = self.steps / 3;
        self.run.run(warm / 3);
        self.warm = warm;
        self.run.count_steps(warm - warm / 3)
    }

    /// The result of the next window, which is twice as long as the last one; none if the rates
    /// have not settled.
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
            let restarted = Simulator::new(self.mix, self.machine, self.placement, how);
            self.run = restarted.half_full().started();
            (self.warm, self.window) = (0, 0);
            self.warm_started = true;
        }
        None
    }
}

/// Number of steps of a steady-state simulation of this mix.
pub(crate) fn steady_state_steps(mix: &Mix) -> usize {
    STEADY_STEPS_MIN.max(STEADY_STEPS_PER_ACTOR * mix.actors())
}

/// The rates of a placement in the steady state.
pub fn simulate_steady_state(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
    scheduling: Scheduling,
) -> Simulated {
    simulate_until_settled(mix, machine, placement, scheduling, steady_state_steps(mix))
}

/// A simulation that starts with short, half-full channels, so that filling them does not count as
/// progress.
pub(crate) struct WarmStart<'a>(Simulator<'a>);

impl<'a> WarmStart<'a> {
    pub fn begin(mix: &'a Mix, machine: &'a Machine, placement: &[u32]) -> WarmStart<'a> {
        let begun = Simulator::new(mix, machine, placement, machine.scheduling);
        WarmStart(begun.with_short_channels().half_full().started())
    }

    /// The same with empty channels, which fill during steps that are not counted.
    pub fn empty(mix: &'a Mix, machine: &'a Machine, placement: &[u32]) -> WarmStart<'a> {
        let begun = Simulator::new(mix, machine, placement, machine.scheduling);
        WarmStart(begun.with_short_channels().started())
    }

    /// Approximate number of steps until the channels are filled: for each actor as many as there
    /// are channels before it.
    pub fn fill_steps(mix: &Mix) -> usize {
        let each = mix.apps.iter().map(|a| a.actors.len() * a.actors.len());
        FILL_STEPS * each.sum::<usize>()
    }

    pub fn skip(&mut self, steps: usize) {
        self.0.run(steps);
    }

    /// Measures the next steps.
    pub fn count_steps(&mut self, steps: usize) -> Simulated {
        self.0.count_steps(steps)
    }
}
