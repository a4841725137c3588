// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts counters and profiles of an application to the mapper's description: cost per unit of each actor, and
//! traffic of each channel.
//!
//! An application without a reserved rate that is paced by a clock or by its input is capped at its present usage.
//! Simulated at full speed, one of high priority would leave nothing for reservations.

use crate::app::HostedApp;
use crate::app::profile::Profile;
use crate::app::recent::STARTUP_S;
use crate::mapping::graph::{first_guess, graph_between};
use crate::mapping::overrun::pin_overrunning;
use crate::mapping::progress_units::{Flow, units_done};
use crate::model::limits::Limits;
use levada_map::{Actor, App, Channel, Machine, clamp_priority};
use levada_sys::{Counters, Network};

/// Assumed cost per unit, in ns, of an application that was never measured.
const GUESSED_UNIT_NS: f64 = 1e5;
/// Counters with less CPU time, in ns, are less significant than a guess.
const SIGNIFICANT_NS: f64 = 2e6;
/// Counters with less CPU time, in ns, are less significant than a profile: the cost of an activation is counted only
/// when it ends, its units while it runs.
const PROFILE_PREFERRED_NS: f64 = 1e8;

/// Unit and number of units counted by this version, such as frames; none if it counts nothing.
pub fn counted_units(hosted: &HostedApp, counters: &Counters) -> Option<(String, f64)> {
    let (unit, counted) = counters.progress.clone()?;
    let done = hosted.versions.own_count(counted) as f64;
    (done > 0.0).then_some((unit, done))
}

/// The machine as these counters confirm it: the measured cost per byte between cores, reduced as far as the actors'
/// CPU time requires.
pub fn credible_machine(hosted: &HostedApp, machine: &Machine, counters: &Counters) -> Machine {
    let all = graph_between(hosted.app.network(), &Counters::default(), counters);
    all.credible(machine, &workers_of(counters))
}

fn workers_of(counters: &Counters) -> Vec<u32> {
    counters.actors.iter().map(|a| a.worker).collect()
}

/// The application by its counters, with this unit and number of units. An actor that has had no work yet is assumed
/// to cost as much as the others.
pub fn app_from_counters(
    hosted: &HostedApp,
    machine: &Machine,
    counters: &Counters,
    (unit, done): (String, f64),
) -> App {
    let network = hosted.app.network();
    let all = graph_between(network, &Counters::default(), counters);
    let busy = all.without_traffic(machine, &workers_of(counters)).busy;
    let (there, links) = (counters.actors.len(), network.links());
    let flows = links.iter().zip(&counters.channels);
    let flows = flows.map(|((from, to, _), c)| Flow {
        from: *from as usize,
        to: *to as usize,
        put: c.put,
        got: c.got,
    });
    let flows: Vec<Flow> = flows.collect();
    let pins = hosted.placement.pins();
    let units = units_done(there, &flows, done);
    let known = units.iter().zip(&busy);
    let known: Vec<f64> = known.filter_map(|(u, busy)| Some(busy / (*u)?)).collect();
    let usual = known.iter().sum::<f64>() / known.len().max(1) as f64;
    let actors = counters.actors.iter().zip(&busy).zip(&units).enumerate();
    let actors = actors.map(|(i, ((a, busy), units))| Actor {
        name: a.name.clone(),
        time: units.map_or(usual, |units| busy / units),
        firings: units.map_or(1.0, |units| a.firings as f64 / units),
        pin: pins.get(i).copied().flatten(),
    });
    let of = |actor: usize| units[actor].unwrap_or(done);
    let channels = flows.iter().zip(&links).zip(&counters.channels);
    let channels = channels
        .filter(|((flow, _), _)| flow.from < there && flow.to < there)
        .map(|((flow, (_, _, size)), c)| Channel {
            from: flow.from,
            to: flow.to,
            elements: flow.put as f64 / of(flow.from),
            size: f64::from(*size),
            capacity: f64::from(c.capacity),
        });
    App {
        name: hosted.name.clone(),
        unit,
        priority: clamp_priority(hosted.priority),
        reserved_rate: None,
        cpus: hosted.limits.cpus,
        actors: actors.collect(),
        channels: channels.collect(),
        cost_profile: None,
    }
}

/// The application as the mapper gets it: by its counters if significant, else by its profile, else by a guess. If it
/// has just started, or has a reserved rate and no unit done yet, its counters do not tell the cost of a unit, and a
/// profile with counted units is preferred.
pub fn app_for_mapper(
    hosted: &HostedApp,
    reserved: Option<f64>,
    machine: &Machine,
    counters: &Counters,
) -> App {
    let (busy, told) = (busy(counters), counted_units(hosted, counters));
    let known = || {
        hosted
            .profile
            .as_ref()
            .is_some_and(|k| k.units_done.is_some())
    };
    let begins = busy < PROFILE_PREFERRED_NS || (reserved.is_some() && told.is_none());
    let earlier = begins && known();
    if busy >= SIGNIFICANT_NS && !earlier {
        // Without counted units, about 1 ms of work is the unit.
        let reserved_rate = reserved.filter(|_| told.is_some());
        let unit = told.unwrap_or_else(|| ("ms of work".to_string(), busy / 1e6));
        let app = pin_overrunning(app_from_counters(hosted, machine, counters, unit), counters);
        return cap_to_paced(
            hosted,
            App {
                reserved_rate,
                ..app
            },
        );
    }
    let limits = Limits {
        rate: reserved,
        ..hosted.limits
    };
    let (known, pins) = (hosted.profile.as_ref(), hosted.placement.pins());
    let network = hosted.app.network();
    let app = app_from_profile(&hosted.name, network, known, &pins, limits, hosted.priority);
    cap_to_paced(hosted, app)
}

/// An application that is paced from outside is capped at its demand times the first, and at least at the second, in
/// cores.
const PACED_CAP_FACTOR: f64 = 1.25;
const PACED_CAP_CORES_MIN: f64 = 0.02;

/// With a CPU quota of its present usage, if it is paced from outside.
pub(crate) fn cap_to_paced(hosted: &HostedApp, app: App) -> App {
    cap_usage(hosted.paced_demand(), app)
}

fn cap_usage(paced: Option<f64>, app: App) -> App {
    let takes = paced.filter(|_| app.reserved_rate.is_none());
    let takes = takes.map(|takes| (takes * PACED_CAP_FACTOR).max(PACED_CAP_CORES_MIN));
    let cpus = app.cpus.into_iter().chain(takes).reduce(f64::min);
    App { cpus, ..app }
}

/// Whether its cost is a guess: it has just started, or has done too little to predict its reserved rate, and has no
/// profile.
pub(crate) fn is_guessed(hosted: &HostedApp, reserved: Option<f64>, counters: &Counters) -> bool {
    // An application that has been nearly idle for long is assumed to stay so; one with a reserved rate must be able
    // to reach that.
    let counts = hosted.uptime_s() >= STARTUP_S && reserved.is_none();
    hosted.profile.is_none() && !counts && busy(counters) < SIGNIFICANT_NS
}

/// CPU time of all its actors, in ns.
fn busy(counters: &Counters) -> f64 {
    let busy = counters.actors.iter().map(|a| a.busy.as_nanos() as f64);
    busy.sum()
}

/// An application that has not run yet.
pub(crate) fn app_from_profile(
    name: &str,
    network: &Network,
    known: Option<&Profile>,
    pins: &[Option<u32>],
    limits: Limits,
    priority: i32,
) -> App {
    let guess = first_guess(network);
    let graph = known.map_or(&guess, |k| &k.graph);
    let told = known.and_then(|k| k.units_done.clone());
    let scale = match &told {
        Some((_, done)) => 1.0 / done,
        None => GUESSED_UNIT_NS / graph.busy.iter().sum::<f64>().max(1e-9),
    };
    let actors = graph.busy.iter().zip(network.actor_names()).enumerate();
    let actors: Vec<Actor> = actors
        .map(|(i, (busy, name))| Actor {
            name,
            time: busy * scale,
            firings: known.map_or(1.0, |k| k.firings.get(i).copied().unwrap_or(0.0) * scale),
            pin: pins.get(i).copied().flatten(),
        })
        .collect();
    let there = actors.len();
    let links = graph.links.iter().zip(network.links()).enumerate();
    let channels = links.filter(|(_, (l, _))| l.from < there && l.to < there);
    let channels = channels.map(|(i, (link, (.., size)))| match known {
        Some(known) => Channel {
            from: link.from,
            to: link.to,
            elements: link.bytes * scale / f64::from(size.max(1)),
            size: f64::from(size.max(1)),
            capacity: known.capacity.get(i).copied().unwrap_or(2.0),
        },
        None => Channel {
            from: link.from,
            to: link.to,
            elements: 1.0,
            size: link.bytes * scale,
            capacity: 2.0,
        },
    });
    let app = App {
        name: name.to_string(),
        // The possible rate is known only from a profile.
        reserved_rate: limits.rate.filter(|_| told.is_some()),
        cpus: limits.cpus,
        unit: told.map_or("times".to_string(), |(unit, _)| unit),
        priority: clamp_priority(priority),
        actors,
        channels: channels.collect(),
        cost_profile: None,
    };
    cap_usage(known.and_then(|k| k.self_paced_demand), app)
}
