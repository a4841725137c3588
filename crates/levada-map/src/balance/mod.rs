// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Online load balancer: from samples of a running application to moves that are worth making.
//!
//! Rules: measure before moving; move only for a sufficient gain; check whether a move had the
//! predicted effect, and wait longer each time it did not; wait longer before reversing a move
//! ([`crate::balance::hysteresis`]). A real change of load is followed within a second; noise does
//! not make actors oscillate.

mod capacity;
mod hysteresis;

use crate::model::graph::{Graph, Placement};
use crate::model::machine::Machine;
use crate::place::bounds::lower_bound;
use crate::place::heuristics::{bottleneck, improve};
use crate::place::loads::Loads;
use capacity::AvailableCapacity;
use hysteresis::MoveHysteresis;
use std::time::Duration;

/// Measurement since the last sample: busy nanoseconds per actor, bytes per link.
#[derive(Clone, Debug)]
pub struct Sample {
    pub elapsed: Duration,
    pub graph: Graph,
    /// Actors with such long firings that ready actors behind them are moved away; empty if there
    /// are none.
    pub long_firing: Vec<bool>,
    /// The fraction of its core that each worker got while it had work; none if it had none. Empty:
    /// all of it.
    pub core_share: Vec<Option<f64>>,
    /// The fraction of each core that other known processes leave, including cores where no actor
    /// runs; empty: all.
    pub available: Vec<f64>,
}

#[derive(Clone, Debug)]
pub struct Balancer {
    /// Restricted to `cores`, the cores that actors may use.
    machine: Machine,
    cores: Vec<u32>,
    placement: Placement,
    /// Mean demand per second of CPU time of this host: the plain mean of the first samples, then
    /// exponentially decaying.
    mean: Option<Graph>,
    long_firing: Vec<bool>,
    /// Actors in a firing that does not seem to end: no other actor gets time on their cores.
    stuck: Vec<usize>,
    available: AvailableCapacity,
    hysteresis: MoveHysteresis,
    samples: usize,
    /// Time since the first sample. Like the waiting times, it counts only the part in which this host's workers had
    /// their cores.
    age: Duration,
    /// The first placement rests on estimates, not on measurements.
    guess: bool,
    /// Time since the last move, and the time to wait before the next one.
    since_move: Duration,
    wait: Duration,
    /// The load of the busiest core that the last move should have led to.
    predicted: Option<f64>,
}

/// A search for a better placement. It may take long for many actors, so it can run on another
/// thread.
#[derive(Clone, Debug)]
pub struct Search {
    mean: Graph,
    machine: Machine,
    seats: Placement,
}

/// The result of a search: the placement it started from, and the better one.
#[derive(Clone, Debug)]
pub struct SearchResult {
    before: Placement,
    better: Placement,
}

impl Search {
    pub fn actors(&self) -> usize {
        self.seats.len()
    }

    pub fn run(&self) -> SearchResult {
        let better = improve(&self.mean, &self.machine, &self.seats);
        let better = Loads::new(&self.mean, &self.machine, better)
            .undo_small_moves(&self.seats, MOVE_GAIN_MIN);
        SearchResult {
            before: self.seats.clone(),
            better,
        }
    }
}

/// Minimum gain of a set of moves, as a fraction of the bottleneck.
const GAIN_MIN: f64 = 0.10;
/// Minimum gain of a single move within the set, as a fraction of the bottleneck.
const MOVE_GAIN_MIN: f64 = 0.01;
/// Below this load (fraction of a core) the busiest worker is no bottleneck.
const BUSY_MIN: f64 = 0.25;
/// An actor with long firings and at least this load needs a core of its own: the runtime would
/// move others away from it again.
const LONG_FIRING_SHARE: f64 = 0.5;
/// Waiting times between moves: the shortest, for a placement by estimates, and the usual one.
const WAIT_MIN: Duration = Duration::from_millis(8);
const WAIT_USUAL: Duration = Duration::from_millis(300);
/// How long a placement counts as an estimate; and the longest waiting time.
const GUESS_PERIOD: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(20);

impl Balancer {
    pub fn new(machine: Machine, placement: Placement) -> Balancer {
        let cores = (0..machine.workers() as u32).collect();
        Balancer {
            machine,
            cores,
            placement,
            mean: None,
            long_firing: Vec::new(),
            stuck: Vec::new(),
            available: AvailableCapacity::default(),
            hysteresis: MoveHysteresis::default(),
            samples: 0,
            age: Duration::ZERO,
            guess: true,
            since_move: Duration::ZERO,
            wait: WAIT_MIN,
            predicted: None,
        }
    }

    /// Restricts the actors to some of the cores.
    pub fn restricted_to(mut self, cores: Vec<u32>) -> Balancer {
        self.machine = self.machine.subset(&cores);
        self.cores = cores;
        self
    }

    /// The index of a core in `cores`; none if actors may not use it.
    fn index_of(&self, core: u32) -> Option<u32> {
        let found = self.cores.iter().position(|&c| c == core);
        found.map(|c| c as u32)
    }

    /// The available fraction of each core of the machine at the start.
    pub fn with_available(mut self, available: &[f64]) -> Balancer {
        self.available = AvailableCapacity::unobserved(&self.cores, available);
        self
    }

    /// Continues with the observations and the move history of an earlier balancer.
    pub fn continuing(mut self, before: &Balancer) -> Balancer {
        let observed = |core: &u32| before.available.observed(before.index_of(*core)?);
        self.available
            .continue_from(self.cores.iter().map(observed));
        self.hysteresis = before.hysteresis.clone();
        self
    }

    /// For a placement that rests on measurements: no early correction.
    pub fn with_measured_placement(mut self) -> Balancer {
        self.wait = WAIT_USUAL;
        self.guess = false;
        self
    }

    /// For a new placement of the same actors by another component, because this one asked for it
    /// (`wished`) or for reasons of its own.
    pub fn replacing(self, before: &Balancer, wished: bool) -> Balancer {
        let mut new = self.continuing(before);
        if wished {
            new.hysteresis
                .record_move(&before.placement, &new.placement)
        } else {
            new.hysteresis
                .record_forced_move(&before.placement, &new.placement)
        }
        new
    }

    /// How long the caller should wait before asking the other component again, since its new
    /// placement reverses a recent move; none if it does not.
    pub fn return_delay(&self, placement: &[u32]) -> Option<Duration> {
        self.hysteresis.return_delay(&self.placement, placement)
    }

    /// Sets the actors in a firing that does not seem to end, with their cores. Other actors are
    /// moved away from these cores if there is a core without such a firing; the actor itself
    /// cannot be moved.
    pub fn set_stuck(&mut self, all: impl Iterator<Item = (usize, u32)>) {
        let (actors, cores): (Vec<usize>, Vec<u32>) = all.unzip();
        self.stuck = actors;
        let mut gone: Vec<u32> = cores
            .iter()
            .filter_map(|&core| self.index_of(core))
            .collect();
        gone.sort_unstable();
        gone.dedup();
        // If every core has such a firing, all cores are equal.
        if gone.len() >= self.cores.len() {
            gone.clear();
        }
        self.available.set_unavailable(gone);
    }

    pub fn placement(&self) -> &[u32] {
        &self.placement
    }

    /// Takes over a placement that the runtime changed by itself, for example by moving actors away
    /// from a long firing. It would do so again, so the waiting time grows each time. If it undoes
    /// a move of the balancer before its effect was checked, the move counts as failed.
    pub fn set_placement(&mut self, placement: Placement) {
        self.adopt_placement(placement);
        self.predicted = None;
        // After a long calm the earlier moves do not matter.
        if self.since_move > WAIT_MAX {
            self.wait = self.usual_wait();
        }
        self.wait = self.longer_wait();
        self.since_move = Duration::ZERO;
    }

    /// Takes a sample; returns a search if a better placement may exist.
    pub fn sample(&mut self, sample: &Sample) -> Option<Search> {
        let seconds = sample.elapsed.as_secs_f64();
        if seconds <= 0.0 || self.machine.workers() <= 1 {
            return None;
        }
        let ours = self
            .available
            .observe(&self.cores, &sample.core_share, seconds);
        self.available.set_known(&self.cores, &sample.available);
        self.since_move += sample.elapsed.mul_f64(ours);
        self.age += sample.elapsed.mul_f64(ours);
        self.hysteresis.advance(sample.elapsed);
        self.samples += 1;
        let mut graph = sample.graph.clone();
        for pin in &mut graph.pins {
            *pin = pin.and_then(|core| self.index_of(core));
        }
        let seats = self.local_placement();
        let took = graph.without_traffic(&self.machine, &seats);
        let demand = AvailableCapacity::demand(&self.cores, &sample.core_share, took, &seats);
        self.learn(&demand, seconds, ours);
        self.long_firing.clone_from(&sample.long_firing);
        if self.since_move < self.wait || self.samples < 2 {
            return None;
        }
        let mean = self.loads()?;
        let machine = self.available_machine();
        let now = bottleneck(&mean, &machine, &seats);
        if let Some(reserved) = self.predicted.take() {
            // The move failed if the bottleneck is neither near the balanced load nor near the
            // prediction. Balance counts because more work in the same time raises the bottleneck
            // as well.
            let even = mean.busy.iter().sum::<f64>() / machine.capacity();
            let kept =
                now <= even.max(f64::MIN_POSITIVE) * (1.0 + GAIN_MIN) || now < reserved * 1.2;
            self.wait = if kept {
                self.usual_wait()
            } else {
                self.longer_wait()
            };
            if !kept {
                self.since_move = Duration::ZERO;
                return None;
            }
        }
        // No search if the gain cannot suffice: it would take time from the application.
        if now < BUSY_MIN * 1e9 || lower_bound(&mean, &machine) > now * (1.0 - GAIN_MIN) {
            self.hysteresis.reset();
            return None;
        }
        Some(Search {
            mean,
            machine,
            seats,
        })
    }

    /// Load per actor, in nanoseconds per second.
    fn loads(&self) -> Option<Graph> {
        let mean = self.mean.clone()?;
        let mut mean = self
            .available
            .usage(&self.machine, mean, &self.local_placement());
        for (busy, _) in mean
            .busy
            .iter_mut()
            .zip(&self.long_firing)
            .filter(|(_, long)| **long)
        {
            if *busy >= LONG_FIRING_SHARE * 1e9 {
                *busy = busy.max(1e9);
            }
        }
        // Its load is accounted for by the core's capacity.
        let seats = self.local_placement();
        mean.pins.resize(mean.busy.len(), None);
        for &stuck in self.stuck.iter().filter(|&&s| s < seats.len()) {
            mean.busy[stuck] = 0.0;
            mean.pins[stuck] = Some(seats[stuck]);
        }
        Some(mean)
    }

    /// Continues with another placement. The mean demand of the actors stays valid, so it is kept.
    fn adopt_placement(&mut self, placement: Placement) {
        let before = self.local_placement();
        self.placement = placement;
        let seats = self.local_placement();
        if let Some(mean) = &mut self.mean {
            self.available
                .rescale_demand(&self.machine, mean, &before, &seats);
        }
    }

    fn local_placement(&self) -> Placement {
        let seats = self
            .placement
            .iter()
            .map(|&c| self.index_of(c).unwrap_or(0));
        seats.collect()
    }

    /// For a mapping that another component decides: whether the result is worth asking it. A
    /// reversal must be worthwhile for a hold time, as with own moves.
    pub fn is_worth_asking(&mut self, found: &SearchResult) -> bool {
        if self.gain_of(found).is_none() {
            self.hysteresis.reset();
            return false;
        }
        let better = self.cores_of(&found.better);
        self.hysteresis.is_due(&self.placement, &better)
    }

    /// The cores of these local indices.
    fn cores_of(&self, seats: &[u32]) -> Placement {
        seats.iter().map(|&c| self.cores[c as usize]).collect()
    }

    /// The bottleneck of the search result, by current measurements, if it gains enough.
    fn gain_of(&self, found: &SearchResult) -> Option<f64> {
        let (mean, machine) = (self.loads()?, self.available_machine());
        if self.local_placement() != found.before {
            return None;
        }
        let [now, then] =
            [&found.before, &found.better].map(|seats| bottleneck(&mean, &machine, seats));
        (then <= now * (1.0 - GAIN_MIN)).then_some(then)
    }

    /// The moves to make (actor, worker), if the search result gains enough.
    pub fn moves(&mut self, found: SearchResult) -> Vec<(usize, u32)> {
        let Some(then) = self.gain_of(&found) else {
            self.hysteresis.reset();
            return Vec::new();
        };
        let better = self.cores_of(&found.better);
        let guesses = self.guess && self.age < GUESS_PERIOD;
        if !guesses && !self.hysteresis.is_due(&self.placement, &better) {
            return Vec::new();
        }
        let moves: Vec<(usize, u32)> = better
            .iter()
            .zip(&self.placement)
            .enumerate()
            .filter(|(_, (new, old))| new != old)
            .map(|(actor, (new, _))| (actor, *new))
            .collect();
        if !guesses {
            self.hysteresis.record_move(&self.placement, &better);
        }
        self.predicted = Some(then);
        self.adopt_placement(better);
        self.since_move = Duration::ZERO;
        self.wait = self.wait.max(self.usual_wait());
        moves
    }

    /// The waiting time after a move that failed.
    fn longer_wait(&self) -> Duration {
        (self.wait * 2).clamp(self.usual_wait(), WAIT_MAX)
    }

    /// The usual waiting time: as long as has been measured so far, within limits.
    fn usual_wait(&self) -> Duration {
        self.age.clamp(WAIT_MIN, WAIT_USUAL)
    }

    fn available_machine(&self) -> Machine {
        self.machine
            .with_available(&self.available.current().collect::<Vec<_>>())
    }

    /// The available fraction of each core of a machine with this many cores; cores that actors may
    /// not use are assumed to be as good as the best one.
    pub fn available(&self, cores: usize) -> Vec<f64> {
        let most = self.available.current().reduce(f64::max).unwrap_or(1.0);
        let mut all = vec![most; cores];
        for (core, left) in self.cores.iter().zip(self.available.current()) {
            all[*core as usize] = left;
        }
        all
    }

    /// Updates the mean. Recent samples count more: half a second of our CPU time replaces most of
    /// the earlier mean.
    fn learn(&mut self, graph: &Graph, seconds: f64, ours: f64) {
        let new = seconds * ours;
        let weight = (1.0 - (-new / 0.3).exp()).max(new / self.age.as_secs_f64());
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
