// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The set of isolated applications of a host: start, find, unload, and parallel requests to all of them.

use crate::context::HostContext;
use crate::context::isolated_processes::IsolatedProcesses;
use crate::host::Host;
use crate::isolated::cpu_usage::CpuUsage;
use crate::isolated::cpu_usage::Neighbors;
use crate::isolated::process::LaunchConfig;
use crate::isolated::supervisor::supervise;
use crate::isolated::{GUARD_TIMEOUT, Isolated, ProcessRecord, REPLY_TIMEOUT, VersionSettings};
use crate::model::error::{Kind, Refusal};
use crate::model::events::{EventKind, Events};
use crate::protocol::{Details, Failed, Unloaded};
use crate::util::deadline::deadline;
use crate::util::lock::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// Maximum number of processes that are asked in parallel.
const PARALLEL_REQUESTS_MAX: usize = 64;

/// Number of ended applications that are kept.
const ENDED_MAX: usize = 256;

/// The status of each.
pub fn details_of(these: &[Arc<Isolated>]) -> impl Iterator<Item = Details> {
    let all = of_each(these, Isolated::details).into_iter();
    all.map(|(_, details)| details)
}

/// Asks many in parallel, so that those that do not answer cost one timeout together.
pub(crate) fn of_each<T: Send>(
    all: &[Arc<Isolated>],
    ask: fn(&Isolated) -> T,
) -> Vec<(Arc<Isolated>, T)> {
    let some = |some: &[Arc<Isolated>]| -> Vec<(Arc<Isolated>, T)> {
        std::thread::scope(|scope| {
            let asked = some.iter().map(|i| (i, scope.spawn(move || ask(i))));
            let asked: Vec<_> = asked.collect();
            let said = asked.into_iter();
            said.filter_map(|(i, a)| Some((i.clone(), a.join().ok()?)))
                .collect()
        })
    };
    match all {
        [one] => vec![(one.clone(), ask(one))],
        all => all.chunks(PARALLEL_REQUESTS_MAX).flat_map(some).collect(),
    }
}

/// The isolated applications of a host.
pub struct IsolatedSet {
    all: Mutex<BTreeMap<u64, Arc<Isolated>>>,
    pub(crate) cpu_usage: CpuUsage,
    /// Other processes that compute on the same cores.
    pub(crate) neighbors: Neighbors,
    /// The host that they belong to.
    pub(crate) host: Weak<HostContext>,
}

/// An isolated application with a process that is to be started.
pub(crate) struct NewIsolated<'a> {
    pub name: &'a str,
    pub number: u64,
    pub network: &'a str,
    /// Working directory of its process.
    pub folder: &'a Path,
    pub settings: VersionSettings,
}

fn limit(what: impl std::fmt::Display) -> Failed {
    Refusal::new(Kind::Limit, what.to_string()).into()
}

impl IsolatedSet {
    /// Creates the set of a host, and registers it there.
    pub fn of(host: &Host) -> Arc<IsolatedSet> {
        let all = Arc::new(IsolatedSet {
            all: Mutex::default(),
            cpu_usage: CpuUsage::default(),
            neighbors: Neighbors::default(),
            host: Arc::downgrade(&host.shared),
        });
        let _ = host.shared.isolated.set(all.clone());
        all
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Isolated>>> {
        lock(&self.all)
    }

    pub fn list(&self) -> Vec<Arc<Isolated>> {
        self.all().values().cloned().collect()
    }

    pub(crate) fn living(&self) -> impl Iterator<Item = Arc<Isolated>> {
        self.list().into_iter().filter(|i| i.lives())
    }

    /// The newest of that name; earlier ones have ended.
    pub fn find(&self, name: &str) -> Option<Arc<Isolated>> {
        self.all().values().rev().find(|i| i.name == name).cloned()
    }

    pub fn live(&self, name: &str) -> Option<Arc<Isolated>> {
        self.find(name).filter(|i| i.lives())
    }

    /// Forgets ended applications of this name.
    pub fn forget(&self, name: &str) {
        self.all().retain(|_, i| i.name != name || i.lives());
    }

    /// Starts the process of an application; nothing is loaded in it yet.
    pub(crate) fn begin(
        &self,
        new: NewIsolated,
        starts: LaunchConfig,
        events: Arc<Events>,
    ) -> Result<Arc<Isolated>, Failed> {
        let NewIsolated { name, number, .. } = new;
        let known = ProcessRecord::new(name, number, new.network, new.settings);
        let (sender, receiver) = mpsc::channel();
        let (of, folder) = (self.host.clone(), new.folder.to_path_buf());
        std::thread::Builder::new()
            .name("levada/isolated".to_string())
            .spawn(move || supervise(&starts, &folder, of, known, &events, &sender))
            .map_err(|e| limit(format!("a thread cannot be started: {e}")))?;
        let begun = receiver.recv().unwrap_or_else(|e| Err(io::Error::other(e)));
        let begun =
            begun.map_err(|e| limit(format!("{name} cannot have a process of its own: {e}")))?;
        let mut all = self.all();
        all.insert(number, begun.clone());
        let over = all.values().filter(|i| !i.lives()).map(|i| i.number);
        let over: Vec<u64> = over.collect();
        for number in over.iter().rev().skip(ENDED_MAX) {
            all.remove(number);
        }
        Ok(begun)
    }

    /// Removes an application after a failed load, unless it is being unloaded already.
    pub fn discard(&self, isolated: &Isolated, events: &Events) {
        isolated.kill_unloaded();
        if isolated.is_unloading() {
            return;
        }
        // Its end is announced before its unload.
        let told = isolated.is_loaded();
        if told {
            isolated.wait_over(GUARD_TIMEOUT);
        }
        if self.all().remove(&isolated.number).is_some() && told {
            events.emit(EventKind::Unloaded, &isolated.name, "");
        }
    }

    /// Unloads an application, immediately or by draining.
    pub fn unload(
        &self,
        isolated: &Isolated,
        now: bool,
        timeout: Duration,
        events: &Events,
    ) -> Result<Unloaded, Failed> {
        let unloaded = isolated.unload(now, timeout)?;
        match self.all().remove(&isolated.number) {
            Some(_) => events.emit(EventKind::Unloaded, &isolated.name, ""),
            None => {
                let what = format!("{} has been unloaded by another request", isolated.name);
                return Err(Refusal::new(Kind::Unknown, what).into());
            }
        }
        Ok(unloaded)
    }

    /// Stops all. Returns the names of those that have not ended within that time; they are killed.
    pub fn stop_timeout(&self, timeout: Duration) -> Vec<String> {
        let all: Vec<Arc<Isolated>> = self.list();
        all.iter().for_each(|i| i.stop());
        // They have the same timeout, and report what still runs.
        let until = deadline(timeout) + REPLY_TIMEOUT;
        let lasts = |i: &&Arc<Isolated>| {
            let left = until.saturating_duration_since(Instant::now());
            i.wait_over(left).is_none()
        };
        let lasting: Vec<String> = all.iter().filter(lasts).map(|i| i.name.clone()).collect();
        all.iter().for_each(|i| i.kill_unloaded());
        lasting
    }
}

/// The interface for the lower folders.
impl IsolatedProcesses for IsolatedSet {
    fn vacate_reserved_cores(&self, timeout: Duration) -> Result<(), String> {
        self.exclude_all(timeout)
    }

    fn notify_cores_and_neighbors(&self) {
        self.notify_excluded();
        self.notify_neighbors();
    }

    fn loads(&self) -> Vec<f64> {
        self.loads_except(None)
    }

    fn names(&self) -> Vec<String> {
        self.all().values().map(|i| i.name.clone()).collect()
    }

    fn cpu_usage(&self, now: bool) -> BTreeMap<i32, Vec<f64>> {
        let mut all: Vec<(u64, u32)> = self.living().map(|i| (i.number, i.process)).collect();
        let ours: BTreeSet<u32> = all.iter().map(|(_, process)| *process).collect();
        let others = self.neighbors.numbered().into_iter();
        all.extend(others.filter(|(_, process)| !ours.contains(process)));
        self.cpu_usage.by(&all, now)
    }
}
