// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random mixes from a seed, for tests and for measuring how mapping scales.

use crate::model::mix::{Actor, App, Channel, Mix};

/// The generator SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Log-uniform between the two limits.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        let share = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        low * (high / low).powf(share)
    }
}

/// Random applications with `actors` actors in total.
pub fn mix(random: &mut Random, apps: usize, actors: usize) -> Mix {
    let mut mix = Mix::default();
    let (mut apps_left, mut left) = (apps.max(1), actors.max(apps.max(1)));
    while apps_left > 0 {
        let mean = left / apps_left;
        let most = left - (apps_left - 1);
        let count = match apps_left {
            1 => left,
            _ => (mean / 2 + random.below(mean + 1)).clamp(1, most),
        };
        mix.apps.push(app(random, mix.apps.len(), count));
        apps_left -= 1;
        left -= count;
    }
    mix
}

/// A pipeline with branches that join again, and sometimes feedback.
fn app(random: &mut Random, number: usize, actors: usize) -> App {
    let work = random.between(1e6, 4e7);
    let spread = random.between(1.5, 12.0);
    let mut times: Vec<f64> = (0..actors).map(|_| random.between(1.0, spread)).collect();
    let sum: f64 = times.iter().sum();
    times.iter_mut().for_each(|t| *t *= work / sum);
    let firings = random.between(40.0, 1000.0).round();
    let mean = work / actors as f64;
    let channel = |random: &mut Random, from: usize, to: usize| {
        // Each element takes at least some nanoseconds of work.
        let elements = firings * (mean / firings / random.between(20.0, 1000.0)).ceil();
        Channel {
            from,
            to,
            elements,
            size: [1.0, 2.0, 4.0, 8.0][random.below(4)],
            capacity: (elements / firings * random.between(8.0, 128.0)).round(),
        }
    };
    let mut channels = Vec::new();
    for to in 1..actors {
        let back = 1 + random.below(3.min(to));
        channels.push(channel(random, to - back, to));
        if to > 3 && random.below(4) == 0 {
            let from = to - 1 - random.below(3);
            channels.push(channel(random, from, to));
        }
    }
    if actors > 4 && random.below(6) == 0 {
        let from = actors - 1 - random.below(2);
        channels.push(channel(random, from, from - 2));
    }
    let actor = |(i, time): (usize, f64)| Actor {
        name: format!("a{i}"),
        time,
        firings,
        pin: None,
    };
    App {
        name: format!("app{number}"),
        unit: "frames".to_string(),
        priority: 0,
        reserved_rate: None,
        actors: times.into_iter().enumerate().map(actor).collect(),
        channels,
        cpus: None,
        cost_profile: None,
    }
}
