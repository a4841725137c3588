// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is placed, reduced to what placing needs: how busy each actor is, and what goes between them.

use crate::machine::Machine;

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
    /// In any unit, as long as it is that of [`crate::machine::Costs`] too; nanoseconds in practice.
    pub busy: Vec<f64>,
    pub links: Vec<Link>,
    /// Actors that must stay on a core; empty where none must.
    pub pins: Vec<Option<u32>>,
}

impl Graph {
    /// The core that an actor must stay on.
    pub fn pin(&self, actor: usize) -> Option<u32> {
        self.pins.get(actor).copied().flatten()
    }

    /// What the actors would be busy without the traffic between workers that was measured with
    /// them: a stage whose neighbour sat elsewhere must not look heavier than it is.
    pub fn without_traffic(mut self, machine: &Machine, placement: &[u32]) -> Graph {
        let least: Vec<f64> = self.busy.iter().map(|b| b * 0.3).collect();
        for link in &self.links {
            if let (Some(&from), Some(&to)) = (placement.get(link.from), placement.get(link.to)) {
                let cost = link.bytes * machine.byte(from, to);
                self.busy[link.from] -= cost;
                self.busy[link.to] -= cost;
            }
        }
        for (busy, least) in self.busy.iter_mut().zip(least) {
            *busy = busy.max(least);
        }
        self
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
