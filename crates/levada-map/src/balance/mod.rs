// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When to place anew: from samples of a running application to the moves worth making.
//!
//! The rules: measure before moving; move only for a gain that is worth it; look whether the move
//! brought what was promised, and wait longer each time that it did not; and longer again before what
//! was moved goes back ([`crate::balance::hysteresis`]). So a load that changes is followed within a second, and a load
//! that only looks as if it did never makes actors swing.

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

/// What was measured since the last sample: busy time in nanoseconds, bytes on links.
#[derive(Clone, Debug)]
pub struct Sample {
    pub elapsed: Duration,
    pub graph: Graph,
    /// Which actors' firings last so long that what waits behind them is moved away meanwhile; empty: none's.
    pub long_firing: Vec<bool>,
    /// What part of its core each worker has had of the time in which something ran there; none: nothing did. The rest
    /// other programs had. Empty: they have had all.
    pub core_share: Vec<Option<f64>>,
    /// What those leave of each core of whom that is known, whether or not anything of ours runs there; empty: all.
    pub available: Vec<f64>,
}

#[derive(Clone, Debug)]
pub struct Balancer {
    /// Of these cores, which are all that actors may be on.
    machine: Machine,
    cores: Vec<u32>,
    placement: Placement,
    /// What actors want of the time that is ours, the mean of the samples by the second: of all at first, then a
    /// decaying one.
    mean: Option<Graph>,
    long_firing: Vec<bool>,
    /// Who is in a firing that seems not to end, so that nobody else gets anything of the core that he is on.
    stuck: Vec<usize>,
    available: AvailableCapacity,
    hysteresis: MoveHysteresis,
    samples: usize,
    /// Of this, and of what is waited for, only the time counts that was ours.
    age: Duration,
    /// Where they are is a guess at first.
    guess: bool,
    since_move: Duration,
    wait: Duration,
    /// What the last move promised, as a share of the bottleneck before, and that bottleneck.
    predicted: Option<f64>,
}

/// A better placement that is to be looked for, which may take long where there are many actors.
#[derive(Clone, Debug)]
pub struct Search {
    mean: Graph,
    machine: Machine,
    seats: Placement,
}

/// What a search has found: the placement that it began with, and the better one.
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

/// A move is made for no less than this share of the bottleneck.
const GAIN_MIN: f64 = 0.10;
/// And not for what makes the busiest core less busy by less than this share of what it has.
const MOVE_GAIN_MIN: f64 = 0.01;
/// Below this share of a core the busiest worker is no bottleneck.
const BUSY_MIN: f64 = 0.25;
/// Who fires for long, and computes for this share of the time or more, needs a core: what is put beside him
/// would be moved away again.
const LONG_FIRING_SHARE: f64 = 0.5;
/// A first placement is a guess: it is looked at early, and again and again soon.
const WAIT_MIN: Duration = Duration::from_millis(8);
const WAIT_USUAL: Duration = Duration::from_millis(300);
/// For so long what comes back is a better guess.
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

    /// Only some cores are for these actors: the others are somebody else's.
    pub fn restricted_to(mut self, cores: Vec<u32>) -> Balancer {
        self.machine = self.machine.subset(&cores);
        self.cores = cores;
        self
    }

    /// The number of a core among those; none: it is not, or not any more.
    fn index_of(&self, core: u32) -> Option<u32> {
        let found = self.cores.iter().position(|&c| c == core);
        found.map(|c| c as u32)
    }

    /// What is known of others when it begins, core by core of the whole machine.
    pub fn with_available(mut self, available: &[f64]) -> Balancer {
        self.available = AvailableCapacity::unobserved(&self.cores, available);
        self
    }

    /// What another one has seen of others until now, and what has gone from where to where.
    pub fn continuing(mut self, before: &Balancer) -> Balancer {
        let observed = |core: &u32| before.available.observed(before.index_of(*core)?);
        self.available
            .continue_from(self.cores.iter().map(observed));
        self.hysteresis = before.hysteresis.clone();
        self
    }

    /// For a placement that rests on what was measured before: it is no guess to be mended soon.
    pub fn with_measured_placement(mut self) -> Balancer {
        self.wait = WAIT_USUAL;
        self.guess = false;
        self
    }

    /// Somebody else has said where the same actors are to be: since we had asked for it (`wished`), or for reasons of his own.
    pub fn replacing(self, before: &Balancer, wished: bool) -> Balancer {
        let mut new = self.continuing(before);
        match wished {
            true => new
                .hysteresis
                .record_move(&before.placement, &new.placement),
            false => new
                .hysteresis
                .record_forced_move(&before.placement, &new.placement),
        }
        new
    }

    /// After how long somebody else who says where they are to be is to be asked again, since he sends something back
    /// that has gone just now; none: he does not.
    pub fn return_delay(&self, placement: &[u32]) -> Option<Duration> {
        self.hysteresis.return_delay(&self.placement, placement)
    }

    /// Who is in a firing that seems not to end, and on which core, of all that are placed: what waits behind him is
    /// moved away, if there is a core without such a one, and would be again. He himself cannot be moved.
    pub fn set_stuck(&mut self, all: impl Iterator<Item = (usize, u32)>) {
        let (actors, cores): (Vec<usize>, Vec<u32>) = all.unzip();
        self.stuck = actors;
        let mut gone: Vec<u32> = cores
            .iter()
            .filter_map(|&core| self.index_of(core))
            .collect();
        gone.sort_unstable();
        gone.dedup();
        // Where there is such a firing on each, others have turns beside it wherever they are.
        if gone.len() >= self.cores.len() {
            gone.clear();
        }
        self.available.set_unavailable(gone);
    }

    pub fn placement(&self) -> &[u32] {
        &self.placement
    }

    /// Where they are, when others than we have moved them. They have seen what no mean shows (what waits behind a
    /// long firing is moved away), and would do so again: each time we wait longer before we know better. A move of
    /// ours that is taken back before it was judged is a promise that was not kept.
    pub fn set_placement(&mut self, placement: Placement) {
        self.go(placement);
        self.predicted = None;
        // After a long calm it has nothing to do with what was before.
        if self.since_move > WAIT_MAX {
            self.wait = self.usual_wait();
        }
        self.wait = self.longer_wait();
        self.since_move = Duration::ZERO;
    }

    /// Takes a sample; what is to be searched, usually nothing.
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
        if let Some(promised) = self.predicted.take() {
            // A bottleneck that is as tall as before, or taller: the promise was not kept. More
            // work done in the same time looks the same, so the evenness is what counts.
            let even = mean.busy.iter().sum::<f64>() / machine.capacity();
            let kept =
                now <= even.max(f64::MIN_POSITIVE) * (1.0 + GAIN_MIN) || now < promised * 1.2;
            self.wait = match kept {
                true => self.usual_wait(),
                false => self.longer_wait(),
            };
            if !kept {
                self.since_move = Duration::ZERO;
                return None;
            }
        }
        // Where none can gain enough, none is looked for: that takes time from those who are so well off.
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

    /// What each takes of a core, by the second.
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
        // What he takes nobody else can have: it is said of the core.
        let seats = self.local_placement();
        mean.pins.resize(mean.busy.len(), None);
        for &stuck in self.stuck.iter().filter(|&&s| s < seats.len()) {
            mean.busy[stuck] = 0.0;
            mean.pins[stuck] = Some(seats[stuck]);
        }
        Some(mean)
    }

    /// What was measured before counts for the actors' work still, so the mean is kept.
    fn go(&mut self, placement: Placement) {
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

    /// Where somebody else says where they are to be, who knows more: whether what a search has found is worth that he is
    /// asked. For what would come back it has to be so for a while, as if it were moved here.
    pub fn is_worth_asking(&mut self, found: &SearchResult) -> bool {
        if self.gain_of(found).is_none() {
            self.hysteresis.reset();
            return false;
        }
        let better = self.cores_of(&found.better);
        self.hysteresis.is_due(&self.placement, &better)
    }

    /// The cores of these seats.
    fn cores_of(&self, seats: &[u32]) -> Placement {
        seats.iter().map(|&c| self.cores[c as usize]).collect()
    }

    /// The bottleneck of what a search has found, if that is worth its moves, both by what is known now.
    fn gain_of(&self, found: &SearchResult) -> Option<f64> {
        let (mean, machine) = (self.loads()?, self.available_machine());
        if self.local_placement() != found.before {
            return None;
        }
        let [now, then] =
            [&found.before, &found.better].map(|seats| bottleneck(&mean, &machine, seats));
        (then <= now * (1.0 - GAIN_MIN)).then_some(then)
    }

    /// The moves to make (actor, worker) by what a search has found, if it gains something.
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
        self.go(better);
        self.since_move = Duration::ZERO;
        self.wait = self.wait.max(self.usual_wait());
        moves
    }

    /// How long to wait after a promise that was not kept.
    fn longer_wait(&self) -> Duration {
        (self.wait * 2).clamp(self.usual_wait(), WAIT_MAX)
    }

    /// How long it takes to know better: as long as what is known took, but not above USUAL.
    fn usual_wait(&self) -> Duration {
        self.age.clamp(WAIT_MIN, WAIT_USUAL)
    }

    fn available_machine(&self) -> Machine {
        self.machine
            .with_available(&self.available.current().collect::<Vec<_>>())
    }

    /// What others leave of each core of the whole machine, which has so many; those that are not for these actors are
    /// as good as the best.
    pub fn available(&self, cores: usize) -> Vec<f64> {
        let most = self.available.current().reduce(f64::max).unwrap_or(1.0);
        let mut all = vec![most; cores];
        for (core, left) in self.cores.iter().zip(self.available.current()) {
            all[*core as usize] = left;
        }
        all
    }

    /// Newer samples count more; a sample in which half a second was ours replaces most of what was known.
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
