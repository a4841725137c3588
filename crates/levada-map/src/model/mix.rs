// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The workload: the applications that share a machine, each with its measured graph and its
//! constraints.

use super::cost_profile::CostProfile;
use super::format::format_number;
use super::graph::{Graph, Link};
use super::machine::{Costs, Machine};
use super::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq)]
pub struct Actor {
    pub name: String,
    /// Nanoseconds per unit on a core of speed 1, including the cost of its channels within one
    /// core.
    pub time: f64,
    /// Firings per unit.
    pub firings: f64,
    /// The core that the actor is pinned to.
    pub pin: Option<u32>,
}

/// A firing of at least this many nanoseconds is simulated as one firing, even if it produces many
/// units. Shorter firings are counted at least once per unit; otherwise an actor that rarely fires
/// would distort the rate of its application.
const LONG_FIRING_NS: f64 = 1e6;
/// Longer firings are taken for an error in the description.
const FIRING_MAX_NS: f64 = 1e12;

impl Actor {
    /// Firings per unit in the simulation.
    pub(crate) fn steps(&self) -> f64 {
        let each = self.time / self.firings;
        if (LONG_FIRING_NS..FIRING_MAX_NS).contains(&each) {
            self.firings
        } else {
            self.firings.max(1.0)
        }
    }

    /// Nanoseconds per firing. A firing is not preempted.
    pub(crate) fn firing(&self) -> f64 {
        self.time / self.steps()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    pub from: usize,
    pub to: usize,
    /// Elements per unit.
    pub elements: f64,
    /// Bytes per element.
    pub size: f64,
    /// Capacity in elements.
    pub capacity: f64,
}

/// The priorities that the runtime distinguishes; others are clamped.
const PRIORITY_RANGE: (i32, i32) = (-4, 3);

/// The priority that the runtime uses for this one.
pub fn clamp_priority(priority: i32) -> i32 {
    priority.clamp(PRIORITY_RANGE.0, PRIORITY_RANGE.1)
}

/// An application. Its progress is counted in units that it defines, such as frames.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    pub name: String,
    pub unit: String,
    /// Within the range of [`clamp_priority`].
    pub priority: i32,
    /// Reserved rate, in units per second.
    pub reserved_rate: Option<f64>,
    /// Upper limit of CPU usage in cores: 0.5 is half a core.
    pub cpus: Option<f64>,
    pub actors: Vec<Actor>,
    pub channels: Vec<Channel>,
    /// How the cost of its actors varies along the stream, if known.
    pub cost_profile: Option<CostProfile>,
}

impl App {
    /// The pin of each actor.
    pub(crate) fn pins(&self) -> Vec<Option<u32>> {
        self.actors.iter().map(|a| a.pin).collect()
    }

    /// Nanoseconds per unit, all actors together.
    pub fn work(&self) -> f64 {
        self.actors.iter().map(|a| a.time).sum()
    }

    /// Nanoseconds per unit of the slowest actor, if each byte of its channels costs `byte`
    /// nanoseconds.
    fn slowest_actor_ns(&self, speed: f64, byte: f64) -> f64 {
        let mut times: Vec<f64> = self.actors.iter().map(|a| a.time / speed).collect();
        for c in self.channels.iter().filter(|c| c.from != c.to) {
            times[c.from] += c.elements * c.size * byte;
            times[c.to] += c.elements * c.size * byte;
        }
        times.into_iter().fold(0.0, f64::max)
    }

    /// The maximum rate (units per second) by reserved rate and CPU limit, if a unit takes `work`
    /// nanoseconds.
    pub(crate) fn rate_limit(&self, work: f64) -> Option<f64> {
        let by_share = self.cpus.map(|share| share * NS_PER_S / work);
        self.reserved_rate
            .into_iter()
            .chain(by_share)
            .reduce(f64::min)
    }

    /// The part of a reserved rate (units per second) that is achievable on a core of speed
    /// `fastest`. A reservation above it is treated as this rate.
    pub(crate) fn achievable_rate(&self, reserved_rate: f64, fastest: f64) -> f64 {
        reserved_rate.min(fastest * NS_PER_S / self.heaviest_actor_ns().max(1e-9))
    }

    pub fn heaviest_actor_ns(&self) -> f64 {
        self.actors.iter().map(|a| a.time).fold(0.0, f64::max)
    }
}

/// Actors are numbered consecutively through all applications. A placement has one core per actor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix {
    pub apps: Vec<App>,
    /// Cores reserved for one application, or for none (unused).
    pub exclusive: Vec<(u32, Option<usize>)>,
}

/// A rate within this fraction of the reserved rate meets the reservation.
pub const RATE_TOLERANCE: f64 = 0.02;
pub(crate) const NS_PER_S: f64 = 1e9;
/// Upper limit of times and counts: a year in nanoseconds.
const VALUE_MAX: f64 = 3.2e16;

impl Mix {
    pub fn actors(&self) -> usize {
        self.apps.iter().map(|a| a.actors.len()).sum()
    }

    /// The range of actor numbers of each application.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let mut first = 0;
        let range = |app: &App| {
            let range = first..first + app.actors.len();
            first = range.end;
            range
        };
        self.apps.iter().map(range).collect()
    }

    /// The priorities in use, highest first.
    pub(crate) fn priority_levels(&self) -> Vec<i32> {
        let mut levels: Vec<i32> = self.apps.iter().map(|a| a.priority).collect();
        levels.sort_unstable_by_key(|&p| std::cmp::Reverse(p));
        levels.dedup();
        levels
    }

    /// The load of each actor as a fraction of a core of speed 1, at the given rates (units per
    /// second).
    pub fn graph(&self, rates: &[f64]) -> Graph {
        let mut graph = Graph::default();
        for (app, rate) in self.apps.iter().zip(rates) {
            let (first, rate) = (graph.busy.len(), rate / NS_PER_S);
            graph.busy.extend(app.actors.iter().map(|a| a.time * rate));
            graph.pins.extend(app.actors.iter().map(|a| a.pin));
            graph.links.extend(app.channels.iter().map(|c| Link {
                from: first + c.from,
                to: first + c.to,
                bytes: c.elements * c.size * rate,
            }));
        }
        graph
    }

    /// The rates to place for, in units per second. By priority, highest first: reserved rates,
    /// then equal shares of the remaining cores for the other applications, as far as each can use
    /// its share (max-min fairness).
    pub fn targets(&self, machine: &Machine) -> Vec<f64> {
        let fastest = machine.fastest();
        let mut left = machine.capacity();
        let mut rates = vec![0.0; self.apps.len()];
        let mut order: Vec<usize> = (0..self.apps.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(self.apps[i].priority));
        // The rate of the slowest actor on a core of its own, at the largest distance from its
        // neighbors.
        let far = machine.byte(0, machine.workers() as u32 - 1);
        let alone: Vec<f64> = self
            .apps
            .iter()
            .map(|app| {
                let alone = NS_PER_S / app.slowest_actor_ns(fastest, far);
                let held = app.rate_limit(app.work() / fastest);
                held.filter(|_| app.cpus.is_some())
                    .map_or(alone, |held| held.min(alone))
            })
            .collect();
        let most = |i: usize| alone[i] * self.apps[i].work() / NS_PER_S;
        for level in order.chunk_by(|&a, &b| self.apps[a].priority == self.apps[b].priority) {
            let is_reserved = |&i: &usize| self.apps[i].reserved_rate.is_some();
            let (reserved, mut rest): (Vec<usize>, Vec<usize>) =
                level.iter().partition(|i| is_reserved(i));
            for i in reserved {
                let work = self.apps[i].work() / NS_PER_S;
                let reserved_rate = self.apps[i].reserved_rate.unwrap_or_default();
                rates[i] = reserved_rate.min(alone[i]).min(left / work);
                left = (left - rates[i] * work).max(0.0);
            }
            // In ascending order of usable capacity, so that unused shares go to the others.
            rest.sort_by(|&a, &b| most(a).total_cmp(&most(b)));
            let mut waiting = rest.len();
            for i in rest {
                let share = (left / waiting as f64).min(most(i)).max(1e-9);
                rates[i] = share * NS_PER_S / self.apps[i].work();
                left = (left - share).max(0.0);
                waiting -= 1;
            }
        }
        rates
    }

    /// Rejects invalid input before anything is computed from it.
    pub fn check(&self, machine: &Machine) -> Result<(), Problem> {
        let cores = machine.cores.len();
        if cores == 0 {
            return Err(Problem::new(
                "the machine has no cores",
                "describe at least one",
            ));
        }
        for (i, core) in machine.cores.iter().enumerate() {
            if !(core.speed.is_finite() && core.speed > 0.0 && core.speed <= 1e6) {
                return Err(Problem::new(
                    format!("core {i} has speed {}", core.speed),
                    "1 is the core that times were measured on",
                ));
            }
        }
        let Costs {
            byte,
            turn,
            wake,
            spin,
            asleep,
        } = &machine.costs;
        for cost in byte.iter().chain([turn, wake, spin, asleep]) {
            if !(cost.is_finite() && (0.0..=NS_PER_S).contains(cost)) {
                return Err(Problem::new(
                    format!("a cost of the machine is {}", format_number(*cost)),
                    "costs are nanoseconds, 0 or more",
                ));
            }
        }
        if self.apps.iter().all(|a| a.actors.is_empty()) {
            return Err(Problem::new(
                "there is nothing to map",
                "describe an application with at least one actor",
            ));
        }
        let (mut owners, mut owning) = (BTreeMap::new(), BTreeSet::new());
        for &(core, owner) in &self.exclusive {
            owners.entry(core).or_insert(owner);
            owning.extend(owner);
        }
        for (i, app) in self.apps.iter().enumerate() {
            app.check()?;
            let has = owning.contains(&i);
            for actor in &app.actors {
                let Some(pin) = actor.pin else { continue };
                let pinned = format!("{}.{} is pinned to core {pin}", app.name, actor.name);
                if pin as usize >= cores {
                    return Err(Problem::new(
                        format!("{pinned}, and the cores are 0 to {}", cores - 1),
                        "pin it to one of these, or remove the pin",
                    ));
                }
                let allowed = match owners.get(&pin) {
                    Some(owner) => *owner == Some(i),
                    None => !has,
                };
                if !allowed {
                    return Err(Problem::new(
                        if has {
                            format!("{pinned}, and {} has other exclusive cores", app.name)
                        } else {
                            format!("{pinned}, which is exclusive or reserved")
                        },
                        "remove the pin or the exclusive core",
                    ));
                }
            }
        }
        for (core, owner) in &self.exclusive {
            if *core as usize >= cores || owner.is_some_and(|o| o >= self.apps.len()) {
                return Err(Problem::new(
                    format!("core {core} cannot be exclusive: there is no such core or owner"),
                    format!("the cores are 0 to {}", cores - 1),
                ));
            }
            if owners[core] != *owner {
                return Err(Problem::new(
                    format!("core {core} is exclusive to two applications"),
                    "give it to one of them",
                ));
            }
        }
        Ok(())
    }
}

impl App {
    fn check(&self) -> Result<(), Problem> {
        let wrong = |what: String, help: &str| Err(Problem::new(what, help));
        if self.actors.is_empty() {
            return wrong(
                format!("{} has no actors", self.name),
                "leave it out, or describe them",
            );
        }
        for actor in &self.actors {
            for (what, value) in [("time", actor.time), ("firings", actor.firings)] {
                if !(value.is_finite() && (0.0..=VALUE_MAX).contains(&value)) {
                    return wrong(
                        format!(
                            "{}.{}: {what} is {}",
                            self.name,
                            actor.name,
                            format_number(value)
                        ),
                        "write a number from 0 to 3.2e16 (a year in nanoseconds)",
                    );
                }
            }
        }
        if self.work() < 1e-3 {
            return wrong(
                format!("{} takes no time at all", self.name),
                "measure it, or give at least one of its actors a time",
            );
        }
        for (i, c) in self.channels.iter().enumerate() {
            if c.from >= self.actors.len() || c.to >= self.actors.len() {
                return wrong(
                    format!("{}: channel {i} ends at an unknown actor", self.name),
                    "its ends are actors of this application",
                );
            }
            for (what, value) in [
                ("elements", c.elements),
                ("bytes", c.size),
                ("capacity", c.capacity),
            ] {
                if !(value.is_finite() && (0.0..=VALUE_MAX).contains(&value)) {
                    return wrong(
                        format!(
                            "{}: {what} of channel {i} is {}",
                            self.name,
                            format_number(value)
                        ),
                        "write a number of 0 or more",
                    );
                }
            }
        }
        if let Some(share) = self
            .cpus
            .filter(|s| !(s.is_finite() && *s > 0.0 && *s <= 1e12))
        {
            return wrong(
                format!("the CPU quota of {} is {}", self.name, format_number(share)),
                "write a number of cores above 0, or nothing",
            );
        }
        match self.reserved_rate {
            Some(p) if !(p.is_finite() && p > 0.0 && p <= 1e12) => wrong(
                format!(
                    "{} reserves {} {} a second",
                    self.name,
                    format_number(p),
                    self.unit
                ),
                "reserve a number above 0, or nothing",
            ),
            _ => Ok(()),
        }
    }
}
