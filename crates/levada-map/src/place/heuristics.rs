// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Placement heuristics that minimize the load of the busiest worker: several initial placements,
//! each refined by local search (moves and swaps).

use super::bounds::lower_bound;
use super::exhaustive;
use super::loads::{Loads, is_small};
use crate::model::graph::{Graph, Link, Placement, pipeline_order};
use crate::model::machine::Machine;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The load of the busiest worker, including traffic between workers.
pub fn bottleneck(graph: &Graph, machine: &Machine, placement: &[u32]) -> f64 {
    Loads::new(graph, machine, placement.to_vec()).cost().max
}

/// Places a graph: exhaustively if it is small; otherwise the best of three initial placements,
/// each refined by local search.
///
/// Initial placements: contiguous pieces of the pipeline; longest processing time first, actor by
/// actor; the same with clusters of actors that communicate much. For many actors the second is
/// replaced by contiguous pieces that account for traffic.
pub fn place(graph: &Graph, machine: &Machine) -> Placement {
    let actors = graph.busy.len();
    if machine.workers() <= 1 || actors == 0 {
        return vec![0; actors];
    }
    if let Some(best) = exhaustive::place(graph, machine) {
        return best;
    }
    let starts = [
        cut_pipeline(graph, machine, false),
        if is_small(graph, machine) {
            heaviest_first(graph, machine, &(0..actors).collect::<Vec<_>>())
        } else {
            // Placing actor by actor would separate all neighbors.
            cut_pipeline(graph, machine, true)
        },
        heaviest_first(graph, machine, &clusters(graph, machine)),
    ];
    let mut found = starts.map(|start| Loads::new(graph, machine, start));
    found.iter_mut().for_each(Loads::refine);
    let is_better_than = found.into_iter().reduce(|a, b| {
        if b.cost().is_better_than(&a.cost()) {
            b
        } else {
            a
        }
    });
    is_better_than.map_or_else(|| vec![0; actors], Loads::into_placement)
}

/// Improves a placement in use: refines it, and replaces it only by a clearly better one.
pub fn improve(graph: &Graph, machine: &Machine, current: &[u32]) -> Placement {
    let mut loads = Loads::new(graph, machine, current.to_vec());
    loads.refine();
    let fresh = place(graph, machine);
    // A new placement must be clearly better, since moving many actors costs warm caches.
    let replaced = Loads::new(
        graph,
        machine,
        relabel_workers(graph, machine, fresh, current),
    );
    if replaced.cost().max < loads.cost().max * 0.97 {
        replaced.into_placement()
    } else {
        loads.into_placement()
    }
}

/// Renumbers the workers of `fresh` so that as much work as possible stays on its core. Only for
/// interchangeable workers.
pub fn relabel_workers(
    graph: &Graph,
    machine: &Machine,
    fresh: Placement,
    current: &[u32],
) -> Placement {
    if !machine.uniform() || graph.pins.iter().any(Option::is_some) {
        return fresh;
    }
    let workers = machine.workers();
    let mut shared = std::collections::BTreeMap::new();
    for ((&new, &old), busy) in fresh.iter().zip(current).zip(&graph.busy) {
        *shared.entry((new, old)).or_insert(0.0) += busy;
    }
    let mut pairs: Vec<((u32, u32), f64)> = shared.into_iter().collect();
    pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (mut name, mut taken) = (vec![None; workers], vec![false; workers]);
    for ((new, old), _) in pairs {
        let old = (old as usize).min(workers - 1);
        if name[new as usize].is_none() && !taken[old] {
            name[new as usize] = Some(old as u32);
            taken[old] = true;
        }
    }
    let mut free = (0..workers).filter(|&w| !taken[w]).map(|w| w as u32);
    for name in &mut name {
        *name = name.or_else(|| free.next());
    }
    let name = |new: u32| name[new as usize].unwrap_or(new);
    fresh.into_iter().map(name).collect()
}

/// Cuts the pipeline into one piece per worker so that the largest piece is as small as possible,
/// by work or by work and traffic. Binary search over the size, greedy cuts.
fn cut_pipeline(graph: &Graph, machine: &Machine, traffic_counts: bool) -> Placement {
    let actors = graph.busy.len();
    let order = pipeline_order(actors, graph.links.iter().map(|l| (l.from, l.to)));
    let mut turn = vec![0; actors];
    order.iter().enumerate().for_each(|(i, &a)| turn[a] = i);
    // By position in the pipeline: the positions of the neighbors, and the number of bytes.
    let mut near: Vec<Vec<(usize, f64)>> = vec![Vec::new(); actors];
    for l in &graph.links {
        if traffic_counts && l.from < actors && l.to < actors && l.from != l.to {
            let (from, to) = (turn[l.from], turn[l.to]);
            near[from].push((to, l.bytes));
            near[to].push((from, l.bytes));
        }
    }
    let cut = |limit: f64| -> Option<Placement> {
        let mut placement = vec![0; actors];
        let (mut begin, mut worker) = (0, 0);
        while begin < actors {
            let speed = machine.cores.get(worker)?.speed;
            // Traffic that is cut is assumed to go to the adjacent worker.
            let byte = |a: usize, b: usize| {
                if b < machine.workers() {
                    machine.byte(a as u32, b as u32)
                } else {
                    0.0
                }
            };
            let back = worker
                .checked_sub(1)
                .map_or(0.0, |before| byte(before, worker));
            let on = byte(worker, worker + 1);
            // The longest piece that fits; a longer piece may cut less traffic than a shorter one.
            let (mut end, mut work, mut traffic) = (begin, 0.0, 0.0);
            for at in begin..actors {
                work += graph.busy[order[at]] / speed;
                if work > limit {
                    break;
                }
                for &(other, bytes) in &near[at] {
                    traffic += match () {
                        () if other < begin => bytes * back,
                        () if other < at => -bytes * on,
                        () => bytes * on,
                    };
                }
                if work + traffic <= limit {
                    end = at + 1;
                }
            }
            order[begin..end]
                .iter()
                .for_each(|&a| placement[a] = worker as u32);
            (begin, worker) = (end, worker + 1);
        }
        Some(placement)
    };
    let total: f64 = graph.busy.iter().sum();
    let slowest = machine.cores.iter().map(|c| c.speed).fold(1.0, f64::min);
    let (mut low, mut high) = (lower_bound(graph, machine), total / slowest);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        match cut(middle) {
            Some(_) => high = middle,
            None => low = middle,
        }
    }
    cut(high).unwrap_or_else(|| vec![0; actors])
}

/// List scheduling, longest processing time first (Graham 1969): the heaviest remaining group goes
/// to the worker that finishes it first. `group` has a group number per actor; with one actor per
/// group this is the paper's gLB.
pub fn heaviest_first(graph: &Graph, machine: &Machine, group: &[usize]) -> Placement {
    let mut weight = vec![0.0f64; graph.busy.len()];
    let mut loads = vec![0.0f64; machine.workers()];
    for (actor, busy) in graph.busy.iter().enumerate() {
        match graph.pin(actor) {
            Some(worker) => loads[worker as usize] += busy,
            None => weight[group[actor]] += busy,
        }
    }
    let mut members = vec![0usize; weight.len()];
    group.iter().for_each(|&g| members[g] += 1);
    let mut order: Vec<usize> = (0..weight.len()).filter(|&g| members[g] > 0).collect();
    order.sort_by(|&a, &b| weight[b].total_cmp(&weight[a]).then(a.cmp(&b)));
    let mut home = vec![0; weight.len()];
    let mut idle = LeastBusy::of(machine, &loads);
    for one in order {
        home[one] = idle.assign(weight[one]);
    }
    (0..group.len())
        .map(|a| graph.pin(a).unwrap_or(home[group[a]]))
        .collect()
}

/// Workers in heaps by load, one heap per core speed: within a speed the least loaded worker
/// finishes first.
struct LeastBusy(Vec<(f64, SpeedClass)>);

/// A heap of loads (as bits of a non-negative float) and worker numbers.
type SpeedClass = BinaryHeap<Reverse<(u64, u32)>>;

impl LeastBusy {
    fn of(machine: &Machine, loads: &[f64]) -> LeastBusy {
        let mut classes: Vec<(f64, SpeedClass)> = Vec::new();
        for (worker, (core, load)) in machine.cores.iter().zip(loads).enumerate() {
            let speeds = classes.iter().position(|one| one.0 == core.speed);
            let at = speeds.unwrap_or_else(|| {
                classes.push((core.speed, BinaryHeap::new()));
                classes.len() - 1
            });
            debug_assert!(*load >= 0.0, "then it is in the order of its bits");
            classes[at].1.push(Reverse((load.to_bits(), worker as u32)));
        }
        LeastBusy(classes)
    }

    /// Assigns the weight to the worker that finishes it first, and returns that worker.
    fn assign(&mut self, weight: f64) -> u32 {
        let firsts = self.0.iter().enumerate().filter_map(|(at, (speed, heap))| {
            let Reverse((load, worker)) = *heap.peek()?;
            let load = f64::from_bits(load) + weight;
            Some((load / speed, worker, load, at))
        });
        let first = firsts.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let Some((_, worker, load, at)) = first else {
            return 0;
        };
        if let Some(mut top) = self.0[at].1.peek_mut() {
            *top = Reverse((load.to_bits(), worker));
        }
        worker
    }
}

/// Clusters actors along the links with the most traffic, while a worker can hold a cluster without
/// imbalance.
fn clusters(graph: &Graph, machine: &Machine) -> Vec<usize> {
    fn root(group: &mut [usize], mut a: usize) -> usize {
        while group[a] != a {
            group[a] = group[group[a]];
            a = group[a];
        }
        a
    }
    let limit = graph.busy.iter().sum::<f64>() / machine.workers() as f64;
    let mut group: Vec<usize> = (0..graph.busy.len()).collect();
    let mut weight = graph.busy.clone();
    let mut links: Vec<&Link> = graph
        .links
        .iter()
        .filter(|l| l.from < group.len() && l.to < group.len())
        .collect();
    links.sort_by(|a, b| b.bytes.total_cmp(&a.bytes));
    for link in links {
        let (a, b) = (root(&mut group, link.from), root(&mut group, link.to));
        // A link that costs more to cut than the imbalance is never cut.
        let dear = link.bytes * machine.shared_cache_byte() > weight[a].min(weight[b]);
        if a != b && (dear || weight[a] + weight[b] <= limit) {
            weight[a] += weight[b];
            group[b] = a;
        }
    }
    (0..group.len()).map(|a| root(&mut group, a)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_first_to_finish_agrees_with_a_linear_search() {
        let mut random = Random::new(5);
        for cores in [1, 2, 7, 40] {
            let mut machine = Machine::new(cores);
            for core in &mut machine.cores {
                core.speed = [1.0, 0.5, 0.25][random.below(3)];
            }
            let mut loads: Vec<f64> = (0..cores).map(|_| random.below(4) as f64).collect();
            let mut idle = LeastBusy::of(&machine, &loads);
            for _ in 0..500 {
                // Integers, so that sums are exact.
                let weight = random.below(8) as f64;
                let done = |w: usize| (loads[w] + weight) / machine.cores[w].speed;
                let first = (0..cores).min_by(|&a, &b| done(a).total_cmp(&done(b)));
                let first = first.unwrap();
                assert_eq!(idle.assign(weight), first as u32);
                loads[first] += weight;
            }
        }
    }
}
