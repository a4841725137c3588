// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loads of all workers under a placement, kept up to date while actors move, and the search
//! for better ones.

use crate::{Graph, Machine, Placement};

/// What a placement costs. The busiest worker decides; among equals, the evenness and the traffic.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub max: f64,
    /// The sum of the squared loads, which contain the traffic.
    squares: f64,
}

impl Cost {
    pub fn better(&self, other: &Cost) -> bool {
        let margin = 1e-9 * other.max.abs().max(f64::MIN_POSITIVE);
        if self.max < other.max - margin {
            return true;
        }
        self.max <= other.max + margin && self.squares < other.squares * (1.0 - 1e-9)
    }
}

pub struct Loads<'g> {
    graph: &'g Graph,
    machine: &'g Machine,
    placement: Placement,
    loads: Vec<f64>,
    /// For each actor, the others it exchanges with, and what that costs across workers.
    near: Vec<Vec<(usize, f64)>>,
}

impl<'g> Loads<'g> {
    pub fn new(graph: &'g Graph, machine: &'g Machine, mut placement: Placement) -> Loads<'g> {
        let actors = graph.busy.len();
        placement.resize(actors, 0);
        for worker in &mut placement {
            *worker = (*worker).min(machine.workers as u32 - 1);
        }
        let mut near: Vec<Vec<(usize, f64)>> = vec![Vec::new(); actors];
        for link in &graph.links {
            if link.from < actors && link.to < actors && link.from != link.to {
                let cost = link.bytes * machine.cross_cost;
                near[link.from].push((link.to, cost));
                near[link.to].push((link.from, cost));
            }
        }
        let mut loads = vec![0.0; machine.workers];
        for actor in 0..actors {
            let worker = placement[actor];
            loads[worker as usize] += graph.busy[actor];
            for &(other, cost) in &near[actor] {
                if placement[other] != worker {
                    loads[worker as usize] += cost;
                }
            }
        }
        Loads {
            graph,
            machine,
            placement,
            loads,
            near,
        }
    }

    pub fn cost(&self) -> Cost {
        Cost {
            max: self.loads.iter().copied().fold(0.0, f64::max),
            squares: self.loads.iter().map(|l| l * l).sum(),
        }
    }

    /// All work and all traffic.
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
        self.loads[from as usize] -= self.graph.busy[actor];
        self.loads[to as usize] += self.graph.busy[actor];
        for &(other, cost) in &self.near[actor] {
            let there = self.placement[other];
            if there == from {
                // Was at home with it, now pays on both sides.
                self.loads[from as usize] += cost;
                self.loads[to as usize] += cost;
            } else if there == to {
                self.loads[from as usize] -= cost;
                self.loads[to as usize] -= cost;
            } else {
                self.loads[from as usize] -= cost;
                self.loads[to as usize] += cost;
            }
        }
        self.placement[actor] = to;
    }

    /// Moves, then swaps, always the best one there is, as long as one helps.
    pub fn refine(&mut self) {
        // Every round makes the cost smaller, so this ends; the bound is for huge graphs.
        for _ in 0..4 * self.placement.len() + 16 {
            if !self.best_move() && !self.best_swap() {
                break;
            }
        }
    }

    fn best_move(&mut self) -> bool {
        let mut best = self.cost();
        let mut found = None;
        for actor in 0..self.placement.len() {
            let home = self.placement[actor];
            for worker in 0..self.machine.workers as u32 {
                if worker == home {
                    continue;
                }
                self.shift(actor, worker);
                let cost = self.cost();
                if cost.better(&best) {
                    best = cost;
                    found = Some((actor, worker));
                }
                self.shift(actor, home);
            }
        }
        if let Some((actor, worker)) = found {
            self.shift(actor, worker);
        }
        found.is_some()
    }

    /// Swaps only with the busiest worker: no other swap makes it less busy.
    fn best_swap(&mut self) -> bool {
        let busiest = (0..self.loads.len())
            .max_by(|&a, &b| self.loads[a].total_cmp(&self.loads[b]))
            .unwrap_or(0) as u32;
        let (inside, outside): (Vec<usize>, Vec<usize>) =
            (0..self.placement.len()).partition(|&a| self.placement[a] == busiest);
        let mut best = self.cost();
        let mut found = None;
        for &a in &inside {
            for &b in &outside {
                let other = self.placement[b];
                self.shift(a, other);
                self.shift(b, busiest);
                let cost = self.cost();
                if cost.better(&best) {
                    best = cost;
                    found = Some((a, b));
                }
                self.shift(b, other);
                self.shift(a, busiest);
            }
        }
        if let Some((a, b)) = found {
            let other = self.placement[b];
            self.shift(a, other);
            self.shift(b, busiest);
        }
        found.is_some()
    }
}
