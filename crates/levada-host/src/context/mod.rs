// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of the applications, and all that the threads of a host share.

pub(crate) mod isolated_processes;
pub(crate) mod message;
pub(crate) mod registry;

use crate::app::Hosted;
use crate::context::isolated_processes::Beside;
use crate::context::message::Note;
use crate::context::registry::Table;
use crate::model::app_state::State;
use crate::model::events::Events;
use crate::util::c_stdio::Stdio;
use crate::util::lock::{lock, whole};
use levada_map::Machine;
use levada_sys::Runtime;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

pub(crate) struct Shared {
    pub runtime: Runtime,
    pub machine: Machine,
    pub balance: bool,
    pub events: Arc<Events>,
    pub table: Mutex<Table>,
    pub changed: Condvar,
    pub stdio: Stdio,
    pub notes: Sender<Note>,
    /// Who hears of an end before anybody else can see it.
    pub over: OnceLock<Over>,
    /// Who computes for this host elsewhere; none: nobody does.
    pub beside: OnceLock<Arc<dyn Beside>>,
    /// What others leave of each worker's core, as it was when it was seen last.
    pub left_lately: Mutex<Option<(Instant, Vec<f64>)>>,
}

/// Who shares the cores that are for all.
pub(crate) struct Sharing {
    pub hosted: Arc<Hosted>,
    /// The rate that is promised to it, or to the new version that waits for its end.
    pub promised: Option<f64>,
}

impl Sharing {
    /// Of two versions either will stay: what runs is the old one, and it is promised more or as much as the new one.
    fn of(old: &Arc<Hosted>, new: Option<&Arc<Hosted>>) -> Option<Sharing> {
        let shares = |hosted: &&Arc<Hosted>| hosted.exclusive.is_none();
        let (old, new) = (Some(old).filter(shares), new.filter(shares));
        let promised = |hosted: Option<&Arc<Hosted>>| hosted.and_then(|h| h.promised());
        let more = promised(new) > promised(old);
        // Of what counts nothing nobody knows how fast it can be.
        let counts = old.is_some_and(|old| old.counts);
        let hosted = if more && !counts { new } else { old.or(new) };
        Some(Sharing {
            hosted: hosted?.clone(),
            promised: promised(if more { new } else { old }),
        })
    }
}

/// Told the name and the number of an application; false: it cannot be told yet.
pub(crate) type Over = Box<dyn Fn(&str, u64) -> bool + Send + Sync>;

impl Shared {
    /// It has ended, and that is not known yet. False: whoever is to hear of it first is busy.
    pub fn is_over(&self, name: &str, number: u64) -> bool {
        self.over.get().is_none_or(|over| over(name, number))
    }

    pub fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// Gives it out of hand until it has changed, or that time is over.
    pub fn until_changed<'a>(
        &self,
        table: MutexGuard<'a, Table>,
        left: Duration,
    ) -> MutexGuard<'a, Table> {
        let waited = self.changed.wait_timeout(table, left);
        whole(waited).0
    }

    pub fn state(&self, number: u64) -> Option<State> {
        self.table().apps.get(&number).map(|a| a.state)
    }

    /// All that share the cores that are for all, or are about to. What is paused may go on at any time, and finds then
    /// what it was promised.
    pub fn sharing(&self) -> Vec<Sharing> {
        let table = self.table();
        let may_run = |state| {
            matches!(
                state,
                State::Running | State::Draining | State::Loaded | State::Paused
            )
        };
        let all = table.seen().into_iter().filter(|a| may_run(a.state));
        let next = table.waiting();
        let shares = all.filter_map(|old| {
            let new = next.get(&old.number).and_then(|new| new.hosted.as_ref());
            Sharing::of(old.hosted.as_ref()?, new)
        });
        shares.collect()
    }

    pub fn notes(&self) -> Sender<Note> {
        self.notes.clone()
    }

    pub fn note(&self, note: Note) {
        // Nobody listens any more: the host is going.
        let _ = self.notes.send(note);
    }

    /// How busy each worker is with what is loaded.
    pub fn loads(&self) -> Vec<f64> {
        let mut loads = vec![0.0; self.machine.workers()];
        let all: Vec<Arc<Hosted>> = {
            let table = self.table();
            let all = table.seen().into_iter();
            all.filter_map(|a| a.hosted.clone()).collect()
        };
        for hosted in all {
            let rate = lock(&hosted.lately.rate);
            // Where it was told to be: to read the counters of all would take long.
            hosted.seats.each(|i, worker| {
                // What was loaded a moment ago has not been measured: it will want something.
                let busy = rate.as_ref().and_then(|r| r.busy.get(i).copied());
                if let Some(load) = loads.get_mut(worker as usize) {
                    // And who does nothing may want something later.
                    *load += busy.unwrap_or(1e6).max(1e3);
                }
            });
        }
        loads
    }
}
