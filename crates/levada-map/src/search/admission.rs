// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Admission: what would become of the promises if this were loaded, too. What is held against a load is what it
//! changes: a promise that cannot be kept anyway is no reason against one that takes nothing from it.

use super::strategy::{place_new_only, remap};
use crate::model::graph::Placement;
use crate::model::machine::Machine;
use crate::model::mix::{Actor, App, Mix, RATE_TOLERANCE};
use crate::model::problem::Problem;
use crate::sim::{Simulated, simulate};
use std::cell::OnceCell;
use std::fmt;

/// Applications, and where each actor is, if it is anywhere yet.
#[derive(Clone, Copy, Debug)]
pub struct PlacedMix<'a> {
    pub mix: &'a Mix,
    pub current: &'a [Option<u32>],
}

/// A promise, and what the application would get.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    /// In the mix with what is to be loaded.
    pub app: usize,
    pub promised: f64,
    /// What it would get without the load; none: it is promised with it.
    pub before: Option<f64>,
    pub expected: f64,
}

fn keeps(promised: f64, rate: f64) -> bool {
    rate >= promised * (1.0 - RATE_TOLERANCE)
}

/// A promise that is broken anyway is made clearly worse by so much.
const WORSE_RATIO: f64 = 0.05;

impl Promise {
    pub fn kept(&self) -> bool {
        self.keeps(self.expected)
    }

    fn keeps(&self, rate: f64) -> bool {
        keeps(self.promised, rate)
    }

    /// Whether the load breaks it: it would be kept without, or come clearly closer, or comes with the load.
    pub fn broken(&self) -> bool {
        !self.kept()
            && match self.before {
                Some(before) if !self.keeps(before) => self.expected < before * (1.0 - WORSE_RATIO),
                _ => true,
            }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    pub placement: Placement,
    /// Units a second of each application.
    pub rates: Vec<f64>,
    pub promises: Vec<Promise>,
    /// In words, one for each promise that would be broken by the load.
    pub broken: Vec<String>,
    /// And one for each that is not kept, with it or without.
    pub missed: Vec<String>,
}

impl Admission {
    pub fn fits(&self) -> bool {
        self.broken.is_empty()
    }
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.fits(), self.missed.is_empty()) {
            (false, _) => write!(f, "{}", self.broken.join("; ")),
            (true, true) => write!(f, "nothing that is promised is broken"),
            (true, false) => write!(
                f,
                "no promise is broken by this; {}",
                self.missed.join("; ")
            ),
        }
    }
}

/// What is there, and what would be there `after` the load, and what that does to each promise. Where all are kept with
/// everybody where he is, nothing is mapped: that takes long where much runs. Where not, it is, since moving somebody may keep
/// them. Applications of one name are the same one. Each is simulated for so many steps at the least.
pub fn admit(
    before: PlacedMix,
    after: PlacedMix,
    machine: &Machine,
    steps: usize,
) -> Result<Admission, Problem> {
    let mix = after.mix;
    let (placement, rates) = predict(after, machine, steps)?;
    let had = match before.mix.apps.iter().any(|a| a.promise.is_some()) {
        true => predict(before, machine, steps)?.1,
        false => Vec::new(),
    };
    // A new version that is promised more than the old one is promised something new.
    let has = |name: &str, promised: f64| {
        let before = before.mix.apps.iter().zip(&had);
        let same = |a: &App| a.name == name && a.promise.is_some_and(|p| p >= promised);
        let mut of_it = before.filter(|(a, _)| same(a));
        of_it.next().map(|(_, rate)| *rate)
    };
    let promises = mix.apps.iter().enumerate().filter_map(|(app, of)| {
        let promised = of.promise?;
        Some(Promise {
            app,
            promised,
            before: has(&of.name, promised),
            expected: rates[app],
        })
    });
    let promises: Vec<Promise> = promises.collect();
    let broken = promises.iter().filter(|p| p.broken());
    let bottlenecks = Bottlenecks::new(mix, machine, &placement, steps);
    let broken = broken.map(|promise| {
        let why = actor_too_heavy(mix, machine, promise).or_else(|| bottlenecks.of(promise));
        let why = why.map(|why| format!(": {why}"));
        describe(mix, promise) + &why.unwrap_or_default()
    });
    let broken = broken.collect();
    let missed = promises.iter().filter(|p| !p.kept() && !p.broken());
    let missed = missed.map(|promise| describe(mix, promise)).collect();
    Ok(Admission {
        placement,
        rates,
        promises,
        broken,
        missed,
    })
}

/// Where everybody would be, and what each would get there.
fn predict(
    placed: PlacedMix,
    machine: &Machine,
    steps: usize,
) -> Result<(Placement, Vec<f64>), Problem> {
    let PlacedMix { mix, current } = placed;
    let with = |placement: Placement| {
        let rates = simulate_long_enough(mix, machine, &placement, steps).rates;
        (placement, rates)
    };
    let stays = with(place_new_only(mix, machine, current)?);
    let mut apps = mix.apps.iter().zip(&stays.1);
    let all_kept =
        apps.all(|(app, rate)| app.promise.is_none_or(|promised| keeps(promised, *rate)));
    match all_kept {
        true => Ok(stays),
        false => Ok(with(remap(mix, machine, current)?)),
    }
}

/// The most steps that are simulated for that.
const STEPS_MAX: usize = 1 << 20;
/// Units of what is promised, and firings, that are to be seen, and seconds: until channels are full, who fills them
/// gets what he is promised, whoever takes it.
const UNITS_MIN: f64 = 32.0;
const SECONDS_MIN: f64 = 0.25;

/// Simulated until each promise, and the longest firing, can be seen.
fn simulate_long_enough(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
    steps: usize,
) -> Simulated {
    let slowest = machine
        .cores
        .iter()
        .map(|c| c.speed)
        .fold(f64::INFINITY, f64::min);
    let firing = mix.apps.iter().flat_map(|a| &a.actors).map(Actor::firing);
    let firing = firing.fold(0.0, f64::max) / slowest / 1e9;
    let unit = mix.apps.iter().filter_map(|a| a.promise).map(|p| 1.0 / p);
    let wanted = (UNITS_MIN * unit.fold(firing, f64::max)).max(SECONDS_MIN);
    let mut steps = steps;
    loop {
        let made = simulate(mix, machine, placement, machine.scheduling, steps);
        if made.seconds >= wanted || steps >= STEPS_MAX {
            return made;
        }
        // Steps go on about as they have begun, and each time it begins anew.
        let times = 1.25 * wanted / made.seconds.max(1e-9);
        steps = ((times.max(2.0) * steps as f64) as usize).min(STEPS_MAX);
    }
}

fn describe(mix: &Mix, promise: &Promise) -> String {
    let of = &mix.apps[promise.app];
    let rate = |rate: f64| match rate < 1.0 {
        true => format!("{rate:.3} {}/s", of.unit),
        false => format!("{rate:.1} {}/s", of.unit),
    };
    let (name, promised, then) = (&of.name, rate(promise.promised), rate(promise.expected));
    match promise.before {
        Some(now) => {
            let now = rate(now);
            format!("{name} was promised {promised}, can have {now} now, and would get {then}")
        }
        None => format!("{name} is to be promised {promised} and would get {then}"),
    }
}

/// One of its actors takes longer for a unit than there is.
fn actor_too_heavy(mix: &Mix, machine: &Machine, promise: &Promise) -> Option<String> {
    let of = &mix.apps[promise.app];
    let heavy = of
        .actors
        .iter()
        .find(|a| a.time == of.heaviest_actor_ns())?;
    let each = heavy.time / machine.fastest();
    (1e9 / each < promise.promised).then(|| {
        let (name, ms) = (&heavy.name, each / 1e6);
        format!("{name} alone takes a core {ms:.2} ms for each")
    })
}

/// Firings that last for longer than this can hold up others.
const SHORT_FIRING_NS: f64 = 1e6;

/// Who fires for so long beside a promise that it would be kept if those firings were shorter.
struct Bottlenecks<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    placement: &'a [u32],
    steps: usize,
    /// The rates where nobody fires for long: where promises are broken since there is too much to do, that says so of all
    /// of them at once.
    all_short: OnceCell<Vec<f64>>,
}

impl<'a> Bottlenecks<'a> {
    fn new(
        mix: &'a Mix,
        machine: &'a Machine,
        placement: &'a [u32],
        steps: usize,
    ) -> Bottlenecks<'a> {
        Bottlenecks {
            mix,
            machine,
            placement,
            steps,
            all_short: OnceCell::new(),
        }
    }

    fn of(&self, promise: &Promise) -> Option<String> {
        let (who, long) = self.longest_neighbor_firing(promise.app)?;
        let all_short = || self.rates_with_short_firings(|_| true);
        if !promise.keeps(self.all_short.get_or_init(all_short)[promise.app]) {
            return None;
        }
        let then = self.rates_with_short_firings(|app| app != promise.app)[promise.app];
        promise.keeps(then).then(|| {
            let (who, ms) = (&who.name, long / 1e6);
            format!("the firings of {who} last {ms:.0} ms, and no firing is interrupted")
        })
    }

    /// On its cores, of others, and for how long.
    fn longest_neighbor_firing(&self, own: usize) -> Option<(&App, f64)> {
        let ranges = self.mix.ranges();
        let cores = &self.placement[ranges[own].clone()];
        let others = self.mix.apps.iter().zip(&ranges).enumerate();
        let others = others.filter(|(app, _)| *app != own);
        let beside = others.flat_map(|(_, (app, range))| {
            let actors = app.actors.iter().zip(&self.placement[range.clone()]);
            actors.filter_map(move |(actor, core)| {
                let long = actor.firing() / self.machine.cores[*core as usize].speed;
                (cores.contains(core) && long > SHORT_FIRING_NS).then_some((app, long))
            })
        });
        beside.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// If the firings of these applications were short.
    fn rates_with_short_firings(&self, which: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut shorter = self.mix.clone();
        let apps = shorter.apps.iter_mut().enumerate();
        let apps = apps.filter(|(app, _)| which(*app));
        for actor in apps.flat_map(|(_, app)| &mut app.actors) {
            actor.firings = actor.firings.max(actor.time / SHORT_FIRING_NS);
        }
        simulate_long_enough(&shorter, self.machine, self.placement, self.steps).rates
    }
}
