// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Core reservation: vacates a core, for an exclusive application (the core that is cheapest to vacate) or for
//! another process (the core that it names).
//!
//! A firing is never interrupted, and a C program in a system call or a library can occupy a core for any time. So
//! each core is waited for only briefly, or as long as the request allows; for an exclusive application the next
//! core is tried then. If no core can be vacated, the error names the applications that occupy them, and nothing
//! has changed.

use crate::context::HostContext;
use crate::context::message::MonitorMessage;
use crate::model::error::{Kind, Refusal};
use levada_sys::{Runtime, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Timeout for each core in the first round, and in the second.
const VACATE_TIMEOUTS: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(1)];
/// Timeout for all of them.
const VACATE_TIMEOUT_TOTAL: Duration = Duration::from_secs(4);
/// An actor that has run for this time without a pause is assumed to occupy the core.
const OCCUPIED_TIME: Duration = Duration::from_secs(1);

/// A reserved core. Returned when it is dropped, unless it has been passed to an application.
pub struct ReservedCore {
    shared: Arc<HostContext>,
    pub worker: u32,
    passed: AtomicBool,
}

impl ReservedCore {
    pub(crate) fn pass_to(&self, app: &levada_sys::App) -> Result<(), levada_sys::Error> {
        app.transfer_core(self.worker)?;
        self.passed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for ReservedCore {
    fn drop(&mut self) {
        if !*self.passed.get_mut() {
            let _ = self.shared.runtime.release_core(self.worker);
        }
        // The application may have failed to load.
        self.shared.send(MonitorMessage::Changed);
    }
}

impl std::fmt::Debug for ReservedCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "worker {}", self.worker)
    }
}

/// Why a core could not be vacated.
enum Occupied {
    /// It is occupied, or others need it; as text.
    By(String),
    /// It is reserved already, or it is the last one.
    Taken,
}

impl HostContext {
    /// Reserves the core of `worker`: nothing of the host runs there when this returns, until
    /// [`HostContext::return_core`]. If it stays occupied for longer than `timeout`, nothing has changed.
    pub fn vacate_core(&self, worker: u32, timeout: Duration) -> Result<(), Refusal> {
        let left = self.vacate(worker, timeout);
        self.send(MonitorMessage::Changed);
        left.map_err(|kept| match kept {
            Occupied::By(reason) => {
                let what = format!("the core cannot be vacated: {reason}; nothing was changed");
                Refusal::new(Kind::Timeout, what).help("try again when that is over, or unload it")
            }
            Occupied::Taken => {
                let what = "the core is exclusive to an application, already reserved, or the only one left";
                Refusal::new(Kind::Conflict, what).help("see levada map")
            }
        })
    }

    pub fn return_core(&self, worker: u32) {
        let _ = self.runtime.release_core(worker);
        self.send(MonitorMessage::Changed);
    }

    /// The cores that are not reserved, the cheapest to vacate first.
    pub(crate) fn cheapest_to_vacate(&self, name: &str) -> Result<Vec<u32>, Refusal> {
        let (mut open, mut loads) = (self.runtime.available_workers(), self.loads());
        let isolated = self.isolated_processes().map(|isolated| isolated.loads());
        for (load, more) in loads.iter_mut().zip(isolated.into_iter().flatten()) {
            *load += more * 1e9;
        }
        if open.len() < 2 {
            let all = self.machine.workers();
            let what = format!(
                "there is no core for {name} alone: of {all} workers {} is for all",
                open.len()
            );
            return Err(Refusal::new(Kind::Limit, what)
                .help("unload an application that has an exclusive core"));
        }
        open.sort_by(|a, b| loads[*a as usize].total_cmp(&loads[*b as usize]));
        Ok(open)
    }

    /// Reserves one of these cores; nothing runs on it when this returns.
    pub(crate) fn reserve_one(
        self: &Arc<Self>,
        name: &str,
        cores: &[u32],
    ) -> Result<ReservedCore, Refusal> {
        let until = Instant::now() + VACATE_TIMEOUT_TOTAL;
        let mut kept = vec![None; cores.len()];
        for patience in VACATE_TIMEOUTS {
            for (&worker, kept) in cores.iter().zip(&mut kept) {
                let left = until.saturating_duration_since(Instant::now());
                match self.vacate(worker, patience.min(left)) {
                    Ok(()) => {
                        self.send(MonitorMessage::Changed);
                        return Ok(ReservedCore {
                            shared: self.clone(),
                            worker,
                            passed: AtomicBool::new(false),
                        });
                    }
                    Err(Occupied::By(reason)) => *kept = Some(reason),
                    Err(Occupied::Taken) => {
                        *kept = Some(format!("worker {worker} has become reserved or exclusive"));
                    }
                }
            }
        }
        // The monitor may have sampled the cores meanwhile.
        self.send(MonitorMessage::Changed);
        let kept: Vec<String> = kept.into_iter().flatten().collect();
        let what = format!(
            "no core could be emptied for {name}: {}; all is as it was",
            kept.join("; ")
        );
        Err(Refusal::new(Kind::Conflict, what)
            .help("try again when that is over, unload it, or leave out --exclusive"))
    }

    /// Nothing runs on the core when this returns; on an error nothing has changed.
    fn vacate(&self, worker: u32, timeout: Duration) -> Result<(), Occupied> {
        let runtime = &self.runtime;
        let stranded = (!is_occupied(runtime, worker)).then(|| self.would_strand(worker));
        if let Some(why) = stranded.flatten() {
            return Err(Occupied::By(why));
        }
        let taken = runtime.reserve_core_timeout(worker, timeout);
        taken.map_err(|e| match e.status {
            Status::TIMEOUT => Occupied::By(format!("worker {worker}: {}", e.why)),
            _ => Occupied::Taken,
        })?;
        // From here on no isolated application starts there.
        let left = self
            .isolated_processes()
            .map_or(Ok(()), |b| b.vacate_reserved_cores(timeout));
        left.map_err(|reason| {
            let _ = runtime.release_core(worker);
            // Some isolated applications may have left the core already.
            self.send(MonitorMessage::Changed);
            Occupied::By(format!("worker {worker}: {reason}"))
        })
    }

    /// Whether others would be left with occupied cores only, and could not run.
    fn would_strand(&self, worker: u32) -> Option<String> {
        let runtime = &self.runtime;
        let rest: Vec<u32> = runtime
            .available_workers()
            .into_iter()
            .filter(|&w| w != worker)
            .collect();
        if rest.is_empty() || !rest.iter().all(|&w| is_occupied(runtime, w)) {
            return None;
        }
        let table = self.lock_registry();
        let hosted = table.apps.values().filter_map(|a| a.hosted.as_ref());
        let sharing = hosted.filter(|h| h.exclusive.is_none()).count();
        let rest: Vec<String> = rest.iter().map(u32::to_string).collect();
        (sharing > rest.len()).then(|| {
            format!(
                "worker {worker}: without it others would wait for what runs on worker {}, which does not yield to \
                 others",
                rest.join(", ")
            )
        })
    }
}

fn is_occupied(runtime: &Runtime, worker: u32) -> bool {
    let counters = runtime.worker_counters(worker);
    counters.is_ok_and(|c| Duration::from_nanos(c.runs_ns) >= OCCUPIED_TIME)
}
