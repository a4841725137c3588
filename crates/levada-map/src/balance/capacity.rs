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
const LEFT: f64 = 1.0;
const FORGOTTEN: f64 = 30.0;
const LEAST: f64 = 0.05;
/// So much is left of a core to those behind a firing that does not end: nothing, in numbers that can be divided by.
const NONE: f64 = 1e-3;

/// Of these cores, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Left {
    felt: Vec<f64>,
    known: Vec<f64>,
    /// Those of which nothing is left.
    gone: Vec<u32>,
}

/// A part of a core, of the cores of the whole machine where something is said of that one.
fn of_core(all: &[f64], core: u32) -> f64 {
    let part = all.get(core as usize).copied().unwrap_or(1.0);
    part.clamp(LEAST, 1.0)
}

impl Left {
    /// Nothing was felt yet.
    pub fn nothing_felt(cores: &[u32], known: &[f64]) -> Left {
        Left {
            felt: vec![1.0; cores.len()],
            known: cores.iter().map(|&core| of_core(known, core)).collect(),
            gone: Vec::new(),
        }
    }

    /// What was felt of each of these cores before, where it was one of those then.
    pub fn feels(&mut self, before: impl Iterator<Item = Option<f64>>) {
        self.felt = before.map(|felt| felt.unwrap_or(1.0)).collect();
    }

    pub fn felt(&self, core: u32) -> Option<f64> {
        self.felt.get(core as usize).copied()
    }

    /// What part of each of these cores we had in so many seconds; none: nothing of ours wanted any, so that what was
    /// felt is forgotten, and found out anew. The part of these seconds that was ours.
    pub fn feel(&mut self, cores: &[u32], had: &[Option<f64>], seconds: f64) -> f64 {
        self.felt.resize(cores.len(), 1.0);
        let (mut all, mut told) = (0.0, 0);
        for (felt, core) in self.felt.iter_mut().zip(cores) {
            let had = had.get(*core as usize).copied().flatten();
            let (new, over) = match had.map(|had| had.clamp(LEAST, 1.0)) {
                Some(had) => (had, LEFT / had),
                None => (1.0, FORGOTTEN),
            };
            *felt += (1.0 - (-seconds / over).exp()) * (new - *felt);
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

    pub fn know(&mut self, cores: &[u32], known: &[f64]) {
        self.known = cores.iter().map(|&core| of_core(known, core)).collect();
    }

    /// Of these of the cores nothing is left for now.
    pub fn gone(&mut self, cores: Vec<u32>) {
        self.gone = cores;
    }

    /// What they leave. Who has little to do there himself does not feel all that they take.
    pub fn now(&self) -> impl Iterator<Item = f64> {
        let known = self.known.iter().copied().chain(std::iter::repeat(1.0));
        let both = self.felt.iter().zip(known).zip(0..);
        both.map(|((felt, known), core)| match self.gone.contains(&core) {
            true => NONE,
            false => felt.min(known),
        })
    }

    /// By what actors took on these seats: the parts that they wanted of the time that was ours.
    pub fn wanted(cores: &[u32], had: &[Option<f64>], mut took: Graph, seats: &[u32]) -> Graph {
        for (busy, seat) in took.busy.iter_mut().zip(seats) {
            let core = cores.get(*seat as usize).copied();
            let had = core.and_then(|core| had.get(core as usize).copied().flatten());
            *busy /= had.unwrap_or(1.0).clamp(LEAST, 1.0);
        }
        took
    }

    /// And what they take of a core by that, with what others leave as a rule, in the way in which cores are compared.
    pub fn takes(&self, machine: &Machine, mut wanted: Graph, seats: &[u32]) -> Graph {
        let part = self.parts(machine);
        for (busy, seat) in wanted.busy.iter_mut().zip(seats) {
            *busy *= part[*seat as usize];
        }
        wanted
    }

    /// What they want where they are from now on, to take as much as before.
    pub fn go(&self, machine: &Machine, wanted: &mut Graph, from: &[u32], to: &[u32]) {
        let part = self.parts(machine);
        for (busy, (from, to)) in wanted.busy.iter_mut().zip(from.iter().zip(to)) {
            *busy *= part[*from as usize] / part[*to as usize];
        }
    }

    fn parts(&self, machine: &Machine) -> Vec<f64> {
        let left = machine.left(&self.felt);
        let both = left.cores.iter().zip(&machine.cores);
        both.map(|(left, all)| left.speed / all.speed).collect()
    }
}
