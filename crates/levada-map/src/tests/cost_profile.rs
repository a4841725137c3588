// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Costs that vary along the stream, simulated: rates that can be computed by hand, and courses that are anything.

use crate::random::{self, Random};
use crate::*;

/// Two actors in a row, each of a millisecond a unit in the mean, but where one takes one and a half the other takes a
/// half; a course is two units.
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
        promise: None,
        share: None,
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
fn what_is_heavy_here_and_there_holds_up_who_shares_a_small_channel() {
    for how in [Scheduling::EventDriven, Scheduling::RoundRobin] {
        let rate = |capacity, placement: &[u32]| rates(vec![opposite(capacity)], placement, how)[0];
        // The slower of both, everywhere.
        near(rate(8.0, &[0, 1]), 1e9 / 1.5e6);
        // Room for two courses evens it out, and one core does all of it anyway.
        near(rate(400.0, &[0, 1]), 1e9 / 1e6);
        near(rate(8.0, &[0, 0]), 1e9 / 2e6);
        near(rate(400.0, &[0, 0]), 1e9 / 2e6);
    }
}

/// Each on a core of its own: one begins where it is slow, the other where it is fast.
#[test]
fn an_application_begins_where_it_is_told_to() {
    let apps = [0.0, 1000.0].map(|begin| {
        let mut app = opposite(8.0);
        app.actors.truncate(1);
        app.channels.clear();
        let course = CostProfile::new(2000.0, vec![("a", vec![150.0, 50.0])]).unwrap();
        app.cost_profile = Some(course.starting_at(begin));
        app
    });
    let machine = Machine::with_topology(2, 1, 2, 2);
    let how = Scheduling::EventDriven;
    let begun = simulate(&mix(apps.to_vec()), &machine, &[0, 1], how, 30);
    assert!(!begun.whole);
    near(begun.rates[0], 1e9 / 1.5e6);
    // No more than the mean is told of less than a course.
    near(begun.rates[1], 1e9 / 1e6);
    let made = rates(apps.to_vec(), &[0, 1], how);
    made.into_iter().for_each(|rate| near(rate, 1e9 / 1e6));
}

/// Wherever counting ends: here it would be at twice the mean, or at none.
#[test]
fn rates_are_those_of_whole_courses() {
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
        // Too little for a course: what there was is told, as such.
        assert!(!simulate(&mix, &machine, &[0], how, 3).whole);
    }
}

/// A course that costs the same everywhere changes nothing; with any other it goes on.
#[test]
fn any_course_is_simulated() {
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

/// Two actors of equal costs hardly wait for each other where both take the same each time; where they do not they wait, and
/// one core does in the mean what it did.
#[test]
fn costs_that_vary_from_step_to_step_hold_up_who_shares_a_channel() {
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
