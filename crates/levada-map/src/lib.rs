// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mapper: a pure function from cores and a measured graph to a placement.
//!
//! It knows nothing of a running machine, so the same code places a live application and a simulated
//! one. [`place`] makes a placement; a [`Balancer`] decides, from one measurement to the next,
//! whether another one is worth the move.

mod balance;
mod exact;
mod load;

pub use balance::{Balancer, Sample};
use load::Loads;

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
    /// In any unit, as long as it is that of [`Machine::cross_cost`] too; nanoseconds in practice.
    pub busy: Vec<f64>,
    pub links: Vec<Link>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    pub workers: usize,
    /// What it costs each of two workers, in time, that a byte goes from one to the other.
    pub cross_cost: f64,
}

impl Machine {
    /// A cache line of 64 bytes between two cores costs each side about 6 ns in a stream, where the
    /// lines are asked for ahead.
    pub fn new(workers: usize) -> Machine {
        Machine {
            workers: workers.max(1),
            cross_cost: 0.1,
        }
    }
}

impl Graph {
    /// What the actors would be busy without the traffic between workers that was measured with
    /// them: a stage whose neighbour sat elsewhere must not look heavier than it is.
    pub fn without_traffic(mut self, machine: &Machine, placement: &[u32]) -> Graph {
        let least: Vec<f64> = self.busy.iter().map(|b| b * 0.3).collect();
        for link in &self.links {
            if let (Some(from), Some(to)) = (placement.get(link.from), placement.get(link.to))
                && from != to
            {
                self.busy[link.from] -= link.bytes * machine.cross_cost;
                self.busy[link.to] -= link.bytes * machine.cross_cost;
            }
        }
        for (busy, least) in self.busy.iter_mut().zip(least) {
            *busy = busy.max(least);
        }
        self
    }
}

/// A worker for each actor.
pub type Placement = Vec<u32>;

/// The time that the busiest worker would need, traffic between workers included.
pub fn bottleneck(graph: &Graph, machine: &Machine, placement: &[u32]) -> f64 {
    Loads::new(graph, machine, placement.to_vec()).cost().max
}

/// The best placement where there are few enough to try them all. Else a good one: the best of three
/// starts (contiguous along the pipeline; heaviest first to the least loaded, actor by actor or by
/// clusters of those that exchange much), each refined by moving and swapping actors as long as that
/// helps.
pub fn place(graph: &Graph, machine: &Machine) -> Placement {
    let actors = graph.busy.len();
    if machine.workers <= 1 || actors == 0 {
        return vec![0; actors];
    }
    if let Some(best) = exact::place(graph, machine) {
        return best;
    }
    let alone: Vec<usize> = (0..actors).collect();
    let starts = [
        contiguous(graph, machine),
        heaviest_first(graph, machine, &alone),
        heaviest_first(graph, machine, &clusters(graph, machine)),
    ];
    let mut best: Option<Loads> = None;
    for start in starts {
        let mut loads = Loads::new(graph, machine, start);
        loads.refine();
        if best.as_ref().is_none_or(|b| loads.cost().better(&b.cost())) {
            best = Some(loads);
        }
    }
    best.map_or_else(|| vec![0; actors], Loads::into_placement)
}

/// A placement that starts from one that is in force and keeps to it where moving gains nothing.
pub fn improve(graph: &Graph, machine: &Machine, current: &[u32]) -> Placement {
    let mut loads = Loads::new(graph, machine, current.to_vec());
    loads.refine();
    let fresh = place(graph, machine);
    // Anew only if that is clearly better: moving many actors costs warm caches.
    let anew = Loads::new(graph, machine, renamed(graph, machine, fresh, current));
    match anew.cost().max < loads.cost().max * 0.97 {
        true => anew.into_placement(),
        false => loads.into_placement(),
    }
}

/// The same placement with its workers numbered so that as much work as possible stays where it is.
fn renamed(graph: &Graph, machine: &Machine, fresh: Placement, current: &[u32]) -> Placement {
    let workers = machine.workers;
    let mut shared = vec![0.0; workers * workers];
    for ((&new, &old), busy) in fresh.iter().zip(current).zip(&graph.busy) {
        shared[new as usize * workers + (old as usize).min(workers - 1)] += busy;
    }
    let mut pairs: Vec<usize> = (0..shared.len()).collect();
    pairs.sort_by(|&a, &b| shared[b].total_cmp(&shared[a]));
    let (mut name, mut taken) = (vec![None; workers], vec![false; workers]);
    for pair in pairs {
        let (new, old) = (pair / workers, pair % workers);
        if name[new].is_none() && !taken[old] {
            name[new] = Some(old as u32);
            taken[old] = true;
        }
    }
    let name = |new: u32| name[new as usize].unwrap_or(new);
    fresh.into_iter().map(name).collect()
}

/// Actors in the order of the stream: every actor after those that feed it, as far as feedback
/// allows, and branches kept together.
fn pipeline_order(graph: &Graph) -> Vec<usize> {
    let actors = graph.busy.len();
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); actors];
    let mut fed: Vec<bool> = vec![false; actors];
    for link in &graph.links {
        if link.from < actors && link.to < actors && link.from != link.to {
            successors[link.from].push(link.to);
            fed[link.to] = true;
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

/// Cuts the pipeline into as many pieces as there are workers so that the largest is smallest.
fn contiguous(graph: &Graph, machine: &Machine) -> Placement {
    let order = pipeline_order(graph);
    let total: f64 = graph.busy.iter().sum();
    let largest = graph.busy.iter().copied().fold(0.0, f64::max);
    let cut = |limit: f64| -> Option<Placement> {
        let mut placement = vec![0; graph.busy.len()];
        let (mut worker, mut load) = (0, 0.0);
        for &actor in &order {
            if load > 0.0 && load + graph.busy[actor] > limit {
                worker += 1;
                load = 0.0;
            }
            if worker >= machine.workers {
                return None;
            }
            load += graph.busy[actor];
            placement[actor] = worker as u32;
        }
        Some(placement)
    };
    let (mut low, mut high) = (largest.max(total / machine.workers as f64), total);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        match cut(middle) {
            Some(_) => high = middle,
            None => low = middle,
        }
    }
    cut(high)
        .or_else(|| cut(total))
        .unwrap_or_else(|| vec![0; graph.busy.len()])
}

/// The heaviest group left goes to the worker with the least to do; `group` names one for each
/// actor.
fn heaviest_first(graph: &Graph, machine: &Machine, group: &[usize]) -> Placement {
    let mut weight = vec![0.0f64; graph.busy.len()];
    for (actor, busy) in graph.busy.iter().enumerate() {
        weight[group[actor]] += busy;
    }
    let mut order: Vec<usize> = (0..weight.len()).collect();
    order.sort_by(|&a, &b| weight[b].total_cmp(&weight[a]).then(a.cmp(&b)));
    let mut loads = vec![0.0f64; machine.workers];
    let mut home = vec![0; weight.len()];
    for one in order {
        let mut least = 0;
        for worker in 1..loads.len() {
            if loads[worker] < loads[least] {
                least = worker;
            }
        }
        loads[least] += weight[one];
        home[one] = least as u32;
    }
    group.iter().map(|&one| home[one]).collect()
}

/// Joins actors along the links that would cost most, as long as a worker can hold them evenly.
fn clusters(graph: &Graph, machine: &Machine) -> Vec<usize> {
    let limit = graph.busy.iter().sum::<f64>() / machine.workers as f64;
    let mut group: Vec<usize> = (0..graph.busy.len()).collect();
    let mut weight = graph.busy.clone();
    let mut links: Vec<&Link> = graph
        .links
        .iter()
        .filter(|l| l.from < group.len() && l.to < group.len())
        .collect();
    links.sort_by(|a, b| b.bytes.total_cmp(&a.bytes));
    for link in links {
        let (a, b) = (group[link.from], group[link.to]);
        // What is dearer to cut than to leave uneven is joined whatever it weighs.
        let dear = link.bytes * machine.cross_cost > weight[a].min(weight[b]);
        if a != b && (dear || weight[a] + weight[b] <= limit) {
            weight[a] += weight[b];
            group.iter_mut().filter(|g| **g == b).for_each(|g| *g = a);
        }
    }
    group
}

#[cfg(test)]
mod tests;
