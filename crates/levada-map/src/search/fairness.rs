// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fairness between identical applications, such as instances of one network.
//!
//! The mean log rate weighs applications equally: 10 % more for one outweighs 10 % less for
//! another, as nothing is known about their worth. Identical applications have equal worth and
//! should get similar rates, so they contribute a power mean with a negative exponent, which
//! emphasizes the slowest.
//!
//! Example: with three instances on two cores, one with a core of its own runs twice as fast as the
//! others. By logarithms this beats an equal split at a cost of 5.5 % per instance; by the power
//! mean at 20 %. With five instances the limits are 2 % and 11 %, with seven 1 % and 6 %.

use crate::model::mix::{App, Mix};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Exponent of the power mean: 0 would be the geometric mean; the lower, the more the slowest
/// counts.
const EXPONENT: f64 = -7.0;

/// Groups of identical applications, by index.
fn identical_groups(mix: &Mix) -> Vec<Vec<usize>> {
    let mut found: HashMap<(u64, usize), Vec<usize>> = HashMap::new();
    for (i, app) in mix.apps.iter().enumerate() {
        // An application with a reserved rate or a CPU limit has a rate of its own.
        let alone = app.reserved_rate.is_some() || app.cpus.is_some();
        let key = if alone {
            (0, i + 1)
        } else {
            (fingerprint(app), 0)
        };
        found.entry(key).or_default().push(i);
    }
    let mut identical_groups: Vec<Vec<usize>> = found.into_values().collect();
    identical_groups.sort_unstable();
    identical_groups
}

/// Equal for applications with the same actors, channels and priority.
fn fingerprint(app: &App) -> u64 {
    let mut hasher = DefaultHasher::new();
    app.priority.hash(&mut hasher);
    app.actors
        .iter()
        .for_each(|actor| actor.name.hash(&mut hasher));
    for channel in &app.channels {
        (channel.from, channel.to, channel.size.to_bits()).hash(&mut hasher);
    }
    hasher.finish()
}

/// The mean of the log rates, with power means for groups of identical applications. The power mean
/// is over their shares of the cores, so that measured costs, which differ slightly, matter little.
/// At most the plain mean of the log rates.
pub(crate) fn fair_mean_log_rate(mix: &Mix, rates: &[f64]) -> f64 {
    let log = |i: usize| rates[i].max(1e-12).ln();
    let unevenness = |group: &Vec<usize>| -> f64 {
        let many = group.len() as f64;
        let part = |i: usize| log(i) + mix.apps[i].work().max(1e-12).ln();
        let parts: Vec<f64> = group.iter().map(|&i| part(i)).collect();
        let fair_mean_log_rate = parts.iter().sum::<f64>() / many;
        let powers = parts
            .iter()
            .map(|part| (EXPONENT * (part - fair_mean_log_rate)).exp());
        (powers.sum::<f64>() / many).ln() / -EXPONENT * many
    };
    let identical_groups = identical_groups(mix)
        .into_iter()
        .filter(|group| group.len() > 1);
    let uneven: f64 = identical_groups.map(|group| unevenness(&group)).sum();
    let all: f64 = (0..mix.apps.len()).map(log).sum();
    let many = mix.apps.len().max(1) as f64;
    (all - uneven) / many
}

/// The gain of one placement over another as a factor (1.05: 5 % better in the mean), if both meet
/// the same reservations. Takes the rates of the applications, in units per second.
pub fn gain(mix: &Mix, one: &[f64], other: &[f64]) -> f64 {
    (fair_mean_log_rate(mix, one) - fair_mean_log_rate(mix, other)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::mix::{app, of};

    #[test]
    fn the_slowest_of_identical_applications_counts_more() {
        let one = app("a", &[1.0, 2.0]);
        let all = of(vec![one.clone(), one.clone(), one.clone()]);
        let logs = |rates: &[f64]| rates.iter().map(|r| r.ln()).sum::<f64>() / rates.len() as f64;
        let even = fair_mean_log_rate(&all, &[0.55; 3]);
        assert!((even - 0.55f64.ln()).abs() < 1e-12);
        let uneven = [1.0, 0.5, 0.5];
        assert!(logs(&uneven) > even && fair_mean_log_rate(&all, &uneven) < even);
        // A small loss in the mean is worse than no equality.
        assert!(fair_mean_log_rate(&all, &uneven) > fair_mean_log_rate(&all, &[0.52; 3]));
        // The shares of the cores are to be equal, not the rates.
        let mut heavy = one.clone();
        heavy.actors.iter_mut().for_each(|a| a.time *= 2.0);
        let all = of(vec![one.clone(), heavy]);
        assert!((fair_mean_log_rate(&all, &[1.0, 0.5]) - logs(&[1.0, 0.5])).abs() < 1e-12);
        // Different applications, and those with rates of their own, are not grouped.
        let mut reserved = one.clone();
        reserved.reserved_rate = Some(1.0);
        let mut higher = one.clone();
        higher.priority = 1;
        for other in [app("b", &[3.0]), reserved, higher] {
            let all = of(vec![one.clone(), other]);
            assert!((fair_mean_log_rate(&all, &[1.0, 0.5]) - logs(&[1.0, 0.5])).abs() < 1e-12);
        }
        // A rate of 0 still gives a finite number.
        let all = of(vec![one.clone(), one]);
        assert!(fair_mean_log_rate(&all, &[1.0, 0.0]).is_finite());
    }
}
