// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bounds that need no simulation: the load of the busiest worker from below, mean rates from
//! above.
//!
//! The rate bounds hold for every schedule of a placement, since no core can compute for longer
//! than the time there is. For mixes with very many actors they reject most candidates without a
//! simulation.

use crate::model::graph::Graph;
use crate::model::machine::Machine;
use crate::model::mix::{Mix, NS_PER_S, RATE_TOLERANCE};

/// Rounds of price updates for the rate bound; further rounds hardly improve it.
const ROUNDS: usize = 24;
/// Rounds of price updates for the shortfall bound, and the number of priority levels (highest
/// first) for which it is computed.
const SHORTFALL_ROUNDS: usize = 64;
const LEVELS_MAX: usize = 4;

/// What a unit of one application requires of each core: core number and seconds.
type CoreDemand = Vec<(u32, f64)>;

pub(crate) struct UpperBound {
    /// Upper bound on the mean of the logarithms of the rates.
    pub mean_log_rate: f64,
    /// Lower bound on the total shortfall of reserved rates, cumulated over the priority levels
    /// from the highest to each.
    pub shortfall: Vec<f64>,
}

impl UpperBound {
    pub fn of(mix: &Mix, machine: &Machine, placement: &[u32]) -> UpperBound {
        let demand = demand(mix, machine, placement);
        UpperBound {
            mean_log_rate: mean_log_rate_bound(mix, machine, &demand),
            shortfall: shortfall(mix, machine, &demand),
        }
    }
}

/// Upper bound on the mean of the logarithms of the rates over all placements: all cores together
/// do no more work than their capacity, and no application exceeds its rate limit or the rate of
/// its heaviest actor on the fastest core.
pub(crate) fn mean_log_rate_bound_anywhere(mix: &Mix, machine: &Machine) -> f64 {
    let fastest = machine.fastest();
    // For each application, the core capacity that it can use and the core seconds per unit.
    let mut apps: Vec<(f64, f64)> = mix
        .apps
        .iter()
        .map(|app| {
            let unit = app.work().max(1e-9) / NS_PER_S;
            let alone = fastest * NS_PER_S / app.heaviest_actor_ns().max(1e-9);
            let held = app.rate_limit(app.work().max(1e-9) / fastest);
            (held.map_or(alone, |held| held.min(alone)) * unit, unit)
        })
        .collect();
    // Equal shares maximize the mean logarithm; what an application cannot use goes to the others.
    apps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut left, mut sum) = (machine.capacity(), 0.0);
    for (served, (mean_log_rate_bound, unit)) in apps.iter().enumerate() {
        let part = mean_log_rate_bound.min(left / (apps.len() - served) as f64);
        left -= part;
        sum += (part / unit).ln();
    }
    sum / apps.len().max(1) as f64
}

/// Upper bound on the mean log rate of a placement, by Lagrangian duality.
///
/// Core prices sum to the number of applications; an application's best rate is the inverse of the
/// price of one unit of its work. Any price vector gives a valid bound. Prices are updated
/// multiplicatively by the load that these rates cause, `ROUNDS` times.
fn mean_log_rate_bound(mix: &Mix, machine: &Machine, demand: &[CoreDemand]) -> f64 {
    let apps = mix.apps.len() as f64;
    let cores = machine.workers() + mix.apps.len();
    let mut prices = vec![apps / machine.workers() as f64; cores];
    let cost = |prices: &[f64], unit: &CoreDemand| cost(prices, unit).max(f64::MIN_POSITIVE);
    for _ in 0..ROUNDS {
        let mut loads = vec![0.0; cores];
        for unit in demand {
            let rate = 1.0 / cost(&prices, unit);
            for &(core, of) in unit {
                loads[core as usize] += rate * of;
            }
        }
        let both = prices.iter_mut().zip(loads);
        both.for_each(|(price, load)| *price *= load);
    }
    let logs = demand.iter().map(|unit| -cost(&prices, unit).ln());
    logs.sum::<f64>() / apps
}

fn cost(prices: &[f64], unit: &CoreDemand) -> f64 {
    let parts = unit.iter().map(|&(core, of)| prices[core as usize] * of);
    parts.sum()
}

fn shortfall(mix: &Mix, machine: &Machine, demand: &[CoreDemand]) -> Vec<f64> {
    let fastest = machine.fastest();
    let least = |lowest: i32| {
        let apps = mix.apps.iter().zip(demand);
        let reserved = apps.filter_map(|(app, unit)| {
            let rate = app.reserved_rate.filter(|_| app.priority >= lowest)?;
            let cores = unit
                .iter()
                .filter(|(core, _)| (*core as usize) < machine.workers());
            let all = app.achievable_rate(rate, fastest) * (1.0 - RATE_TOLERANCE);
            Some(cores.map(|&(core, of)| (core, of * all)).collect())
        });
        shortfall_bound(&reserved.collect::<Vec<CoreDemand>>(), machine.workers())
    };
    let levels = mix.priority_levels().into_iter().take(LEVELS_MAX);
    levels.map(least).collect()
}

/// Lower bound on the total shortfall (fractions of reserved rates, summed), if `reserved` lists
/// what the reserved rates require of each core.
///
/// The dual problem again: given core prices, an application with a reservation that costs more
/// than 1 is dropped (shortfall 1), the others pay. Prices follow a subgradient with diminishing
/// steps: they rise where the load exceeds the core and fall otherwise. The best bound of all
/// rounds counts.
fn shortfall_bound(reserved: &[CoreDemand], cores: usize) -> f64 {
    let mut prices = vec![0.0; cores];
    let mut mean_log_rate_bound: f64 = 0.0;
    for round in 1..=SHORTFALL_ROUNDS {
        let mut loads = vec![0.0; cores];
        let mut shortfall = -prices.iter().sum::<f64>();
        for unit in reserved {
            let cost = cost(&prices, unit);
            shortfall += cost.min(1.0);
            if cost < 1.0 {
                unit.iter()
                    .for_each(|&(core, of)| loads[core as usize] += of);
            }
        }
        mean_log_rate_bound = mean_log_rate_bound.max(shortfall);
        if round == 1 && loads.iter().all(|load| *load <= 1.0) {
            break;
        }
        let step = 0.5 / (round as f64).sqrt();
        for (price, load) in prices.iter_mut().zip(loads) {
            let more: f64 = step * (load - 1.0) / load.max(1.0);
            *price = (*price + more).max(0.0);
        }
    }
    mean_log_rate_bound * (1.0 - RATE_TOLERANCE)
}

/// What a unit of each application requires of each core in seconds, including traffic.
fn demand(mix: &Mix, machine: &Machine, placement: &[u32]) -> Vec<CoreDemand> {
    let mut on = vec![0.0; machine.workers()];
    let each = mix
        .apps
        .iter()
        .zip(mix.ranges())
        .enumerate()
        .map(|(number, (app, range))| {
            let seats = &placement[range];
            for (actor, &core) in app.actors.iter().zip(seats) {
                on[core as usize] += actor.time / machine.cores[core as usize].speed;
            }
            for channel in &app.channels {
                let (from, to) = (seats[channel.from], seats[channel.to]);
                let bytes = channel.elements * channel.size * machine.byte(from, to);
                on[from as usize] += bytes;
                on[to as usize] += bytes;
            }
            let take = |&core: &u32| {
                let ns = std::mem::take(&mut on[core as usize]);
                (ns > 0.0).then_some((core, ns * 1e-9))
            };
            let mut unit: CoreDemand = seats.iter().filter_map(take).collect();
            // An application gets no more than its reserved rate: modeled as a core of its own with
            // that capacity.
            unit.extend(
                app.reserved_rate
                    .map(|rate| ((machine.workers() + number) as u32, 1.0 / rate)),
            );
            unit
        });
    each.collect()
}

/// Lower bound on the load of the busiest worker over all placements: the heaviest actor on the
/// fastest core, the load pinned to one core, or the unpinned load spread evenly over the pinned
/// load.
pub fn lower_bound(graph: &Graph, machine: &Machine) -> f64 {
    let fastest = machine.fastest();
    let (mut heaviest, mut free) = (0.0f64, 0.0);
    let mut pinned = vec![0.0; machine.workers()];
    for (actor, busy) in graph.busy.iter().enumerate() {
        match graph
            .pin(actor)
            .and_then(|pin| pinned.get_mut(pin as usize))
        {
            Some(pinned) => *pinned += busy,
            None => {
                heaviest = heaviest.max(*busy);
                free += busy;
            }
        }
    }
    let cores = pinned.iter().zip(&machine.cores);
    let mut cores: Vec<(f64, f64)> = cores
        .map(|(pinned, c)| (pinned / c.speed, c.speed))
        .collect();
    cores.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean_log_rate_bound = cores.last().map_or(0.0, |core| core.0);
    // Water filling: from the core with the least pinned load on, until the level is below the next
    // core's pinned load.
    let (mut even, mut speed, mut work) = (0.0, 0.0, free);
    for (pinned, faster) in cores {
        if speed > 0.0 && pinned >= even {
            break;
        }
        speed += faster;
        work += pinned * faster;
        even = work / speed;
    }
    mean_log_rate_bound.max(even).max(heaviest / fastest)
}
