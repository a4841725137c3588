// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a placement is out of reach of: rates that no schedule can give, since some core would have to compute for longer than
//! there is time. Of very many actors, simulating a placement takes long, and most need no more than this to be seen to be
//! worse than another.

use crate::model::graph::Graph;
use crate::model::machine::Machine;
use crate::model::mix::{KEPT, Mix, SECOND};

/// Each makes the bound a little lower; after so many, hardly any more.
const ROUNDS: usize = 24;
/// The same of what is missing; and of so many priorities, the highest.
const ROUNDS_OF_MISSING: usize = 64;
const LEVELS: usize = 4;

/// What one application's unit asks of each core.
type Unit = Vec<(u32, f64)>;

pub(crate) struct Reach {
    /// The mean of the logarithms of the rates is no more than this.
    pub mean: f64,
    /// So much is missing of what was promised, at the least, in all priorities from the highest to each.
    pub missing: Vec<f64>,
}

impl Reach {
    pub fn of(mix: &Mix, machine: &Machine, placement: &[u32]) -> Reach {
        let asked = asked(mix, machine, placement);
        Reach {
            mean: most(mix, machine, &asked),
            missing: missing(mix, machine, &asked),
        }
    }
}

/// The mean of the logarithms of the rates is no more than this wherever the actors are: all cores together do no more work,
/// and nobody is faster than its heaviest actor on the fastest core, or than it is held to.
pub(crate) fn most_anywhere(mix: &Mix, machine: &Machine) -> f64 {
    let fastest = machine.fastest();
    // Of each the most that it can use of the cores, and what a unit asks of them.
    let mut apps: Vec<(f64, f64)> = mix
        .apps
        .iter()
        .map(|app| {
            let unit = app.work().max(1e-9) / SECOND;
            let alone = fastest * SECOND / app.heaviest().max(1e-9);
            let held = app.limit(app.work().max(1e-9) / fastest);
            (held.map_or(alone, |held| held.min(alone)) * unit, unit)
        })
        .collect();
    // Equal parts make the mean as large as it can be, and who can use less than that leaves more to the others.
    apps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut left, mut sum) = (machine.capacity(), 0.0);
    for (served, (most, unit)) in apps.iter().enumerate() {
        let part = most.min(left / (apps.len() - served) as f64);
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
fn most(mix: &Mix, machine: &Machine, asked: &[Unit]) -> f64 {
    let apps = mix.apps.len() as f64;
    let cores = machine.workers() + mix.apps.len();
    let mut prices = vec![apps / machine.workers() as f64; cores];
    let cost = |prices: &[f64], unit: &Unit| cost(prices, unit).max(f64::MIN_POSITIVE);
    for _ in 0..ROUNDS {
        let mut loads = vec![0.0; cores];
        for unit in asked {
            let rate = 1.0 / cost(&prices, unit);
            for &(core, of) in unit {
                loads[core as usize] += rate * of;
            }
        }
        let both = prices.iter_mut().zip(loads);
        both.for_each(|(price, load)| *price *= load);
    }
    let logs = asked.iter().map(|unit| -cost(&prices, unit).ln());
    logs.sum::<f64>() / apps
}

fn cost(prices: &[f64], unit: &Unit) -> f64 {
    let parts = unit.iter().map(|&(core, of)| prices[core as usize] * of);
    parts.sum()
}

fn missing(mix: &Mix, machine: &Machine, asked: &[Unit]) -> Vec<f64> {
    let fastest = machine.fastest();
    let least = |lowest: i32| {
        let apps = mix.apps.iter().zip(asked);
        let promised = apps.filter_map(|(app, unit)| {
            let rate = app.promise.filter(|_| app.priority >= lowest)?;
            let cores = unit
                .iter()
                .filter(|(core, _)| (*core as usize) < machine.workers());
            let all = app.within_reach(rate, fastest) * (1.0 - KEPT);
            Some(cores.map(|&(core, of)| (core, of * all)).collect())
        });
        least_missing(&promised.collect::<Vec<Unit>>(), machine.workers())
    };
    let levels = mix.levels().into_iter().take(LEVELS);
    levels.map(least).collect()
}

/// Of what asks so much of cores for all that is promised to each, so many parts are missing at the least.
///
/// Again each core has a price: who pays more than one for all of it does without, others pay, and what is not paid for is
/// not made. Where more is asked of a core than there is its price rises, and else it falls, by less each time.
fn least_missing(promised: &[Unit], cores: usize) -> f64 {
    let mut prices = vec![0.0; cores];
    let mut most: f64 = 0.0;
    for round in 1..=ROUNDS_OF_MISSING {
        let mut loads = vec![0.0; cores];
        let mut missing = -prices.iter().sum::<f64>();
        for unit in promised {
            let cost = cost(&prices, unit);
            missing += cost.min(1.0);
            if cost < 1.0 {
                unit.iter()
                    .for_each(|&(core, of)| loads[core as usize] += of);
            }
        }
        most = most.max(missing);
        if round == 1 && loads.iter().all(|load| *load <= 1.0) {
            break;
        }
        let step = 0.5 / (round as f64).sqrt();
        for (price, load) in prices.iter_mut().zip(loads) {
            let more: f64 = step * (load - 1.0) / load.max(1.0);
            *price = (*price + more).max(0.0);
        }
    }
    most * (1.0 - KEPT)
}

/// What a unit of each application asks of each core, in seconds, with what its bytes cost.
fn asked(mix: &Mix, machine: &Machine, placement: &[u32]) -> Vec<Unit> {
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
            let mut unit: Unit = seats.iter().filter_map(take).collect();
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
    let most = cores.last().map_or(0.0, |core| core.0);
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
    most.max(even).max(heaviest / fastest)
}
