// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an application weighs: its counters as the mapper's description of it, by a unit of its own.
//!
//! Who is promised nothing, and whom a clock or its input lets go on only now and then, takes no more than it does now: it
//! is not simulated as if it went as fast as it could, or one of a high priority would leave nothing to promise.

use crate::app::Hosted;
use crate::app::profile::Measured;
use crate::app::recent::BEGINS;
use crate::mapping::graph::{first_guess, graph_between};
use crate::mapping::overrun::pinned;
use crate::mapping::progress_units::{Flow, units};
use crate::model::limits::Limits;
use levada_map::{Actor, App, Channel, Machine, clamp_priority};
use levada_sys::{Counters, Network};

/// A new application that was never measured is taken for one that needs so much for each thing done.
const GUESS: f64 = 1e5;
/// Below this its counters say less than a guess.
const ENOUGH: f64 = 2e6;
/// And so much less than what an earlier run has measured: of a turn that has just begun nobody knows yet what it takes, though
/// what is counted in it is.
const SURE: f64 = 1e8;

/// What it counts itself, such as frames, if it counts anything; as its counters, without what versions before it
/// have done.
pub fn counted(hosted: &Hosted, counters: &Counters) -> Option<(String, f64)> {
    let (unit, counted) = counters.progress.clone()?;
    let done = hosted.lineage.beyond(counted) as f64;
    (done > 0.0).then_some((unit, done))
}

/// The machine as what has these counters has found it: what a byte between cores was measured to cost, as far as its
/// actors can have taken so long.
pub fn found(hosted: &Hosted, machine: &Machine, counters: &Counters) -> Machine {
    let all = graph_between(hosted.app.network(), &Counters::default(), counters);
    all.credible(machine, &seats(counters))
}

fn seats(counters: &Counters) -> Vec<u32> {
    counters.actors.iter().map(|a| a.worker).collect()
}

/// The application that has these counters, and has done so many of these units. Who has not had anything to do
/// yet is taken for one like the others.
pub fn weighed(
    hosted: &Hosted,
    machine: &Machine,
    counters: &Counters,
    (unit, done): (String, f64),
) -> App {
    let network = hosted.app.network();
    let all = graph_between(network, &Counters::default(), counters);
    let busy = all.without_traffic(machine, &seats(counters)).busy;
    let (there, links) = (counters.actors.len(), network.links());
    let flows = links.iter().zip(&counters.channels);
    let flows = flows.map(|((from, to, _), c)| Flow {
        from: *from as usize,
        to: *to as usize,
        put: c.put,
        got: c.got,
    });
    let flows: Vec<Flow> = flows.collect();
    let pins = hosted.seats.pins();
    let units = units(there, &flows, done);
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
        promise: None,
        share: hosted.limits.share,
        actors: actors.collect(),
        channels: channels.collect(),
        cost_profile: None,
    }
}

/// The application as it is mapped beside others: by its counters where they say enough, else by what an
/// earlier run has measured, else by a guess. Where it has only just begun, or so many of its units are promised and it has not
/// done the first yet, its counters do not say what a unit takes: an earlier run that has counted some does.
pub fn mapped(
    hosted: &Hosted,
    promised: Option<f64>,
    machine: &Machine,
    counters: &Counters,
) -> App {
    let (busy, told) = (busy(counters), counted(hosted, counters));
    let known = || hosted.known.as_ref().is_some_and(|k| k.done.is_some());
    let begins = busy < SURE || (promised.is_some() && told.is_none());
    let earlier = begins && known();
    if busy >= ENOUGH && !earlier {
        // A millisecond of work, or about that, is as good a unit as any, where it counts nothing.
        let promise = promised.filter(|_| told.is_some());
        let unit = told.unwrap_or_else(|| ("ms of work".to_string(), busy / 1e6));
        let app = pinned(weighed(hosted, machine, counters, unit), counters);
        return as_paced(hosted, App { promise, ..app });
    }
    let limits = Limits {
        rate: promised,
        ..hosted.limits
    };
    let (known, pins) = (hosted.known.as_ref(), hosted.seats.pins());
    let network = hosted.app.network();
    let app = unmeasured(&hosted.name, network, known, &pins, limits, hosted.priority);
    as_paced(hosted, app)
}

/// Somewhat more than what it takes may be taken by who is paced from outside, and so much of a core at the least.
const MORE: f64 = 1.25;
const LEAST: f64 = 0.02;

/// With the share of the cores that it takes anyway, where something outside says how fast it is.
pub(crate) fn as_paced(hosted: &Hosted, app: App) -> App {
    takes_no_more(hosted.paced(), app)
}

fn takes_no_more(paced: Option<f64>, app: App) -> App {
    let takes = paced.filter(|_| app.promise.is_none());
    let takes = takes.map(|takes| (takes * MORE).max(LEAST));
    let share = app.share.into_iter().chain(takes).reduce(f64::min);
    App { share, ..app }
}

/// Whether nobody knows what it will do: it has just begun, or done too little for what it is promised to be judged by
/// that, and no earlier run of it was measured.
pub(crate) fn is_guessed(hosted: &Hosted, promised: Option<f64>, counters: &Counters) -> bool {
    // What does next to nothing for long goes on so; what is promised something has to be able to do that.
    let counts = hosted.seconds() >= BEGINS && promised.is_none();
    hosted.known.is_none() && !counts && busy(counters) < ENOUGH
}

/// Nanoseconds that all of its actors have taken.
fn busy(counters: &Counters) -> f64 {
    let busy = counters.actors.iter().map(|a| a.busy.as_nanos() as f64);
    busy.sum()
}

/// An application that has done nothing yet.
pub(crate) fn unmeasured(
    name: &str,
    network: &Network,
    known: Option<&Measured>,
    pins: &[Option<u32>],
    limits: Limits,
    priority: i32,
) -> App {
    let guess = first_guess(network);
    let graph = known.map_or(&guess, |k| &k.graph);
    let told = known.and_then(|k| k.done.clone());
    let scale = match &told {
        Some((_, done)) => 1.0 / done,
        None => GUESS / graph.busy.iter().sum::<f64>().max(1e-9),
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
        // How fast it can be is known only if it was measured.
        promise: limits.rate.filter(|_| told.is_some()),
        share: limits.share,
        unit: told.map_or("times".to_string(), |(unit, _)| unit),
        priority: clamp_priority(priority),
        actors,
        channels: channels.collect(),
        cost_profile: None,
    };
    takes_no_more(known.and_then(|k| k.paced), app)
}
