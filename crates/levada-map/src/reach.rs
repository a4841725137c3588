// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a placement is out of reach of: rates that no schedule can give, since some core would have to compute for longer than
//! there is time. Of very many actors, simulating a placement takes long, and most need no more than this to be seen to be
//! worse than another.

use crate::machine::Machine;
use crate::mix::Mix;

/// Each makes the bound a little lower; after so many, hardly any more.
const ROUNDS: usize = 24;

/// The mean of the logarithms of the rates is no more than this, whoever goes first.
///
/// Let each core have a price for all of its time, of as much as there are applications together. An application that makes
/// a unit for each price of one that its unit costs makes the mean as large as it can be for any schedule that is
/// paid so; and no schedule gives more than is paid for, whatever the prices are. What those rates would ask of a core says
/// by how much its price is to rise or fall, and each time that is done the bound comes closer.
pub(crate) fn most(mix: &Mix, machine: &Machine, placement: &[u32]) -> f64 {
    let asked = asked(mix, machine, placement);
    let apps = mix.apps.len() as f64;
    let cores = machine.workers() + mix.apps.len();
    let mut prices = vec![apps / machine.workers() as f64; cores];
    let cost = |prices: &[f64], unit: &[(u32, f64)]| -> f64 {
        let parts = unit.iter().map(|&(core, of)| prices[core as usize] * of);
        parts.sum::<f64>().max(f64::MIN_POSITIVE)
    };
    for _ in 0..ROUNDS {
        let mut loads = vec![0.0; cores];
        for unit in &asked {
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

/// What a unit of each application asks of each core, in seconds, with what its bytes cost.
fn asked(mix: &Mix, machine: &Machine, placement: &[u32]) -> Vec<Vec<(u32, f64)>> {
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
            let mut unit: Vec<(u32, f64)> = seats.iter().filter_map(take).collect();
            // What is promised a rate gets no more: as if it had a core that can do as much.
            unit.extend(
                app.promise
                    .map(|rate| ((machine.workers() + number) as u32, 1.0 / rate)),
            );
            unit
        });
    each.collect()
}
