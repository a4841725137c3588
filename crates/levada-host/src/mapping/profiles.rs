// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles of applications: made of their counters, kept when they end, and found for later ones.

use crate::app::Hosted;
use crate::app::profile::{self, Measured};
use crate::context::Shared;
use crate::limits::self_paced::own_pace;
use crate::mapping::graph::links;
use crate::mapping::weights::{counted, weighed};
use crate::model::outcome::Outcome;
use levada_map::{Graph, Machine};
use levada_sys::{Counters, Network};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What an application has done until now, for what has come out at its end: what is on its way in it is left
/// out, so that it makes no difference when it is stopped.
pub(crate) fn profile_of(hosted: &Hosted, machine: &Machine, counters: &Counters) -> Measured {
    let told = counted(hosted, counters);
    let (unit, done) = told.clone().unwrap_or(("runs".to_string(), 1.0));
    let app = weighed(hosted, machine, counters, (unit, done));
    let there = app.actors.len();
    let mut channels = app.channels.iter();
    let mut capacity = Vec::new();
    let mut all = links(hosted.app.network(), |_| 0.0);
    for link in &mut all {
        let inside = link.from < there && link.to < there;
        let channel = inside.then(|| channels.next()).flatten();
        link.bytes = channel.map_or(0.0, |c| c.elements * c.size * done);
        capacity.push(channel.map_or(0.0, |c| c.capacity));
    }
    Measured {
        graph: Graph {
            busy: app.actors.iter().map(|a| a.time * done).collect(),
            links: all,
            ..Graph::default()
        },
        firings: app.actors.iter().map(|a| a.firings * done).collect(),
        capacity,
        done: told,
        paced: own_pace(hosted),
    }
}

impl Shared {
    /// Keeps what was measured of an application that has ended, for later ones of its network. Who failed may have
    /// computed for seconds in the action that was stopped.
    pub fn keep_measured(&self, hosted: &Hosted, outcome: &Outcome, counters: &Counters) {
        let failed = matches!(outcome, Outcome::Fault(_) | Outcome::Failed(_));
        if let Some(object) = hosted.object.as_ref().filter(|_| !failed) {
            profile::save(object, &profile_of(hosted, &self.machine, counters));
        }
    }

    /// What is known of the compiled network in this file: by an earlier run, or else by one that runs now. Who has
    /// counted something says more.
    pub fn known(&self, object: &Path, network: &Network) -> Option<Measured> {
        let links = links(network, |_| 0.0);
        let kept = profile::load(object, network.actors(), links);
        let counted = |m: &Measured| m.done.is_some();
        kept.clone()
            .filter(counted)
            .or_else(|| self.running(object).filter(counted))
            .or(kept)
            .or_else(|| self.running(object))
    }

    /// What was measured until now of an application of this compiled network that runs. Of many the few that had done
    /// most when they were looked at last are asked: to ask each would make every load dearer than the one before it.
    fn running(&self, object: &Path) -> Option<Measured> {
        const ASKED: usize = 8;
        let mut all: Vec<Arc<Hosted>> = {
            let table = self.table();
            let hosted = table.apps.values().filter_map(|a| a.hosted.as_ref());
            let same = hosted.filter(|h| {
                let own = h.object.as_ref();
                own.is_some_and(|own| own.as_os_str() == object.as_os_str())
            });
            same.cloned().collect()
        };
        if all.len() > ASKED {
            let done = |h: &Arc<Hosted>| h.lately.busy_ns.load(Ordering::Relaxed);
            all.sort_by_cached_key(|h| std::cmp::Reverse(done(h)));
            all.truncate(ASKED);
        }
        let measured = all.iter().filter_map(|hosted| {
            let counters = hosted.app.counters().ok()?;
            let measured = profile_of(hosted, &self.machine, &counters);
            Some(measured).filter(Measured::is_enough)
        });
        // The one that has run for longest is known best.
        let work = |m: &Measured| m.graph.busy.iter().sum::<f64>();
        measured.max_by(|a, b| work(a).total_cmp(&work(b)))
    }
}
