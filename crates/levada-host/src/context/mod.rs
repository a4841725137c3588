// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of the applications, and all that the threads of a host share.

use crate::app::profile::Measured;
use crate::app::{Hosted, Seen, State, profile};
use crate::cores::other_load::Beside;
use crate::mapping::graph::links;
use crate::model::events::{Events, What};
use crate::model::outcome::{Ended, Outcome};
use crate::monitor::Note;
use crate::util::c_stdio::Stdio;
use crate::util::lock::{lock, whole};
use levada_map::Machine;
use levada_sys::{Counters, Network, Runtime};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// So many that have ended are remembered.
const REMEMBERED: usize = 256;

#[derive(Default)]
pub(crate) struct Table {
    pub apps: BTreeMap<u64, Seen>,
    /// Who has ended, in that order.
    over: VecDeque<u64>,
    pub last: u64,
}

impl Table {
    /// The newest of that name that waits for nobody's end: those before it have ended.
    pub fn find(&self, name: &str) -> Option<&Seen> {
        let mut all = self.apps.values().rev();
        all.find(|a| a.name == name && self.before(a).is_none())
    }

    /// Those that are found by their names. A new version that waits for the end of the one before it is not among them: it has
    /// no part in anything before that.
    pub fn seen(&self) -> Vec<&Seen> {
        let mut names = HashSet::with_capacity(self.apps.len());
        let all = self.apps.values().rev();
        let found = all.filter(|a| self.before(a).is_none() && names.insert(&*a.name));
        let mut found: Vec<&Seen> = found.collect();
        found.reverse();
        found
    }

    /// The one whose end this one waits for.
    pub fn before(&self, new: &Seen) -> Option<&Seen> {
        let old = self.apps.get(&new.after?);
        old.filter(|old| old.ended.is_none())
    }

    /// The one that waits for the end of this one.
    pub fn next(&self, old: u64) -> Option<&Seen> {
        let mut all = self.apps.values();
        all.find(|a| a.after == Some(old) && a.hosted.is_some())
    }

    /// Those that were to take over from this one, and have ended.
    pub fn ended_after(&self, old: u64) -> Vec<u64> {
        let all = self.apps.values();
        let after = all.filter(|a| a.after == Some(old) && a.ended.is_some());
        after.map(|a| a.number).collect()
    }

    /// Forgets what has ended of that name, up to this number.
    pub fn forget(&mut self, name: &str, last: u64) {
        let stays = |seen: &Seen| seen.name != name || seen.ended.is_none();
        self.apps.retain(|n, seen| *n > last || stays(seen));
    }

    /// Those that wait, by whose end they wait for.
    fn waiting(&self) -> BTreeMap<u64, &Seen> {
        let all = self.apps.values();
        all.filter_map(|new| Some((self.before(new)?.number, new)))
            .collect()
    }

    /// Of too many that have ended those are forgotten that ended first.
    fn end(&mut self, ended: Ended, state: State) {
        let number = ended.number;
        let Some(seen) = self.apps.get_mut(&number) else {
            return;
        };
        seen.state = state;
        seen.hosted = None;
        seen.ended = Some(Arc::new(ended));
        self.over.push_back(number);
        let apps = &mut self.apps;
        self.over.retain(|n| apps.contains_key(n));
        while self.over.len() > REMEMBERED {
            self.over.pop_front().and_then(|n| apps.remove(&n));
        }
    }
}

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

    /// Keeps what was measured of an application that has ended, for later ones of its network. Who failed may have
    /// computed for seconds in the action that was stopped.
    pub fn keep_measured(&self, hosted: &Hosted, outcome: &Outcome, counters: &Counters) {
        let failed = matches!(outcome, Outcome::Fault(_) | Outcome::Failed(_));
        if let Some(object) = hosted.object.as_ref().filter(|_| !failed) {
            profile::save(object, &Measured::of(hosted, &self.machine, counters));
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
            let measured = Measured::of(hosted, &self.machine, &counters);
            Some(measured).filter(Measured::is_enough)
        });
        // The one that has run for longest is known best.
        let work = |m: &Measured| m.graph.busy.iter().sum::<f64>();
        measured.max_by(|a, b| work(a).total_cmp(&work(b)))
    }

    /// The application with this number is about to have ended; false: it has not yet.
    pub fn ended(&self, number: u64) -> bool {
        let hosted = self
            .table()
            .apps
            .get(&number)
            .and_then(|a| a.hosted.clone());
        let Some(hosted) = hosted else {
            return true;
        };
        let app = &hosted.app;
        app.wait(Some(Duration::from_millis(1)));
        if !app.has_ended() {
            return false;
        }
        // Who hears of the end may look for what it has printed.
        let printed = *hosted.printed.get_or_init(|| self.stdio.ask());
        if app.network().is_program() && !self.stdio.is_done(printed) {
            return false;
        }
        if !self.is_over(&hosted.name, number) {
            return false;
        }
        let outcome = Outcome::of(app, app.wait(None));
        let counters = app.counters().unwrap_or_default();
        self.keep_measured(&hosted, &outcome, &counters);
        let ended = Ended {
            number,
            seconds: hosted.seconds(),
            shapes: app.network().describe(),
            counters,
            progress: hosted.progress(),
            moves: hosted.moves(),
            outcome,
        };
        let (event, text) = match ended.outcome.is_good() {
            true => (What::Ended, ended.outcome.text()),
            false => (What::Failed, ended.outcome.text()),
        };
        let state = match event {
            What::Failed => State::Failed,
            _ => State::Ended,
        };
        // Somebody may still have it in hand, and who is told of the end may want the core.
        let own = |_: &u32| !hosted.lineage.core_passed.load(Ordering::Relaxed);
        if let Some(worker) = hosted.exclusive.filter(own) {
            let _ = self.runtime.give_core(worker);
        }
        self.table().end(ended, state);
        if hosted.lineage.heard_of.load(Ordering::Relaxed) {
            self.events.tell(event, &hosted.name, text);
        }
        self.changed.notify_all();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    /// Who runs for long and ends last is not the one that is forgotten.
    #[test]
    fn who_ended_first_is_forgotten_first() {
        let mut table = Table::default();
        let many = REMEMBERED as u64 + 3;
        for number in 1..=many {
            let seen = Seen {
                number,
                name: number.to_string(),
                class: String::new(),
                priority: 0,
                bytes: 0,
                loaded: SystemTime::now(),
                after: None,
                state: State::Running,
                hosted: None,
                ended: None,
            };
            table.apps.insert(number, seen);
        }
        for number in (2..=many).chain([1]) {
            let ended = Ended {
                number,
                outcome: Outcome::Done,
                seconds: 0.0,
                counters: Counters::default(),
                shapes: Vec::new(),
                progress: None,
                moves: 0,
            };
            table.end(ended, State::Ended);
        }
        assert_eq!(table.apps.len(), REMEMBERED);
        assert!(table.apps.contains_key(&1) && !table.apps.contains_key(&2));
    }
}
