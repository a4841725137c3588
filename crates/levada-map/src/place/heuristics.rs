// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Placing a graph so that the busiest worker has as little to do as can be: a few starts, each
//! refined by moving and swapping actors.

use super::bounds::lower_bound;
use super::exhaustive;
use super::loads::{Loads, is_small};
use crate::model::graph::{Graph, Link, Placement, pipeline_order};
use crate::model::machine::Machine;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The time that the busiest worker would need, traffic between workers included.
pub fn bottleneck(graph: &Graph, machine: &Machine, placement: &[u32]) -> f64 {
    Loads::new(graph, machine, placement.to_vec()).cost().max
}

/// The best placement where there are few enough to try them all. Else a good one: the best of three
/// starts (contiguous along the pipeline; heaviest first to the least loaded, actor by actor or by
/// clusters of those that exchange much), each refined by moving and swapping actors as long as that
/// helps. Where actors are many, those that exchange much stay together at first: instead of actor by actor
/// the pipeline is cut a second time, where traffic counts.
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
        match is_small(graph, machine) {
            true => heaviest_first(graph, machine, &(0..actors).collect::<Vec<_>>()),
            // Actor by actor nothing would stay together, and all traffic would go far.
            false => cut_pipeline(graph, machine, true),
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

/// A placement that starts from one that is in force and keeps to it where moving gains nothing.
pub fn improve(graph: &Graph, machine: &Machine, current: &[u32]) -> Placement {
    let mut loads = Loads::new(graph, machine, current.to_vec());
    loads.refine();
    let fresh = place(graph, machine);
    // Anew only if that is clearly better: moving many actors costs warm caches.
    let anew = Loads::new(
        graph,
        machine,
        relabel_workers(graph, machine, fresh, current),
    );
    match anew.cost().max < loads.cost().max * 0.97 {
        true => anew.into_placement(),
        false => loads.into_placement(),
    }
}

/// The same placement with its workers numbered so that as much work as possible stays where it is;
/// only workers that are alike change their names.
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

/// Cuts the pipeline into as many pieces as there are workers so that the largest, by its work or also by what it
/// exchanges with others, is smallest.
fn cut_pipeline(graph: &Graph, machine: &Machine, traffic_counts: bool) -> Placement {
    let actors = graph.busy.len();
    let order = pipeline_order(actors, graph.links.iter().map(|l| (l.from, l.to)));
    let mut turn = vec![0; actors];
    order.iter().enumerate().for_each(|(i, &a)| turn[a] = i);
    // By turn: the others' turns, and how many bytes.
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
            // What is cut goes to the workers next to it, or it is taken so.
            let byte = |a: usize, b: usize| match b < machine.workers() {
                true => machine.byte(a as u32, b as u32),
                false => 0.0,
            };
            let back = worker
                .checked_sub(1)
                .map_or(0.0, |before| byte(before, worker));
            let on = byte(worker, worker + 1);
            // The longest piece that fits: a longer one may cut less than a shorter one.
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

/// The heaviest group left goes to the worker that is done with it first; `group` names one for each
/// actor. With each actor a group of its own this is gLB.
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

/// The workers, for who asks which of them is done first with something more: of those that are as fast as each other the one
/// with the least to do is.
struct LeastBusy(Vec<(f64, SpeedClass)>);

/// With what each has to do, and its number.
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

    /// Who is done first with so much more has it to do; at one time, and where only rounding tells them apart, any of them.
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

/// Joins actors along the links that would cost most, as long as a worker can hold them evenly.
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
        // What is dearer to cut than to leave uneven is joined whatever it weighs.
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
    fn who_is_done_first_is_who_a_look_at_all_finds() {
        let mut random = Random::new(5);
        for cores in [1, 2, 7, 40] {
            let mut machine = Machine::new(cores);
            for core in &mut machine.cores {
                core.speed = [1.0, 0.5, 0.25][random.below(3)];
            }
            let mut loads: Vec<f64> = (0..cores).map(|_| random.below(4) as f64).collect();
            let mut idle = LeastBusy::of(&machine, &loads);
            for _ in 0..500 {
                // Whole numbers, which nothing rounds.
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
