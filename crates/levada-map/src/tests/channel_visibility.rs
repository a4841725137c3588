// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When others see what an actor has put and got: rates that can be computed by hand.

use crate::*;

/// Two actors in a row, both of 10 us a firing and a hundred firings a unit, with channels of this capacity between
/// them that carry an element a firing.
fn row(capacities: &[f64]) -> Mix {
    let actor = |name: &str| Actor {
        name: name.to_string(),
        time: 1e6,
        firings: 100.0,
        pin: None,
    };
    let channel = |&capacity: &f64| Channel {
        from: 0,
        to: 1,
        elements: 100.0,
        size: 0.0,
        capacity,
    };
    let app = App {
        name: "app".to_string(),
        unit: "units".to_string(),
        priority: 0,
        promise: None,
        actors: vec![actor("a"), actor("b")],
        channels: capacities.iter().map(channel).collect(),
        share: None,
        cost_profile: None,
    };
    Mix {
        apps: vec![app],
        exclusive: Vec::new(),
    }
}

/// Two cores, whose workers do not sleep while they wait.
fn awake() -> Machine {
    let mut machine = Machine::with_topology(2, 1, 2, 2);
    machine.costs.spin = 1e9;
    machine
}

fn near(capacities: &[f64], placement: &[u32], should: f64) {
    let mix = row(capacities);
    let made = simulate(&mix, &awake(), placement, Scheduling::EventDriven, 30_000);
    let is = made.rates[0];
    assert!((is / should - 1.0).abs() < 0.03, "{is}, not {should}");
}

/// One fills a half while the other empties the other half.
#[test]
fn half_a_channel_is_handed_over_at_once() {
    near(&[8.0], &[0, 1], 1000.0);
    near(&[8.0, 8.0], &[0, 1], 1000.0);
    near(&[800.0, 800.0], &[0, 1], 1000.0);
}

/// Of the large channel half would be 400 elements, so they are pushed when the turn is over, since the small one is
/// full. By then the other has waited for the second half of it: 8 firings in the time of 12.
#[test]
fn a_large_channel_is_seen_late_beside_a_small_one() {
    for channels in [[8.0, 800.0], [800.0, 8.0]] {
        near(&channels, &[0, 1], 1000.0 * 8.0 / 12.0);
        // On one core nobody can look in between.
        near(&channels, &[0, 0], 500.0);
    }
}

/// Whatever the sizes, nobody waits for ever: what is not half of a channel is seen when the turn is over.
#[test]
fn less_than_half_of_a_channel_is_seen_in_the_end() {
    for small in [1.0, 2.0, 3.0, 5.0, 8.0] {
        for large in [2.0, 7.0, 64.0, 1e9] {
            for how in [Scheduling::EventDriven, Scheduling::RoundRobin] {
                let mix = row(&[small, large, small + 1.0]);
                let rate = simulate(&mix, &awake(), &[0, 1], how, 10_000).rates[0];
                assert!(
                    (400.0..1001.0).contains(&rate),
                    "{how:?} {small} {large}: {rate}"
                );
            }
        }
    }
}
