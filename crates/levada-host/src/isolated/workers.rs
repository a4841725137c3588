// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the workers of isolated applications have: who sits there, and what it takes of their cores, by what each
//! process says of its own. What they take by what the system says is another matter (`taken`).

use crate::isolated::set::of_each;
use crate::isolated::{AllIsolated, Isolated};
use crate::protocol::Worker;
use std::sync::Arc;
use std::time::Duration;

/// So long it may take to say what its workers have; what it said last is told instead.
const ANSWERS: Duration = Duration::from_millis(300);

impl Isolated {
    /// What each of its workers has, by what it said last.
    fn workers(&self) -> Vec<Worker> {
        let client = self.client.clone().within(ANSWERS);
        if self.lives()
            && !self.is_stopped()
            && let Ok(workers) = client.get::<Vec<Worker>>("/map")
        {
            self.known().workers = self.named(workers);
        }
        match self.lives() {
            true => self.known().workers.clone(),
            false => Vec::new(),
        }
    }

    /// What it says is its own, whatever name it says.
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

    /// Adds what its workers have to those that are on the same cores.
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

impl AllIsolated {
    /// Of each that has not ended, what its workers have: all are asked at once.
    pub(crate) fn workers(&self) -> Vec<(Arc<Isolated>, Vec<Worker>)> {
        of_each(&self.list(), Isolated::workers)
    }

    /// The part of each worker's core that they take, but for one of them.
    pub(crate) fn loads_but(&self, number: Option<u64>) -> Vec<f64> {
        let workers = self.of.upgrade().map_or(0, |of| of.machine.workers());
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

/// Adds what one process says: of which workers, there may be none of them, and what it takes there, which is no more than
/// all of a core, however often it names one.
fn add_loads(loads: &mut [f64], said: &[Worker]) {
    /// Who has not been measured will want something, and who does nothing may want something later.
    const SOMETHING: f64 = 1e-3;
    const LITTLE: f64 = 1e-6;
    let mut own = vec![0.0; loads.len()];
    for of in said {
        if let Some(load) = own.get_mut(of.worker as usize) {
            let actors = of.actor.iter().map(|a| a.share.unwrap_or(SOMETHING));
            let all = actors.chain(of.program.iter().map(|p| p.share));
            *load += all.map(|share| share.max(LITTLE)).sum::<f64>();
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
    use crate::isolated::core_exclusion::Leaving;
    use crate::isolated::neighbor_updates::Telling;
    use crate::isolated::{Given, Known};
    use crate::protocol::Details;
    use serde_json::json;
    use std::sync::{Condvar, Mutex, Weak};

    pub fn isolated(name: &str) -> Isolated {
        Isolated {
            name: name.to_string(),
            number: 7,
            process: 1,
            client: Client::new(std::path::Path::new("none")),
            leaving: Leaving::new(Weak::new()),
            telling: Telling::default(),
            known: Mutex::new(Known::new(name, 7, "p.Net", Given::default())),
            changed: Condvar::new(),
        }
    }

    fn worker(number: u32) -> Worker {
        let said = json!({"worker": number, "cpu": 0, "open": true, "busy": 0, "asleep": 0,
            "activations": 0, "sleeps": 0,
            "actor": [{"application": "other", "actor": "a", "share": 0.25}],
            "program": [{"application": "other", "share": 0.5}]});
        serde_json::from_value(said).unwrap()
    }

    /// A process whose code is not trusted could say anything.
    #[test]
    fn what_a_process_says_is_said_of_its_own_application_and_of_workers_that_there_are() {
        let own = isolated("own");
        let mut said = Details::default();
        said.application.name = "other".to_string();
        assert_eq!(own.seen(said, 0).application.name, "own");
        assert_eq!(own.known().last.application.name, "own");
        let named = own.named(vec![worker(0)]);
        assert_eq!(named[0].actor[0].application, "own");
        assert_eq!(named[0].program[0].application, "own");
        let mut loads = [0.0; 2];
        add_loads(&mut loads, &[worker(1), worker(u32::MAX)]);
        assert_eq!(loads, [0.0, 0.75]);
    }

    /// Others would be loaded beside more than there can be, or beside nothing.
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
