// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A core that is emptied: for an application that is to have it to itself, the cheapest one that can be; or for
//! somebody else, the one that he names.
//!
//! Nobody is made to leave in the middle of a firing, and a C program in the system, or in a library, can be there
//! for as long as it likes. So a core is waited for for a moment only, or as long as was asked for; an application is
//! given another one then, and where all are kept, or there is no choice, it is said who does. Whoever was asked to
//! leave in vain is where he was.

use crate::context::Shared;
use crate::context::message::Note;
use crate::model::error::{Kind, Refusal};
use levada_sys::{Runtime, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// So long each core is waited for at first, and when none was left by then.
const PATIENCE: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(1)];
/// And all together.
const WITHIN: Duration = Duration::from_secs(4);
/// Who has run for so long without a pause keeps the core, as far as one can see.
const KEEPS: Duration = Duration::from_secs(1);

/// A core that nothing is on. For all again when it is dropped, unless an application has it.
pub struct Emptied {
    shared: Arc<Shared>,
    pub worker: u32,
    passed: AtomicBool,
}

impl Emptied {
    pub(crate) fn pass(&self, app: &levada_sys::App) -> Result<(), levada_sys::Error> {
        app.pass_core(self.worker)?;
        self.passed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Emptied {
    fn drop(&mut self) {
        if !*self.passed.get_mut() {
            let _ = self.shared.runtime.give_core(self.worker);
        }
        // It may have been passed in vain.
        self.shared.note(Note::Changed);
    }
}

impl std::fmt::Debug for Emptied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "worker {}", self.worker)
    }
}

/// Why a core is not empty.
enum Kept {
    /// Somebody keeps it, or others need it; in words.
    By(String),
    /// It is not for all, or nothing else is.
    Taken,
}

impl Shared {
    /// Nothing runs on the core of `worker` any more when this returns, until [`Shared::come_back`]. Where somebody
    /// keeps it for longer than `within`, all is as it was.
    pub fn leave_core(&self, worker: u32, within: Duration) -> Result<(), Refusal> {
        let left = self.empty(worker, within);
        self.note(Note::Changed);
        left.map_err(|kept| match kept {
            Kept::By(who) => {
                let what = format!("this core is kept: {who}; all is as it was");
                Refusal::new(Kind::Timeout, what).help("try again when that is over, or unload it")
            }
            Kept::Taken => {
                let what = "it is an application's already, or somebody's, or the last one";
                Refusal::new(Kind::Conflict, what).help("see levada map")
            }
        })
    }

    pub fn come_back(&self, worker: u32) {
        let _ = self.runtime.give_core(worker);
        self.note(Note::Changed);
    }

    /// The cores that are for all, the one that is cheapest to empty first.
    pub(crate) fn to_empty(&self, name: &str) -> Result<Vec<u32>, Refusal> {
        let (mut open, mut loads) = (self.runtime.open(), self.loads());
        let beside = self.beside().map(|beside| beside.loads());
        for (load, more) in loads.iter_mut().zip(beside.into_iter().flatten()) {
            *load += more * 1e9;
        }
        if open.len() < 2 {
            let all = self.machine.workers();
            let what = format!(
                "there is no core for {name} alone: of {all} workers {} is for all",
                open.len()
            );
            return Err(Refusal::new(Kind::Limit, what).help("unload what has one to itself"));
        }
        open.sort_by(|a, b| loads[*a as usize].total_cmp(&loads[*b as usize]));
        Ok(open)
    }

    /// Empties one of them; nothing is there when this returns.
    pub(crate) fn empty_one(
        self: &Arc<Self>,
        name: &str,
        cores: &[u32],
    ) -> Result<Emptied, Refusal> {
        let until = Instant::now() + WITHIN;
        let mut kept = vec![None; cores.len()];
        for patience in PATIENCE {
            for (&worker, kept) in cores.iter().zip(&mut kept) {
                let left = until.saturating_duration_since(Instant::now());
                match self.empty(worker, patience.min(left)) {
                    Ok(()) => {
                        self.note(Note::Changed);
                        return Ok(Emptied {
                            shared: self.clone(),
                            worker,
                            passed: AtomicBool::new(false),
                        });
                    }
                    Err(Kept::By(who)) => *kept = Some(who),
                    Err(Kept::Taken) => {
                        *kept = Some(format!("worker {worker} is not for all any more"));
                    }
                }
            }
        }
        // Somebody may have looked while they were asked to leave.
        self.note(Note::Changed);
        let kept: Vec<String> = kept.into_iter().flatten().collect();
        let what = format!(
            "no core could be emptied for {name}: {}; all is as it was",
            kept.join("; ")
        );
        Err(Refusal::new(Kind::Conflict, what)
            .help("try again when that is over, unload it, or leave out --exclusive"))
    }

    /// Nothing is there when this returns; on an error all is as it was.
    fn empty(&self, worker: u32, within: Duration) -> Result<(), Kept> {
        let runtime = &self.runtime;
        let stranded = (!is_kept(runtime, worker)).then(|| self.would_strand(worker));
        if let Some(why) = stranded.flatten() {
            return Err(Kept::By(why));
        }
        let taken = runtime.take_core_within(worker, within);
        taken.map_err(|e| match e.status {
            Status::TIME => Kept::By(format!("worker {worker}: {}", e.why)),
            _ => Kept::Taken,
        })?;
        // Who begins from now on does not begin there.
        let left = self.beside().map_or(Ok(()), |b| b.leave(within));
        left.map_err(|who| {
            let _ = runtime.give_core(worker);
            // Others may have left it.
            self.note(Note::Changed);
            Kept::By(format!("worker {worker}: {who}"))
        })
    }

    /// Others would have none but cores that somebody keeps, and stand still.
    fn would_strand(&self, worker: u32) -> Option<String> {
        let runtime = &self.runtime;
        let rest: Vec<u32> = runtime
            .open()
            .into_iter()
            .filter(|&w| w != worker)
            .collect();
        if rest.is_empty() || !rest.iter().all(|&w| is_kept(runtime, w)) {
            return None;
        }
        let table = self.table();
        let hosted = table.apps.values().filter_map(|a| a.hosted.as_ref());
        let sharing = hosted.filter(|h| h.exclusive.is_none()).count();
        let rest: Vec<String> = rest.iter().map(u32::to_string).collect();
        (sharing > rest.len()).then(|| {
            format!(
                "worker {worker}: without it others would wait for what runs on worker {}, which lets nobody else have \
                 its turn",
                rest.join(", ")
            )
        })
    }
}

fn is_kept(runtime: &Runtime, worker: u32) -> bool {
    let counters = runtime.worker_counters(worker);
    counters.is_ok_and(|c| Duration::from_nanos(c.runs_ns) >= KEEPS)
}
