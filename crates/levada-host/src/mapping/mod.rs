// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs the mapper for all applications together when the set of running applications has changed, on a thread with
//! low priority.

pub(crate) mod graph;
pub(crate) mod overrun;
pub mod placement_file;
pub(crate) mod profiles;
pub(crate) mod progress_units;
pub(crate) mod topology;
pub(crate) mod transfer_cost;
pub mod weights;

use crate::app::HostedApp;
use crate::app::recent::STARTUP_S;
use crate::context::HostContext;
use crate::context::message::MonitorMessage;
use crate::mapping::weights::app_for_mapper;
use levada_map::{App, Machine, Mix, Search};
use levada_sys::Counters;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// A mix of the applications that share the cores.
pub(crate) fn mix(shared: &HostContext, mut apps: Vec<App>) -> Mix {
    let open = shared.runtime.available_workers();
    // An actor pinned to a reserved core runs elsewhere until the core is returned.
    for actor in apps.iter_mut().flat_map(|app| &mut app.actors) {
        actor.pin = actor.pin.filter(|core| open.contains(core));
    }
    let all = 0..shared.machine.workers() as u32;
    let closed = all.filter(|core| !open.contains(core));
    Mix {
        apps,
        exclusive: closed.map(|core| (core, None)).collect(),
    }
}

/// Maps these applications onto the available capacity, on a low-priority thread; the result is a message to the
/// monitor. Returns whether there will be one: not if all are idle. Idle applications keep their places.
pub(crate) fn remap<'a>(
    shared: &HostContext,
    machine: Machine,
    changes: u64,
    all: impl Iterator<Item = (&'a HostedApp, &'a Counters)>,
) -> bool {
    let (mut apps, mut current) = (Vec::new(), Vec::new());
    let (mut stay, mut of_mix) = (Vec::new(), Vec::new());
    for (hosted, counters) in all {
        let seats = counters.actors.iter().map(|a| a.target);
        let first = stay.len();
        stay.extend(seats.clone());
        if hosted.is_idle() {
            continue;
        }
        of_mix.extend(first..stay.len());
        apps.push(app_for_mapper(
            hosted,
            hosted.reserved_rate(),
            &shared.machine,
            counters,
        ));
        // An application that has just started can be placed freely.
        let fired = counters.actors.iter().any(|a| a.firings > 0);
        let new = !fired && hosted.uptime_s() < STARTUP_S;
        current.extend(seats.map(|worker| (!new).then_some(worker)));
    }
    if apps.is_empty() {
        return false;
    }
    let notes = shared.message_sender();
    let mix = mix(shared, apps);
    spawn_with_nice(NICE_AFTER_CHANGE, move || {
        // If mapping fails, all stay where they are.
        let mapped = run_when_idle(move || levada_map::remap(&mix, &machine, &current));
        let mut placement = stay;
        for (actor, core) in of_mix.into_iter().zip(mapped.unwrap_or_default()) {
            placement[actor] = core;
        }
        drop(notes.send(MonitorMessage::Mapped(changes, placement)));
    })
}

/// Searches for a better placement on such a thread; the result is a message to the monitor.
pub(crate) fn search(shared: &HostContext, changes: u64, search: Search) -> bool {
    let notes = shared.message_sender();
    spawn_with_nice(NICE_OF_SEARCH, move || {
        let began = Instant::now();
        let found = run_when_idle(move || search.run());
        drop(notes.send(MonitorMessage::Found(changes, found, began.elapsed())));
    })
}

/// Nice value after a change: the thread gets about a quarter of a core on which a worker computes. Some actor may get
/// no turn until the mapping is done.
const NICE_AFTER_CHANGE: i32 = 5;
/// Nice value of a search: next to nothing, since the present placement is good.
const NICE_OF_SEARCH: i32 = 19;
/// Time that the idle scheduling class is given.
const IDLE_CLASS_TIMEOUT: Duration = Duration::from_millis(150);

/// Computes on a thread of the idle scheduling class; if that takes too long, on the calling thread. A thread of the
/// normal class that is scheduled runs until the next timer tick, whatever its nice value, and no worker has that core
/// for 4 ms. A thread of the idle class is preempted as soon as a worker wakes.
pub(crate) fn run_when_idle<T: Send + 'static>(
    compute: impl Fn() -> T + Send + Sync + 'static,
) -> T {
    let compute = Arc::new(compute);
    let there = Arc::clone(&compute);
    let (done, answer) = channel();
    let idly = move || {
        let none = libc::sched_param { sched_priority: 0 };
        // SAFETY: concerns this thread only. On failure it stays in the normal class. The scheduler applies the class
        // at the yield, since the thread may have been scheduled before a worker.
        unsafe {
            libc::sched_setscheduler(0, libc::SCHED_IDLE, &none);
            libc::sched_yield();
        }
        drop(done.send(there()));
    };
    let started = thread().spawn(idly).is_ok();
    let answer = started.then(|| answer.recv_timeout(IDLE_CLASS_TIMEOUT).ok());
    answer.flatten().unwrap_or_else(|| compute())
}

/// Computes on a thread with that nice value. False: no thread can be started.
fn spawn_with_nice(nice: i32, compute: impl FnOnce() + Send + 'static) -> bool {
    let started = thread().spawn(move || {
        // SAFETY: concerns this thread only, as on Linux.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
        compute();
    });
    started.is_ok()
}

fn thread() -> Builder {
    Builder::new().name("levada/map".to_string())
}
