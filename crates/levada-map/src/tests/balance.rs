// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The balancer, with simulated measurements.

use super::place::chain;
use crate::*;
use std::time::Duration;

/// Two workers on which the actors' work per second is `busy`, scaled so that the busiest worker is
/// fully loaded.
fn measured(busy: &[f64], placement: &[u32], elapsed: Duration) -> Sample {
    let machine = Machine {
        costs: Costs {
            byte: [0.0; 4],
            ..Costs::default()
        },
        ..Machine::new(2)
    };
    let mut graph = chain(busy, 0.0);
    let scale = elapsed.as_nanos() as f64 / bottleneck(&graph, &machine, placement);
    graph.busy.iter_mut().for_each(|b| *b *= scale);
    Sample {
        elapsed,
        graph,
        long_firing: Vec::new(),
        core_share: Vec::new(),
        available: Vec::new(),
    }
}

/// The moves that result from a sample.
fn sampled(balancer: &mut Balancer, sample: &Sample) -> Vec<(usize, u32)> {
    let search = balancer.sample(sample);
    search.map_or_else(Vec::new, |search| balancer.moves(search.run()))
}

fn balancer(placement: Vec<u32>) -> Balancer {
    Balancer::new(Machine::new(2), placement)
}

#[test]
fn a_measured_imbalance_is_corrected_once() {
    let busy = [1.0, 1.0, 1.0, 5.0];
    let mut balancer = balancer(vec![0, 0, 1, 1]);
    let mut moves = 0;
    let step = Duration::from_millis(20);
    for round in 0..250 {
        let sample = measured(&busy, balancer.placement(), step);
        let made = sampled(&mut balancer, &sample);
        assert!(round > 0 || made.is_empty(), "moved before measuring");
        moves += usize::from(!made.is_empty());
    }
    assert_eq!(moves, 1);
    assert_eq!(balancer.placement(), [0, 0, 0, 1]);
}

#[test]
fn moves_by_the_runtime_are_taken_over() {
    let busy = [1.0, 1.0, 1.0, 5.0];
    let mut balancer = balancer(vec![0, 0, 0, 1]);
    let step = Duration::from_millis(20);
    let sample = |balancer: &mut Balancer| {
        let sample = measured(&busy, balancer.placement(), step);
        sampled(balancer, &sample)
    };
    assert!((0..50).all(|_| sample(&mut balancer).is_empty()));
    balancer.set_placement(vec![1, 1, 0, 1]);
    let moves: Vec<_> = (0..50).flat_map(|_| sample(&mut balancer)).collect();
    assert_eq!(moves, [(0, 0), (1, 0)]);
}

/// The runtime moves ready actors away from a long firing. Moving them back repeatedly gains
/// nothing.
#[test]
fn moving_back_to_a_long_firing_waits_longer_each_time() {
    let busy = [0.25, 0.25, 0.25, 0.2];
    let mut balancer = balancer(vec![0, 0, 0, 1]);
    let step = Duration::from_millis(200);
    let mut moves = 0;
    for _ in 0..600 {
        let sample = measured(&busy, balancer.placement(), step);
        moves += sampled(&mut balancer, &sample).len();
        balancer.set_placement(vec![0, 0, 0, 1]);
    }
    assert!((1..12).contains(&moves), "{moves}"); // in two minutes
}

/// The moves over a number of samples of 100 ms with actors this busy. Another program uses part of
/// the second of two cores, and the last actor is on that core, in a firing that does not end;
/// `told`: the balancer knows of it.
fn moves_with_endless_firing(busy: [f64; 5], placement: [u32; 5], told: bool) -> Vec<(usize, u32)> {
    let mut balancer = balancer(placement.to_vec());
    let stuck = told.then_some((4, 1));
    balancer.set_stuck(stuck.into_iter());
    let mut moves = Vec::new();
    for _ in 0..200 {
        let sample = Sample {
            elapsed: Duration::from_millis(100),
            graph: chain(&busy, 0.0),
            long_firing: Vec::new(),
            core_share: vec![Some(1.0), Some(0.3)],
            available: Vec::new(),
        };
        moves.extend(sampled(&mut balancer, &sample));
    }
    moves
}

/// Behind a firing that does not end an actor gets no time, however large the gain seems.
#[test]
fn no_actor_is_moved_behind_an_endless_firing() {
    let busy = [1e7, 1e7, 1e6, 1e6, 3e7];
    assert_eq!(moves_with_endless_firing(busy, [0, 0, 0, 0, 1], true), []);
    // Its work would be done sooner on a free core, if it could be moved.
    let moves = moves_with_endless_firing(busy, [0, 0, 0, 0, 1], false);
    assert!(moves.contains(&(4, 0)) && moves.len() > 1, "{moves:?}");
}

/// Actors on the core when the firing begins are moved away, except the firing one.
#[test]
fn other_actors_leave_the_core_of_an_endless_firing() {
    let busy = [2e7, 1e7, 1e7, 1e6, 2e7];
    let moves = moves_with_endless_firing(busy, [0, 0, 1, 1, 1], true);
    assert_eq!(moves, [(2, 0), (3, 0)]);
}

/// After the end of the firing the core is available again.
#[test]
fn a_core_is_used_again_after_a_long_firing() {
    let busy = [5e7, 5e7, 0.0, 0.0, 0.0];
    let mut balancer = balancer(vec![0, 0, 0, 0, 1]);
    let mut moves = |stuck: Option<(usize, u32)>| {
        balancer.set_stuck(stuck.into_iter());
        let moves: Vec<_> = (0..200)
            .flat_map(|_| {
                let sample = measured(&busy, balancer.placement(), Duration::from_millis(100));
                sampled(&mut balancer, &sample)
            })
            .collect();
        moves.len()
    };
    assert_eq!((moves(Some((4, 1))), moves(None)), (0, 1));
}

/// A core that other programs use by half gets less work. If they use all cores equally, or nothing
/// is known, it makes no difference.
#[test]
fn a_shared_core_gets_less_work() {
    let moved = |had: fn(usize) -> [Option<f64>; 2]| {
        let mut balancer = balancer(vec![0, 0, 0, 1, 1, 1]);
        let mut moves = 0;
        for round in 0..200 {
            let graph = chain(&[3e7; 6], 0.0);
            let sample = Sample {
                elapsed: Duration::from_millis(200),
                graph,
                long_firing: Vec::new(),
                core_share: had(round).to_vec(),
                available: Vec::new(),
            };
            moves += sampled(&mut balancer, &sample).len();
        }
        let there = balancer.placement().iter().filter(|core| **core == 1);
        (there.count(), moves)
    };
    assert_eq!(moved(|_| [Some(1.0), Some(0.5)]), (2, 1));
    assert_eq!(moved(|_| [Some(0.5), Some(0.5)]), (3, 0));
    assert_eq!(moved(|_| [None, None]), (3, 0));
    // Nearly equal, alternating between the cores.
    let swings = |round: usize| match round % 2 {
        0 => [Some(0.45), Some(0.55)],
        _ => [Some(0.55), Some(0.45)],
    };
    assert_eq!(moved(swings), (3, 0));
}

/// The reported usage of other programs counts before it is observed: actors stay away from such a
/// core, even if the little work there observes less. When the other program ends, the whole core
/// is available at once.
#[test]
fn reported_usage_counts_before_it_is_observed() {
    let busy = [3e7; 6];
    let step = |balancer: &mut Balancer, core_share: [Option<f64>; 2], available: [f64; 2]| {
        let sample = Sample {
            elapsed: Duration::from_millis(200),
            graph: chain(&busy, 0.0),
            long_firing: Vec::new(),
            core_share: core_share.to_vec(),
            available: available.to_vec(),
        };
        let moves = sampled(balancer, &sample).len();
        let there = balancer.placement().iter().filter(|core| **core == 1);
        (there.count(), moves)
    };
    // As the mapper has placed them, by the same numbers.
    let mut balancer =
        Balancer::new(Machine::new(2), vec![0, 0, 0, 0, 1, 1]).with_available(&[1.0, 0.5]);
    for _ in 0..100 {
        assert_eq!(step(&mut balancer, [Some(1.0); 2], [1.0, 0.5]), (2, 0));
    }
    assert_eq!(balancer.available(3), [1.0, 0.5, 1.0]);
    let moved: usize = (0..100)
        .map(|_| step(&mut balancer, [None; 2], [1.0; 2]).1)
        .sum();
    assert_eq!(
        (moved, step(&mut balancer, [None; 2], [1.0; 2])),
        (1, (3, 0))
    );
    // A new balancer continues with the observations of the cores that both have.
    for _ in 0..40 {
        step(&mut balancer, [Some(0.3), Some(1.0)], [1.0; 2]);
    }
    let next = Balancer::new(Machine::new(3), Vec::new()).restricted_to(vec![2, 0]);
    let next = next.with_available(&[1.0, 1.0, 0.7]).continuing(&balancer);
    let left = next.available(3);
    assert!(
        left[0] < 0.4 && left[1] == 0.7 && left[2] == 0.7,
        "{left:?}"
    );
}

/// If every core has long firings, the runtime moves ready actors back and forth. The balancer must
/// not add to that.
#[test]
fn repeated_moves_by_the_runtime_are_not_reversed() {
    let busy = [0.3, 0.3, 0.9, 0.9];
    let mut balancer = balancer(vec![0, 0, 0, 1]);
    let step = Duration::from_millis(100);
    let mut moves = 0;
    for round in 0..1200 {
        let sample = measured(&busy, balancer.placement(), step);
        moves += sampled(&mut balancer, &sample).len();
        if round % 10 == 9 {
            let mut other = balancer.placement().to_vec();
            (other[0], other[1]) = (1 - other[0], 1 - other[0]);
            balancer.set_placement(other);
        }
    }
    assert!(moves < 8, "{moves}"); // in two minutes
}

/// Rare moves by the runtime do not count as repeated: each is reversed as soon as the first one.
#[test]
fn rare_moves_by_the_runtime_are_reversed_soon() {
    let busy = [0.3, 0.3, 0.6];
    let mut balancer = balancer(vec![0, 0, 1]);
    let step = Duration::from_millis(200);
    let moved = |balancer: &mut Balancer, samples: usize| {
        let all = (0..samples).flat_map(|_| {
            let sample = measured(&busy, balancer.placement(), step);
            sampled(balancer, &sample)
        });
        all.collect::<Vec<_>>()
    };
    // As good as before each time, so that no move of the balancer is checked in between.
    for round in 0..12 {
        let other = round % 2;
        balancer.set_placement(vec![1 - other, 1 - other, other]);
        assert_eq!(moved(&mut balancer, 150), []);
    }
    balancer.set_placement(vec![0, 1, 1]);
    assert_eq!(moved(&mut balancer, 6), [(1, 0)]);
}

/// An actor that computes most of the time, in long firings, gets a core of its own even if it does
/// not fill it.
#[test]
fn an_actor_with_long_firings_keeps_a_core_of_its_own() {
    let mut busy = vec![0.1; 12];
    busy.push(0.8);
    let moves = |long: bool| {
        let mut places = vec![0; 12];
        places.push(1);
        let mut balancer = balancer(places);
        let mut moves = 0;
        for _ in 0..50 {
            let elapsed = Duration::from_millis(200);
            let mut sample = measured(&busy, balancer.placement(), elapsed);
            sample.long_firing = vec![false; 12];
            sample.long_firing.push(long);
            moves += sampled(&mut balancer, &sample).len();
        }
        moves
    };
    assert_eq!(moves(true), 0);
    assert_eq!(moves(false), 2);
}

/// The result of a slow search is about an earlier placement.
#[test]
fn the_result_of_a_search_for_an_earlier_placement_is_dropped() {
    let busy = [1.0, 1.0, 1.0, 5.0];
    let mut balancer = balancer(vec![0, 0, 1, 1]);
    let step = Duration::from_millis(20);
    let search = |balancer: &mut Balancer| {
        let sample = |balancer: &mut Balancer| {
            let sample = measured(&busy, balancer.placement(), step);
            balancer.sample(&sample)
        };
        (0..50).find_map(|_| sample(balancer)).expect("a search")
    };
    let found = search(&mut balancer).run();
    balancer.set_placement(vec![0, 1, 1, 1]);
    assert_eq!(balancer.moves(found), []);
    let found = search(&mut balancer).run();
    assert_eq!(balancer.moves(found), [(1, 0), (2, 0)]);
}

#[test]
fn an_estimated_placement_is_corrected_earlier_than_a_measured_one() {
    let busy = [1.0, 1.0, 1.0, 5.0];
    let step = Duration::from_millis(4);
    let first_move = |mut balancer: Balancer| {
        (1..200).find(|_| {
            let sample = measured(&busy, balancer.placement(), step);
            !sampled(&mut balancer, &sample).is_empty()
        })
    };
    assert_eq!(first_move(balancer(vec![0, 0, 1, 1])), Some(2));
    assert_eq!(
        first_move(balancer(vec![0, 0, 1, 1]).with_measured_placement()),
        Some(150)
    );
}

#[test]
fn noise_causes_no_oscillation() {
    let mut balancer = balancer(vec![0, 0, 1, 1]);
    let mut seed = 7u64;
    let mut moves = 0;
    for _ in 0..400 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
        let wobble = (seed >> 40) as f64 / (1u64 << 24) as f64;
        let busy = [1.0 + wobble * 0.3, 1.0, 1.3 - wobble * 0.3, 1.0];
        let sample = measured(&busy, balancer.placement(), Duration::from_millis(50));
        moves += usize::from(!sampled(&mut balancer, &sample).is_empty());
    }
    assert!(moves <= 1, "{moves}");
}

#[test]
fn loads_that_depend_on_the_placement_cause_no_oscillation() {
    // The actor on worker 0 always looks heavy: no placement helps, and each looks worth leaving.
    let mut balancer = balancer(vec![0, 0, 1, 1]);
    let mut moves = 0;
    for _ in 0..200 {
        let placement = balancer.placement().to_vec();
        let busy: Vec<f64> = placement
            .iter()
            .map(|w| if *w == 0 { 4.0 } else { 1.0 })
            .collect();
        let sample = measured(&busy, &placement, Duration::from_millis(50));
        moves += usize::from(!sampled(&mut balancer, &sample).is_empty());
    }
    // Ten seconds; without longer waits there would be thirty.
    assert!(moves <= 8, "{moves}");
}

#[test]
fn an_idle_application_is_left_alone() {
    let mut balancer = balancer(vec![0, 0, 0, 0]);
    for _ in 0..100 {
        let elapsed = Duration::from_millis(50);
        let graph = chain(&[1e6, 1e6, 1e6, 1e6], 0.0);
        assert!(
            sampled(
                &mut balancer,
                &Sample {
                    elapsed,
                    graph,
                    long_firing: Vec::new(),
                    core_share: Vec::new(),
                    available: Vec::new(),
                }
            )
            .is_empty()
        );
    }
}

#[test]
fn no_search_without_a_possible_gain() {
    let searches = |placement: [u32; 4]| {
        let mut balancer = balancer(placement.to_vec());
        let sample = measured(&[1.0, 1.1, 1.0, 1.0], &placement, Duration::from_millis(20));
        let searches = (0..100).filter_map(|_| balancer.sample(&sample));
        searches.count()
    };
    assert_eq!(searches([0, 0, 1, 1]), 0);
    assert!(searches([0, 0, 0, 1]) > 0);
}
