// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tells the child processes of isolated applications which other processes compute on the same cores, after a load
//! and whenever one comes or goes. The child measures their usage itself. A stopped child receives the current list
//! when it continues.

use crate::isolated::{Isolated, IsolatedSet};
use crate::protocol::Failed;
use crate::protocol::Processes;
use crate::util::deadline::TIMEOUT_MAX;
use crate::util::lock::lock;
use hyper::Method;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

/// The neighbor processes that one child was told of, and those it is to be told of.
#[derive(Debug, Default)]
pub struct NeighborUpdates(Mutex<UpdateState>);

#[derive(Debug, Default)]
struct UpdateState {
    wanted: BTreeSet<u32>,
    told: BTreeSet<u32>,
    /// A thread is sending them.
    telling: bool,
}

impl NeighborUpdates {
    fn state(&self) -> MutexGuard<'_, UpdateState> {
        lock(&self.0)
    }
}

impl Isolated {
    /// Sends the list to the child, without waiting.
    fn update_neighbors(self: &Arc<Self>, processes: BTreeSet<u32>) {
        let mut state = self.neighbor_updates.state();
        state.wanted = processes;
        if state.wanted == state.told || std::mem::replace(&mut state.telling, true) {
            return;
        }
        let isolated = self.clone();
        let thread = std::thread::Builder::new().name("levada/neighbor".to_string());
        // If no thread can be started, the list is sent with the next change.
        state.telling = thread.spawn(move || isolated.notify_neighbors()).is_ok();
    }

    /// Sends until the child knows the current list.
    fn notify_neighbors(&self) {
        loop {
            let process = {
                let mut state = self.neighbor_updates.state();
                state.telling = state.wanted != state.told;
                if !state.telling {
                    return;
                }
                state.wanted.clone()
            };
            // A process answers, or ends.
            let client = self.client.clone().timeout(TIMEOUT_MAX);
            let body = json!(Processes {
                process: process.clone()
            });
            let told: Result<Processes, Failed> = client.call(Method::PUT, "/neighbors", &body);
            let mut state = self.neighbor_updates.state();
            if told.is_err() {
                state.telling = false;
                return;
            }
            state.told = process;
        }
    }
}

impl IsolatedSet {
    /// Sends each loaded child the list: this host, the other children, and the neighbors of this host.
    pub(crate) fn notify_neighbors(&self) {
        let living: Vec<Arc<Isolated>> = self.living().collect();
        let mut all: BTreeSet<u32> = living.iter().map(|i| i.process).collect();
        all.insert(std::process::id());
        for isolated in living.iter().filter(|i| i.is_loaded()) {
            let mut others = all.clone();
            others.remove(&isolated.process);
            isolated.update_neighbors(others);
        }
    }
}
