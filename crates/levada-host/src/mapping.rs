// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One map of all applications when they come and go: the mapper's `remap` for what runs, by the weights that
//! were measured.

use crate::hosted::Hosted;
use crate::table::Shared;
use crate::watch::Note;
use crate::weights::mapped;
use levada_map::{App, Mix, Search};
use levada_sys::Counters;
use std::time::Instant;

/// Of what shares the cores that are for all.
pub fn mix(shared: &Shared, mut apps: Vec<App>) -> Mix {
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

/// Maps these anew, on a thread of its own that lets others go first; the answer is a note. Whether
/// there will be one.
pub fn remap<'a>(
    shared: &Shared,
    changes: u64,
    all: impl Iterator<Item = (&'a Hosted, &'a Counters)>,
) -> bool {
    let (mut apps, mut current) = (Vec::new(), Vec::new());
    for (hosted, counters) in all {
        apps.push(mapped(hosted, &shared.machine, counters));
        let new = counters.actors.iter().all(|a| a.firings == 0);
        let seats = counters.actors.iter().map(|a| a.target);
        current.extend(seats.map(|worker| (!new).then_some(worker)));
    }
    let (machine, notes) = (shared.machine.clone(), shared.notes());
    let mix = mix(shared, apps);
    aside(CHANGED, move || {
        let stay = || current.iter().map(|c| c.unwrap_or(0)).collect();
        let placement = levada_map::remap(&mix, &machine, &current);
        // What cannot be mapped stays where it is.
        let known = current.iter().all(Option::is_some);
        match placement {
            Ok(placement) => drop(notes.send(Note::Mapped(changes, placement))),
            Err(_) if known => drop(notes.send(Note::Mapped(changes, stay()))),
            Err(_) => drop(notes.send(Note::Mapped(changes, Vec::new()))),
        }
    })
}

/// Looks for a better placement on such a thread, too; the answer is a note.
pub fn search(shared: &Shared, changes: u64, search: Search) -> bool {
    let notes = shared.notes();
    aside(BETTER, move || {
        let began = Instant::now();
        let found = search.run();
        drop(notes.send(Note::Found(changes, found, began.elapsed())));
    })
}

/// With this a thread has a quarter of a core on which a worker computes, too: what has changed may leave somebody
/// without any turn until it is mapped.
const CHANGED: i32 = 5;
/// And with this next to nothing: it goes on with what is mapped well already.
const BETTER: i32 = 19;

/// Computes on a thread of its own that lets others go first. False: there is none to be had.
fn aside(nice: i32, compute: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name("levada/map".to_string());
    let started = thread.spawn(move || {
        // SAFETY: this thread alone, as Linux has it.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
        compute();
    });
    started.is_ok()
}
