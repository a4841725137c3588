// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The facade of a host: a runtime with a registry of applications.
//!
//! Any thread may call it. Long waits are done without the registry's lock, so that applications do not wait for
//! one another's control. The registry is changed by loads and unloads, and by the monitor thread (`monitor`),
//! which handles every end. The operations are `impl Host` blocks in `lifecycle`.

use crate::app::{AppEntry, HostedApp};
use crate::context::HostContext;
use crate::context::message::MonitorMessage;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::Events;
use crate::model::outcome::Outcome;
use crate::monitor;
use crate::util::c_stdio::CStdio;
use levada_map::{Machine, Scheduling};
use levada_sys::{Runtime, RuntimeOptions, Schedule};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;

/// Options of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions {
    pub runtime: RuntimeOptions,
    /// Move actors according to measurements.
    pub balance: bool,
    /// This process belongs to one isolated application.
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

/// Maximum number of names in the help of an unknown name.
const NAMES_MAX: usize = 12;

/// There is no application of this name; `names` are the existing ones.
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
    pub(crate) shared: Arc<HostContext>,
    watch: Option<JoinHandle<()>>,
    isolated: bool,
}

impl Host {
    pub fn new(options: &HostOptions) -> Result<Host, Refusal> {
        let (notes, heard) = mpsc::channel();
        let tell = notes.clone();
        let wakes = move || drop(tell.send(MonitorMessage::Awake));
        let runtime = Runtime::new(&options.runtime, wakes).map_err(|e| {
            let what = format!("the runtime cannot start: {e}");
            Refusal::new(Kind::Limit, what).help("run levada doctor")
        })?;
        let mut machine = crate::mapping::topology::machine(&runtime);
        machine.scheduling = match options.runtime.schedule {
            Schedule::EventDriven => Scheduling::EventDriven,
            Schedule::RoundRobin => Scheduling::RoundRobin,
        };
        let shared = Arc::new(HostContext {
            runtime,
            balance: options.balance && machine.workers() > 1,
            machine,
            events: Arc::default(),
            registry: Mutex::default(),
            changed: Condvar::new(),
            stdio: CStdio::new(options.isolated),
            messages: notes,
            end_listener: OnceLock::new(),
            isolated: OnceLock::new(),
            recent_available: Mutex::default(),
        });
        let watched = shared.clone();
        let watch = std::thread::Builder::new()
            .name("levada/watch".to_string())
            .spawn(move || monitor::run(&watched, &heard))
            .map_err(|e| Refusal::new(Kind::Limit, format!("a thread cannot be started: {e}")))?;
        Ok(Host {
            shared,
            watch: Some(watch),
            isolated: options.isolated,
        })
    }

    /// Whether this is the process of an isolated application.
    pub fn is_isolated(&self) -> bool {
        self.isolated
    }

    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// The cores of the workers.
    pub fn machine(&self) -> &Machine {
        &self.shared.machine
    }

    pub fn events(&self) -> &Arc<Events> {
        &self.shared.events
    }

    /// Registers a listener, once per host: it is called with the name and number of each application that has ended,
    /// before the end becomes visible. It must not block; it returns false if it is busy, and is called again.
    pub fn on_end(&self, over: impl Fn(&str, u64) -> bool + Send + Sync + 'static) {
        let _ = self.shared.end_listener.set(Box::new(over));
    }

    /// Returns whether the state has changed.
    pub(crate) fn set_state(&self, number: u64, state: State) -> bool {
        match self.shared.lock_registry().apps.get_mut(&number) {
            Some(seen) if seen.ended.is_none() => {
                std::mem::replace(&mut seen.state, state) != state
            }
            _ => false,
        }
    }

    /// Flushes standard output of the C library, if that does not block for long.
    pub fn flush(&self) {
        self.shared.stdio.flush();
    }

    /// All loaded applications, and those that have ended and have not been unloaded.
    pub fn list(&self) -> Vec<AppEntry> {
        self.shared
            .lock_registry()
            .visible()
            .into_iter()
            .map(AppEntry::snapshot)
            .collect()
    }

    /// The applications that have not ended and satisfy `is`; called with the registry locked.
    pub(crate) fn apps_where(&self, is: impl Fn(&HostedApp) -> bool) -> Vec<Arc<HostedApp>> {
        let table = self.shared.lock_registry();
        let all = table.apps.values().filter_map(|a| a.hosted.as_ref());
        all.filter(|hosted| is(hosted)).cloned().collect()
    }

    /// All entries, including new versions that wait to take over.
    pub(crate) fn all(&self) -> Vec<AppEntry> {
        self.shared
            .lock_registry()
            .apps
            .values()
            .map(AppEntry::snapshot)
            .collect()
    }

    pub fn find(&self, name: &str) -> Result<AppEntry, Refusal> {
        let table = self.shared.lock_registry();
        if let Some(seen) = table.find(name) {
            return Ok(seen.snapshot());
        }
        let mut names: Vec<String> = table.visible().iter().map(|a| a.name.clone()).collect();
        drop(table);
        let isolated = self.shared.isolated.get();
        names.extend(isolated.into_iter().flat_map(|isolated| isolated.names()));
        Err(unknown(name, names))
    }

    /// Whether an application of this name has not ended.
    pub(crate) fn is_live(&self, name: &str) -> bool {
        let table = self.shared.lock_registry();
        table.find(name).is_some_and(|a| a.hosted.is_some())
    }

    /// The application with this number, unless it waits for the end of its predecessor.
    pub(crate) fn with_number(&self, number: u64) -> Option<AppEntry> {
        let table = self.shared.lock_registry();
        let found = table.apps.get(&number);
        found
            .filter(|a| table.predecessor(a).is_none())
            .map(AppEntry::snapshot)
    }

    /// A number for an application of this name that runs elsewhere; ended ones of the name are forgotten.
    pub fn claim_number(&self, name: &str) -> u64 {
        let mut table = self.shared.lock_registry();
        table.last_number += 1;
        let last = table.last_number;
        table.forget(name, last);
        last
    }

    /// The last number that was assigned.
    pub fn last(&self) -> u64 {
        self.shared.lock_registry().last_number
    }

    /// Whether the application with this number has not ended.
    pub fn lives(&self, number: u64) -> bool {
        let table = self.shared.lock_registry();
        table.apps.get(&number).is_some_and(|a| a.ended.is_none())
    }

    /// The application of this name, if it has not ended.
    pub fn live(&self, name: &str) -> Result<Arc<HostedApp>, Refusal> {
        let seen = self.find(name)?;
        seen.hosted
            .ok_or_else(|| Refusal::new(Kind::Conflict, format!("{name} has ended")))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
        self.shared.send(MonitorMessage::Quit);
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
        // Ends that have not been handled yet.
        let all = self.all().into_iter().filter_map(|a| a.hosted);
        for hosted in all.filter(|h| h.app.has_ended()) {
            let outcome = Outcome::of(&hosted.app, hosted.app.wait(None));
            let counters = hosted.app.counters().unwrap_or_default();
            self.shared.save_profile(&hosted, &outcome, &counters);
        }
    }
}
