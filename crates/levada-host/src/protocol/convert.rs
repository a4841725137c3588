// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers made of what the host knows of an application.

use crate::app::{Seen, State};
use crate::model::outcome::Ended;
use crate::protocol::{Actor, Application, Channel, Details, Progress, Unloaded};
use levada_sys::{ActorCounters, ActorShape, ChannelCounters, Counters};
use std::sync::atomic::Ordering;
use std::time::{Duration, UNIX_EPOCH};

fn progress((unit, done): (String, u64)) -> Progress {
    Progress { done, unit }
}

impl From<&Seen> for Application {
    fn from(seen: &Seen) -> Application {
        let counters = counters(seen);
        let (seconds, moves, told) = match (&seen.hosted, &seen.ended) {
            (Some(h), _) => (h.seconds(), h.moves(), h.progress()),
            (None, Some(e)) => (e.seconds, e.moves, e.progress.clone()),
            (None, None) => (0.0, 0, None),
        };
        let limits = seen.hosted.as_ref().map(|h| h.limits).unwrap_or_default();
        let promised = seen.hosted.as_ref().filter(|h| h.limits.rate.is_some());
        let loaded = seen.loaded.duration_since(UNIX_EPOCH);
        Application {
            name: seen.name.clone(),
            number: seen.number,
            network: seen.class.clone(),
            state: seen.state,
            priority: seen.priority,
            loaded: loaded.map_or(0.0, |d| d.as_secs_f64()),
            seconds,
            told_after: None,
            // Given back with its end.
            memory: if seen.ended.is_some() { 0 } else { seen.bytes },
            actors: counters.actors.len(),
            firings: counters.actors.iter().map(|a| a.firings).sum(),
            busy: counters.busy().as_secs_f64(),
            moves,
            progress: told.map(progress),
            promised: limits.rate,
            pace: seen.hosted.as_ref().and_then(|h| h.pace()),
            is_late: promised.map(|h| h.is_late()),
            late: promised.map(|h| h.lately.late.load(Ordering::Relaxed)),
            share: limits.share,
            outcome: seen.ended.as_ref().map(|e| e.outcome.text()),
            isolated: None,
            exclusive: seen.hosted.as_ref().and_then(|h| h.exclusive),
        }
    }
}

/// The counters of an application as they are, or as they were in the end.
pub fn counters(seen: &Seen) -> Counters {
    match (&seen.hosted, &seen.ended) {
        (Some(hosted), _) => hosted.app.counters().unwrap_or_default(),
        (None, Some(ended)) => ended.counters.clone(),
        (None, None) => Counters::default(),
    }
}

/// The names of actors and ports.
fn ends(shapes: &[ActorShape], c: &ChannelCounters) -> (String, String) {
    let end = |actor: u32, port: u32, input: bool| match shapes.get(actor as usize) {
        None => "(the program)".to_string(),
        Some(shape) => {
            let ports = if input { &shape.inputs } else { &shape.outputs };
            let port = ports.get(port as usize).cloned().unwrap_or_default();
            format!("{}.{port}", shape.name)
        }
    };
    (
        end(c.from.actor, c.from.port, false),
        end(c.to.actor, c.to.port, true),
    )
}

impl From<&Seen> for Details {
    fn from(seen: &Seen) -> Details {
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
        let pins = hosted.map_or_else(Vec::new, |h| h.seats.pins());
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
                fill: c.fill,
                put: c.put,
                got: c.got,
                full: c.full,
                empty: c.empty,
                wakes: c.wakes,
            }
        };
        Details {
            anew: Vec::new(),
            application: seen.into(),
            actor: counters.actors.iter().enumerate().map(actor).collect(),
            channel: counters.channels.iter().map(channel).collect(),
            admission: None,
            diagnostics: Vec::new(),
            text: String::new(),
        }
    }
}

impl Application {
    /// It has said nothing since it said that, so long ago. Its seconds are known all the same.
    pub(crate) fn has_been_silent(&mut self, ago: Duration) {
        if self.state != State::Loaded {
            self.told_after.get_or_insert(self.seconds);
            self.seconds += ago.as_secs_f64();
        }
    }

    /// Seconds for which its process has not answered, where it does not, and has not ended.
    pub fn silent_for(&self) -> Option<f64> {
        let after = self.told_after.filter(|_| self.outcome.is_none())?;
        Some(self.seconds - after)
    }
}

impl Unloaded {
    /// Of one that did not run any more.
    pub fn forgotten(name: String) -> Unloaded {
        Unloaded {
            name,
            outcome: "forgotten".to_string(),
            seconds: 0.0,
            told_after: None,
            firings: 0,
            progress: None,
        }
    }

    pub fn new(name: String, ended: Ended) -> Unloaded {
        Unloaded {
            name,
            outcome: ended.outcome.text(),
            seconds: ended.seconds,
            told_after: None,
            firings: ended.counters.actors.iter().map(|a| a.firings).sum(),
            progress: ended.progress.map(progress),
        }
    }
}
