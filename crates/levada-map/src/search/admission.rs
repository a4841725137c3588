// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Admission test: the effect of a load on reserved rates, predicted by simulation. A load is
//! rejected for what it changes: a reservation that is missed anyway is no reason against a load
//! that takes nothing from it.

use super::strategy::{place_new_only, remap};
use crate::model::graph::Placement;
use crate::model::machine::Machine;
use crate::model::mix::{Actor, App, Mix, RATE_TOLERANCE};
use crate::model::problem::Problem;
use crate::sim::{Simulated, simulate};
use std::cell::OnceCell;
use std::fmt;

/// Applications, and the core of each actor that is placed already.
#[derive(Clone, Copy, Debug)]
pub struct PlacedMix<'a> {
    pub mix: &'a Mix,
    pub current: &'a [Option<u32>],
}

/// A reserved rate, and the rate predicted for the application.
#[derive(Clone, Debug, PartialEq)]
pub struct RateReservation {
    /// Index in the mix that includes the load.
    pub app: usize,
    pub reserved_rate: f64,
    /// The rate predicted without the load; none if the reservation comes with the load.
    pub before: Option<f64>,
    pub expected: f64,
}

fn keeps(reserved: f64, rate: f64) -> bool {
    rate >= reserved * (1.0 - RATE_TOLERANCE)
}

/// A reservation that is missed anyway counts as broken if the load reduces its rate by this
/// fraction.
const WORSE_RATIO: f64 = 0.05;

impl RateReservation {
    pub fn kept(&self) -> bool {
        self.keeps(self.expected)
    }

    fn keeps(&self, rate: f64) -> bool {
        keeps(self.reserved_rate, rate)
    }

    /// Whether the load breaks the reservation: it would be met without the load, or be clearly
    /// closer to being met, or comes with the load.
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
    /// Units per second of each application.
    pub rates: Vec<f64>,
    pub reservations: Vec<RateReservation>,
    /// A sentence for each reservation that the load breaks.
    pub broken: Vec<String>,
    /// A sentence for each reservation that is missed with and without the load.
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
            (true, true) => write!(f, "no reserved rate is broken"),
            (true, false) => write!(
                f,
                "no reserved rate is broken by this; {}",
                self.missed.join("; ")
            ),
        }
    }
}

/// Predicts what the load does to each reserved rate; `before` is the mix without it, `after` the
/// mix with it. If all reservations are met with every running actor on its core, nothing is
/// remapped, since remapping takes long. Applications are matched by name. Each mix is simulated
/// for at least `steps` steps.
pub fn admit(
    before: PlacedMix,
    after: PlacedMix,
    machine: &Machine,
    steps: usize,
) -> Result<Admission, Problem> {
    let mix = after.mix;
    let (placement, rates) = predict(after, machine, steps)?;
    let had = if before.mix.apps.iter().any(|a| a.reserved_rate.is_some()) {
        predict(before, machine, steps)?.1
    } else {
        Vec::new()
    };
    // A new version that reserves more than the old one has a new reservation.
    let has = |name: &str, reserved: f64| {
        let before = before.mix.apps.iter().zip(&had);
        let same = |a: &App| a.name == name && a.reserved_rate.is_some_and(|p| p >= reserved);
        let mut of_it = before.filter(|(a, _)| same(a));
        of_it.next().map(|(_, rate)| *rate)
    };
    let reservations = mix.apps.iter().enumerate().filter_map(|(app, of)| {
        let reserved = of.reserved_rate?;
        Some(RateReservation {
            app,
            reserved_rate: reserved,
            before: has(&of.name, reserved),
            expected: rates[app],
        })
    });
    let reservations: Vec<RateReservation> = reservations.collect();
    let broken = reservations.iter().filter(|p| p.broken());
    let bottlenecks = Bottlenecks::new(mix, machine, &placement, steps);
    let broken = broken.map(|reservation| {
        let why =
            actor_too_heavy(mix, machine, reservation).or_else(|| bottlenecks.of(reservation));
        let why = why.map(|why| format!(": {why}"));
        describe(mix, reservation) + &why.unwrap_or_default()
    });
    let broken = broken.collect();
    let missed = reservations.iter().filter(|p| !p.kept() && !p.broken());
    let missed = missed
        .map(|reservation| describe(mix, reservation))
        .collect();
    Ok(Admission {
        placement,
        rates,
        reservations,
        broken,
        missed,
    })
}

/// The placement and the rates: with running actors in place if that meets all reservations,
/// otherwise remapped.
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
    let all_kept = apps.all(|(app, rate)| {
        app.reserved_rate
            .is_none_or(|reserved| keeps(reserved, *rate))
    });
    if all_kept {
        Ok(stays)
    } else {
        Ok(with(remap(mix, machine, current)?))
    }
}

/// Maximum number of simulated steps.
const STEPS_MAX: usize = 1 << 20;
/// Minimum length of the simulation: units of each reservation (and longest firings), and seconds.
/// Until channels are full a source reaches its rate even if nothing consumes its output.
const UNITS_MIN: f64 = 32.0;
const SECONDS_MIN: f64 = 0.25;

/// Simulates until each reservation and the longest firing are covered.
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
    let unit = mix
        .apps
        .iter()
        .filter_map(|a| a.reserved_rate)
        .map(|p| 1.0 / p);
    let wanted = (UNITS_MIN * unit.fold(firing, f64::max)).max(SECONDS_MIN);
    let mut steps = steps;
    loop {
        let made = simulate(mix, machine, placement, machine.scheduling, steps);
        if made.seconds >= wanted || steps >= STEPS_MAX {
            return made;
        }
        // The simulation starts from the beginning each time; the number of steps is extrapolated.
        let times = 1.25 * wanted / made.seconds.max(1e-9);
        steps = ((times.max(2.0) * steps as f64) as usize).min(STEPS_MAX);
    }
}

fn describe(mix: &Mix, reservation: &RateReservation) -> String {
    let of = &mix.apps[reservation.app];
    let rate = |rate: f64| {
        if rate < 1.0 {
            format!("{rate:.3} {}/s", of.unit)
        } else {
            format!("{rate:.1} {}/s", of.unit)
        }
    };
    let (name, reserved, then) = (
        &of.name,
        rate(reservation.reserved_rate),
        rate(reservation.expected),
    );
    match reservation.before {
        Some(now) => {
            let now = rate(now);
            format!("{name} has reserved {reserved}, can have {now} now, and would get {then}")
        }
        None => format!("{name} is to reserve {reserved} and would get {then}"),
    }
}

/// An explanation if one actor needs more than a core for the reserved rate.
fn actor_too_heavy(mix: &Mix, machine: &Machine, reservation: &RateReservation) -> Option<String> {
    let of = &mix.apps[reservation.app];
    let heavy = of
        .actors
        .iter()
        .find(|a| a.time == of.heaviest_actor_ns())?;
    let each = heavy.time / machine.fastest();
    (1e9 / each < reservation.reserved_rate).then(|| {
        let (name, ms) = (&heavy.name, each / 1e6);
        format!("{name} alone takes a core {ms:.2} ms for each")
    })
}

/// Longer firings can delay other actors noticeably.
const SHORT_FIRING_NS: f64 = 1e6;

/// Finds applications with long firings that break a reservation: with shorter firings it would be
/// met.
struct Bottlenecks<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    placement: &'a [u32],
    steps: usize,
    /// The rates if all firings were short. If a reservation is missed even then, the cause is
    /// overload.
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

    fn of(&self, reservation: &RateReservation) -> Option<String> {
        let (app, long) = self.longest_neighbor_firing(reservation.app)?;
        let all_short = || self.rates_with_short_firings(|_| true);
        if !reservation.keeps(self.all_short.get_or_init(all_short)[reservation.app]) {
            return None;
        }
        let then = self.rates_with_short_firings(|app| app != reservation.app)[reservation.app];
        reservation.keeps(then).then(|| {
            let (name, ms) = (&app.name, long / 1e6);
            format!("the firings of {name} last {ms:.0} ms, and no firing is interrupted")
        })
    }

    /// The application with the longest firing on the cores of `own`, and its nanoseconds.
    fn longest_neighbor_firing(&self, own: usize) -> Option<(&App, f64)> {
        let ranges = self.mix.ranges();
        let cores = &self.placement[ranges[own].clone()];
        let others = self.mix.apps.iter().zip(&ranges).enumerate();
        let others = others.filter(|(app, _)| *app != own);
        let neighbors = others.flat_map(|(_, (app, range))| {
            let actors = app.actors.iter().zip(&self.placement[range.clone()]);
            actors.filter_map(move |(actor, core)| {
                let long = actor.firing() / self.machine.cores[*core as usize].speed;
                (cores.contains(core) && long > SHORT_FIRING_NS).then_some((app, long))
            })
        });
        neighbors.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The rates if the firings of the selected applications were short.
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
