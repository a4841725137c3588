// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Applications that are alike, such as instances of one network, and how good it is what they have together.
//!
//! Of two that are not, a tenth more for one outweighs a tenth less for the other, since nobody else knows what each is
//! worth. Of two that are, the one is worth what the other is, and all are to have about as much: so what the slowest has counts
//! for more. With three on two cores one that has a core for itself has twice what the others have, and by the logarithms
//! that is better as soon as all have 5.5 % less with one that is cut in two; here, when they have 20 % less. With five
//! 2 % and 11 %, with seven 1 % and 6 %.

use crate::model::mix::{App, Mix};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The exponent of the mean of what those have that are alike: 0 is by the logarithms, and the further below, the more the
/// slowest counts.
const EXPONENT: f64 = -7.0;

/// Applications that are alike, by their numbers.
fn identical_groups(mix: &Mix) -> Vec<Vec<usize>> {
    let mut found: HashMap<(u64, usize), Vec<usize>> = HashMap::new();
    for (i, app) in mix.apps.iter().enumerate() {
        // What is promised, or held, has a rate of its own.
        let alone = app.promise.is_some() || app.share.is_some();
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

/// The same for those with the same actors, channels and priority.
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

/// The mean of the logarithms of these rates, but of those that are alike the logarithm of a mean that is closer to the
/// slowest, by what each has of the cores: so weights that were measured one by one make little difference. No more than the
/// mean of all logarithms.
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

/// What one placement gains over another for a mix, where both keep the same promises: 1.05 is a twentieth more, in the mean
/// of all applications as it is judged. By their rates, one for each application, in its units a second.
pub fn gain(mix: &Mix, one: &[f64], other: &[f64]) -> f64 {
    (fair_mean_log_rate(mix, one) - fair_mean_log_rate(mix, other)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::mix::{app, of};

    #[test]
    fn the_slowest_of_those_that_are_alike_counts_for_more() {
        let one = app("a", &[1.0, 2.0]);
        let all = of(vec![one.clone(), one.clone(), one.clone()]);
        let logs = |rates: &[f64]| rates.iter().map(|r| r.ln()).sum::<f64>() / rates.len() as f64;
        let even = fair_mean_log_rate(&all, &[0.55; 3]);
        assert!((even - 0.55f64.ln()).abs() < 1e-12);
        let uneven = [1.0, 0.5, 0.5];
        assert!(logs(&uneven) > even && fair_mean_log_rate(&all, &uneven) < even);
        // But that is no end in itself.
        assert!(fair_mean_log_rate(&all, &uneven) > fair_mean_log_rate(&all, &[0.52; 3]));
        // A part of the cores is what is to be equal.
        let mut heavy = one.clone();
        heavy.actors.iter_mut().for_each(|a| a.time *= 2.0);
        let all = of(vec![one.clone(), heavy]);
        assert!((fair_mean_log_rate(&all, &[1.0, 0.5]) - logs(&[1.0, 0.5])).abs() < 1e-12);
        // Others are others, and whoever has a rate of its own.
        let mut promised = one.clone();
        promised.promise = Some(1.0);
        let mut higher = one.clone();
        higher.priority = 1;
        for other in [app("b", &[3.0]), promised, higher] {
            let all = of(vec![one.clone(), other]);
            assert!((fair_mean_log_rate(&all, &[1.0, 0.5]) - logs(&[1.0, 0.5])).abs() < 1e-12);
        }
        // Who has nothing is no number that says nothing.
        let all = of(vec![one.clone(), one]);
        assert!(fair_mean_log_rate(&all, &[1.0, 0.0]).is_finite());
    }
}
