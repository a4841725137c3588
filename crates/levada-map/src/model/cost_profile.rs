// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cost profile: how the cost of actors varies along the stream.
//!
//! Two actors of equal mean cost on two cores stall each other if their peaks lie at different
//! positions of the stream and the channels between them hold less than the distance of the peaks.
//! A profile covers a number of units in parts of equal length, and repeats.

use crate::model::problem::Problem;
use std::sync::Arc;

/// Limits of a profile: the number of parts, and the cost of one part. Larger costs would exceed
/// the precision of the prefix sums.
const PARTS_MAX: usize = 1 << 16;
const COST_MAX: f64 = 1e9;

#[derive(Clone, Debug, PartialEq)]
pub struct CostProfile {
    units: f64,
    /// The unit of the profile at which the application starts.
    start: f64,
    /// Costs vary between the steps within a part by up to this fraction.
    spread: f64,
    /// One profile per actor; shared by all instances of an application.
    actors: Arc<[ActorCostProfile]>,
}

/// The profile of one actor; empty if its cost is constant.
#[derive(Debug, Default, PartialEq)]
struct ActorCostProfile {
    /// Relative cost of each part.
    costs: Vec<f64>,
    /// Prefix sums: the cost in excess of the mean from the start to each part and to the end, in
    /// units of mean cost.
    beyond: Vec<f64>,
}

impl CostProfile {
    /// Takes the name of each actor and the relative cost of each part; an empty list means
    /// constant cost.
    pub fn new(units: f64, costs: Vec<(&str, Vec<f64>)>) -> Result<CostProfile, Problem> {
        let wrong = |what: String, help: &str| Err(Problem::new(what, help));
        if !(units.is_finite() && units > 0.0 && units <= 1e15) {
            return wrong(
                format!("a cost profile of {units} units"),
                "write the number of units that it covers, above 0",
            );
        }
        let mut parts = 0;
        for (name, costs) in costs.iter().filter(|(_, costs)| !costs.is_empty()) {
            if let Some(cost) = costs.iter().find(|c| !(0.0..=COST_MAX).contains(*c)) {
                return wrong(
                    format!("in the cost profile of {name} a part costs {cost}"),
                    "write numbers of 0 or more, such as percentages of the mean",
                );
            }
            if costs.iter().sum::<f64>() < 1e-3 {
                return wrong(
                    format!("the cost profile of {name} costs nothing"),
                    "leave it out if the cost is constant",
                );
            }
            if costs.len() > PARTS_MAX {
                return wrong(
                    format!("the cost profile of {name} has {} parts", costs.len()),
                    "write at most 65536",
                );
            }
            if parts != 0 && costs.len() != parts {
                return wrong(
                    format!(
                        "the cost profile of {name} has {} parts, another {parts}",
                        costs.len()
                    ),
                    "use the same number of parts for all actors of an application",
                );
            }
            parts = costs.len();
        }
        if parts == 0 {
            return wrong(
                format!("a cost profile of {units} units, and no actor has one"),
                "give a cost profile for at least one actor, or no units",
            );
        }
        let actors = costs
            .into_iter()
            .map(|(_, costs)| ActorCostProfile::new(units, costs));
        Ok(CostProfile {
            units,
            start: 0.0,
            spread: 0.0,
            actors: actors.collect(),
        })
    }

    /// Sets the variation within a part, a fraction from 0 to 1.
    pub fn with_spread(self, spread: f64) -> CostProfile {
        CostProfile {
            spread: spread.clamp(0.0, 1.0),
            ..self
        }
    }

    /// Sets the unit of the profile at which the application starts.
    pub fn starting_at(&self, unit: f64) -> CostProfile {
        CostProfile {
            start: unit % self.units,
            ..self.clone()
        }
    }

    pub fn units(&self) -> f64 {
        self.units
    }

    pub fn start(&self) -> f64 {
        self.start
    }

    pub fn spread(&self) -> f64 {
        self.spread
    }

    pub fn costs(&self, actor: usize) -> &[f64] {
        self.actors.get(actor).map_or(&[], |profile| &profile.costs)
    }

    /// Cost of an actor in excess of its mean between two units, both counted from the
    /// application's start, in units of mean cost.
    pub fn excess(&self, actor: usize, from: f64, to: f64) -> f64 {
        let Some(profile) = self.actors.get(actor) else {
            return 0.0;
        };
        let part = |unit: f64| {
            let through = (unit + self.start) / self.units;
            through.fract() * profile.costs.len() as f64
        };
        profile.until(part(to)) - profile.until(part(from))
    }
}

impl ActorCostProfile {
    fn new(units: f64, costs: Vec<f64>) -> ActorCostProfile {
        let (parts, all) = (costs.len() as f64, costs.iter().sum::<f64>());
        let mut until = 0.0;
        let mut beyond: Vec<f64> = vec![0.0; usize::from(!costs.is_empty())];
        beyond.extend(costs.iter().map(|cost| {
            until += units * (cost / all - 1.0 / parts);
            until
        }));
        ActorCostProfile { costs, beyond }
    }

    /// Cost in excess of the mean from the start of the profile to position `parts`, interpolated
    /// linearly.
    fn until(&self, parts: f64) -> f64 {
        let whole = (parts as usize).min(self.costs.len());
        match (self.beyond.get(whole), self.beyond.get(whole + 1)) {
            (Some(one), Some(next)) => one + (next - one) * (parts - whole as f64),
            (one, _) => one.copied().unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_an_interval_is_the_sum_of_its_parts() {
        let profile = CostProfile::new(4.0, vec![("a", vec![0.0, 100.0]), ("b", vec![])]).unwrap();
        // Two units at cost 0, then two units at twice the mean.
        let near = |is: f64, should: f64| assert!((is - should).abs() < 1e-9, "{is}, not {should}");
        for (from, to, takes) in [
            (0.0, 2.0, 0.0),
            (2.0, 4.0, 4.0),
            (1.0, 3.0, 2.0),
            (0.0, 4.0, 4.0),
            (3.0, 9.0, 6.0),
            (2.25, 2.5, 0.5),
        ] {
            near(profile.excess(0, from, to) + (to - from), takes);
            near(
                profile.starting_at(2.0).excess(0, from + 2.0, to + 2.0) + (to - from),
                takes,
            );
            near(
                profile.starting_at(9.0).excess(0, from + 3.0, to + 3.0) + (to - from),
                takes,
            );
            near(profile.excess(1, from, to), 0.0);
            near(profile.excess(2, from, to), 0.0);
        }
    }

    #[test]
    fn invalid_profiles_are_refused() {
        let said = |units: f64, all: &[&[f64]]| {
            let named = all.iter().map(|costs| ("a", costs.to_vec()));
            CostProfile::new(units, named.collect()).unwrap_err().what
        };
        let one: &[f64] = &[1.0];
        assert!(said(0.0, &[one]).contains("of 0 units"));
        assert!(said(f64::NAN, &[one]).contains("of NaN units"));
        assert!(said(1.0, &[&[1.0, -2.0]]).contains("costs -2"));
        assert!(said(1.0, &[&[f64::NAN]]).contains("costs NaN"));
        assert!(said(1.0, &[&[f64::INFINITY]]).contains("costs inf"));
        assert!(said(1.0, &[&[0.0; 3]]).contains("costs nothing"));
        assert!(said(1.0, &[&vec![1.0; PARTS_MAX + 1]]).contains("65537 parts"));
        assert!(said(1.0, &[one, &[], &[1.0; 2]]).contains("2 parts, another 1"));
        assert!(said(1.0, &[&[], &[]]).contains("no actor has one"));
    }
}
