// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes profiles of counters, stores them when an application ends, and finds them for later loads.

use crate::app::HostedApp;
use crate::app::profile::{self, Profile};
use crate::context::HostContext;
use crate::limits::self_paced::self_paced_demand;
use crate::mapping::graph::links;
use crate::mapping::weights::{app_from_counters, counted_units};
use crate::model::outcome::Outcome;
use levada_map::{Graph, Machine};
use levada_sys::{Counters, Network};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The profile of an application until now, per unit that has left it at its end. Work in flight is left out, so that
/// the profile does not depend on when it is stopped.
pub(crate) fn profile_of(hosted: &HostedApp, machine: &Machine, counters: &Counters) -> Profile {
    let told = counted_units(hosted, counters);
    let (unit, done) = told.clone().unwrap_or(("runs".to_string(), 1.0));
    let app = app_from_counters(hosted, machine, counters, (unit, done));
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
    Profile {
        graph: Graph {
            busy: app.actors.iter().map(|a| a.time * done).collect(),
            links: all,
            ..Graph::default()
        },
        firings: app.actors.iter().map(|a| a.firings * done).collect(),
        capacity,
        units_done: told,
        self_paced_demand: self_paced_demand(hosted),
    }
}

impl HostContext {
    /// Stores the profile of an ended application for later loads of its network. Not of a failed one, which may have
    /// computed for seconds in the action that was stopped.
    pub fn save_profile(&self, hosted: &HostedApp, outcome: &Outcome, counters: &Counters) {
        let failed = matches!(outcome, Outcome::Fault(_) | Outcome::Failed(_));
        if let Some(object) = hosted.object.as_ref().filter(|_| !failed) {
            profile::save(object, &profile_of(hosted, &self.machine, counters));
        }
    }

    /// The profile of the compiled network in this file: stored by an earlier run, or of an application that runs now.
    /// A profile with counted units is preferred.
    pub fn known_profile(&self, object: &Path, network: &Network) -> Option<Profile> {
        let links = links(network, |_| 0.0);
        let kept = profile::load(object, network.actors(), links);
        let counted = |m: &Profile| m.units_done.is_some();
        kept.clone()
            .filter(counted)
            .or_else(|| self.running_profile(object).filter(counted))
            .or(kept)
            .or_else(|| self.running_profile(object))
    }

    /// The profile of a running application of this compiled network. Of many, only those with the most CPU time at
    /// the last sample are read; otherwise each load would take longer than the one before it.
    fn running_profile(&self, object: &Path) -> Option<Profile> {
        const ASKED: usize = 8;
        let mut all: Vec<Arc<HostedApp>> = {
            let table = self.lock_registry();
            let hosted = table.apps.values().filter_map(|a| a.hosted.as_ref());
            let same = hosted.filter(|h| {
                let own = h.object.as_ref();
                own.is_some_and(|own| own.as_os_str() == object.as_os_str())
            });
            same.cloned().collect()
        };
        if all.len() > ASKED {
            let done = |h: &Arc<HostedApp>| h.recent.busy_ns.load(Ordering::Relaxed);
            all.sort_by_cached_key(|h| std::cmp::Reverse(done(h)));
            all.truncate(ASKED);
        }
        let measured = all.iter().filter_map(|hosted| {
            let counters = hosted.app.counters().ok()?;
            let measured = profile_of(hosted, &self.machine, &counters);
            Some(measured).filter(Profile::is_enough)
        });
        // The one with the most CPU time is the most significant.
        let work = |m: &Profile| m.graph.busy.iter().sum::<f64>();
        measured.max_by(|a, b| work(a).total_cmp(&work(b)))
    }
}
