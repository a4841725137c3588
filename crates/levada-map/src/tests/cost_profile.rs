// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Simulation with cost profiles: rates computed by hand, and random profiles.

use crate::random::{self, Random};
use crate::*;

/// Two actors in a pipeline with a mean of 1 ms per unit. While one takes 1.5 ms, the other takes
/// 0.5 ms; the profile covers two units.
fn opposite(capacity: f64) -> App {
    let actor = |name: &str| Actor {
        name: name.to_string(),
        time: 1e6,
        firings: 100.0,
        pin: None,
    };
    let costs = vec![("a", vec![150.0, 50.0]), ("b", vec![50.0, 150.0])];
    App {
        name: "app".to_string(),
        unit: "units".to_string(),
        priority: 0,
        reserved_rate: None,
        cpus: None,
        actors: vec![actor("a"), actor("b")],
        channels: vec![Channel {
            from: 0,
            to: 1,
            elements: 100.0,
            size: 0.0,
            capacity,
        }],
        cost_profile: Some(CostProfile::new(2.0, costs).unwrap()),
    }
}

fn mix(apps: Vec<App>) -> Mix {
    Mix {
        apps,
        exclusive: Vec::new(),
    }
}

fn rates(apps: Vec<App>, placement: &[u32], how: Scheduling) -> Vec<f64> {
    let machine = Machine::with_topology(2, 1, 2, 2);
    let made = simulate_until_settled(&mix(apps), &machine, placement, how, 30_000);
    assert!(made.whole, "{made:?}");
    made.rates
}

fn near(is: f64, should: f64) {
    assert!((is / should - 1.0).abs() < 0.03, "{is}, not {should}");
}

#[test]
fn opposite_cost_peaks_stall_a_small_channel() {
    for how in [Scheduling::EventDriven, Scheduling::RoundRobin] {
        let rate = |capacity, placement: &[u32]| rates(vec![opposite(capacity)], placement, how)[0];
        // The rate of the slower actor at each position.
        near(rate(8.0, &[0, 1]), 1e9 / 1.5e6);
        // Room for two profiles evens it out; a single core does all the work in any case.
        near(rate(400.0, &[0, 1]), 1e9 / 1e6);
        near(rate(8.0, &[0, 0]), 1e9 / 2e6);
        near(rate(400.0, &[0, 0]), 1e9 / 2e6);
    }
}

/// Two applications with a core each: one starts at a slow position, the other at a fast one.
#[test]
fn an_application_starts_at_the_given_position() {
    let apps = [0.0, 1000.0].map(|begin| {
        let mut app = opposite(8.0);
        app.actors.truncate(1);
        app.channels.clear();
        let profile = CostProfile::new(2000.0, vec![("a", vec![150.0, 50.0])]).unwrap();
        app.cost_profile = Some(profile.starting_at(begin));
        app
    });
    let machine = Machine::with_topology(2, 1, 2, 2);
    let how = Scheduling::EventDriven;
    let begun = simulate(&mix(apps.to_vec()), &machine, &[0, 1], how, 30);
    assert!(!begun.whole);
    near(begun.rates[0], 1e9 / 1.5e6);
    // Less than a profile: only the mean rate is known.
    near(begun.rates[1], 1e9 / 1e6);
    let made = rates(apps.to_vec(), &[0, 1], how);
    made.into_iter().for_each(|rate| near(rate, 1e9 / 1e6));
}

/// Whole profiles are counted: otherwise the rate would be twice the mean or 0, depending on where
/// counting ends.
#[test]
fn rates_cover_whole_profiles() {
    let mut long = opposite(8.0);
    long.actors.truncate(1);
    long.channels.clear();
    let machine = Machine::with_topology(1, 1, 1, 1);
    for (costs, speed) in [
        (vec![0.0, 1.0], 1.0),
        (vec![3.0, 0.0, 0.0], 1.0),
        (vec![1.0, 7.0], 2.0),
    ] {
        let mut machine = machine.clone();
        machine.cores[0].speed = speed;
        long.cost_profile = Some(CostProfile::new(300.0, vec![("a", costs)]).unwrap());
        let mix = mix(vec![long.clone()]);
        let how = Scheduling::EventDriven;
        for steps in [100, 150, 3_000, 4_567] {
            let made = simulate_until_settled(&mix, &machine, &[0], how, steps);
            assert!(made.whole, "{made:?}");
            near(made.rates[0], 1e9 / 1e6 * speed);
            let again = simulate_until_settled(&mix, &machine, &[0], how, steps);
            assert_eq!(made, again);
        }
        // Less than a profile: the result says so.
        assert!(!simulate(&mix, &machine, &[0], how, 3).whole);
    }
}

/// A constant profile changes nothing; any other one still terminates.
#[test]
fn any_profile_can_be_simulated() {
    let machine = Machine::with_topology(4, 1, 4, 4);
    let how = Scheduling::EventDriven;
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let mean = random::mix(&mut random, 1, 12);
        let placement = map(&mean, &machine, Strategy::Glb).unwrap();
        let simulated = |mix: &Mix| simulate_until_settled(mix, &machine, &placement, how, 20_000);
        let before = simulated(&mean);
        let with = |cost: &mut dyn FnMut() -> f64| {
            let mut mix = mean.clone();
            for app in &mut mix.apps {
                let names = app.actors.iter().map(|a| a.name.as_str());
                let costs = names.map(|n| (n, (0..8).map(|_| cost()).collect()));
                app.cost_profile = Some(CostProfile::new(3.0, costs.collect()).unwrap());
            }
            simulated(&mix)
        };
        for (one, other) in with(&mut || 7.0).rates.iter().zip(&before.rates) {
            assert!((one / other - 1.0).abs() < 0.05, "{seed}: {one}, {other}");
        }
        let made = with(&mut || 1.0 + random.below(300) as f64);
        assert!(made.whole);
        let rates = made.rates.iter().chain(&made.slowest);
        rates.for_each(|rate| assert!(rate.is_finite() && *rate > 0.0, "{seed}: {rate}"));
    }
}

/// Two actors of equal cost hardly wait for each other. With a spread they do on two cores; on one
/// core the mean stays the same.
#[test]
fn varying_step_costs_stall_a_channel() {
    let rate = |scatter: f64, placement: &[u32]| {
        let mut app = opposite(8.0);
        let even = vec![("a", vec![1.0]), ("b", vec![1.0])];
        app.cost_profile = Some(CostProfile::new(2.0, even).unwrap().with_spread(scatter));
        rates(vec![app], placement, Scheduling::EventDriven)[0]
    };
    near(rate(0.0, &[0, 1]), 1000.0);
    let varied = rate(0.6, &[0, 1]);
    assert!((700.0..930.0).contains(&varied), "{varied}");
    near(rate(0.6, &[0, 0]), 500.0);
}
