// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All isolated applications of a host: who there is, how one comes and goes, and how all are asked.

use crate::context::Shared;
use crate::context::isolated_processes::Beside;
use crate::host::Host;
use crate::isolated::cpu_usage::Others;
use crate::isolated::cpu_usage::Taken;
use crate::isolated::process::Starts;
use crate::isolated::supervisor::stand_by;
use crate::isolated::{GUARDED, Given, Isolated, Known, SOON};
use crate::model::error::{Kind, Refusal};
use crate::model::events::{Events, What};
use crate::protocol::{Details, Failed, Unloaded};
use crate::util::deadline::deadline;
use crate::util::lock::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// So many are asked at a time how they are.
const AT_A_TIME: usize = 64;

/// Of those that have ended so many are remembered.
const REMEMBERED: usize = 256;

/// How these are.
pub fn details_of(these: &[Arc<Isolated>]) -> impl Iterator<Item = Details> {
    let all = of_each(these, Isolated::details).into_iter();
    all.map(|(_, details)| details)
}

/// Many are asked at a time: those that do not answer hold up the answer once, not each.
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
        all => all.chunks(AT_A_TIME).flat_map(some).collect(),
    }
}

/// All that there are.
pub struct AllIsolated {
    all: Mutex<BTreeMap<u64, Arc<Isolated>>>,
    pub(crate) taken: Taken,
    /// Others that compute on the same cores.
    pub(crate) others: Others,
    /// Of this host.
    pub(crate) of: Weak<Shared>,
}

/// An isolated application whose process is to be started.
pub(crate) struct NewIsolated<'a> {
    pub name: &'a str,
    pub number: u64,
    pub network: &'a str,
    /// Its process begins there.
    pub folder: &'a Path,
    pub given: Given,
}

fn limit(what: impl std::fmt::Display) -> Failed {
    Refusal::new(Kind::Limit, what.to_string()).into()
}

impl AllIsolated {
    /// Those of a host, which they keep off the cores that are not for all there.
    pub fn of(host: &Host) -> Arc<AllIsolated> {
        let all = Arc::new(AllIsolated {
            all: Mutex::default(),
            taken: Taken::default(),
            others: Others::default(),
            of: Arc::downgrade(&host.shared),
        });
        let _ = host.shared.beside.set(all.clone());
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

    /// The newest of that name: those before it have ended.
    pub fn find(&self, name: &str) -> Option<Arc<Isolated>> {
        self.all().values().rev().find(|i| i.name == name).cloned()
    }

    pub fn live(&self, name: &str) -> Option<Arc<Isolated>> {
        self.find(name).filter(|i| i.lives())
    }

    /// What is left of an earlier one of this name is forgotten.
    pub fn forget(&self, name: &str) {
        self.all().retain(|_, i| i.name != name || i.lives());
    }

    /// Starts the process for one, in the folder of its request; nothing is loaded in it yet.
    pub(crate) fn begin(
        &self,
        new: NewIsolated,
        starts: Starts,
        events: Arc<Events>,
    ) -> Result<Arc<Isolated>, Failed> {
        let NewIsolated { name, number, .. } = new;
        let known = Known::new(name, number, new.network, new.given);
        let (sender, receiver) = mpsc::channel();
        let (of, folder) = (self.of.clone(), new.folder.to_path_buf());
        std::thread::Builder::new()
            .name("levada/isolated".to_string())
            .spawn(move || stand_by(&starts, &folder, of, known, &events, &sender))
            .map_err(|e| limit(format!("a thread cannot be started: {e}")))?;
        let begun = receiver.recv().unwrap_or_else(|e| Err(io::Error::other(e)));
        let begun =
            begun.map_err(|e| limit(format!("{name} cannot have a process of its own: {e}")))?;
        let mut all = self.all();
        all.insert(number, begun.clone());
        let over = all.values().filter(|i| !i.lives()).map(|i| i.number);
        let over: Vec<u64> = over.collect();
        for number in over.iter().rev().skip(REMEMBERED) {
            all.remove(number);
        }
        Ok(begun)
    }

    /// Of one that is not loaded after all nothing is left. Whoever has it taken away meanwhile sees to that.
    pub fn take_back(&self, isolated: &Isolated, events: &Events) {
        isolated.take_away();
        if isolated.goes() {
            return;
        }
        // Who has heard of it hears of its end first.
        let told = isolated.is_loaded();
        if told {
            isolated.until_over(GUARDED);
        }
        if self.all().remove(&isolated.number).is_some() && told {
            events.tell(What::Unloaded, &isolated.name, "");
        }
    }

    /// Takes one away, at once or when what is in flight has come out.
    pub fn unload(
        &self,
        isolated: &Isolated,
        now: bool,
        within: Duration,
        events: &Events,
    ) -> Result<Unloaded, Failed> {
        let unloaded = isolated.unload(now, within)?;
        match self.all().remove(&isolated.number) {
            Some(_) => events.tell(What::Unloaded, &isolated.name, ""),
            None => {
                let what = format!("{} has been unloaded by somebody else", isolated.name);
                return Err(Refusal::new(Kind::Unknown, what).into());
            }
        }
        Ok(unloaded)
    }

    /// Stops all; the names of those that have not ended within that time, which end all the same.
    pub fn stop_within(&self, within: Duration) -> Vec<String> {
        let all: Vec<Arc<Isolated>> = self.list();
        all.iter().for_each(|i| i.stop());
        // They have the same limit, and say themselves what lasts.
        let until = deadline(within) + SOON;
        let lasts = |i: &&Arc<Isolated>| {
            let left = until.saturating_duration_since(Instant::now());
            i.until_over(left).is_none()
        };
        let lasting: Vec<String> = all.iter().filter(lasts).map(|i| i.name.clone()).collect();
        all.iter().for_each(|i| i.take_away());
        lasting
    }
}

/// What the host has to know of them, and tells them.
impl Beside for AllIsolated {
    fn leave(&self, within: Duration) -> Result<(), String> {
        self.leave_closed(within)
    }

    fn tell(&self) {
        self.tell_closed();
        self.tell_beside();
    }

    fn loads(&self) -> Vec<f64> {
        self.loads_but(None)
    }

    fn names(&self) -> Vec<String> {
        self.all().values().map(|i| i.name.clone()).collect()
    }

    fn taken(&self, now: bool) -> BTreeMap<i32, Vec<f64>> {
        let mut all: Vec<(u64, u32)> = self.living().map(|i| (i.number, i.process)).collect();
        let ours: BTreeSet<u32> = all.iter().map(|(_, process)| *process).collect();
        let others = self.others.numbered().into_iter();
        all.extend(others.filter(|(_, process)| !ours.contains(process)));
        self.taken.by(&all, now)
    }
}
