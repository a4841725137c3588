// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The workers of a host: counters, the actors on each, and the applications with fibers that ran there recently.

use crate::app::AppEntry;
use crate::model::app_state::State;
use crate::ops::leases;
use crate::ops::state::ServerState;
use crate::protocol::{Computes, Placed, Worker};
use crate::util::lock::lock;

/// A smaller fraction of a core is not reported: a mean never decays to 0.
const REPORTED_FRACTION_MIN: f64 = 0.0005;

pub(crate) fn workers(served: &ServerState, all: &[AppEntry]) -> Vec<Worker> {
    let runtime = served.host.runtime();
    let leases = leases::by_core();
    let mut workers: Vec<Worker> = (0..runtime.workers())
        .map(|worker| {
            let read = runtime.worker_counters(worker).unwrap_or_default();
            Worker {
                worker,
                cpu: read.cpu,
                available: read.available,
                busy: read.busy_ns as f64 / 1e9,
                asleep: read.sleep_ns as f64 / 1e9,
                preempted: read.preempted_ns as f64 / 1e9,
                activations: read.activations,
                sleeps: read.sleeps,
                lease: leases.get(&read.cpu).cloned(),
                actor: Vec::new(),
                isolated: Vec::new(),
                program: Vec::new(),
            }
        })
        .collect();
    for seen in all {
        let Some(hosted) = &seen.hosted else {
            continue;
        };
        // The last usage of a paused application is kept for its resume.
        let stands = seen.state == State::Paused;
        let fibers = lock(&hosted.recent.fiber_load).clone();
        for (worker, share) in workers.iter_mut().zip(fibers) {
            if share >= REPORTED_FRACTION_MIN && !stands {
                worker.program.push(Computes {
                    application: hosted.name.clone(),
                    share,
                });
            }
        }
        let counters = hosted.app.counters().unwrap_or_default();
        let pins = hosted.placement.pins();
        let rate = lock(&hosted.recent.load);
        for (i, actor) in counters.actors.into_iter().enumerate() {
            let busy = rate.as_ref().and_then(|r| r.busy.get(i));
            let share = busy.filter(|_| !stands).map(|ns| ns / 1e9);
            if let Some(worker) = workers.get_mut(actor.worker as usize) {
                worker.actor.push(Placed {
                    application: hosted.name.clone(),
                    actor: actor.name,
                    share,
                    pin: pins.get(i).copied().flatten(),
                });
            }
        }
    }
    workers
}
