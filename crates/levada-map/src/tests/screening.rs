// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Screening and bounds, with random mixes of very many actors that have reserved rates. Reachable
//! and unreachable reservations were tried, for all, half and few of the applications.

use super::mix::{app, of};
use super::random_mixes::mixes;
use crate::place::bounds::{UpperBound, mean_log_rate_bound_anywhere};
use crate::random::{Random, mix as random_mix};
use crate::search::evaluate::{LARGE_MIX_STEPS, score_after, steady_score};
use crate::search::strategy::all_candidates;
use crate::*;

/// By 2 % of the reserved rates at the highest priority that differs, or by 2 % of the rates.
fn is_clearly_better(mix: &Mix, one: &Score, other: &Score) -> bool {
    let levels = mix.priority_levels().into_iter();
    for (level, (a, b)) in levels.zip(one.shortfall().iter().zip(other.shortfall())) {
        let reserved = |a: &&App| a.priority == level && a.reserved_rate.is_some();
        let all = mix.apps.iter().filter(reserved).count() as f64;
        if (a - b).abs() > 0.02 * all {
            return a < b;
        }
    }
    one.mean_log_rate > other.mean_log_rate + 0.02
}

#[test]
fn short_simulations_keep_the_best_candidate() {
    for seed in 0..2 + mixes() / 16 {
        let mut random = Random::new(seed ^ 0x9b);
        let apps = 100 + random.below(300);
        let machine = Machine::with_topology([16, 100, 250][random.below(3)], 1, 8, 64);
        let mut mix = random_mix(&mut random, apps, 4200);
        let could = mix.targets(&machine);
        let part = [0.2, 0.6, 0.9, 1.2, 3.0][random.below(5)];
        let share = [100, 50, 5][random.below(3)];
        for (app, rate) in mix.apps.iter_mut().zip(could) {
            app.reserved_rate = (random.below(100) < share).then_some(rate * part);
            app.priority = random.below(1 + seed as usize % 3) as i32;
        }
        let own = map(&mix, &machine, Strategy::Levada).unwrap();
        let at_length = |placement: &[u32]| {
            let missing = UpperBound::of(&mix, &machine, placement).shortfall;
            score_after(&mix, &machine, placement, LARGE_MIX_STEPS)
                .with_shortfall_at_least(&missing)
        };
        let is = at_length(&own);
        for other in all_candidates(&mix, &machine) {
            let other = at_length(&other);
            let better = is_clearly_better(&mix, &other, &is);
            assert!(!better, "mix {seed}: {other:?}, not {is:?}");
        }
    }
}

/// Within the accuracy of the simulator.
#[test]
fn no_placement_exceeds_the_upper_bound() {
    let mut closest = f64::INFINITY;
    for seed in 0..40 + mixes() / 4 {
        let mut random = Random::new(seed ^ 0x51);
        let machine = Machine::with_topology([1, 2, 8][random.below(3)], 1, 8, 8);
        let apps = 1 + random.below(6);
        let mut mix = random_mix(&mut random, apps, 8 * apps);
        let could = mix.targets(&machine);
        for (app, rate) in mix.apps.iter_mut().zip(could) {
            app.reserved_rate = (random.below(3) == 0).then_some(rate * 0.7);
            app.cpus = (random.below(4) == 0).then_some(0.3);
            app.priority = random.below(2) as i32;
        }
        let most = mean_log_rate_bound_anywhere(&mix, &machine);
        for placement in all_candidates(&mix, &machine) {
            let is = steady_score(&mix, &machine, &placement).mean_log_rate;
            assert!(is <= most + 0.02, "mix {seed}: {is}, not {most}");
            closest = closest.min(most - is);
        }
    }
    assert!(closest < 0.02, "{closest}");
}

fn prioritised(priorities: &[i32]) -> Mix {
    let apps = priorities.iter().map(|&priority| App {
        priority,
        ..app("a", &[1.0, 1.0])
    });
    of(apps.collect())
}

/// On one core, which does 100 units per second of each; or on a core each.
#[test]
fn the_shortfall_bound_is_computed() {
    let machine = Machine::new(2);
    let missing = |reserved: &[(f64, i32)], placement: &[u32]| {
        let mut mix = of(reserved.iter().map(|_| app("a", &[10.0])).collect());
        for (app, &(reserved_rate, priority)) in mix.apps.iter_mut().zip(reserved) {
            (app.reserved_rate, app.priority) = (Some(reserved_rate), priority);
        }
        UpperBound::of(&mix, &machine, placement).shortfall
    };
    let near = |is: &[f64], should: &[f64]| {
        let close = |(a, b): (&f64, &f64)| a <= b && *a > b - 0.02;
        let both = is.iter().zip(should);
        assert!(
            is.len() == should.len() && both.into_iter().all(close),
            "{is:?}, not {should:?}"
        );
    };
    // 1 of 1.96 is available.
    near(&missing(&[(100.0, 0), (100.0, 0)], &[0, 0]), &[0.96]);
    near(&missing(&[(100.0, 0), (100.0, 0)], &[0, 1]), &[0.0]);
    // A reservation beyond the achievable rate is not missing.
    near(&missing(&[(1e6, 0)], &[0]), &[0.0]);
    // All of the first, and the remainder of the second; cumulated, as much as for equal
    // priorities.
    near(&missing(&[(100.0, 5), (100.0, 1)], &[0, 0]), &[0.0, 0.96]);
    near(
        &missing(&[(50.0, 0), (100.0, 0), (90.0, 0)], &[0, 0, 1]),
        &[0.47],
    );
}

#[test]
fn dominated_candidates_need_no_simulation() {
    let mut mix = prioritised(&[1, 0]);
    (mix.apps[0].reserved_rate, mix.apps[1].reserved_rate) = (Some(100.0), Some(100.0));
    // Half of the first is missing and a quarter of the second; the mean log rate is 4.
    let is = Score::of(&mix, &Machine::new(1), &[48.0, 73.0]);
    let is = is.clone().penalized(is.mean_log_rate - 4.0);
    let out = |missing: &[f64], mean: f64| is.dominates(missing, mean);
    assert!(out(&[0.6, 0.6], 9.0) && !out(&[0.4, 0.9], 1.0));
    // The same for the first; cumulated more, less, or the same.
    assert!(out(&[0.5, 0.8], 9.0) && !out(&[0.5, 0.6], 1.0));
    // A simulation that reports less than the bound is not trusted.
    let least = is.clone().with_shortfall_at_least(&[0.6, 0.7]);
    assert!(is.beats(&least, 0.0) && least.shortfall() == [0.6, is.shortfall()[1]]);
    let least = is.clone().with_shortfall_at_least(&[0.4, 0.9]);
    assert!(least.shortfall()[0] == is.shortfall()[0] && (least.shortfall()[1] - 0.4).abs() < 1e-9);
    assert!(out(&[0.5, 0.76], 3.9) && !out(&[0.5, 0.76], 4.1));
}
