// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is placed, reduced to what placing needs: how busy each actor is, and what goes between them.

use super::machine::Machine;

/// What an actor sends to another, measured over some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    pub from: usize,
    pub to: usize,
    pub bytes: f64,
}

/// Actors by the time they were busy, and what they sent each other meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// In any unit, as long as it is that of [`crate::model::machine::Costs`] too; nanoseconds in practice.
    pub busy: Vec<f64>,
    pub links: Vec<Link>,
    /// Actors that must stay on a core; empty where none must.
    pub pins: Vec<Option<u32>>,
}

/// A worker for each actor.
pub type Placement = Vec<u32>;

/// This part of what an actor is busy is its own at the least, whatever its traffic is said to cost.
const OWN_SHARE_MIN: f64 = 0.3;
/// Whose traffic is less than this part of all that was done says nothing of what a byte costs.
const TRAFFIC_SHARE_MIN: f64 = 0.01;

impl Graph {
    /// The core that an actor must stay on.
    pub fn pin(&self, actor: usize) -> Option<u32> {
        self.pins.get(actor).copied().flatten()
    }

    /// What the actors would be busy without the traffic between workers that was measured with
    /// them: a stage whose neighbour sat elsewhere must not look heavier than it is.
    pub fn without_traffic(mut self, machine: &Machine, placement: &[u32]) -> Graph {
        let traffic = self.traffic(machine, placement);
        for (busy, traffic) in self.busy.iter_mut().zip(traffic) {
            *busy = (*busy - traffic).max(OWN_SHARE_MIN * *busy);
        }
        self
    }

    /// The machine on which that is true: a byte between two of its cores costs no more than any actor can have taken for it.
    /// What a byte costs depends on who waits for whom, and machines change: one measured apart is not that of each run.
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

    /// What traffic between workers costs each actor.
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

/// Actors in the order of the stream: every actor after those that feed it, as far as feedback
/// allows, and branches kept together.
pub fn pipeline_order(actors: usize, links: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); actors];
    let mut fed: Vec<bool> = vec![false; actors];
    for (from, to) in links {
        if from < actors && to < actors && from != to {
            successors[from].push(to);
            fed[to] = true;
        }
    }
    // Reverse postorder of a depth-first search, sources first, without recursion.
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
