// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Placements with known optima.

use crate::model::graph::pipeline_order;
use crate::*;
use std::time::Duration;

pub(crate) fn chain(busy: &[f64], bytes: f64) -> Graph {
    let links = (1..busy.len()).map(|to| Link {
        from: to - 1,
        to,
        bytes,
    });
    Graph {
        busy: busy.to_vec(),
        links: links.collect(),
        pins: Vec::new(),
    }
}

/// The optimum, by trying all placements.
fn optimum(graph: &Graph, machine: &Machine) -> f64 {
    let actors = graph.busy.len();
    let mut placement = vec![0u32; actors];
    let mut best = f64::INFINITY;
    loop {
        best = best.min(bottleneck(graph, machine, &placement));
        let Some(next) = placement
            .iter()
            .position(|w| (*w as usize) + 1 < machine.workers())
        else {
            return best;
        };
        placement[next] += 1;
        placement[..next].fill(0);
    }
}

#[test]
fn one_worker_takes_all() {
    let graph = chain(&[3.0, 1.0, 2.0], 1.0);
    assert_eq!(place(&graph, &Machine::new(1)), vec![0, 0, 0]);
    assert!(place(&Graph::default(), &Machine::new(4)).is_empty());
}

#[test]
fn an_even_pipeline_is_cut_once_in_the_middle() {
    let graph = chain(&[1.0; 8], 0.4);
    let placement = place(&graph, &Machine::new(2));
    let cuts = placement.windows(2).filter(|w| w[0] != w[1]).count();
    assert_eq!(cuts, 1, "{placement:?}");
    assert_eq!(placement.iter().filter(|w| **w == 0).count(), 4);
}

#[test]
fn a_heavy_actor_sits_alone() {
    let graph = chain(&[1.0, 1.0, 10.0, 1.0, 1.0], 0.0);
    let placement = place(&graph, &Machine::new(2));
    let heavy = placement[2];
    assert_eq!(placement.iter().filter(|w| **w == heavy).count(), 1);
}

#[test]
fn traffic_outweighs_balance_where_it_costs_more() {
    // Splitting a and b would save 1 and cost 25 on each side.
    let graph = chain(&[1.0, 1.0], 100.0);
    let placement = place(&graph, &Machine::new(2));
    assert_eq!(placement[0], placement[1]);
}

#[test]
fn uneven_work_without_traffic_is_divided_evenly() {
    // 8+7+6 = 21 against 5+4+3+2+7 = 21: heaviest-first alone gives 22 and 20.
    let graph = Graph {
        busy: vec![8.0, 7.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0],
        ..Graph::default()
    };
    let machine = Machine::new(2);
    assert_eq!(bottleneck(&graph, &machine, &place(&graph, &machine)), 21.0);
}

#[test]
fn small_random_graphs_come_within_a_tenth_of_the_optimum() {
    let mut seed = 42u64;
    let mut random = move |n: u64| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    for round in 0..200 {
        let actors = 2 + random(7) as usize;
        let mut graph = Graph {
            busy: (0..actors).map(|_| 1.0 + random(100) as f64).collect(),
            ..Graph::default()
        };
        for _ in 0..random(12) {
            graph.links.push(Link {
                from: random(actors as u64) as usize,
                to: random(actors as u64) as usize,
                bytes: random(100) as f64,
            });
        }
        let machine = Machine::new(2 + random(2) as usize);
        let found = bottleneck(&graph, &machine, &place(&graph, &machine));
        let best = optimum(&graph, &machine);
        assert!(
            found <= best * 1.02 + 1e-6,
            "round {round}: {found} for {best}: {graph:?}"
        );
    }
}

#[test]
fn larger_random_graphs_come_within_a_tenth_of_the_optimum() {
    let mut seed = 7u64;
    let mut random = move |n: u64| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    // Too many placements for `place` to try, few enough for this test.
    for round in 0..10 {
        let mut graph = chain(&[0.0; 11], 0.0);
        graph
            .busy
            .iter_mut()
            .for_each(|b| *b = 1.0 + random(100) as f64);
        graph
            .links
            .iter_mut()
            .for_each(|l| l.bytes = random(100) as f64);
        let machine = Machine::new(3);
        assert!(crate::place::exhaustive::place(&graph, &machine).is_none());
        let found = bottleneck(&graph, &machine, &place(&graph, &machine));
        let best = optimum(&graph, &machine);
        assert!(
            found <= best * 1.10,
            "round {round}: {found} for {best}: {graph:?}"
        );
    }
}

#[test]
fn among_equal_placements_less_traffic_wins() {
    // 0,1 | 2,3 and 0,3 | 1,2 are equally even; the first cuts one link, the second two.
    let mut graph = chain(&[10.0, 10.0, 10.0, 10.0], 0.01);
    graph.links[1].bytes = 0.015;
    let placement = place(&graph, &Machine::new(2));
    assert_eq!(placement, vec![0, 0, 1, 1]);
}

#[test]
fn the_fewest_moves_are_made() {
    // The current halves except for one actor: not with exchanged workers.
    let graph = chain(&[4.0, 4.0, 4.0, 1.0, 1.0], 0.0);
    let placement = improve(&graph, &Machine::new(2), &[1, 1, 1, 0, 0]);
    assert_eq!(
        placement.iter().filter(|w| **w == 1).count(),
        2,
        "{placement:?}"
    );
    assert_eq!(placement[3..], [0, 0]);
}

#[test]
fn traffic_between_workers_does_not_count_as_work() {
    let machine = Machine::new(2);
    let mut graph = chain(&[100.0, 100.0, 5.0], 200.0);
    graph.links[1].bytes = 40.0;
    let own = graph.clone().without_traffic(&machine, &[0, 1, 0]);
    assert_eq!(own.busy, [80.0, 76.0, 1.5]);
    assert_eq!(graph.clone().without_traffic(&machine, &[0, 0, 0]), graph);
}

/// The traffic that is subtracted is added again where an actor stays, so it must be the same.
#[test]
fn traffic_costs_no_more_than_actors_have_used() {
    let machine = Machine::new(2);
    let mut graph = chain(&[100.0, 100.0, 5.0], 200.0);
    graph.links[1].bytes = 40.0;
    let seats = [0, 1, 0];
    let found = graph.credible(&machine, &seats);
    assert!(
        (found.shared_cache_byte() - 0.0875).abs() < 1e-9,
        "{found:?}"
    );
    let own = graph.clone().without_traffic(&found, &seats).busy;
    for (i, (own, traffic)) in own.iter().zip([17.5, 21.0, 3.5]).enumerate() {
        assert!((own + traffic - graph.busy[i]).abs() < 1e-9, "{own}");
    }
    // Negligible traffic is ignored, and so is a machine with credible costs.
    graph.links[1].bytes = 0.1;
    graph.busy[2] = 1e-3;
    assert_eq!(graph.credible(&machine, &seats), machine);
}

#[test]
fn feedback_and_invalid_links_are_tolerated() {
    let mut graph = chain(&[1.0; 6], 1.0);
    for (from, to) in [(5, 0), (3, 3), (9, 1)] {
        graph.links.push(Link {
            from,
            to,
            bytes: 1.0,
        });
    }
    assert_eq!(
        pipeline_order(6, graph.links.iter().map(|l| (l.from, l.to))).len(),
        6
    );
    assert_eq!(place(&graph, &Machine::new(3)).len(), 6);
}

#[test]
fn a_thousand_actors_on_many_cores_are_placed_in_time() {
    let start = std::time::Instant::now();
    let busy: Vec<f64> = (0..1000).map(|i| 1.0 + (i * 7919 % 13) as f64).collect();
    let graph = chain(&busy, 0.1);
    let machine = Machine::new(16);
    let even = busy.iter().sum::<f64>() / 16.0;
    let found = bottleneck(&graph, &machine, &place(&graph, &machine));
    assert!(found < even * 1.1, "{found} {even}");
    assert!(start.elapsed() < Duration::from_secs(300));
}
