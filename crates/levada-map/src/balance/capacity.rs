// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Available capacity: the fraction of each core that other programs leave, as observed where our
//! workers run and as reported by other processes.
//!
//! The kernel alternates programs in slices of milliseconds, so short samples of a shared core vary
//! widely. Observations are therefore averaged over our own CPU time: at a seventh of a core the
//! average takes seven times as long to settle. The demand of an actor is its busy time relative to
//! the CPU time that its worker got, so an actor that uses all of it demands no more when other
//! programs use less.

use crate::model::graph::Graph;
use crate::model::machine::Machine;

/// Time constants of the average (seconds of our CPU time) and of forgetting (seconds), and the
/// smallest fraction that is assumed.
const MEAN_S: f64 = 1.0;
const FORGET_S: f64 = 30.0;
const SHARE_MIN: f64 = 0.05;
/// Fraction of a core behind a firing that does not end: practically 0, but usable as a divisor.
const UNAVAILABLE: f64 = 1e-3;

/// Indexed by the balancer's cores.
#[derive(Clone, Debug, Default)]
pub struct AvailableCapacity {
    observed: Vec<f64>,
    known: Vec<f64>,
    /// Cores without available capacity.
    unavailable: Vec<u32>,
}

/// The fraction of a core in a list for the whole machine; 1 if it is not listed.
fn share_of(all: &[f64], core: u32) -> f64 {
    let part = all.get(core as usize).copied().unwrap_or(1.0);
    part.clamp(SHARE_MIN, 1.0)
}

impl AvailableCapacity {
    /// Starts without observations.
    pub fn unobserved(cores: &[u32], known: &[f64]) -> AvailableCapacity {
        AvailableCapacity {
            observed: vec![1.0; cores.len()],
            known: cores.iter().map(|&core| share_of(known, core)).collect(),
            unavailable: Vec::new(),
        }
    }

    /// Takes over earlier observations of the same cores; none if a core is new.
    pub fn continue_from(&mut self, before: impl Iterator<Item = Option<f64>>) {
        self.observed = before.map(|observed| observed.unwrap_or(1.0)).collect();
    }

    pub fn observed(&self, core: u32) -> Option<f64> {
        self.observed.get(core as usize).copied()
    }

    /// Records the fraction of each core that we had during `seconds`; none if we wanted none, in
    /// which case the earlier observation decays. Returns the mean fraction of these seconds that
    /// was ours.
    pub fn observe(&mut self, cores: &[u32], had: &[Option<f64>], seconds: f64) -> f64 {
        self.observed.resize(cores.len(), 1.0);
        let (mut all, mut told) = (0.0, 0);
        for (observed, core) in self.observed.iter_mut().zip(cores) {
            let had = had.get(*core as usize).copied().flatten();
            let (new, over) = match had.map(|had| had.clamp(SHARE_MIN, 1.0)) {
                Some(had) => (had, MEAN_S / had),
                None => (1.0, FORGET_S),
            };
            *observed += (1.0 - (-seconds / over).exp()) * (new - *observed);
            if had.is_some() {
                (all, told) = (all + new, told + 1);
            }
        }
        if told == 0 {
            1.0
        } else {
            all / f64::from(told)
        }
    }

    pub fn set_known(&mut self, cores: &[u32], known: &[f64]) {
        self.known = cores.iter().map(|&core| share_of(known, core)).collect();
    }

    /// Sets the cores without available capacity.
    pub fn set_unavailable(&mut self, cores: Vec<u32>) {
        self.unavailable = cores;
    }

    /// The available fraction per core. An actor with little work does not observe all that others
    /// use, so the reported value is an upper limit.
    pub fn current(&self) -> impl Iterator<Item = f64> {
        let known = self.known.iter().copied().chain(std::iter::repeat(1.0));
        let both = self.observed.iter().zip(known).zip(0..);
        both.map(|((observed, known), core)| {
            if self.unavailable.contains(&core) {
                UNAVAILABLE
            } else {
                observed.min(known)
            }
        })
    }

    /// Demand per actor: busy time divided by the fraction of the core that its worker had.
    pub fn demand(cores: &[u32], had: &[Option<f64>], mut took: Graph, seats: &[u32]) -> Graph {
        for (busy, seat) in took.busy.iter_mut().zip(seats) {
            let core = cores.get(*seat as usize).copied();
            let had = core.and_then(|core| had.get(core as usize).copied().flatten());
            *busy /= had.unwrap_or(1.0).clamp(SHARE_MIN, 1.0);
        }
        took
    }

    /// Busy time that a demand causes on its core, given the observed capacity.
    pub fn usage(&self, machine: &Machine, mut demand: Graph, seats: &[u32]) -> Graph {
        let part = self.relative_speeds(machine);
        for (busy, seat) in demand.busy.iter_mut().zip(seats) {
            *busy *= part[*seat as usize];
        }
        demand
    }

    /// Rescales demands after a move so that busy times stay the same.
    pub fn rescale_demand(&self, machine: &Machine, demand: &mut Graph, from: &[u32], to: &[u32]) {
        let part = self.relative_speeds(machine);
        for (busy, (from, to)) in demand.busy.iter_mut().zip(from.iter().zip(to)) {
            *busy *= part[*from as usize] / part[*to as usize];
        }
    }

    fn relative_speeds(&self, machine: &Machine) -> Vec<f64> {
        let left = machine.with_available(&self.observed);
        let both = left.cores.iter().zip(&machine.cores);
        both.map(|(left, all)| left.speed / all.speed).collect()
    }
}
