// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the threads of a host share: the runtime, the registry of applications, the event log, and the channel to
//! the monitor.

pub(crate) mod isolated_processes;
pub(crate) mod message;
pub(crate) mod registry;

use crate::app::HostedApp;
use crate::context::isolated_processes::IsolatedProcesses;
use crate::context::message::MonitorMessage;
use crate::context::registry::Registry;
use crate::model::app_state::State;
use crate::model::events::Events;
use crate::util::c_stdio::CStdio;
use crate::util::lock::{ignore_poison, lock};
use levada_map::Machine;
use levada_sys::Runtime;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

pub(crate) struct HostContext {
    pub runtime: Runtime,
    pub machine: Machine,
    pub balance: bool,
    pub events: Arc<Events>,
    pub registry: Mutex<Registry>,
    pub changed: Condvar,
    pub stdio: CStdio,
    pub messages: Sender<MonitorMessage>,
    /// Called for each end before it becomes visible.
    pub end_listener: OnceLock<EndListener>,
    /// The isolated applications' processes; none if there can be none.
    pub isolated: OnceLock<Arc<dyn IsolatedProcesses>>,
    /// The last measured capacity that others leave of each worker's core.
    pub recent_available: Mutex<Option<(Instant, Vec<f64>)>>,
}

/// An application that shares the cores that are not reserved.
pub(crate) struct SharingApp {
    pub hosted: Arc<HostedApp>,
    /// Its reserved rate, or that of the new version that waits for its end.
    pub reserved_rate: Option<f64>,
}

impl SharingApp {
    /// Either of two versions may remain: the old one runs, with the higher of both reservations.
    fn of(old: &Arc<HostedApp>, new: Option<&Arc<HostedApp>>) -> Option<SharingApp> {
        let shares = |hosted: &&Arc<HostedApp>| hosted.exclusive.is_none();
        let (old, new) = (Some(old).filter(shares), new.filter(shares));
        let reserved = |hosted: Option<&Arc<HostedApp>>| hosted.and_then(|h| h.reserved_rate());
        let more = reserved(new) > reserved(old);
        // Without counted units the possible rate is unknown.
        let counts = old.is_some_and(|old| old.can_count);
        let hosted = if more && !counts { new } else { old.or(new) };
        Some(SharingApp {
            hosted: hosted?.clone(),
            reserved_rate: reserved(if more { new } else { old }),
        })
    }
}

/// Called with the name and number of an application; false: busy, to be called again.
pub(crate) type EndListener = Box<dyn Fn(&str, u64) -> bool + Send + Sync>;

impl HostContext {
    /// Notifies the listener of an end; false: it is busy.
    pub fn notify_ended(&self, name: &str, number: u64) -> bool {
        self.end_listener
            .get()
            .is_none_or(|over| over(name, number))
    }

    pub fn lock_registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    /// Releases the registry's lock until the registry has changed, or the time has passed.
    pub fn wait_for_change<'a>(
        &self,
        table: MutexGuard<'a, Registry>,
        left: Duration,
    ) -> MutexGuard<'a, Registry> {
        let waited = self.changed.wait_timeout(table, left);
        ignore_poison(waited).0
    }

    pub fn state(&self, number: u64) -> Option<State> {
        self.lock_registry().apps.get(&number).map(|a| a.state)
    }

    /// All applications that share the cores or are about to. A paused one may be resumed at any time and keeps its
    /// reservation.
    pub fn apps_sharing_cores(&self) -> Vec<SharingApp> {
        let table = self.lock_registry();
        let may_run = |state| {
            matches!(
                state,
                State::Running | State::Draining | State::Loaded | State::Paused
            )
        };
        let all = table.visible().into_iter().filter(|a| may_run(a.state));
        let next = table.waiting_successors();
        let shares = all.filter_map(|old| {
            let new = next.get(&old.number).and_then(|new| new.hosted.as_ref());
            SharingApp::of(old.hosted.as_ref()?, new)
        });
        shares.collect()
    }

    pub fn message_sender(&self) -> Sender<MonitorMessage> {
        self.messages.clone()
    }

    pub fn send(&self, note: MonitorMessage) {
        // The monitor has ended: the host is being dropped.
        let _ = self.messages.send(note);
    }

    /// Load of each worker by loaded applications, in nanoseconds per second.
    pub fn loads(&self) -> Vec<f64> {
        let mut loads = vec![0.0; self.machine.workers()];
        let all: Vec<Arc<HostedApp>> = {
            let table = self.lock_registry();
            let all = table.visible().into_iter();
            all.filter_map(|a| a.hosted.clone()).collect()
        };
        for hosted in all {
            let rate = lock(&hosted.recent.load);
            // By the announced placement; reading the counters of all would take long.
            hosted.placement.for_each(|i, worker| {
                // An application loaded just now has not been measured: assume some load.
                let busy = rate.as_ref().and_then(|r| r.busy.get(i).copied());
                if let Some(load) = loads.get_mut(worker as usize) {
                    // And an idle one may become active.
                    *load += busy.unwrap_or(1e6).max(1e3);
                }
            });
        }
        loads
    }
}
