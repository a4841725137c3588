// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the workers of isolated applications have: who sits there, and what it takes of their cores, by what each
//! process says of its own. What they take by what the system says is another matter (`taken`).

use super::all::of_each;
use super::{AllIsolated, Isolated};
use crate::api::types::Worker;
use std::sync::Arc;
use std::time::Duration;

/// So long it may take to say what its workers have; what it said last is told instead.
const ANSWERS: Duration = Duration::from_millis(300);

impl Isolated {
    /// What each of its workers has, by what it said last.
    fn workers(&self) -> Vec<Worker> {
        let client = self.client.clone().within(ANSWERS);
        if self.lives()
            && let Ok(workers) = client.get::<Vec<Worker>>("/map")
        {
            self.known().workers = workers;
        }
        match self.lives() {
            true => self.known().workers.clone(),
            false => Vec::new(),
        }
    }

    /// Adds what its workers have to those that are on the same cores.
    pub(in crate::api) fn add_to(&self, all: &mut [Worker], own: Vec<Worker>) {
        for worker in own {
            let same = |w: &&mut Worker| (w.worker, w.cpu) == (worker.worker, worker.cpu);
            if let Some(there) = all.iter_mut().find(same) {
                there.isolated.extend(worker.actor);
                there.program.extend(worker.program);
            }
        }
    }
}

impl AllIsolated {
    /// Of each that has not ended, what its workers have: all are asked at once.
    pub(in crate::api) fn workers(&self) -> Vec<(Arc<Isolated>, Vec<Worker>)> {
        of_each(&self.list(), Isolated::workers)
    }

    /// The part of each worker's core that they take, but for one of them.
    pub(in crate::api) fn loads_but(&self, number: Option<u64>) -> Vec<f64> {
        /// Who has not been measured will want something, and who does nothing may want something later.
        const SOMETHING: f64 = 1e-3;
        const LITTLE: f64 = 1e-6;
        let mut loads = Vec::new();
        for (isolated, workers) in self.workers() {
            if Some(isolated.number) == number {
                continue;
            }
            for w in workers {
                let actors = w.actor.iter().map(|a| a.share.unwrap_or(SOMETHING));
                let all = actors.chain(w.program.iter().map(|p| p.share));
                let load: f64 = all.map(|share| share.max(LITTLE)).sum();
                let at = w.worker as usize;
                loads.resize(loads.len().max(at + 1), 0.0);
                loads[at] += load;
            }
        }
        loads
    }
}
