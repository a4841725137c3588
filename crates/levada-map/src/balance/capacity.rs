// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What others leave of the cores: as it is felt where something of ours runs, and as it is known of some.
//!
//! Others and we take turns of milliseconds, so that a core of which we have a seventh looks like another one in each
//! short time. What is felt is judged over the time that was ours, therefore: where we have a seventh it takes seven times as
//! long to know as much. And what an actor took is seen as the part of that time that it wanted: who wants all of it
//! wants no more when others take less.

use crate::model::graph::Graph;
use crate::model::machine::Machine;

/// What is felt is a mean of so many seconds of ours, and forgotten in so many; and nobody has less than that.
const MEAN_S: f64 = 1.0;
const FORGET_S: f64 = 30.0;
const SHARE_MIN: f64 = 0.05;
/// So much is left of a core to those behind a firing that does not end: nothing, in numbers that can be divided by.
const UNAVAILABLE: f64 = 1e-3;

/// Of these cores, one after the other.
#[derive(Clone, Debug, Default)]
pub struct AvailableCapacity {
    observed: Vec<f64>,
    known: Vec<f64>,
    /// Those of which nothing is left.
    unavailable: Vec<u32>,
}

/// A part of a core, of the cores of the whole machine where something is said of that one.
fn share_of(all: &[f64], core: u32) -> f64 {
    let part = all.get(core as usize).copied().unwrap_or(1.0);
    part.clamp(SHARE_MIN, 1.0)
}

impl AvailableCapacity {
    /// Nothing was felt yet.
    pub fn unobserved(cores: &[u32], known: &[f64]) -> AvailableCapacity {
        AvailableCapacity {
            observed: vec![1.0; cores.len()],
            known: cores.iter().map(|&core| share_of(known, core)).collect(),
            unavailable: Vec::new(),
        }
    }

    /// What was felt of each of these cores before, where it was one of those then.
    pub fn continue_from(&mut self, before: impl Iterator<Item = Option<f64>>) {
        self.observed = before.map(|observed| observed.unwrap_or(1.0)).collect();
    }

    pub fn observed(&self, core: u32) -> Option<f64> {
        self.observed.get(core as usize).copied()
    }

    /// What part of each of these cores we had in so many seconds; none: nothing of ours wanted any, so that what was
    /// felt is forgotten, and found out anew. The part of these seconds that was ours.
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

    /// Of these of the cores nothing is left for now.
    pub fn set_unavailable(&mut self, cores: Vec<u32>) {
        self.unavailable = cores;
    }

    /// What they leave. Who has little to do there himself does not feel all that they take.
    pub fn current(&self) -> impl Iterator<Item = f64> {
        let known = self.known.iter().copied().chain(std::iter::repeat(1.0));
        let both = self.observed.iter().zip(known).zip(0..);
        both.map(
            |((observed, known), core)| match self.unavailable.contains(&core) {
                true => UNAVAILABLE,
                false => observed.min(known),
            },
        )
    }

    /// By what actors took on these seats: the parts that they wanted of the time that was ours.
    pub fn demand(cores: &[u32], had: &[Option<f64>], mut took: Graph, seats: &[u32]) -> Graph {
        for (busy, seat) in took.busy.iter_mut().zip(seats) {
            let core = cores.get(*seat as usize).copied();
            let had = core.and_then(|core| had.get(core as usize).copied().flatten());
            *busy /= had.unwrap_or(1.0).clamp(SHARE_MIN, 1.0);
        }
        took
    }

    /// And what they take of a core by that, with what others leave as a rule, in the way in which cores are compared.
    pub fn usage(&self, machine: &Machine, mut demand: Graph, seats: &[u32]) -> Graph {
        let part = self.relative_speeds(machine);
        for (busy, seat) in demand.busy.iter_mut().zip(seats) {
            *busy *= part[*seat as usize];
        }
        demand
    }

    /// What they want where they are from now on, to take as much as before.
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
