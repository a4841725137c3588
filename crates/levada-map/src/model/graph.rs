// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The actor graph, reduced to what placement needs: the load of each actor and the traffic between
//! actors.

use super::machine::Machine;

/// Traffic from one actor to another, measured over some interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    pub from: usize,
    pub to: usize,
    pub bytes: f64,
}

/// Load per actor and traffic between actors, measured over the same interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Busy time per actor. Any unit, if it is that of [`crate::model::machine::Costs`];
    /// nanoseconds in practice.
    pub busy: Vec<f64>,
    pub links: Vec<Link>,
    /// The core that each actor is pinned to; empty if no actor is pinned.
    pub pins: Vec<Option<u32>>,
}

/// The worker of each actor.
pub type Placement = Vec<u32>;

/// Lower limit of an actor's own work as a fraction of its busy time, whatever cost is attributed
/// to its traffic.
const OWN_SHARE_MIN: f64 = 0.3;
/// An actor with a traffic cost below this fraction of all work says nothing about the cost of a
/// byte.
const TRAFFIC_SHARE_MIN: f64 = 0.01;

impl Graph {
    /// The core that an actor is pinned to.
    pub fn pin(&self, actor: usize) -> Option<u32> {
        self.pins.get(actor).copied().flatten()
    }

    /// Subtracts the cost of traffic between workers that the measured busy times include: a stage
    /// must not look heavier because its neighbor was on another core.
    pub fn without_traffic(mut self, machine: &Machine, placement: &[u32]) -> Graph {
        let traffic = self.traffic(machine, placement);
        for (busy, traffic) in self.busy.iter_mut().zip(traffic) {
            *busy = (*busy - traffic).max(OWN_SHARE_MIN * *busy);
        }
        self
    }

    /// A machine with byte costs that are consistent with the measurement: traffic between cores
    /// costs no actor more than the part of its busy time that can be traffic. The cost of a byte
    /// depends on which side waits, so a cost measured in isolation does not hold for every run.
    pub fn credible(&self, machine: &Machine, placement: &[u32]) -> Machine {
        let traffic = self.traffic(machine, placement);
        let little = TRAFFIC_SHARE_MIN * self.busy.iter().sum::<f64>();
        let shares = self.busy.iter().zip(traffic);
        let shares = shares.filter(|(_, traffic)| *traffic > little);
        let share = shares.map(|(busy, traffic)| (1.0 - OWN_SHARE_MIN) * busy / traffic);
        let share = share.fold(1.0, f64::min);
        let mut machine = machine.clone();
        machine.costs.byte = machine.costs.byte.map(|cost| cost * share);
        machine
    }

    /// The cost of traffic between workers, per actor.
    fn traffic(&self, machine: &Machine, placement: &[u32]) -> Vec<f64> {
        let mut traffic = vec![0.0; self.busy.len()];
        for link in &self.links {
            if let (Some(&from), Some(&to)) = (placement.get(link.from), placement.get(link.to)) {
                let cost = link.bytes * machine.byte(from, to);
                traffic[link.from] += cost;
                traffic[link.to] += cost;
            }
        }
        traffic
    }
}

/// Actors in topological order, as far as feedback permits, with branches kept together.
pub fn pipeline_order(actors: usize, links: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); actors];
    let mut fed: Vec<bool> = vec![false; actors];
    for (from, to) in links {
        if from < actors && to < actors && from != to {
            successors[from].push(to);
            fed[to] = true;
        }
    }
    // Reverse postorder of an iterative depth-first search that starts at the sources.
    let mut roots: Vec<usize> = (0..actors).filter(|&a| !fed[a]).collect();
    roots.extend((0..actors).filter(|&a| fed[a]));
    let mut seen = vec![false; actors];
    let mut order = Vec::with_capacity(actors);
    for root in roots.into_iter().rev() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut stack = vec![(root, 0)];
        while let Some((actor, next)) = stack.pop() {
            match successors[actor].get(next) {
                Some(&successor) => {
                    stack.push((actor, next + 1));
                    if !std::mem::replace(&mut seen[successor], true) {
                        stack.push((successor, 0));
                    }
                }
                None => order.push(actor),
            }
        }
    }
    order.reverse();
    order
}
