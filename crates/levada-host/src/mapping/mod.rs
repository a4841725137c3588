// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One map of all applications when they come and go: the mapper's `remap` for what runs, by the weights that
//! were measured.

pub(crate) mod graph;
pub(crate) mod overrun;
pub mod placement_file;
pub(crate) mod profiles;
pub(crate) mod progress_units;
pub(crate) mod topology;
pub(crate) mod transfer_cost;
pub mod weights;

use crate::app::Hosted;
use crate::app::recent::BEGINS;
use crate::context::Shared;
use crate::context::message::Note;
use crate::mapping::weights::mapped;
use levada_map::{App, Machine, Mix, Search};
use levada_sys::Counters;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Of what shares the cores that are for all.
pub(crate) fn mix(shared: &Shared, mut apps: Vec<App>) -> Mix {
    let open = shared.runtime.open();
    // Who must stay on a core that is away is elsewhere until that comes back.
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

/// Maps these anew onto what others leave of the machine, on a thread of its own that lets others go first; the answer
/// is a note. Whether there will be one: not where all of them rest. Who rests stays where it is.
pub(crate) fn remap<'a>(
    shared: &Shared,
    machine: Machine,
    changes: u64,
    all: impl Iterator<Item = (&'a Hosted, &'a Counters)>,
) -> bool {
    let (mut apps, mut current) = (Vec::new(), Vec::new());
    let (mut stay, mut of_mix) = (Vec::new(), Vec::new());
    for (hosted, counters) in all {
        let seats = counters.actors.iter().map(|a| a.target);
        let first = stay.len();
        stay.extend(seats.clone());
        if hosted.rests() {
            continue;
        }
        of_mix.extend(first..stay.len());
        apps.push(mapped(hosted, hosted.promised(), &shared.machine, counters));
        // What has only just begun may as well be elsewhere.
        let fired = counters.actors.iter().any(|a| a.firings > 0);
        let new = !fired && hosted.seconds() < BEGINS;
        current.extend(seats.map(|worker| (!new).then_some(worker)));
    }
    if apps.is_empty() {
        return false;
    }
    let notes = shared.notes();
    let mix = mix(shared, apps);
    aside(CHANGED, move || {
        // What cannot be mapped stays where it is.
        let mapped = patiently(move || levada_map::remap(&mix, &machine, &current));
        let mut placement = stay;
        for (actor, core) in of_mix.into_iter().zip(mapped.unwrap_or_default()) {
            placement[actor] = core;
        }
        drop(notes.send(Note::Mapped(changes, placement)));
    })
}

/// Looks for a better placement on such a thread, too; the answer is a note.
pub(crate) fn search(shared: &Shared, changes: u64, search: Search) -> bool {
    let notes = shared.notes();
    aside(BETTER, move || {
        let began = Instant::now();
        let found = patiently(move || search.run());
        drop(notes.send(Note::Found(changes, found, began.elapsed())));
    })
}

/// With this a thread has a quarter of a core on which a worker computes, too: what has changed may leave somebody
/// without any turn until it is mapped.
const CHANGED: i32 = 5;
/// And with this next to nothing: it goes on with what is mapped well already.
const BETTER: i32 = 19;
/// So long it is tried with what is idle.
const PATIENCE: Duration = Duration::from_millis(150);

/// Computes in the idle time of the cores; where that is not enough, on the calling thread. A thread of the usual kind
/// that is let in once goes on until a tick of the system's clock, whatever its nice value: for 4 ms no
/// worker has the core then. One for idle time leaves it as soon as a worker wakes.
pub(crate) fn patiently<T: Send + 'static>(compute: impl Fn() -> T + Send + Sync + 'static) -> T {
    let compute = Arc::new(compute);
    let there = Arc::clone(&compute);
    let (done, answer) = channel();
    let idly = move || {
        let none = libc::sched_param { sched_priority: 0 };
        // SAFETY: this thread alone. Refused, it is one of the usual kind. That it is another one now is looked at when
        // it gives its core away, on which it may have been let in before a worker.
        unsafe {
            libc::sched_setscheduler(0, libc::SCHED_IDLE, &none);
            libc::sched_yield();
        }
        drop(done.send(there()));
    };
    let started = thread().spawn(idly).is_ok();
    let answer = started.then(|| answer.recv_timeout(PATIENCE).ok());
    answer.flatten().unwrap_or_else(|| compute())
}

/// Computes on a thread of its own that lets others go first. False: there is none to be had.
fn aside(nice: i32, compute: impl FnOnce() + Send + 'static) -> bool {
    let started = thread().spawn(move || {
        // SAFETY: this thread alone, as Linux has it.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
        compute();
    });
    started.is_ok()
}

fn thread() -> Builder {
    Builder::new().name("levada/map".to_string())
}
