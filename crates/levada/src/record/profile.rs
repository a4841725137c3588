// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cost profile of an application, from samples of its counters: the cost of each actor at each position in the
//! stream.
//!
//! The position of an actor is derived from the elements that it has put and got, not from the time: actors reach
//! the same position at different times, as elements pass through channels, and the number of firings for a part of
//! the stream varies. The n-th element of a channel is at the same position for both ends. The channel with the
//! most elements defines the positions; from its actors they propagate to the others, for each through the largest
//! channel that connects it.

use crate::record::sampler::Sample;
use std::cmp::Reverse;

/// Limits of the resolution: parts of all actors together, and of each actor. With fewer parts per actor than the
/// third constant there is no profile.
const PARTS_TOTAL_MAX: usize = 20_000;
const PARTS_PER_ACTOR_MAX: usize = 2048;
const PARTS_PER_ACTOR_MIN: usize = 8;
/// In per cent: a part that costs more than a hundred times the mean is considered an outlier.
const MEAN_PERCENT: f64 = 100.0;
const COST_PERCENT_MAX: f64 = 100.0 * MEAN_PERCENT;
/// With at least this many activations, one activation more or less is negligible.
const ACTIVATIONS_MIN: u64 = 8;

/// The cost of each part of each actor, in per cent of the actor's mean; empty for actors that never ran. `links`:
/// the two ends of each channel. `None` if there are too few samples, or if the positions of the actors cannot be
/// determined.
pub fn costs(actors: usize, links: &[(usize, usize)], samples: &[Sample]) -> Option<Vec<Vec<f64>>> {
    let parts = PARTS_PER_ACTOR_MAX
        .min(PARTS_TOTAL_MAX / actors.max(1))
        .min(samples.len());
    if parts < PARTS_PER_ACTOR_MIN {
        return None;
    }
    let places = places(actors, links, samples);
    let costs = places.iter().enumerate();
    let costs: Vec<Vec<f64>> = costs
        .map(|(actor, places)| match places {
            Some(places) => cost_of_parts(&busy_at(actor, places, samples), parts),
            None => Vec::new(),
        })
        .collect();
    costs.iter().any(|c| !c.is_empty()).then_some(costs)
}

/// The position of each actor in each sample, as a fraction of the stream.
fn places(actors: usize, links: &[(usize, usize)], samples: &[Sample]) -> Vec<Option<Vec<f64>>> {
    let mut places: Vec<Option<Vec<f64>>> = vec![None; actors];
    let Some(last) = samples.last() else {
        return places;
    };
    let got = |channel: usize| last.got.get(channel).copied().unwrap_or(0);
    let passes = |&c: &usize| {
        let (from, to) = links[c];
        from < actors && to < actors && from != to && got(c) > 0
    };
    let mut channels: Vec<usize> = (0..links.len()).filter(passes).collect();
    channels.sort_by_key(|&c| Reverse(got(c)));
    loop {
        let known = |actor: usize| places[actor].is_some();
        let next = channels
            .iter()
            .find(|&&c| known(links[c].0) != known(links[c].1));
        let (actor, found) = if let Some(&channel) = next {
            let (from, to) = links[channel];
            let put: Vec<u64> = samples.iter().map(|l| l.put[channel]).collect();
            let got: Vec<u64> = samples.iter().map(|l| l.got[channel]).collect();
            match (&places[from], &places[to]) {
                (Some(there), _) => (to, positions_at(&put, there, &got)),
                (_, there) => (
                    from,
                    positions_at(&got, there.as_deref().unwrap_or(&[]), &put),
                ),
            }
        } else {
            // A channel to an actor of unknown position; known ones were handled.
            let Some(&channel) = channels.iter().find(|&&c| !known(links[c].1)) else {
                return places;
            };
            let share = |l: &Sample| l.got[channel] as f64 / got(channel) as f64;
            (links[channel].1, samples.iter().map(share).collect())
        };
        places[actor] = Some(found);
    }
}

/// The positions of elements in the stream, from the counts of one end of their channel at known positions.
fn positions_at(counted: &[u64], places: &[f64], elements: &[u64]) -> Vec<f64> {
    let mut known = vec![(0.0, 0.0)];
    for (&counted, &place) in counted.iter().zip(places) {
        let last: (f64, f64) = known[known.len() - 1];
        if counted as f64 > last.0 {
            known.push((counted as f64, place.max(last.1)));
        }
    }
    elements
        .iter()
        .map(|&n| interpolated(&known, n as f64))
        .collect()
}

/// The CPU time that an actor had used at the positions where it was sampled. Elements are counted immediately, but
/// CPU time only when an activation ends or at a tick of the runtime's clock. So the time is exact where the actor
/// waits, and approximate after several activations.
fn busy_at(actor: usize, places: &[f64], samples: &[Sample]) -> Vec<(f64, f64)> {
    let (mut taken, mut activations) = (vec![(0.0, 0.0)], 0);
    for (&place, sample) in places.iter().zip(samples) {
        let last: (f64, f64) = taken[taken.len() - 1];
        let is_known =
            sample.waits[actor] || sample.activations[actor] >= activations + ACTIVATIONS_MIN;
        if place > last.0 && is_known {
            taken.push((place, (sample.busy[actor] as f64).max(last.1)));
            activations = sample.activations[actor];
        }
    }
    let all = samples.last().map_or(0.0, |l| l.busy[actor] as f64);
    // The total, wherever the last sample before the end was.
    match taken.last_mut() {
        Some(last) if last.0 >= 1.0 => last.1 = all.max(last.1),
        _ => taken.push((1.0, all)),
    }
    taken
}

/// The cost of each part, in per cent of the mean.
fn cost_of_parts(taken: &[(f64, f64)], parts: usize) -> Vec<f64> {
    let until = |part: usize| interpolated(taken, part as f64 / parts as f64);
    let mean = (until(parts) - until(0)) / parts as f64;
    if mean <= 0.0 {
        return Vec::new();
    }
    let cost = |part: usize| (until(part + 1) - until(part)) / mean * MEAN_PERCENT;
    (0..parts)
        .map(|p| cost(p).round().clamp(0.0, COST_PERCENT_MAX))
        .collect()
}

/// Linear interpolation at `x` between points with increasing x.
fn interpolated(points: &[(f64, f64)], x: f64) -> f64 {
    let next = points.partition_point(|p| p.0 < x);
    match (next.checked_sub(1).map(|i| points[i]), points.get(next)) {
        (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (Some((_, y)), None) | (None, Some(&(_, y))) => y,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nanoseconds for each thousandth of the stream.
    type Cost<'a> = &'a dyn Fn(u64) -> u64;

    /// Samples of a chain in which each actor is `behind` thousandths of the stream behind the previous one. For each
    /// channel the function gives the number of elements up to a position, the same for both ends.
    fn seen(
        costs: &[Cost],
        behind: u64,
        channels: &[(usize, usize, Cost)],
        every: usize,
    ) -> (Vec<(usize, usize)>, Vec<Sample>) {
        let place = |actor: usize, time: u64| time.saturating_sub(behind * actor as u64).min(1000);
        let until = |cost: Cost, place: u64| (0..place).map(cost).sum();
        let end = 1000 + behind * costs.len() as u64;
        let sample = |time: u64| Sample {
            busy: (0..costs.len())
                .map(|a| until(costs[a], place(a, time)))
                .collect(),
            activations: vec![0; costs.len()],
            waits: vec![true; costs.len()],
            put: channels
                .iter()
                .map(|c| until(c.2, place(c.0, time)))
                .collect(),
            got: channels
                .iter()
                .map(|c| until(c.2, place(c.1, time)))
                .collect(),
        };
        let times = (0..end).step_by(every).chain([end]);
        let links = channels.iter().map(|c| (c.0, c.1)).collect();
        (links, times.map(sample).collect())
    }

    /// The mean cost between two thousandths of the stream, in per cent of the total mean.
    fn mean(costs: &[f64], from: usize, to: usize) -> f64 {
        let part = |at: usize| at * costs.len() / 1000;
        let some = &costs[part(from)..part(to)];
        some.iter().sum::<f64>() / some.len() as f64
    }

    fn near(is: f64, should: f64) {
        assert!((is - should).abs() <= 4.0, "{is}, not {should}");
    }

    fn heavy_first(place: u64) -> u64 {
        if place < 500 { 30 } else { 10 }
    }

    fn heavy_last(place: u64) -> u64 {
        if place < 500 { 10 } else { 30 }
    }

    fn even(_: u64) -> u64 {
        20
    }

    #[test]
    fn places_are_told_by_what_was_put_and_got() {
        // The first actor is a fifth of the stream ahead of the last one, and its input is denser in the second half;
        // the largest channel is at the end.
        let dense = |place: u64| if place < 500 { 1 } else { 5 };
        let pixels = |_: u64| 100;
        let rare = |place: u64| u64::from(place.is_multiple_of(100));
        let channels: [(usize, usize, Cost); 4] = [
            (0, 1, &dense),
            (1, 2, &pixels),
            // These are less precise.
            (0, 2, &rare),
            (1, 1, &pixels),
        ];
        let costs_of: [Cost; 3] = [&heavy_first, &heavy_last, &even];
        let (links, samples) = seen(&costs_of, 100, &channels, 5);
        let costs = costs(3, &links, &samples).unwrap();
        for (costs, (first, second)) in
            costs
                .iter()
                .zip([(150.0, 50.0), (50.0, 150.0), (100.0, 100.0)])
        {
            assert_eq!(costs.len(), samples.len());
            for (from, to) in [(0, 200), (200, 480)] {
                near(mean(costs, from, to), first);
                near(mean(costs, 1000 - to, 1000 - from), second);
            }
            near(mean(costs, 0, 1000), 100.0);
        }
    }

    #[test]
    fn feedback_and_what_never_fired_do_no_harm() {
        // The largest channel is feedback, and the last actor gets no elements; the one before it is not connected.
        let (back, some, nothing) = (|_: u64| 9, |_: u64| 3, |_: u64| 0);
        let channels: [(usize, usize, Cost); 4] = [
            (0, 1, &some),
            (1, 0, &back),
            (1, 3, &nothing),
            (7, 9, &some),
        ];
        let costs_of: [Cost; 4] = [&heavy_first, &heavy_last, &even, &nothing];
        let (mut links, samples) = seen(&costs_of, 0, &channels[..3], 10);
        links.push((7, 9));
        let costs = costs(4, &links, &samples).unwrap();
        near(mean(&costs[0], 0, 500), 150.0);
        near(mean(&costs[1], 0, 500), 50.0);
        assert!(costs[2].is_empty() && costs[3].is_empty());
        // Two pairs that are not connected.
        let channels: [(usize, usize, Cost); 2] = [(0, 1, &some), (2, 3, &back)];
        let costs_of: [Cost; 4] = [&heavy_first, &heavy_last, &heavy_last, &heavy_first];
        let (links, samples) = seen(&costs_of, 30, &channels, 10);
        let costs = super::costs(4, &links, &samples).unwrap();
        for (costs, first) in costs.iter().zip([150.0, 50.0, 50.0, 150.0]) {
            near(mean(costs, 0, 480), first);
        }
    }

    #[test]
    fn what_is_counted_late_is_not_put_where_it_was_not() {
        // The first actor runs all the time, and its time is counted after each activation, or partly before; the
        // other one waits after each activation.
        let samples = |activation: u64| -> Vec<Sample> {
            let sample = |t: u64| {
                let ended = match t {
                    1000 => t,
                    _ => t / activation * activation,
                };
                let met = if t.is_multiple_of(7) { t } else { ended };
                Sample {
                    busy: vec![met * 10, ended * 5],
                    activations: vec![t / activation; 2],
                    waits: vec![t == 1000, t == ended],
                    put: vec![t],
                    got: vec![t],
                }
            };
            (0..=1000).map(sample).collect()
        };
        for activation in [1, 3, 100, 400, 1000] {
            for costs in costs(2, &[(0, 1)], &samples(activation)).unwrap() {
                costs
                    .iter()
                    .for_each(|&c| assert!((c - 100.0).abs() < 15.0, "{c}"));
            }
        }
    }

    #[test]
    fn too_little_says_nothing() {
        let some = |_: u64| 3;
        let channels: [(usize, usize, Cost); 1] = [(0, 1, &some)];
        let two: [Cost; 2] = [&even, &even];
        let (links, samples) = seen(&two, 0, &channels, 200);
        assert_eq!(costs(2, &links, &samples), None);
        let (links, samples) = seen(&two, 0, &channels, 2);
        assert!(costs(2, &links, &samples).is_some());
        assert_eq!(costs(2, &[], &samples), None);
        assert_eq!(costs(0, &[], &samples), None);
        // With this many actors none has enough parts.
        let many: Vec<Cost> = vec![&even; 2600];
        let (links, samples) = seen(&many, 0, &channels, 100);
        assert_eq!(costs(2600, &links, &samples), None);
        // All CPU time in one moment is an outlier.
        let wild = |place: u64| if place == 500 { 1_000_000 } else { 1 };
        let (links, samples) = seen(&[&wild, &even], 0, &channels, 1);
        let costs = costs(2, &links, &samples).unwrap();
        assert!(
            costs[0]
                .iter()
                .all(|c| (0.0..=COST_PERCENT_MAX).contains(c))
        );
    }
}
