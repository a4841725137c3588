// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Actors and load per worker of isolated applications, as their processes report them. For what the kernel
//! measured, see `cpu_usage`.

use crate::isolated::set::of_each;
use crate::isolated::{Isolated, IsolatedSet};
use crate::protocol::Worker;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of the request; on timeout the last report is returned.
const REPORT_TIMEOUT: Duration = Duration::from_millis(300);

impl Isolated {
    /// The actors on each of its workers, by its last report.
    fn workers(&self) -> Vec<Worker> {
        let client = self.client.clone().timeout(REPORT_TIMEOUT);
        if self.lives()
            && !self.is_stopped()
            && let Ok(workers) = client.get::<Vec<Worker>>("/map")
        {
            self.record().workers = self.named(workers);
        }
        if self.lives() {
            self.record().workers.clone()
        } else {
            Vec::new()
        }
    }

    /// Replaces reported application names: a process reports only its own application.
    fn named(&self, mut workers: Vec<Worker>) -> Vec<Worker> {
        for worker in &mut workers {
            let actors = worker.actor.iter_mut().map(|a| &mut a.application);
            let programs = worker.program.iter_mut().map(|p| &mut p.application);
            for name in actors.chain(programs) {
                name.clone_from(&self.name);
            }
        }
        workers
    }

    /// Adds the actors on its workers to the workers of the same cores.
    pub(crate) fn add_to(&self, all: &mut [Worker], own: Vec<Worker>) {
        for worker in own {
            let same = |w: &&mut Worker| (w.worker, w.cpu) == (worker.worker, worker.cpu);
            if let Some(there) = all.iter_mut().find(same) {
                there.isolated.extend(worker.actor);
                there.program.extend(worker.program);
            }
        }
    }
}

impl IsolatedSet {
    /// The workers of each that has not ended; all are asked in parallel.
    pub(crate) fn workers(&self) -> Vec<(Arc<Isolated>, Vec<Worker>)> {
        of_each(&self.list(), Isolated::workers)
    }

    /// The load on each worker's core by all of them, except one.
    pub(crate) fn loads_except(&self, number: Option<u64>) -> Vec<f64> {
        let workers = self.host.upgrade().map_or(0, |of| of.machine.workers());
        let mut loads = vec![0.0; workers];
        for (isolated, workers) in self.workers() {
            if Some(isolated.number) == number {
                continue;
            }
            add_loads(&mut loads, &workers);
        }
        loads
    }
}

/// Adds one process's report. It may name workers that do not exist; its load on each core is at most one core.
fn add_loads(loads: &mut [f64], said: &[Worker]) {
    /// Assumed loads of an actor that has not been measured, and of an idle one.
    const UNMEASURED_LOAD: f64 = 1e-3;
    const IDLE_LOAD: f64 = 1e-6;
    let mut own = vec![0.0; loads.len()];
    for of in said {
        if let Some(load) = own.get_mut(of.worker as usize) {
            let actors = of.actor.iter().map(|a| a.share.unwrap_or(UNMEASURED_LOAD));
            let all = actors.chain(of.program.iter().map(|p| p.share));
            *load += all.map(|share| share.max(IDLE_LOAD)).sum::<f64>();
        }
    }
    for (load, own) in loads.iter_mut().zip(own) {
        *load += own.min(1.0);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::client::Client;
    use crate::isolated::core_exclusion::CoreExclusion;
    use crate::isolated::neighbor_updates::NeighborUpdates;
    use crate::isolated::{ProcessRecord, VersionSettings};
    use crate::protocol::Details;
    use serde_json::json;
    use std::sync::{Condvar, Mutex, Weak};

    pub fn isolated(name: &str) -> Isolated {
        Isolated {
            name: name.to_string(),
            number: 7,
            process: 1,
            client: Client::new(std::path::Path::new("none")),
            exclusion: CoreExclusion::new(Weak::new()),
            neighbor_updates: NeighborUpdates::default(),
            record: Mutex::new(ProcessRecord::new(
                name,
                7,
                "p.Net",
                VersionSettings::default(),
            )),
            changed: Condvar::new(),
        }
    }

    fn worker(number: u32) -> Worker {
        let said = json!({"worker": number, "cpu": 0, "available": true, "busy": 0, "asleep": 0,
            "activations": 0, "sleeps": 0,
            "actor": [{"application": "other", "actor": "a", "share": 0.25}],
            "program": [{"application": "other", "share": 0.5}]});
        serde_json::from_value(said).unwrap()
    }

    /// An untrusted process could report anything.
    #[test]
    fn what_a_process_says_is_said_of_its_own_application_and_of_workers_that_there_are() {
        let own = isolated("own");
        let mut said = Details::default();
        said.application.name = "other".to_string();
        assert_eq!(own.record_answer(said, 0).application.name, "own");
        assert_eq!(own.record().last.application.name, "own");
        let named = own.named(vec![worker(0)]);
        assert_eq!(named[0].actor[0].application, "own");
        assert_eq!(named[0].program[0].application, "own");
        let mut loads = [0.0; 2];
        add_loads(&mut loads, &[worker(1), worker(u32::MAX)]);
        assert_eq!(loads, [0.0, 0.75]);
    }

    /// Otherwise others would be placed by an impossible load, or by none.
    #[test]
    fn a_process_takes_no_more_than_each_core() {
        let takes = |share: f64| {
            let mut worker = worker(0);
            worker.program[0].share = share;
            worker
        };
        for (said, taken) in [
            (vec![takes(2000.0)], 1.0),
            (vec![takes(f64::MAX), takes(f64::MAX)], 1.0),
            (vec![takes(f64::INFINITY)], 1.0),
            (vec![takes(0.5); 2000], 1.0),
            (vec![takes(f64::NEG_INFINITY)], 0.25 + 1e-6),
            (vec![takes(f64::NAN)], 0.25 + 1e-6),
        ] {
            let mut loads = [0.5, 0.0];
            add_loads(&mut loads, &said);
            assert_eq!(loads, [0.5 + taken, 0.0], "{said:?}");
        }
    }
}
