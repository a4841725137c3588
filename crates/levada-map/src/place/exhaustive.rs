// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Exhaustive search over all placements, for few actors and workers.

use super::loads::Loads;
use crate::model::graph::{Graph, Placement};
use crate::model::machine::Machine;

/// The number of placements that are evaluated within a few milliseconds.
const PLACEMENTS_MAX: usize = 1 << 15;
/// Among bottlenecks within this fraction of the smallest one, less traffic is preferred.
const BOTTLENECK_TOLERANCE: f64 = 0.02;

/// The placement with the smallest bottleneck; among those within the tolerance, the one with the
/// least traffic. None if there are too many placements, different cores or pins.
pub fn place(graph: &Graph, machine: &Machine) -> Option<Placement> {
    if !machine.uniform() || graph.pins.iter().any(Option::is_some) {
        return None;
    }
    // Workers are interchangeable, so the first actor stays on the first one.
    let free = graph.busy.len().checked_sub(1)?;
    let count = machine.workers().checked_pow(u32::try_from(free).ok()?)?;
    if count > PLACEMENTS_MAX {
        return None;
    }
    let mut least = f64::INFINITY;
    for_each_placement(graph, machine, count, |loads| {
        least = least.min(loads.cost().max);
    });
    let mut best: Option<(f64, Placement)> = None;
    for_each_placement(graph, machine, count, |loads| {
        let total = loads.total();
        if loads.cost().max <= least * (1.0 + BOTTLENECK_TOLERANCE)
            && best
                .as_ref()
                .is_none_or(|(b, _)| total < b - 1e-9 * b.abs())
        {
            best = Some((total, loads.placement().to_vec()));
        }
    });
    best.map(|(_, placement)| placement)
}

/// Enumerates all placements in the order of an odometer.
fn for_each_placement(
    graph: &Graph,
    machine: &Machine,
    count: usize,
    mut look: impl FnMut(&Loads),
) {
    let mut loads = Loads::new(graph, machine, vec![0; graph.busy.len()]);
    for _ in 0..count {
        look(&loads);
        for actor in 1..graph.busy.len() {
            let next = (loads.placement()[actor] + 1) % machine.workers() as u32;
            loads.shift(actor, next);
            if next != 0 {
                break;
            }
        }
    }
}
