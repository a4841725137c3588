// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mixes of applications: those of the paper, large ones, mixes with rates that can be computed by
//! hand, and invalid ones.

use super::random_mixes::scene;
use crate::random::{Random, mix as random_mix};
use crate::*;

pub(crate) fn rates(mix: &Mix, machine: &Machine, placement: &[u32], steps: usize) -> Vec<f64> {
    simulate(mix, machine, placement, Scheduling::EventDriven, steps).rates
}

/// The geometric mean of the gains over all applications.
fn gain(one: &[f64], other: &[f64]) -> f64 {
    let logs = one.iter().zip(other).map(|(a, b)| (a / b).ln());
    (logs.sum::<f64>() / one.len() as f64).exp()
}

/// Neither for a small gain, nor if most of the work would have to move.
#[test]
fn a_gain_below_the_cost_of_moving_moves_nothing() {
    let machine = Machine::with_topology(2, 1, 2, 2);
    for (times, current, better, gain) in [
        // Moving the small one would relieve the busiest core by 4 %.
        ([10.0, 9.4, 0.4, 0.2], [0, 1, 0, 1], [0, 1, 1, 1], 1.04),
        // Swapping two would relieve it by 9 %, but move half of the work.
        ([5.0, 6.0, 5.0, 4.0], [0, 0, 1, 1], [0, 1, 0, 1], 1.10),
    ] {
        let mut mix = of(vec![app("a", &times)]);
        mix.apps[0]
            .channels
            .iter_mut()
            .for_each(|c| c.capacity = 1e5);
        let is = rates(&mix, &machine, &current, 200_000)[0];
        let would = rates(&mix, &machine, &better, 200_000)[0];
        assert!((would / is / gain - 1.0).abs() < 0.01, "{is} {would}");
        let now = current.map(Some);
        assert_eq!(remap(&mix, &machine, &now).unwrap(), current);
    }
    // A larger gain causes a move.
    let mix = of(vec![app("a", &[10.0, 9.0, 1.0, 1.0])]);
    let now = [0, 1, 0, 0].map(Some);
    assert_ne!(remap(&mix, &machine, &now).unwrap(), [0, 1, 0, 0]);
}

/// A pipeline of actors with these milliseconds per unit.
pub(crate) fn app(name: &str, times: &[f64]) -> App {
    let actor = |(i, ms): (usize, &f64)| Actor {
        name: format!("{name}{i}"),
        time: ms * 1e6,
        firings: 100.0,
        pin: None,
    };
    let channel = |to: usize| Channel {
        from: to - 1,
        to,
        elements: 6400.0,
        size: 4.0,
        capacity: 2048.0,
    };
    App {
        name: name.to_string(),
        unit: "frames".to_string(),
        priority: 0,
        reserved_rate: None,
        actors: times.iter().enumerate().map(actor).collect(),
        channels: (1..times.len()).map(channel).collect(),
        cpus: None,
        cost_profile: None,
    }
}

pub(crate) fn of(apps: Vec<App>) -> Mix {
    Mix {
        apps,
        exclusive: Vec::new(),
    }
}

/// No actor is placed where its long firings delay others.
#[test]
fn an_actor_with_long_firings_gets_a_core_of_its_own() {
    let machine = Machine::with_topology(2, 1, 2, 2);
    let mut audio = app("audio", &[200e-6, 200e-6]);
    for actor in &mut audio.actors {
        actor.firings = 1.0;
    }
    audio.channels[0].elements = 1.0;
    audio.channels[0].capacity = 64.0;
    let mut report = app("report", &[300.0]);
    report.actors[0].firings = 1.0;
    let mix = of(vec![audio, report]);
    let placement = map(&mix, &machine, Strategy::Levada).unwrap();
    assert_eq!(placement[0], placement[1]);
    assert_ne!(placement[0], placement[2]);
}

/// Trying all swaps would take minutes here.
#[test]
fn thousands_of_actors_on_two_cores_are_mapped_evenly() {
    let machine = Machine::with_topology(2, 1, 2, 2);
    let apps = (0..250).map(|i| app("a", &[1.0, 2.0, 0.5 + f64::from(i) / 100.0, 3.0]));
    let mix = of(apps.collect());
    let graph = mix.graph(&mix.targets(&machine));
    let placed = place(&graph, &machine);
    let even = lower_bound(&graph, &machine) * 1.03;
    assert!(bottleneck(&graph, &machine, &placed) < even);
}

/// A core that a higher priority uses up is not available to others, with or without a reserved
/// rate.
#[test]
fn no_actor_is_placed_on_a_core_that_a_higher_priority_uses_up() {
    let machine = Machine::new(2);
    let mut apps: Vec<App> = ["a", "b", "c", "d"]
        .map(|name| app(name, &[1e-5, 1.5, 1e-4]))
        .into();
    apps[3].priority = 5;
    for reserved_rate in [None, Some(50.0)] {
        apps[1].reserved_rate = reserved_rate;
        apps[2].reserved_rate = reserved_rate;
        let mix = of(apps.clone());
        // For a new mix, and when the fourth application is loaded.
        let initial = map(&mix, &machine, Strategy::Levada).unwrap();
        let three = map(&of(apps[..3].to_vec()), &machine, Strategy::Levada).unwrap();
        let current: Vec<Option<u32>> = three.into_iter().map(Some).chain([None; 3]).collect();
        let then = remap(&mix, &machine, &current).unwrap();
        for (placement, fourth) in [(initial, 600.0), (then, 300.0)] {
            let made = rates(&mix, &machine, &placement, 100_000);
            let least = reserved_rate.map_or(200.0, |p| p * 0.98);
            assert!(made[1].min(made[2]) >= least, "{placement:?} {made:?}");
            assert!(
                made[0] > 200.0 && made[3] > fourth,
                "{placement:?} {made:?}"
            );
        }
    }
}

#[test]
fn the_simulator_gives_the_rates_that_can_be_computed_by_hand() {
    let machine = Machine::new(2);
    let alone = of(vec![app("a", &[4.0, 4.0])]);
    let near = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.03, "{got} {wanted}");
    near(rates(&alone, &machine, &[0, 0], 20_000)[0], 125.0);
    near(rates(&alone, &machine, &[0, 1], 20_000)[0], 250.0);
    let mut slow = machine.clone();
    slow.cores[1].speed = 0.5;
    near(rates(&alone, &slow, &[0, 1], 20_000)[0], 125.0);
    // Two equal applications on one core get half each, under any policy.
    let two = of(vec![app("a", &[5.0]), app("b", &[5.0])]);
    for scheduling in [Scheduling::EventDriven, Scheduling::RoundRobin] {
        let made = simulate(&two, &machine, &[0, 0], scheduling, 40_000);
        near(made.rates[0], 100.0);
        near(made.rates[1], 100.0);
        near(made.busy[0], 1.0);
        assert_eq!(made.busy[1], 0.0);
    }
    // A pipeline with small channels does not wait for a whole turn of the other application at
    // each actor.
    let mut pipeline = app("p", &[0.1; 10]);
    let little = |c: &mut Channel| c.capacity = c.elements / 8.0;
    pipeline.channels.iter_mut().for_each(little);
    let made = rates(
        &of(vec![app("a", &[5.0]), pipeline]),
        &machine,
        &[0; 11],
        40_000,
    );
    assert!(made[1] > 400.0 && made[0] > 80.0, "{made:?}");
    // While channels fill, actors before the slowest one exceed the sustainable rate.
    let mut works = vec![1.0; 300];
    works[299] = 20.0;
    let (long, many) = (of(vec![app("a", &works)]), Machine::new(300));
    let places: Vec<u32> = (0..300).collect();
    let how = Scheduling::EventDriven;
    let made = simulate(&long, &many, &places, how, 20_000);
    near(made.rates[0], 50.0);
    assert!(!made.settled(0), "{made:?}");
    let made = simulate_until_settled(&long, &many, &places, how, 20_000);
    near(made.rates[0], 50.0);
    assert!(made.settled(0));
    // With many actors the last ones do not fire within the limit; the simulation restarts with
    // half-full channels.
    let (long, many) = (of(vec![app("a", &[1.0; 1000])]), Machine::new(1000));
    let places: Vec<u32> = (0..1000).collect();
    let made = simulate(&long, &many, &places, how, 32 * 5_000);
    assert!(made.slowest[0] == 0.0 && !made.settled(0));
    let made = simulate_until_settled(&long, &many, &places, how, 5_000);
    near(made.rates[0], 1000.0);
    assert!(made.settled(0));
    // Traffic: 25600 bytes per unit at 0.1 ns per byte and side are 2.56 us of 4 ms.
    let mut dear = machine.clone();
    dear.costs.byte = [40.0; 4];
    near(
        rates(&alone, &dear, &[0, 1], 20_000)[0],
        1e3 / (4.0 + 1.024),
    );
}

#[test]
fn a_long_wait_costs_a_wake_up() {
    // One element circulates between two cores: each sleeps while the other computes.
    let mut one = app("a", &[2.0, 2.0]);
    for actor in &mut one.actors {
        actor.firings = 20.0;
    }
    let around = |from, to| Channel {
        from,
        to,
        elements: 20.0,
        size: 1.0,
        capacity: 2.0,
    };
    one.channels = vec![around(0, 1), around(1, 0)];
    let (mix, mut machine) = (of(vec![one]), Machine::new(2));
    machine.costs.asleep = 20e3;
    let rate = |machine: &Machine| rates(&mix, machine, &[0, 1], 20_000)[0];
    let near = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.01, "{got} {wanted}");
    near(rate(&machine), 1e3 / (4.0 + 40.0 * 0.02));
    machine.costs.spin = 1e6;
    near(rate(&machine), 1e3 / (4.0 + 40.0 * 0.0003));
}

/// The sink of a pipeline uses 2 % of a core that another application keeps busy. If it had to wait
/// half a millisecond for each turn, its short channel would fill.
#[test]
fn a_light_actor_does_not_wait_for_a_full_turn() {
    let busy = app("busy", &[1.0]);
    let pipeline = |sink: f64| {
        let mut pipeline = app("pipeline", &[1.0, sink]);
        pipeline.actors.iter_mut().for_each(|a| a.firings = 1000.0);
        pipeline.channels[0].elements = 1000.0;
        pipeline.channels[0].capacity = 200.0;
        pipeline
    };
    let machine = Machine::new(2);
    let of = |sink: f64| {
        let mix = of(vec![busy.clone(), pipeline(sink)]);
        rates(&mix, &machine, &[0, 1, 0], 400_000)
    };
    let rates = of(0.02);
    assert!(rates[1] > 950.0, "{rates:?}");
    assert!((rates[0] + 0.02 * rates[1]) > 960.0, "{rates:?}");
    // With 20 % it waits as usual.
    let rates = of(0.2);
    assert!(rates[1] < 700.0, "{rates:?}");
}

/// A network with channels that hold less than its bursts gets larger ones, whatever else runs.
#[test]
fn a_deadlocked_network_gets_larger_channels() {
    let machine = Machine::with_topology(2, 1, 2, 2);
    let mut tight = app("tight", &[1.0, 1.0, 1.0, 1.0]);
    let channel = |from, to, elements: f64| Channel {
        from,
        to,
        elements,
        size: 4.0,
        capacity: 1.0,
    };
    // Two branches to the last actor, one of which needs a whole unit before it produces output.
    tight.actors[1].firings = 1.0;
    tight.channels = vec![
        channel(0, 1, 6400.0),
        channel(1, 3, 6400.0),
        channel(0, 2, 6400.0),
        channel(2, 3, 6400.0),
    ];
    let alone = of(vec![tight.clone()]);
    let alone = rates(&alone, &machine, &[0; 4], 100_000)[0];
    assert!(alone > 200.0, "{alone}");
    let both = of(vec![tight, app("other", &[1.0])]);
    let shared = rates(&both, &machine, &[0, 0, 0, 0, 1], 100_000)[0];
    assert!((shared / alone - 1.0).abs() < 0.05, "{shared} {alone}");
}

/// The mixes of table 1 of the paper: a decoder of many unequal actors, and a smaller one. The
/// weights are made up; the benchmark suite `map` uses measured ones.
fn paper(large: usize, small: usize) -> Mix {
    let decoder = |i| {
        app(
            &format!("large{i}"),
            &[0.4, 7.5, 2.6, 6.0, 3.1, 9.5, 4.2, 1.2, 5.5, 2.4, 0.8, 0.3],
        )
    };
    let lesser = |i| {
        app(
            &format!("small{i}"),
            &[0.3, 6.5, 1.1, 2.2, 3.5, 4.0, 5.1, 0.6],
        )
    };
    of((0..large)
        .map(decoder)
        .chain((0..small).map(lesser))
        .collect())
}

#[test]
fn global_balancing_gains_what_the_paper_reports() {
    let machine = Machine::new(8);
    for (large, small) in [(3, 5), (5, 3)] {
        let mix = paper(large, small);
        let of = |strategy| {
            let placement = map(&mix, &machine, strategy).unwrap();
            simulate(&mix, &machine, &placement, Scheduling::RoundRobin, 200_000).rates
        };
        let mean = |rates: &[f64]| rates[..large].iter().sum::<f64>() / large as f64;
        let lb = of(Strategy::Lb);
        // The paper's gain is 1.17. Here the large applications gain 1.84 and 1.95 with glb, and
        // 1.40 and 1.54 with Levada, which also serves the small ones.
        for (strategy, least) in [(Strategy::Glb, 1.75), (Strategy::Levada, 1.33)] {
            let gain = mean(&of(strategy)) / mean(&lb);
            println!(
                "{large} large + {small} small: {} {gain:.2} of lb",
                strategy.name()
            );
            assert!(gain > least, "{} gains {gain}", strategy.name());
        }
    }
}

#[test]
fn exclusive_cores_and_pins_are_respected() {
    for seed in 0..30 {
        let (machine, mut mix) = scene(seed);
        let cores = machine.workers() as u32;
        mix.apps.push(app("own", &[1.0, 2.0, 3.0]));
        let own = mix.apps.len() - 1;
        mix.exclusive = vec![(cores - 1, Some(own))];
        mix.apps[0].actors[0].pin = Some(0);
        let range = mix.ranges()[own].clone();
        for strategy in Strategy::ALL {
            let placement = map(&mix, &machine, strategy).unwrap();
            assert_eq!(placement[0], 0);
            for (actor, core) in placement.iter().enumerate() {
                assert_eq!(
                    *core == cores - 1,
                    range.contains(&actor),
                    "{}",
                    strategy.name()
                );
            }
        }
    }
}

#[test]
fn applications_with_exclusive_cores_in_a_large_mix_are_mapped_well() {
    let machine = Machine::with_topology(100, 1, 8, 64);
    let mut mix = random_mix(&mut Random::new(1), 40, 1000);
    let alone: Vec<usize> = (0..10).collect();
    mix.exclusive = alone
        .iter()
        .flat_map(|&app| (0..3).map(move |core| (3 * app as u32 + core, Some(app))))
        .collect();
    let rates = |strategy| {
        let placement = map(&mix, &machine, strategy).unwrap();
        simulate_steady_state(&mix, &machine, &placement, Scheduling::EventDriven).rates
    };
    let ours = rates(Strategy::Levada);
    for strategy in Strategy::ALL {
        let theirs = rates(strategy);
        let gain = alone.iter().map(|&app| (ours[app] / theirs[app]).ln());
        let gain = (gain.sum::<f64>() / alone.len() as f64).exp();
        println!("{}: {gain:.3}", strategy.name());
        assert!(gain > 0.98, "{}: {gain}", strategy.name());
    }
}

/// The load of the busiest of 1000 cores relative to the lower bound, with 10,000 actors.
fn busiest_of_thousand(seed: u64, apps: usize) -> f64 {
    let machine = Machine::with_topology(1000, 1, 8, 64);
    let mix = random_mix(&mut Random::new(seed), apps, 10_000);
    let start = std::time::Instant::now();
    let placement = map(&mix, &machine, Strategy::Levada).unwrap();
    let took = start.elapsed();
    let graph = mix.graph(&mix.targets(&machine));
    let busiest = bottleneck(&graph, &machine, &placement) / lower_bound(&graph, &machine);
    println!("{apps} applications: {busiest:.3} of the lower bound in {took:?}");
    busiest
}

#[test]
fn a_thousand_cores_are_mapped_evenly() {
    for apps in [10, 50, 100, 300, 1000] {
        let busiest = busiest_of_thousand(3, apps);
        assert!(busiest < 1.10, "{apps} applications: {busiest}");
    }
}

/// Actors with as much traffic as work: the lower bound ignores traffic, which is a fifth of all
/// work. It counts where the pipeline is cut, more so between distant cores.
#[test]
fn pipelines_of_tiny_actors_are_cut_where_that_is_cheap() {
    for (seed, most) in [(1, 1.15), (2, 1.25), (3, 1.35)] {
        let busiest = busiest_of_thousand(seed, 1);
        assert!(busiest < most, "seed {seed}: {busiest}");
    }
}

/// With too many actors for comparing all strategies, applications stay on cores of their own as
/// far as these are even.
#[test]
fn applications_of_a_large_mix_are_kept_together() {
    let machine = Machine::with_topology(420, 1, 8, 64);
    let mix = random_mix(&mut Random::new(8), 42, 4200);
    let rates = |placement: &[u32]| {
        let how = Scheduling::EventDriven;
        simulate_until_settled(&mix, &machine, placement, how, 100_000).rates
    };
    let levada = rates(&map(&mix, &machine, Strategy::Levada).unwrap());
    let graph = mix.graph(&mix.targets(&machine));
    let even = rates(&place(&graph, &machine));
    let partition = rates(&map(&mix, &machine, Strategy::Partition).unwrap());
    let gains = (gain(&levada, &even), gain(&levada, &partition));
    println!("{gains:?}");
    assert!(gains.0 > 1.1 && gains.1 > 0.98, "{gains:?}");
}

#[test]
fn a_lower_bound_is_the_heaviest_actor() {
    let machine = Machine::new(3);
    let graph = of(vec![app("a", &[9.0, 1.0, 1.0])]).graph(&[1000.0]);
    assert_eq!(lower_bound(&graph, &machine), 9.0);
}

#[test]
fn a_lower_bound_respects_pins() {
    let machine = Machine::new(3);
    let bound = |times: &[f64], pins: &[Option<u32>]| {
        let mut graph = of(vec![app("a", times)]).graph(&[1000.0]);
        graph.pins = pins.to_vec();
        lower_bound(&graph, &machine)
    };
    let pinned = [Some(1), Some(1), None, None, None, None];
    // The load pinned to one core; the free load fits elsewhere.
    assert_eq!(bound(&[4.0, 4.0, 1.0, 1.0, 2.0, 3.0], &pinned), 8.0);
    // The free load has the other two cores.
    assert_eq!(bound(&[3.0, 4.0, 4.0, 4.0, 3.0, 3.0], &pinned), 7.0);
    // And part of the third.
    assert_eq!(bound(&[1.0, 1.0, 4.0, 4.0, 4.0, 4.0], &pinned), 6.0);
    assert_eq!(bound(&[1.0, 1.0, 8.0, 4.0, 1.0, 1.0], &pinned), 8.0);
    let mut slow = machine.clone();
    slow.cores[1].speed = 0.5;
    let mut graph = of(vec![app("a", &[2.0, 3.0, 3.0])]).graph(&[1000.0]);
    graph.pins = vec![Some(1), None, None];
    assert_eq!(lower_bound(&graph, &slow), 4.0);
}

#[test]
fn exclusive_cores_do_not_count_for_other_applications() {
    let even = |name| app(name, &[1.0; 4]);
    let machine = Machine::new(8);
    let mut mix = of(vec![even("a"), even("b")]);
    mix.exclusive = vec![
        (0, None),
        (1, None),
        (2, Some(0)),
        (3, None),
        (4, None),
        (5, None),
    ];
    let best = map(&mix, &machine, Strategy::Levada).unwrap();
    let judged = |placement: &[u32]| load_to_lower_bound(&mix, &machine, placement).unwrap();
    assert!((judged(&best) - 1.0).abs() < 0.02, "{best:?}");
    // Three of four actors on one of two cores: this shows whatever the other application does.
    let mut worse = best.clone();
    worse[4..].copy_from_slice(&[6, 6, 6, 7]);
    assert!((judged(&worse) - 1.5).abs() < 0.02);
    // If three must be there, it cannot be better.
    for actor in &mut mix.apps[1].actors[..3] {
        actor.pin = Some(6);
    }
    let pinned = map(&mix, &machine, Strategy::Levada).unwrap();
    assert!((load_to_lower_bound(&mix, &machine, &pinned).unwrap() - 1.0).abs() < 0.02);
    // A recorded placement may be anywhere.
    assert!(load_to_lower_bound(&mix, &machine, &[0; 8]).unwrap() >= 1.0);
}

mod given {
    use super::{app, of};
    use crate::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::{
        Just, ProptestConfig, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any description is either refused with a message, or placed within its constraints and
        /// simulated with finite rates.
        #[test]
        fn any_input_is_mapped_or_refused(
            cores in 0usize..6,
            times in vec(
                prop_oneof![
                    Just(0.0), Just(f64::NAN), Just(-1.0), Just(1e308), Just(f64::INFINITY),
                    Just(1e-300), 1.0..1e7f64, 1.0..1e7f64, 1.0..1e7f64, 1.0..1e7f64,
                ],
                0..8,
            ),
            links in vec((0usize..9, 0usize..9, 0.0..1e4f64, 0.0..600.0f64), 0..10),
            pin in option::of(0u32..8),
            owner in option::of((0u32..8, option::of(0usize..3))),
            reserved_rate in option::of(prop_oneof![Just(0.0), Just(f64::NAN), 0.1..1e9f64]),
        ) {
            let machine = Machine::new(cores);
            let mut one = app("a", &[]);
            one.actors = times.iter().enumerate().map(|(i, &time)| Actor {
                name: i.to_string(), time, firings: 10.0, pin: if i == 0 { pin } else { None },
            }).collect();
            one.channels = links.iter().map(|&(from, to, elements, capacity)| Channel {
                from, to, elements, size: 4.0, capacity,
            }).collect();
            one.reserved_rate = reserved_rate;
            let mut mix = of(vec![one, app("b", &[1.0, 2.0])]);
            mix.exclusive = owner.into_iter().collect();
            for strategy in Strategy::ALL {
                match map(&mix, &machine, strategy) {
                    Err(problem) => prop_assert!(!problem.what.is_empty() && !problem.help.is_empty()),
                    Ok(placement) => {
                        prop_assert_eq!(placement.len(), mix.actors());
                        prop_assert!(placement.iter().all(|&c| (c as usize) < cores));
                        if let Some(pin) = pin {
                            prop_assert_eq!(placement[0], pin);
                        }
                        let made = simulate(&mix, &machine, &placement, Scheduling::EventDriven, 2000);
                        prop_assert!(made.rates.iter().all(|r| r.is_finite() && *r >= 0.0));
                    }
                }
            }
        }
    }
}
