// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host: a runtime, and a table of the applications on it.
//!
//! All calls may come from any thread. What takes long (waiting for an end) is done without the table
//! in hand, so that applications do not wait for one another's control. The table is changed by who
//! loads and unloads, and by the thread that watches (`monitor`), which hears of every end. What a host
//! can be asked for is in the files `load`, `control`, `replace` and `stop`.

use crate::app::{Hosted, Seen};
use crate::context::Shared;
use crate::context::message::Note;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::Events;
use crate::model::outcome::Outcome;
use crate::monitor;
use crate::util::c_stdio::Stdio;
use levada_map::{Machine, Scheduling};
use levada_sys::{Runtime, RuntimeOptions, Schedule};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;

/// How a host is set up.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions {
    pub runtime: RuntimeOptions,
    /// Move actors when what was measured asks for it.
    pub balance: bool,
    /// The process is one application's.
    pub isolated: bool,
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions {
            runtime: RuntimeOptions::default(),
            balance: true,
            isolated: false,
        }
    }
}

/// So many names are told where another one was meant.
const NAMES_MAX: usize = 12;

/// There is no application of this name; `names`: those that there are.
fn unknown(name: &str, mut names: Vec<String>) -> Refusal {
    let what = format!("no application {name} is loaded");
    names.sort();
    names.dedup();
    let more = names.len() > NAMES_MAX;
    names.truncate(NAMES_MAX);
    Refusal::new(Kind::Unknown, what).help(match (names.is_empty(), more) {
        (true, _) => "none is".to_string(),
        (false, false) => format!("there are {}", names.join(", ")),
        (false, true) => format!("there are {} and others (levada list)", names.join(", ")),
    })
}

/// Applications in one process.
pub struct Host {
    pub(crate) shared: Arc<Shared>,
    watch: Option<JoinHandle<()>>,
    isolated: bool,
}

impl Host {
    pub fn new(options: &HostOptions) -> Result<Host, Refusal> {
        let (notes, heard) = mpsc::channel();
        let tell = notes.clone();
        let wakes = move || drop(tell.send(Note::Awake));
        let runtime = Runtime::new(&options.runtime, wakes).map_err(|e| {
            let what = format!("the runtime cannot start: {e}");
            Refusal::new(Kind::Limit, what).help("run levada doctor")
        })?;
        let mut machine = crate::mapping::topology::machine(&runtime);
        machine.scheduling = match options.runtime.schedule {
            Schedule::EventDriven => Scheduling::EventDriven,
            Schedule::RoundRobin => Scheduling::RoundRobin,
        };
        let shared = Arc::new(Shared {
            runtime,
            balance: options.balance && machine.workers() > 1,
            machine,
            events: Arc::default(),
            table: Mutex::default(),
            changed: Condvar::new(),
            stdio: Stdio::new(options.isolated),
            notes,
            over: OnceLock::new(),
            beside: OnceLock::new(),
            left_lately: Mutex::default(),
        });
        let watched = shared.clone();
        let watch = std::thread::Builder::new()
            .name("levada/watch".to_string())
            .spawn(move || monitor::watch(&watched, &heard))
            .map_err(|e| Refusal::new(Kind::Limit, format!("a thread cannot be started: {e}")))?;
        Ok(Host {
            shared,
            watch: Some(watch),
            isolated: options.isolated,
        })
    }

    /// Whether it is the process of an isolated application.
    pub fn is_isolated(&self) -> bool {
        self.isolated
    }

    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// The cores that its workers run on.
    pub fn machine(&self) -> &Machine {
        &self.shared.machine
    }

    pub fn events(&self) -> &Arc<Events> {
        &self.shared.events
    }

    /// `over` is called with the name and the number of each application that has ended, before anybody else can see
    /// that; once for a host. It does not wait, but says that it is busy (false), and is called again.
    pub fn tell_first(&self, over: impl Fn(&str, u64) -> bool + Send + Sync + 'static) {
        let _ = self.shared.over.set(Box::new(over));
    }

    /// Whether that is new.
    pub(crate) fn set_state(&self, number: u64, state: State) -> bool {
        match self.shared.table().apps.get_mut(&number) {
            Some(seen) if seen.ended.is_none() => {
                std::mem::replace(&mut seen.state, state) != state
            }
            _ => false,
        }
    }

    /// Has written what C code has printed, if that does not last.
    pub fn flush(&self) {
        self.shared.stdio.flush();
    }

    /// All that are loaded, and those that have ended and have not been unloaded.
    pub fn list(&self) -> Vec<Seen> {
        self.shared
            .table()
            .seen()
            .into_iter()
            .map(Seen::told)
            .collect()
    }

    /// Those of all that have not ended of which that is true; it is told with the table in hand.
    pub(crate) fn hosted_where(&self, is: impl Fn(&Hosted) -> bool) -> Vec<Arc<Hosted>> {
        let table = self.shared.table();
        let all = table.apps.values().filter_map(|a| a.hosted.as_ref());
        all.filter(|hosted| is(hosted)).cloned().collect()
    }

    /// These, and the new versions that wait to take over.
    pub(crate) fn all(&self) -> Vec<Seen> {
        self.shared.table().apps.values().map(Seen::told).collect()
    }

    pub fn find(&self, name: &str) -> Result<Seen, Refusal> {
        let table = self.shared.table();
        if let Some(seen) = table.find(name) {
            return Ok(seen.told());
        }
        let mut names: Vec<String> = table.seen().iter().map(|a| a.name.clone()).collect();
        drop(table);
        let beside = self.shared.beside.get();
        names.extend(beside.into_iter().flat_map(|beside| beside.names()));
        Err(unknown(name, names))
    }

    /// Whether there is one of this name that has not ended.
    pub(crate) fn is_live(&self, name: &str) -> bool {
        let table = self.shared.table();
        table.find(name).is_some_and(|a| a.hosted.is_some())
    }

    /// The application with this number, unless it waits for the end of another.
    pub(crate) fn with_number(&self, number: u64) -> Option<Seen> {
        let table = self.shared.table();
        let found = table.apps.get(&number);
        found.filter(|a| table.before(a).is_none()).map(Seen::told)
    }

    /// A number for an application of this name that somebody else holds; what has ended under it is
    /// forgotten here.
    pub fn claim(&self, name: &str) -> u64 {
        let mut table = self.shared.table();
        table.last += 1;
        let last = table.last;
        table.forget(name, last);
        last
    }

    /// The number of the last one.
    pub fn last(&self) -> u64 {
        self.shared.table().last
    }

    /// Whether the application with this number has not ended.
    pub fn lives(&self, number: u64) -> bool {
        let table = self.shared.table();
        table.apps.get(&number).is_some_and(|a| a.ended.is_none())
    }

    /// The application of this name, if it has not ended.
    pub fn live(&self, name: &str) -> Result<Arc<Hosted>, Refusal> {
        let seen = self.find(name)?;
        seen.hosted
            .ok_or_else(|| Refusal::new(Kind::Conflict, format!("{name} has ended")))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
        self.shared.note(Note::Quit);
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
        // Of whose end nobody has heard any more.
        let all = self.all().into_iter().filter_map(|a| a.hosted);
        for hosted in all.filter(|h| h.app.has_ended()) {
            let outcome = Outcome::of(&hosted.app, hosted.app.wait(None));
            let counters = hosted.app.counters().unwrap_or_default();
            self.shared.keep_measured(&hosted, &outcome, &counters);
        }
    }
}
