// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The workers of a host: what each has done, who sits there, and who has computed there lately.

use crate::app::Seen;
use crate::model::app_state::State;
use crate::ops::leases;
use crate::ops::state::Served;
use crate::protocol::{Computes, Placed, Worker};
use crate::util::lock::lock;

/// A smaller part of a core is none: a mean of what was never comes to 0.
const WORTH_TELLING: f64 = 0.0005;

pub(crate) fn workers(served: &Served, all: &[Seen]) -> Vec<Worker> {
    let runtime = served.host.runtime();
    let leases = leases::by_core();
    let mut workers: Vec<Worker> = (0..runtime.workers())
        .map(|worker| {
            let read = runtime.worker_counters(worker).unwrap_or_default();
            Worker {
                worker,
                cpu: read.cpu,
                open: read.given,
                busy: read.busy_ns as f64 / 1e9,
                asleep: read.sleep_ns as f64 / 1e9,
                lost: read.lost_ns as f64 / 1e9,
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
        // What it computed last is known for when it goes on.
        let stands = seen.state == State::Paused;
        let fibers = lock(&hosted.lately.fibers).clone();
        for (worker, share) in workers.iter_mut().zip(fibers) {
            if share >= WORTH_TELLING && !stands {
                worker.program.push(Computes {
                    application: hosted.name.clone(),
                    share,
                });
            }
        }
        let counters = hosted.app.counters().unwrap_or_default();
        let pins = hosted.seats.pins();
        let rate = lock(&hosted.lately.rate);
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
