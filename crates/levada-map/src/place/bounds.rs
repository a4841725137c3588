// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a placement is out of reach of: rates that no schedule can give, since some core would have to compute for longer than
//! there is time. Of very many actors, simulating a placement takes long, and most need no more than this to be seen to be
//! worse than another.

use crate::model::graph::Graph;
use crate::model::machine::Machine;
use crate::model::mix::{Mix, NS_PER_S, RATE_TOLERANCE};

/// Each makes the bound a little lower; after so many, hardly any more.
const ROUNDS: usize = 24;
/// The same of what is missing; and of so many priorities, the highest.
const SHORTFALL_ROUNDS: usize = 64;
const LEVELS_MAX: usize = 4;

/// What one application's unit asks of each core.
type CoreDemand = Vec<(u32, f64)>;

pub(crate) struct UpperBound {
    /// The mean of the logarithms of the rates is no more than this.
    pub mean_log_rate: f64,
    /// So much is missing of what was promised, at the least, in all priorities from the highest to each.
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

/// The mean of the logarithms of the rates is no more than this wherever the actors are: all cores together do no more work,
/// and nobody is faster than its heaviest actor on the fastest core, or than it is held to.
pub(crate) fn mean_log_rate_bound_anywhere(mix: &Mix, machine: &Machine) -> f64 {
    let fastest = machine.fastest();
    // Of each the most that it can use of the cores, and what a unit asks of them.
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
    // Equal parts make the mean as large as it can be, and who can use less than that leaves more to the others.
    apps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut left, mut sum) = (machine.capacity(), 0.0);
    for (served, (mean_log_rate_bound, unit)) in apps.iter().enumerate() {
        let part = mean_log_rate_bound.min(left / (apps.len() - served) as f64);
        left -= part;
        sum += (part / unit).ln();
    }
    sum / apps.len().max(1) as f64
}

/// The mean of the logarithms of the rates is no more than this, whoever goes first.
///
/// Let each core have a price for all of its time, of as much as there are applications together. An application that makes
/// a unit for each price of one that its unit costs makes the mean as large as it can be for any schedule that is
/// paid so; and no schedule gives more than is paid for, whatever the prices are. What those rates would ask of a core says
/// by how much its price is to rise or fall, and each time that is done the bound comes closer.
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
        let promised = apps.filter_map(|(app, unit)| {
            let rate = app.promise.filter(|_| app.priority >= lowest)?;
            let cores = unit
                .iter()
                .filter(|(core, _)| (*core as usize) < machine.workers());
            let all = app.achievable_rate(rate, fastest) * (1.0 - RATE_TOLERANCE);
            Some(cores.map(|&(core, of)| (core, of * all)).collect())
        });
        shortfall_bound(&promised.collect::<Vec<CoreDemand>>(), machine.workers())
    };
    let levels = mix.priority_levels().into_iter().take(LEVELS_MAX);
    levels.map(least).collect()
}

/// Of what asks so much of cores for all that is promised to each, so many parts are missing at the least.
///
/// Again each core has a price: who pays more than one for all of it does without, others pay, and what is not paid for is
/// not made. Where more is asked of a core than there is its price rises, and else it falls, by less each time.
fn shortfall_bound(promised: &[CoreDemand], cores: usize) -> f64 {
    let mut prices = vec![0.0; cores];
    let mut mean_log_rate_bound: f64 = 0.0;
    for round in 1..=SHORTFALL_ROUNDS {
        let mut loads = vec![0.0; cores];
        let mut shortfall = -prices.iter().sum::<f64>();
        for unit in promised {
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

/// What a unit of each application asks of each core, in seconds, with what its bytes cost.
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
            // What is promised a rate gets no more: as if it had a core that can do as much.
            unit.extend(
                app.promise
                    .map(|rate| ((machine.workers() + number) as u32, 1.0 / rate)),
            );
            unit
        });
    each.collect()
}

/// No placement makes the busiest worker less busy than this: the heaviest actor on the fastest core, what is pinned to one
/// core, or all that may go anywhere, spread evenly over what is pinned.
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
    // On the cores with the least, as high as it comes, until the next one has no more than that.
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
