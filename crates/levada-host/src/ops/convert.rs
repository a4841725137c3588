// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts an entry of the registry to the JSON types.

use crate::app::AppEntry;
use crate::model::unconsumed::Unconsumed;
use crate::protocol::{Actor, Application, Channel, Details, Progress};
use levada_sys::{ActorCounters, ActorShape, ChannelCounters, Counters};
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

impl From<&AppEntry> for Application {
    fn from(seen: &AppEntry) -> Application {
        let counters = counters(seen);
        let (seconds, moves, told) = match (&seen.hosted, &seen.ended) {
            (Some(h), _) => (h.uptime_s(), h.moves(), h.progress()),
            (None, Some(e)) => (e.seconds, e.moves, e.progress.clone()),
            (None, None) => (0.0, 0, None),
        };
        let limits = seen.hosted.as_ref().map(|h| h.limits).unwrap_or_default();
        let reserved = seen.hosted.as_ref().filter(|h| h.limits.rate.is_some());
        let ended = seen.ended.as_ref();
        let unconsumed = ended.map_or_else(Unconsumed::default, |e| e.unconsumed.clone());
        let loaded = seen.loaded.duration_since(UNIX_EPOCH);
        Application {
            name: seen.name.clone(),
            number: seen.number,
            network: seen.network_class.clone(),
            state: seen.state,
            priority: seen.priority,
            loaded: loaded.map_or(0.0, |d| d.as_secs_f64()),
            seconds,
            last_report_s: None,
            // It is freed at the end.
            memory: match (&seen.hosted, &seen.ended) {
                (_, Some(_)) => 0,
                (Some(hosted), None) => hosted.app.memory(),
                (None, None) => seen.bytes,
            },
            actors: counters.actors.len(),
            firings: counters.actors.iter().map(|a| a.firings).sum(),
            busy: counters.busy().as_secs_f64(),
            moves,
            progress: told.map(Progress::from),
            reserved_rate: limits.rate,
            measured_rate: seen.hosted.as_ref().and_then(|h| h.measured_rate()),
            rate_missed: reserved.map(|h| h.is_rate_missed()),
            rate_miss_count: reserved.map(|h| h.recent.rate_miss_count.load(Ordering::Relaxed)),
            cpus: limits.cpus,
            outcome: seen.ended.as_ref().map(|e| e.outcome.text()),
            unconsumed: unconsumed.channels,
            unconsumed_omitted: unconsumed.omitted,
            isolated: None,
            exclusive: seen.hosted.as_ref().and_then(|h| h.exclusive),
        }
    }
}

/// The counters of an application, or its last ones if it has ended.
fn counters(seen: &AppEntry) -> Counters {
    match (&seen.hosted, &seen.ended) {
        (Some(hosted), _) => hosted.app.counters().unwrap_or_default(),
        (None, Some(ended)) => ended.counters.clone(),
        (None, None) => Counters::default(),
    }
}

/// The names of the actors and ports at both ends.
fn ends(shapes: &[ActorShape], c: &ChannelCounters) -> (String, String) {
    let end = |end: Option<(&str, &str)>| match end {
        None => "(the program)".to_string(),
        Some((actor, port)) => format!("{actor}.{port}"),
    };
    (end(c.producer(shapes)), end(c.consumer(shapes)))
}

impl From<&AppEntry> for Details {
    fn from(seen: &AppEntry) -> Details {
        let counters = counters(seen);
        let hosted = seen.hosted.as_ref();
        let shapes = match (hosted, &seen.ended) {
            (Some(hosted), _) => hosted.app.network().describe(),
            (None, Some(ended)) => ended.shapes.clone(),
            (None, None) => Vec::new(),
        };
        let class = |i: usize| {
            let shape = shapes.get(i);
            shape.map_or(String::new(), |s| s.class.clone())
        };
        let pins = hosted.map_or_else(Vec::new, |h| h.placement.pins());
        let actor = |(i, a): (usize, &ActorCounters)| Actor {
            name: a.name.clone(),
            class: class(i),
            worker: a.worker,
            pin: pins.get(i).copied().flatten(),
            firings: a.firings,
            activations: a.activations,
            busy: a.computed().as_secs_f64(),
            longest: a.longest.as_secs_f64(),
        };
        let channel = |c: &ChannelCounters| {
            let (from, to) = ends(&shapes, c);
            Channel {
                from,
                to,
                capacity: c.capacity,
                loaded_capacity: c.loaded_capacity,
                fill: c.fill,
                put: c.put,
                got: c.got,
                full: c.full,
                empty: c.empty,
                wakes: c.wakes,
            }
        };
        Details {
            state_reset: Vec::new(),
            application: seen.into(),
            actor: counters.actors.iter().enumerate().map(actor).collect(),
            channel: counters.channels.iter().map(channel).collect(),
            admission: None,
            diagnostics: Vec::new(),
            text: String::new(),
        }
    }
}
