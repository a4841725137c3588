// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mapper's graph of an application: CPU time of actors and bytes on channels.

use levada_map::{Graph, Link};
use levada_sys::{Counters, Network};
use std::time::Duration;

/// Before anything is measured all actors have the same cost, and all channels.
pub fn first_guess(network: &Network) -> Graph {
    Graph {
        busy: vec![1.0; network.actors()],
        links: links(network, |_| 0.1),
        ..Graph::default()
    }
}

/// The network's links in order, each with its bytes.
pub fn links(network: &Network, bytes: impl Fn(usize) -> f64) -> Vec<Link> {
    let all = network.links().into_iter().enumerate();
    all.map(|(i, (from, to, _))| Link {
        from: from as usize,
        to: to as usize,
        bytes: bytes(i),
    })
    .collect()
}

/// The difference between two readings of the counters.
pub fn graph_between(network: &Network, before: &Counters, now: &Counters) -> Graph {
    let busy = |i: usize| {
        let before = before.actors.get(i).map_or(Duration::ZERO, |a| a.busy);
        now.actors[i].busy.saturating_sub(before).as_nanos() as f64
    };
    let sizes: Vec<u32> = network.links().iter().map(|l| l.2).collect();
    let bytes = |i: usize| {
        let got = |c: &Counters| c.channels.get(i).map_or(0, |c| c.got);
        let size = sizes.get(i).copied().unwrap_or(0);
        got(now).saturating_sub(got(before)) as f64 * f64::from(size)
    };
    Graph {
        busy: (0..now.actors.len()).map(busy).collect(),
        links: links(network, bytes),
        ..Graph::default()
    }
}

/// Appends the graph of another application.
pub fn append(all: &mut Graph, one: Graph) {
    let first = all.busy.len();
    all.pins.resize(first, None);
    all.pins.extend((0..one.busy.len()).map(|a| one.pin(a)));
    all.busy.extend(one.busy);
    all.links.extend(one.links.into_iter().map(|l| Link {
        from: l.from.saturating_add(first),
        to: l.to.saturating_add(first),
        ..l
    }));
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Actors without links.
    pub(crate) fn alone(busy: &[f64]) -> Graph {
        Graph {
            busy: busy.to_vec(),
            ..Graph::default()
        }
    }

    #[test]
    fn graphs_are_joined_behind_one_another() {
        let mut all = alone(&[1.0, 2.0]);
        let mut one = alone(&[3.0, 4.0]);
        one.links.push(Link {
            from: 0,
            to: 1,
            bytes: 8.0,
        });
        append(&mut all, one);
        assert_eq!(all.busy, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!((all.links[0].from, all.links[0].to), (2, 3));
    }
}
