// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All placements, where actors and workers are few: the best one for certain.

use super::loads::Loads;
use crate::model::graph::{Graph, Placement};
use crate::model::machine::Machine;

/// So many placements are looked at within a few milliseconds.
const PLACEMENTS_MAX: usize = 1 << 15;
/// Within this share of the smallest bottleneck, less traffic is worth more than evenness.
const BOTTLENECK_TOLERANCE: f64 = 0.02;

/// The placement with the smallest bottleneck, and among those that come close to it the one with
/// the least traffic. None where there are too many to try.
pub fn place(graph: &Graph, machine: &Machine) -> Option<Placement> {
    if !machine.uniform() || graph.pins.iter().any(Option::is_some) {
        return None;
    }
    // The workers are alike, so the first actor may as well sit on the first.
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

/// Counts through all placements, as an odometer does.
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
