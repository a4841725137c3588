// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When to place anew: from samples of a running application to the moves worth making.
//!
//! The rules: measure before moving; move only for a gain that is worth it; look whether the move
//! brought what was promised, and wait longer each time that it did not. So a load that changes is
//! followed within a second, and a load that only looks as if it did never makes actors swing.

use crate::graph::Graph;
use crate::machine::Machine;
use crate::place::{Placement, bottleneck, improve};
use std::time::Duration;

/// What was measured since the last sample: busy time in nanoseconds, bytes on links.
#[derive(Clone, Debug)]
pub struct Sample {
    pub elapsed: Duration,
    pub graph: Graph,
    /// Which actors' firings last so long that what waits behind them is moved away meanwhile; empty: none's.
    pub long: Vec<bool>,
    /// What part of its core each worker has had of the time in which something ran there; none: nothing did. The rest
    /// other programs had. Empty: they have had all.
    pub had: Vec<Option<f64>>,
    /// What those leave of each core of whom that is known, whether or not anything of ours runs there; empty: all.
    pub left: Vec<f64>,
}

#[derive(Clone, Debug)]
pub struct Balancer {
    /// Of these cores, which are all that actors may be on.
    machine: Machine,
    cores: Vec<u32>,
    placement: Placement,
    /// The mean of the samples, by the second: of all at first, then a decaying one.
    mean: Option<Graph>,
    long: Vec<bool>,
    /// What others leave of each of these cores: as was measured there; by what is known of some.
    had: Vec<f64>,
    left: Vec<f64>,
    samples: usize,
    age: Duration,
    since_move: Duration,
    wait: Duration,
    /// What the last move promised, as a share of the bottleneck before, and that bottleneck.
    promise: Option<f64>,
}

/// A better placement that is to be looked for, which may take long where there are many actors.
#[derive(Clone, Debug)]
pub struct Search {
    mean: Graph,
    machine: Machine,
    seats: Placement,
}

/// What a search has found: the placement that it began with, the better one, and its bottleneck.
#[derive(Clone, Debug)]
pub struct Found {
    before: Placement,
    better: Placement,
    then: f64,
}

impl Search {
    pub fn actors(&self) -> usize {
        self.seats.len()
    }

    pub fn run(&self) -> Found {
        let better = improve(&self.mean, &self.machine, &self.seats);
        Found {
            then: bottleneck(&self.mean, &self.machine, &better),
            before: self.seats.clone(),
            better,
        }
    }
}

/// A move is made for no less than this share of the bottleneck.
const WORTH: f64 = 0.10;
/// Below this share of a core the busiest worker is no bottleneck.
const BUSY: f64 = 0.25;
/// Who fires for long, and computes for this share of the time or more, needs a core: what is put beside him
/// would be moved away again.
const OFTEN: f64 = 0.5;
/// What others leave of a core is a mean of so many seconds, and forgotten in so many; and nobody has less than that.
const LEFT: f64 = 1.0;
const FORGOTTEN: f64 = 30.0;
const LEAST: f64 = 0.05;
/// A first placement is a guess: it is looked at early, and again and again soon.
const FIRST: Duration = Duration::from_millis(8);
const USUAL: Duration = Duration::from_millis(300);
const LONGEST: Duration = Duration::from_secs(20);

impl Balancer {
    pub fn new(machine: Machine, placement: Placement) -> Balancer {
        let cores = (0..machine.workers() as u32).collect();
        Balancer {
            machine,
            cores,
            placement,
            mean: None,
            long: Vec::new(),
            had: Vec::new(),
            left: Vec::new(),
            samples: 0,
            age: Duration::ZERO,
            since_move: Duration::ZERO,
            wait: FIRST,
            promise: None,
        }
    }

    /// Only some cores are for these actors: the others are somebody else's.
    pub fn among(mut self, cores: Vec<u32>) -> Balancer {
        self.machine = self.machine.part(&cores);
        self.cores = cores;
        self
    }

    /// The number of a core among those; none: it is not, or not any more.
    fn inside(&self, core: u32) -> Option<u32> {
        let found = self.cores.iter().position(|&c| c == core);
        found.map(|c| c as u32)
    }

    /// What is known of others when it begins, core by core of the whole machine.
    pub fn beside(mut self, left: &[f64]) -> Balancer {
        self.had = vec![1.0; self.cores.len()];
        self.left = self.of_cores(left);
        self
    }

    /// What another one has seen of others until now.
    pub fn after(mut self, before: &Balancer) -> Balancer {
        let had = |core: &u32| {
            before
                .inside(*core)
                .and_then(|c| before.had.get(c as usize))
        };
        let had = self
            .cores
            .iter()
            .map(|core| had(core).copied().unwrap_or(1.0));
        self.had = had.collect();
        self
    }

    /// For a placement that rests on what was measured before: it is no guess to be mended soon.
    pub fn trusting(mut self) -> Balancer {
        self.wait = USUAL;
        self
    }

    pub fn placement(&self) -> &[u32] {
        &self.placement
    }

    /// Where they are, when others than we have moved them. They have seen what no mean shows (what waits behind a
    /// long firing is moved away), and would do so again: each time we wait longer before we know better. A move of
    /// ours that is taken back before it was judged is a promise that was not kept.
    pub fn found(&mut self, placement: Placement) {
        self.placement = placement;
        self.promise = None;
        // After a long calm it has nothing to do with what was before.
        if self.since_move > LONGEST {
            self.wait = self.usual();
        }
        self.wait = self.longer();
        self.since_move = Duration::ZERO;
    }

    /// Takes a sample; what is to be searched, usually nothing.
    pub fn sample(&mut self, sample: &Sample) -> Option<Search> {
        let seconds = sample.elapsed.as_secs_f64();
        if seconds <= 0.0 || self.machine.workers() <= 1 {
            return None;
        }
        self.since_move += sample.elapsed;
        self.age += sample.elapsed;
        self.samples += 1;
        let mut graph = sample.graph.clone();
        for pin in &mut graph.pins {
            *pin = pin.and_then(|core| self.inside(core));
        }
        let seats = self.seats();
        self.learn(&graph.without_traffic(&self.machine, &seats), seconds);
        self.long.clone_from(&sample.long);
        self.leave(&sample.had, seconds);
        self.left = self.of_cores(&sample.left);
        if self.since_move < self.wait || self.samples < 2 {
            return None;
        }
        let mean = self.loads()?;
        let machine = self.machine_left();
        let now = bottleneck(&mean, &machine, &seats);
        if let Some(promised) = self.promise.take() {
            // A bottleneck that is as tall as before, or taller: the promise was not kept. More
            // work done in the same time looks the same, so the evenness is what counts.
            let even = mean.busy.iter().sum::<f64>() / machine.capacity();
            let kept = now <= even.max(f64::MIN_POSITIVE) * (1.0 + WORTH) || now < promised * 1.2;
            self.wait = match kept {
                true => self.usual(),
                false => self.longer(),
            };
            if !kept {
                self.since_move = Duration::ZERO;
                return None;
            }
        }
        (now >= BUSY * 1e9).then_some(Search {
            mean,
            machine,
            seats,
        })
    }

    /// What each takes of a core, by the second.
    fn loads(&self) -> Option<Graph> {
        let mut mean = self.mean.clone()?;
        for (busy, _) in mean
            .busy
            .iter_mut()
            .zip(&self.long)
            .filter(|(_, long)| **long)
        {
            if *busy >= OFTEN * 1e9 {
                *busy = busy.max(1e9);
            }
        }
        Some(mean)
    }

    fn seats(&self) -> Placement {
        let seats = self.placement.iter().map(|&c| self.inside(c).unwrap_or(0));
        seats.collect()
    }

    /// Is what a search has found worth its moves, by what is known now?
    pub fn gains(&self, found: &Found) -> bool {
        let (seats, Some(mean)) = (self.seats(), self.loads()) else {
            return false;
        };
        let now = bottleneck(&mean, &self.machine_left(), &seats);
        seats == found.before && found.then <= now * (1.0 - WORTH)
    }

    /// The moves to make (actor, worker) by what a search has found, if it gains something.
    pub fn moves(&mut self, found: Found) -> Vec<(usize, u32)> {
        if !self.gains(&found) {
            return Vec::new();
        }
        let better = found.better.iter().map(|&c| self.cores[c as usize]);
        let better: Placement = better.collect();
        let moves: Vec<(usize, u32)> = better
            .iter()
            .zip(&self.placement)
            .enumerate()
            .filter(|(_, (new, old))| new != old)
            .map(|(actor, (new, _))| (actor, *new))
            .collect();
        self.promise = Some(found.then);
        self.placement = better;
        self.since_move = Duration::ZERO;
        self.wait = self.wait.max(self.usual());
        // What was measured before counts for the actors' work still, so the mean is kept.
        moves
    }

    /// How long to wait after a promise that was not kept.
    fn longer(&self) -> Duration {
        (self.wait * 2).clamp(self.usual(), LONGEST)
    }

    /// How long it takes to know better: as long as what is known took, but not above USUAL.
    fn usual(&self) -> Duration {
        self.age.clamp(FIRST, USUAL)
    }

    /// Remembers what others leave of the cores; where nothing runs it is forgotten, and found out anew.
    fn leave(&mut self, had: &[Option<f64>], seconds: f64) {
        self.had.resize(self.cores.len(), 1.0);
        for (mean, core) in self.had.iter_mut().zip(&self.cores) {
            let (new, over) = match had.get(*core as usize).copied().flatten() {
                Some(had) => (had.clamp(LEAST, 1.0), LEFT),
                None => (1.0, FORGOTTEN),
            };
            *mean += (1.0 - (-seconds / over).exp()) * (new - *mean);
        }
    }

    /// Of these cores, what is said of all.
    fn of_cores(&self, all: &[f64]) -> Vec<f64> {
        let of = |core: &u32| all.get(*core as usize).copied().unwrap_or(1.0);
        self.cores
            .iter()
            .map(|core| of(core).clamp(LEAST, 1.0))
            .collect()
    }

    /// What others leave of each of these cores. Who has little to do there himself does not see all that they take.
    fn leave_now(&self) -> impl Iterator<Item = f64> {
        let left = self.left.iter().copied().chain(std::iter::repeat(1.0));
        self.had.iter().zip(left).map(|(had, left)| had.min(left))
    }

    fn machine_left(&self) -> Machine {
        self.machine.left(&self.leave_now().collect::<Vec<_>>())
    }

    /// What others leave of each core of the whole machine, which has so many; those that are not for these actors are
    /// as good as the best.
    pub fn left(&self, cores: usize) -> Vec<f64> {
        let most = self.leave_now().reduce(f64::max).unwrap_or(1.0);
        let mut all = vec![most; cores];
        for (core, left) in self.cores.iter().zip(self.leave_now()) {
            all[*core as usize] = left;
        }
        all
    }

    /// Newer samples count more; a sample of half a second replaces most of what was known.
    fn learn(&mut self, graph: &Graph, seconds: f64) {
        let weight = (1.0 - (-seconds / 0.3).exp()).max(seconds / self.age.as_secs_f64());
        let rate = |x: f64| x / seconds;
        match &mut self.mean {
            Some(mean)
                if mean.busy.len() == graph.busy.len() && mean.links.len() == graph.links.len() =>
            {
                for (mean, new) in mean.busy.iter_mut().zip(&graph.busy) {
                    *mean += weight * (rate(*new) - *mean);
                }
                for (mean, new) in mean.links.iter_mut().zip(&graph.links) {
                    mean.bytes += weight * (rate(new.bytes) - mean.bytes);
                }
            }
            mean => {
                let mut first = graph.clone();
                first.busy.iter_mut().for_each(|b| *b = rate(*b));
                first.links.iter_mut().for_each(|l| l.bytes = rate(l.bytes));
                *mean = Some(first);
            }
        }
    }
}
