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
use capacity::Left;
use hysteresis::Swings;
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
    /// What actors want of the time that is ours, the mean of the samples by the second: of all at first, then a
    /// decaying one.
    mean: Option<Graph>,
    long: Vec<bool>,
    /// Who is in a firing that seems not to end, so that nobody else gets anything of the core that he is on.
    stuck: Vec<usize>,
    left: Left,
    swings: Swings,
    samples: usize,
    /// Of this, and of what is waited for, only the time counts that was ours.
    age: Duration,
    /// Where they are is a guess at first.
    guess: bool,
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

/// What a search has found: the placement that it began with, and the better one.
#[derive(Clone, Debug)]
pub struct Found {
    before: Placement,
    better: Placement,
}

impl Search {
    pub fn actors(&self) -> usize {
        self.seats.len()
    }

    pub fn run(&self) -> Found {
        let better = improve(&self.mean, &self.machine, &self.seats);
        let better = Loads::new(&self.mean, &self.machine, better).stay(&self.seats, SAME);
        Found {
            before: self.seats.clone(),
            better,
        }
    }
}

/// A move is made for no less than this share of the bottleneck.
const WORTH: f64 = 0.10;
/// And not for what makes the busiest core less busy by less than this share of what it has.
const SAME: f64 = 0.01;
/// Below this share of a core the busiest worker is no bottleneck.
const BUSY: f64 = 0.25;
/// Who fires for long, and computes for this share of the time or more, needs a core: what is put beside him
/// would be moved away again.
const OFTEN: f64 = 0.5;
/// A first placement is a guess: it is looked at early, and again and again soon.
const FIRST: Duration = Duration::from_millis(8);
const USUAL: Duration = Duration::from_millis(300);
/// For so long what comes back is a better guess.
const GUESSES: Duration = Duration::from_secs(1);
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
            stuck: Vec::new(),
            left: Left::default(),
            swings: Swings::default(),
            samples: 0,
            age: Duration::ZERO,
            guess: true,
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
        self.left = Left::nothing_felt(&self.cores, left);
        self
    }

    /// What another one has seen of others until now, and what has gone from where to where.
    pub fn after(mut self, before: &Balancer) -> Balancer {
        let felt = |core: &u32| before.left.felt(before.inside(*core)?);
        self.left.feels(self.cores.iter().map(felt));
        self.swings = before.swings.clone();
        self
    }

    /// For a placement that rests on what was measured before: it is no guess to be mended soon.
    pub fn trusting(mut self) -> Balancer {
        self.wait = USUAL;
        self.guess = false;
        self
    }

    /// Somebody else has said where the same actors are to be: since we had asked for it (`wished`), or for reasons of his own.
    pub fn instead_of(self, before: &Balancer, wished: bool) -> Balancer {
        let mut new = self.after(before);
        match wished {
            true => new.swings.moved(&before.placement, &new.placement),
            false => new.swings.sent(&before.placement, &new.placement),
        }
        new
    }

    /// After how long somebody else who says where they are to be is to be asked again, since he sends something back
    /// that has gone just now; none: he does not.
    pub fn returns(&self, placement: &[u32]) -> Option<Duration> {
        self.swings.returns(&self.placement, placement)
    }

    /// Who is in a firing that seems not to end, and on which core, of all that are placed: what waits behind him is
    /// moved away, if there is a core without such a one, and would be again. He himself cannot be moved.
    pub fn stuck(&mut self, all: impl Iterator<Item = (usize, u32)>) {
        let (actors, cores): (Vec<usize>, Vec<u32>) = all.unzip();
        self.stuck = actors;
        let mut gone: Vec<u32> = cores.iter().filter_map(|&core| self.inside(core)).collect();
        gone.sort_unstable();
        gone.dedup();
        // Where there is such a firing on each, others have turns beside it wherever they are.
        if gone.len() >= self.cores.len() {
            gone.clear();
        }
        self.left.gone(gone);
    }

    pub fn placement(&self) -> &[u32] {
        &self.placement
    }

    /// Where they are, when others than we have moved them. They have seen what no mean shows (what waits behind a
    /// long firing is moved away), and would do so again: each time we wait longer before we know better. A move of
    /// ours that is taken back before it was judged is a promise that was not kept.
    pub fn found(&mut self, placement: Placement) {
        self.go(placement);
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
        let ours = self.left.feel(&self.cores, &sample.had, seconds);
        self.left.know(&self.cores, &sample.left);
        self.since_move += sample.elapsed.mul_f64(ours);
        self.age += sample.elapsed.mul_f64(ours);
        self.swings.goes_by(sample.elapsed);
        self.samples += 1;
        let mut graph = sample.graph.clone();
        for pin in &mut graph.pins {
            *pin = pin.and_then(|core| self.inside(core));
        }
        let seats = self.seats();
        let took = graph.without_traffic(&self.machine, &seats);
        let wanted = Left::wanted(&self.cores, &sample.had, took, &seats);
        self.learn(&wanted, seconds, ours);
        self.long.clone_from(&sample.long);
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
        // Where none can gain enough, none is looked for: that takes time from those who are so well off.
        if now < BUSY * 1e9 || lower_bound(&mean, &machine) > now * (1.0 - WORTH) {
            self.swings.nothing();
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
        let mut mean = self.left.takes(&self.machine, mean, &self.seats());
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
        // What he takes nobody else can have: it is said of the core.
        let seats = self.seats();
        mean.pins.resize(mean.busy.len(), None);
        for &stuck in self.stuck.iter().filter(|&&s| s < seats.len()) {
            mean.busy[stuck] = 0.0;
            mean.pins[stuck] = Some(seats[stuck]);
        }
        Some(mean)
    }

    /// What was measured before counts for the actors' work still, so the mean is kept.
    fn go(&mut self, placement: Placement) {
        let before = self.seats();
        self.placement = placement;
        let seats = self.seats();
        if let Some(mean) = &mut self.mean {
            self.left.go(&self.machine, mean, &before, &seats);
        }
    }

    fn seats(&self) -> Placement {
        let seats = self.placement.iter().map(|&c| self.inside(c).unwrap_or(0));
        seats.collect()
    }

    /// Where somebody else says where they are to be, who knows more: whether what a search has found is worth that he is
    /// asked. For what would come back it has to be so for a while, as if it were moved here.
    pub fn asks(&mut self, found: &Found) -> bool {
        if self.gains(found).is_none() {
            self.swings.nothing();
            return false;
        }
        let better = self.cores_of(&found.better);
        self.swings.may(&self.placement, &better)
    }

    /// The cores of these seats.
    fn cores_of(&self, seats: &[u32]) -> Placement {
        seats.iter().map(|&c| self.cores[c as usize]).collect()
    }

    /// The bottleneck of what a search has found, if that is worth its moves, both by what is known now.
    fn gains(&self, found: &Found) -> Option<f64> {
        let (mean, machine) = (self.loads()?, self.machine_left());
        if self.seats() != found.before {
            return None;
        }
        let [now, then] =
            [&found.before, &found.better].map(|seats| bottleneck(&mean, &machine, seats));
        (then <= now * (1.0 - WORTH)).then_some(then)
    }

    /// The moves to make (actor, worker) by what a search has found, if it gains something.
    pub fn moves(&mut self, found: Found) -> Vec<(usize, u32)> {
        let Some(then) = self.gains(&found) else {
            self.swings.nothing();
            return Vec::new();
        };
        let better = self.cores_of(&found.better);
        let guesses = self.guess && self.age < GUESSES;
        if !guesses && !self.swings.may(&self.placement, &better) {
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
            self.swings.moved(&self.placement, &better);
        }
        self.promise = Some(then);
        self.go(better);
        self.since_move = Duration::ZERO;
        self.wait = self.wait.max(self.usual());
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

    fn machine_left(&self) -> Machine {
        self.machine.left(&self.left.now().collect::<Vec<_>>())
    }

    /// What others leave of each core of the whole machine, which has so many; those that are not for these actors are
    /// as good as the best.
    pub fn left(&self, cores: usize) -> Vec<f64> {
        let most = self.left.now().reduce(f64::max).unwrap_or(1.0);
        let mut all = vec![most; cores];
        for (core, left) in self.cores.iter().zip(self.left.now()) {
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
