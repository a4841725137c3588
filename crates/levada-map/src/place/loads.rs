// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Worker loads under a placement, updated incrementally while actors move, and local search on
//! them.

use crate::model::graph::{Graph, Placement};
use crate::model::machine::Machine;
use crate::place::bounds::lower_bound;

/// The cost of a placement: the load of the busiest worker; among equals, balance and traffic.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub max: f64,
    /// The sum of squared loads, traffic included.
    squares: f64,
}

impl Cost {
    pub fn is_better_than(&self, other: &Cost) -> bool {
        let margin = 1e-9 * other.max.abs().max(f64::MIN_POSITIVE);
        if self.max < other.max - margin {
            return true;
        }
        self.max <= other.max + margin && self.squares < other.squares * (1.0 - 1e-9)
    }
}

/// Up to this product of actors and squared workers, every move of every actor is tried.
const EXHAUSTIVE_TRIALS_MAX: usize = 1 << 17;
/// In larger graphs: how many of the least loaded workers are tried as targets, in addition to the
/// workers of an actor's neighbors.
const TARGETS: usize = 4;
/// How many are tried instead if those accept nothing, and how often at most, since that is slow;
/// and the ratio of the busiest worker to the lower bound at which the search stops.
const TARGETS_WIDE: usize = 256;
const WIDE_ROUNDS_MAX: usize = 32;
const EVEN_RATIO: f64 = 1.03;
/// Up to this number of moved actors, exchanged pairs are tested for being exchanged back.
const PAIRS_MAX: usize = 64;
/// Budget of the full local search, in trials times workers; after that only the busiest worker is
/// relieved.
const TRIALS_MAX: usize = 1 << 22;

pub struct Loads<'g> {
    graph: &'g Graph,
    machine: &'g Machine,
    placement: Placement,
    loads: Vec<f64>,
    /// For each actor, its neighbors and the bytes exchanged with them.
    neighbors: Vec<Vec<(usize, f64)>>,
    /// For each actor, an upper bound on the traffic that any worker saves when it moves.
    saving_max: Vec<f64>,
}

/// True if every move of every actor can be tried.
pub fn is_small(graph: &Graph, machine: &Machine) -> bool {
    graph.busy.len() * machine.workers().pow(2) <= EXHAUSTIVE_TRIALS_MAX
}

/// State of a search step. Moves are evaluated without being made, and most are rejected by a
/// bound.
struct Trial {
    is: Cost,
    /// The best cost so far, including the current one.
    best: Cost,
    /// Workers in descending order of load.
    ranked: Vec<u32>,
    /// The workers that the trial affects, and their resulting loads.
    touched: Vec<(u32, f64)>,
}

impl Trial {
    /// True if no move that gives some worker this load can be the best one, rounding included.
    fn cannot_improve(&self, load: f64) -> bool {
        load > self.best.max * (1.0 + 1e-6)
    }
}

impl<'g> Loads<'g> {
    pub fn new(graph: &'g Graph, machine: &'g Machine, mut placement: Placement) -> Loads<'g> {
        let actors = graph.busy.len();
        placement.resize(actors, 0);
        for (actor, worker) in placement.iter_mut().enumerate() {
            *worker = graph.pin(actor).unwrap_or(*worker);
            *worker = (*worker).min(machine.workers() as u32 - 1);
        }
        let mut neighbors: Vec<Vec<(usize, f64)>> = vec![Vec::new(); actors];
        for link in &graph.links {
            if link.from < actors && link.to < actors && link.from != link.to {
                neighbors[link.from].push((link.to, link.bytes));
                neighbors[link.to].push((link.from, link.bytes));
            }
        }
        let farthest = machine.farthest_byte();
        let bytes = |neighbors: &Vec<(usize, f64)>| neighbors.iter().map(|n| n.1).sum::<f64>();
        let saving_max = neighbors.iter().map(|n| bytes(n) * farthest).collect();
        let mut loads = vec![0.0; machine.workers()];
        for actor in 0..actors {
            let worker = placement[actor];
            loads[worker as usize] += graph.busy[actor] / machine.cores[worker as usize].speed;
            for &(other, bytes) in &neighbors[actor] {
                loads[worker as usize] += bytes * machine.byte(worker, placement[other]);
            }
        }
        Loads {
            graph,
            machine,
            placement,
            loads,
            neighbors,
            saving_max,
        }
    }

    pub fn cost(&self) -> Cost {
        Cost {
            max: self.loads.iter().copied().fold(0.0, f64::max),
            squares: self.loads.iter().map(|l| l * l).sum(),
        }
    }

    /// Total work and traffic.
    pub fn total(&self) -> f64 {
        self.loads.iter().sum()
    }

    pub fn placement(&self) -> &[u32] {
        &self.placement
    }

    pub fn into_placement(self) -> Placement {
        self.placement
    }

    pub fn shift(&mut self, actor: usize, to: u32) {
        let from = self.placement[actor];
        if from == to {
            return;
        }
        let (machine, busy) = (self.machine, self.graph.busy[actor]);
        self.loads[from as usize] -= busy / machine.cores[from as usize].speed;
        self.loads[to as usize] += busy / machine.cores[to as usize].speed;
        for &(other, bytes) in &self.neighbors[actor] {
            let there = self.placement[other];
            let (was, is) = (machine.byte(from, there), machine.byte(to, there));
            self.loads[from as usize] -= bytes * was;
            self.loads[to as usize] += bytes * is;
            self.loads[there as usize] += bytes * (is - was);
        }
        self.placement[actor] = to;
    }

    /// Local search: the best move, then the best swap, while one improves the cost. If the graph
    /// is large or the budget is used up, only the busiest worker is relieved.
    pub fn refine(&mut self) {
        let (actors, workers) = (self.placement.len(), self.machine.workers());
        let round = (actors * workers + actors * actors / 4).saturating_mul(workers);
        let mut left = if is_small(self.graph, self.machine) {
            TRIALS_MAX
        } else {
            0
        };
        while left >= round {
            if !(self.best_move() || self.best_swap()) {
                return;
            }
            left -= round;
        }
        self.relieve_to(EVEN_RATIO, 0);
    }

    /// Relieves the busiest worker until its load is within `even` of the lower bound, with a wide
    /// choice of targets if the least loaded workers accept nothing.
    pub fn even_out(&mut self, even: f64) {
        self.relieve_to(even, WIDE_ROUNDS_MAX);
    }

    /// Relieves the busiest worker until it meets the goal; `wide_rounds` rounds may try many
    /// targets.
    fn relieve_to(&mut self, even: f64, mut wide_rounds: usize) {
        let (actors, workers) = (self.placement.len(), self.machine.workers());
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); workers];
        for actor in (0..actors).filter(|&a| self.graph.pin(a).is_none()) {
            members[self.placement[actor] as usize].push(actor);
        }
        let goal = lower_bound(self.graph, self.machine) * even;
        // Every round reduces the cost, so the loop ends; the limit is for huge graphs.
        for _ in 0..4 * actors + 16 {
            if self.relieve(&mut members, goal, TARGETS) {
                continue;
            }
            if wide_rounds == 0 || !self.relieve(&mut members, goal, TARGETS_WIDE) {
                break;
            }
            wide_rounds -= 1;
        }
    }

    /// Undoes moves from `before` that reduce the bottleneck by less than the fraction `part`:
    /// first single actors, lightest first, then exchanged pairs.
    pub fn undo_small_moves(mut self, before: &[u32], part: f64) -> Placement {
        let most = self.cost().max * (1.0 + part);
        let moved = |a: &usize| self.is_free(*a) && self.placement[*a] != before[*a];
        let mut moved: Vec<usize> = (0..self.placement.len()).filter(moved).collect();
        moved.sort_by(|&a, &b| self.graph.busy[a].total_cmp(&self.graph.busy[b]));
        moved.retain(|&actor| !self.put_back(&[actor], before, most));
        let pairs = if moved.len() > PAIRS_MAX {
            0
        } else {
            moved.len()
        };
        for (i, &a) in moved[..pairs].iter().enumerate() {
            for &b in &moved[i + 1..] {
                let there = [a, b].map(|actor| self.placement[actor]);
                if there == [before[b], before[a]] && self.put_back(&[a, b], before, most) {
                    break;
                }
            }
        }
        self.placement
    }

    /// Moves these actors back unless a worker would exceed `most`. Returns whether they were
    /// moved.
    fn put_back(&mut self, actors: &[usize], before: &[u32], most: f64) -> bool {
        let there: Vec<u32> = actors.iter().map(|&a| self.placement[a]).collect();
        actors.iter().for_each(|&a| self.shift(a, before[a]));
        let back = self.cost().max <= most;
        if !back {
            let both = actors.iter().zip(there);
            both.for_each(|(&actor, there)| self.shift(actor, there));
        }
        back
    }

    fn is_free(&self, actor: usize) -> bool {
        self.graph.pin(actor).is_none()
    }

    fn busiest(&self) -> u32 {
        (0..self.loads.len())
            .max_by(|&a, &b| self.loads[a].total_cmp(&self.loads[b]))
            .unwrap_or(0) as u32
    }

    /// The work of an actor on a worker.
    fn time(&self, actor: usize, worker: u32) -> f64 {
        self.graph.busy[actor] / self.machine.cores[worker as usize].speed
    }

    fn trial(&self) -> Trial {
        let mut ranked: Vec<u32> = (0..self.loads.len() as u32).collect();
        ranked.sort_by(|&a, &b| self.loads[b as usize].total_cmp(&self.loads[a as usize]));
        let is = self.cost();
        Trial {
            is,
            best: is,
            ranked,
            touched: Vec::new(),
        }
    }

    /// Returns whether the moves improve on the best cost so far, and records it.
    fn gains(&self, trial: &mut Trial, moves: &[(usize, u32)]) -> bool {
        let cost = self.cost_after(trial, moves);
        let is_better_than = cost.is_better_than(&trial.best);
        if is_better_than {
            trial.best = cost;
        }
        is_better_than
    }

    /// The cost after these moves, made in order.
    fn cost_after(&self, trial: &mut Trial, moves: &[(usize, u32)]) -> Cost {
        let Trial {
            is,
            ranked,
            touched,
            ..
        } = trial;
        touched.clear();
        let mut add = |worker: u32, load: f64| match touched.iter_mut().find(|t| t.0 == worker) {
            Some(one) => one.1 += load,
            None => touched.push((worker, self.loads[worker as usize] + load)),
        };
        for (i, &(actor, to)) in moves.iter().enumerate() {
            let from = self.placement[actor];
            add(from, -self.time(actor, from));
            add(to, self.time(actor, to));
            for &(other, bytes) in &self.neighbors[actor] {
                let moved = moves[..i].iter().find(|m| m.0 == other);
                let there = moved.map_or(self.placement[other], |m| m.1);
                let (was, is) = (self.machine.byte(from, there), self.machine.byte(to, there));
                add(from, -bytes * was);
                add(to, bytes * is);
                if was != is {
                    add(there, bytes * (is - was));
                }
            }
        }
        let rest = ranked.iter().find(|&&w| touched.iter().all(|t| t.0 != w));
        let rest = rest.map_or(0.0, |&w| self.loads[w as usize]);
        let squares = |sum: f64, &(worker, load): &(u32, f64)| {
            let was = self.loads[worker as usize];
            sum + (load - was) * (load + was)
        };
        Cost {
            max: touched.iter().map(|t| t.1).fold(rest, f64::max),
            squares: touched.iter().fold(is.squares, squares),
        }
    }

    fn best_move(&mut self) -> bool {
        let mut trial = self.trial();
        let mut found = None;
        for actor in (0..self.placement.len()).filter(|&a| self.is_free(a)) {
            for worker in 0..self.machine.workers() as u32 {
                let least = self.loads[worker as usize] + self.time(actor, worker);
                let cannot_improve = trial.cannot_improve(least - self.saving_max[actor]);
                if worker == self.placement[actor] || cannot_improve {
                    continue;
                }
                if self.gains(&mut trial, &[(actor, worker)]) {
                    found = Some((actor, worker));
                }
            }
        }
        if let Some(one) = found {
            self.make(&trial, &[one]);
        }
        found.is_some()
    }

    /// The best swap that involves the busiest worker: no other swap relieves it.
    fn best_swap(&mut self) -> bool {
        let busiest = self.busiest();
        let (inside, outside): (Vec<usize>, Vec<usize>) = (0..self.placement.len())
            .filter(|&a| self.is_free(a))
            .partition(|&a| self.placement[a] == busiest);
        let mut trial = self.trial();
        let mut found = None;
        for &a in &inside {
            for &b in &outside {
                let other = self.placement[b];
                let saving_max = self.saving_max[a] + self.saving_max[b];
                let least = |w: u32, comes: usize, goes: usize| {
                    self.loads[w as usize] + self.time(comes, w) - self.time(goes, w) - saving_max
                };
                if trial.cannot_improve(least(busiest, b, a))
                    || trial.cannot_improve(least(other, a, b))
                {
                    continue;
                }
                if self.gains(&mut trial, &[(a, other), (b, busiest)]) {
                    found = Some((a, b));
                }
            }
        }
        if let Some((a, b)) = found {
            self.make(&trial, &[(a, self.placement[b]), (b, busiest)]);
        }
        found.is_some()
    }

    /// Makes the moves that were found best.
    fn make(&mut self, trial: &Trial, moves: &[(usize, u32)]) {
        moves.iter().for_each(|&(actor, to)| self.shift(actor, to));
        let (before, said, is) = (trial.is, trial.best, self.cost());
        let close = |a: f64, b: f64, of: f64| (a - b).abs() <= 1e-6 * of.max(b);
        debug_assert!(close(said.max, is.max, before.max));
        debug_assert!(close(said.squares, is.squares, before.squares));
    }

    /// Moves an actor of the busiest worker to another one, or swaps it for a lighter one, so that
    /// no affected worker is as loaded as the busiest one was. Tries the `asked` least loaded
    /// workers.
    fn relieve(&mut self, members: &mut [Vec<usize>], goal: f64, asked: usize) -> bool {
        let busiest = self.busiest();
        let was = self.loads[busiest as usize];
        if was <= goal {
            return false;
        }
        let mut least: Vec<u32> = (0..self.loads.len() as u32).collect();
        if least.len() > asked {
            least.select_nth_unstable_by(asked, |&a, &b| {
                self.loads[a as usize].total_cmp(&self.loads[b as usize])
            });
            least.truncate(asked);
        }
        let inside = members[busiest as usize].clone();
        let mut best = was * (1.0 - 1e-9);
        let mut found = None;
        for &a in &inside {
            let homes = self.neighbors[a].iter().map(|n| self.placement[n.0]);
            let targets: Vec<u32> = least.iter().copied().chain(homes.take(TARGETS)).collect();
            for to in targets.into_iter().filter(|&to| to != busiest) {
                self.shift(a, to);
                let now = self.touched(a, busiest);
                if now < best {
                    (best, found) = (now, Some((a, to, None)));
                }
                self.shift(a, busiest);
            }
        }
        if found.is_none() {
            let others = least.iter().filter(|&&w| w != busiest);
            let lighter: Vec<usize> = others
                .flat_map(|&w| members[w as usize].iter().copied())
                .collect();
            for &a in &inside {
                for &b in &lighter {
                    let to = self.placement[b];
                    self.shift(a, to);
                    self.shift(b, busiest);
                    let now = self.touched(a, busiest).max(self.touched(b, to));
                    if now < best {
                        (best, found) = (now, Some((a, to, Some(b))));
                    }
                    self.shift(b, to);
                    self.shift(a, busiest);
                }
            }
        }
        if let Some((a, to, other)) = found {
            let mut go = |actor: usize, from: u32, to: u32| {
                self.shift(actor, to);
                members[from as usize].retain(|&m| m != actor);
                members[to as usize].push(actor);
            };
            go(a, busiest, to);
            if let Some(b) = other {
                go(b, to, busiest);
            }
        }
        found.is_some()
    }

    /// The largest load among the workers affected by moving the actor away from `from`.
    fn touched(&self, actor: usize, from: u32) -> f64 {
        let here = self.placement[actor];
        let neighbors = self.neighbors[actor].iter().map(|n| self.placement[n.0]);
        neighbors
            .chain([here, from])
            .map(|w| self.loads[w as usize])
            .fold(0.0, f64::max)
    }
}
