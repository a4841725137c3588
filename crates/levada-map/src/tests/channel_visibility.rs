// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When the other end of a channel sees what an actor has put or got: rates computed by hand.

use crate::*;

/// A pipeline of actors with 10 us per firing and 100 firings per unit, and channels of these
/// capacities that carry one element per firing.
fn row(capacities: &[f64]) -> Mix {
    row_of(capacities, 0.0)
}

/// The same with elements of this many bytes.
fn row_of(capacities: &[f64], size: f64) -> Mix {
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
        size,
        capacity,
    };
    let app = App {
        name: "app".to_string(),
        unit: "units".to_string(),
        priority: 0,
        reserved_rate: None,
        actors: vec![actor("a"), actor("b")],
        channels: capacities.iter().map(channel).collect(),
        cpus: None,
        cost_profile: None,
    };
    Mix {
        apps: vec![app],
        exclusive: Vec::new(),
    }
}

/// Two cores with workers that never sleep.
fn awake() -> Machine {
    let mut machine = Machine::with_topology(2, 1, 2, 2);
    machine.costs.spin = 1e9;
    machine
}

fn near(capacities: &[f64], placement: &[u32], should: f64) {
    is_near(&row(capacities), placement, should);
}

fn is_near(mix: &Mix, placement: &[u32], should: f64) {
    let made = simulate(mix, &awake(), placement, Scheduling::EventDriven, 30_000);
    let is = made.rates[0];
    assert!((is / should - 1.0).abs() < 0.03, "{is}, not {should}");
}

/// One actor fills one half while the other empties the other half.
#[test]
fn half_a_channel_is_published_at_once() {
    near(&[8.0], &[0, 1], 1000.0);
    near(&[8.0, 8.0], &[0, 1], 1000.0);
    near(&[800.0, 800.0], &[0, 1], 1000.0);
}

/// Half of the large channel would be 400 elements; they are pushed at the end of the turn, when
/// the small channel is full. By then the other actor has waited for its second half: 8 firings in
/// the time of 12.
#[test]
fn a_large_channel_is_published_late_if_another_one_is_small() {
    for channels in [[8.0, 800.0], [800.0, 8.0]] {
        near(&channels, &[0, 1], 1000.0 * 8.0 / 12.0);
        // On one core the order makes no difference.
        near(&channels, &[0, 0], 500.0);
    }
}

/// However large a channel is, 8 KiB are published at once: here 1024 elements, which are half of the
/// small channel. So the large one delays nothing.
#[test]
fn a_large_channel_is_published_by_8_kib() {
    is_near(&row_of(&[2048.0, 1e6], 8.0), &[0, 1], 1000.0);
    near(&[2048.0, 1e6], &[0, 1], 1000.0 * 2048.0 / 3072.0);
}

/// Less than half of a channel becomes visible at the end of the turn, so no actor waits forever.
#[test]
fn less_than_half_of_a_channel_is_published_at_the_end_of_the_turn() {
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
