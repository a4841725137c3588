// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One map of all applications when they come and go: the mapper's `remap` for what runs, and its `admit`
//! for what is to be loaded, by the weights that were measured.

use crate::hosted::{Hosted, State};
use crate::keep::Limits;
use crate::measured::Measured;
use crate::refusal::{Kind, Refusal};
use crate::table::Shared;
use crate::watch::Note;
use crate::weights::{mapped, unmeasured};
use levada_map::{App, Mix, Search};
use levada_sys::{Counters, Network};
use std::sync::Arc;
use std::time::Instant;

/// Steps that are simulated for an admission.
const STEPS: usize = 30_000;

/// Of what shares the cores that are for all.
fn mix(shared: &Shared, apps: Vec<App>) -> Mix {
    let open = shared.runtime.open();
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

/// Refuses what would break a promise, with the numbers; what is promised nothing, beside others that are
/// promised nothing, costs no time here. It comes in the place of `old`.
#[expect(
    clippy::too_many_arguments,
    reason = "it is all that is known of one that is not there yet"
)]
pub fn admit(
    shared: &Shared,
    name: &str,
    network: &Network,
    known: Option<&Measured>,
    pins: &[Option<u32>],
    priority: i32,
    limits: Limits,
    old: Option<&Hosted>,
) -> Result<(), Refusal> {
    let live: Vec<Arc<Hosted>> = {
        let table = shared.table();
        let runs = |state| matches!(state, State::Running | State::Draining | State::Loaded);
        let all = table.apps.values().filter(|a| runs(a.state));
        let all = all.filter_map(|a| a.hosted.clone());
        let stays = |h: &Arc<Hosted>| old.is_none_or(|old| old.number != h.number);
        all.filter(|h| h.exclusive.is_none() && stays(h)).collect()
    };
    let promised = |l: Limits| l.rate.is_some();
    // Without a measurement nobody knows what it would do.
    if known.is_none() || !(promised(limits) || live.iter().any(|h| promised(h.limits))) {
        return Ok(());
    }
    let (mut apps, mut current) = (Vec::new(), Vec::new());
    for hosted in &live {
        let counters = hosted.app.counters().unwrap_or_default();
        apps.push(mapped(hosted, &shared.machine, &counters));
        current.extend(counters.actors.iter().map(|a| Some(a.target)));
    }
    let app = unmeasured(name, network, known, pins, limits);
    current.extend(app.actors.iter().map(|_| None));
    apps.push(App { priority, ..app });
    let admission = levada_map::admit(&mix(shared, apps), &shared.machine, &current, STEPS);
    match admission {
        Ok(admission) if !admission.fits() => {
            let what = format!("a promise would be broken: {admission}");
            Err(Refusal::new(Kind::Limit, what).help(
                "promise less with --rate, unload what is not needed, or load it with --anyway",
            ))
        }
        // What cannot be described cannot be judged.
        _ => Ok(()),
    }
}
