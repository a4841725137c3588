// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the mapper sees of an application: its actors by the time they were busy, and what they sent
//! each other.

use levada_map::{Graph, Link, Machine, Placement, place};
use levada_sys::{Counters, Network};
use std::time::Duration;

/// Before anything is measured every actor weighs the same, and so does every channel.
pub fn first_guess(network: &Network) -> Graph {
    Graph {
        busy: vec![1.0; network.actors()],
        links: links(network, |_| 0.1),
        ..Graph::default()
    }
}

/// The network's links in their order, each with its bytes.
pub fn links(network: &Network, bytes: impl Fn(usize) -> f64) -> Vec<Link> {
    let all = network.links().into_iter().enumerate();
    all.map(|(i, (from, to, _))| Link {
        from: from as usize,
        to: to as usize,
        bytes: bytes(i),
    })
    .collect()
}

/// What was done from one reading of the counters to the next.
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

/// Appends the graph of another application; where its actors begin.
pub fn append(all: &mut Graph, one: Graph) -> usize {
    let first = all.busy.len();
    all.pins.resize(first, None);
    all.pins.extend((0..one.busy.len()).map(|a| one.pin(a)));
    all.busy.extend(one.busy);
    all.links.extend(one.links.into_iter().map(|l| Link {
        from: l.from.saturating_add(first),
        to: l.to.saturating_add(first),
        ..l
    }));
    first
}

/// Places a new application beside others: as if it were alone, and then its heaviest part where there
/// is most room, what is pinned apart. `loads` is how busy each worker is with the others.
pub fn place_beside(graph: &Graph, machine: &Machine, loads: &[f64]) -> Placement {
    let alone = place(graph, machine);
    let mut parts = vec![0.0; machine.workers()];
    for (worker, busy) in alone.iter().zip(&graph.busy) {
        parts[*worker as usize] += busy;
    }
    let load = |w: usize| loads.get(w).copied().unwrap_or(0.0);
    let (mut heaviest, mut emptiest): (Vec<usize>, Vec<usize>) =
        ((0..parts.len()).collect(), (0..parts.len()).collect());
    heaviest.sort_by(|a, b| parts[*b].total_cmp(&parts[*a]));
    emptiest.sort_by(|a, b| load(*a).total_cmp(&load(*b)));
    let mut name = vec![0; parts.len()];
    for (part, worker) in heaviest.into_iter().zip(emptiest) {
        name[part] = worker as u32;
    }
    let seat = |(actor, part): (usize, u32)| graph.pin(actor).unwrap_or(name[part as usize]);
    alone.into_iter().enumerate().map(seat).collect()
}

/// What one takes who has a core for itself, in nanoseconds of a second.
pub const A_CORE: f64 = 1e9;

/// Places a new application of which nothing is known beside others, as one that takes a core, each actor as much of
/// it as any other.
pub fn place_among(graph: &Graph, machine: &Machine, loads: &[f64]) -> Placement {
    let actors = graph.busy.len();
    let whole: f64 = graph.busy.iter().sum();
    let mut all = graph.clone();
    all.pins.resize(actors, None);
    for (worker, load) in loads.iter().enumerate() {
        all.busy.push(load / A_CORE * whole);
        all.pins.push(Some(worker as u32));
    }
    let mut placement = place(&all, machine);
    placement.truncate(actors);
    placement
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(busy: &[f64]) -> Graph {
        Graph {
            busy: busy.to_vec(),
            ..Graph::default()
        }
    }

    #[test]
    fn the_heaviest_part_goes_where_there_is_most_room() {
        let machine = Machine::new(2);
        let loads = [5.0, 1.0];
        assert_eq!(place_beside(&alone(&[3.0, 1.0]), &machine, &loads), [1, 0]);
        assert_eq!(place_beside(&alone(&[1.0]), &machine, &loads), [1]);
        assert_eq!(place_beside(&alone(&[1.0]), &machine, &[1.0, 5.0]), [0]);
        // What is pinned stays.
        let mut graph = alone(&[3.0, 1.0]);
        graph.pins = vec![Some(0), None];
        assert_eq!(place_beside(&graph, &machine, &loads)[0], 0);
        // As it was, where nobody else is.
        let graph = alone(&[1.0, 3.0]);
        let placed = place_beside(&graph, &machine, &[]);
        assert_ne!(placed[0], placed[1]);
    }

    #[test]
    fn who_is_not_known_begins_where_others_leave_most() {
        let machine = Machine::new(2);
        let three = alone(&[1.0; 3]);
        assert_eq!(place_among(&three, &machine, &[A_CORE, 0.0]), [1; 3]);
        assert_eq!(place_among(&three, &machine, &[0.0, A_CORE]), [0; 3]);
        let one = alone(&[1.0]);
        assert_eq!(place_among(&one, &machine, &[1e6, 0.0]), [1]);
        assert_eq!(place_among(&one, &machine, &[0.0, 1e6]), [0]);
        let even = place_among(&alone(&[1.0; 4]), &machine, &[A_CORE / 2.0; 2]);
        assert_eq!(even.iter().sum::<u32>(), 2);
        // What is pinned stays.
        let mut pinned = alone(&[1.0]);
        pinned.pins = vec![Some(0)];
        assert_eq!(place_among(&pinned, &machine, &[A_CORE, 0.0]), [0]);
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
        assert_eq!(append(&mut all, one), 2);
        assert_eq!(all.busy, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!((all.links[0].from, all.links[0].to), (2, 3));
    }
}
