// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The process of an isolated application knows of all that has part of its cores: its host tells it who that is (`beside`)
//! when it has been loaded, and whenever another one comes or goes. What those do it sees itself, which costs nothing while
//! it has nothing to do. Who is stopped meanwhile is told when it goes on, of what is so then.

use crate::isolated::{AllIsolated, Isolated};
use crate::protocol::Failed;
use crate::protocol::Processes;
use crate::util::deadline::EVER;
use crate::util::lock::lock;
use hyper::Method;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

/// What one isolated application's process has been told, and what it is to be told.
#[derive(Debug, Default)]
pub struct Telling(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    wanted: BTreeSet<u32>,
    told: BTreeSet<u32>,
    /// A thread tells it.
    telling: bool,
}

impl Telling {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl Isolated {
    /// It is told who computes beside it, and not waited for.
    fn is_beside(self: &Arc<Self>, processes: BTreeSet<u32>) {
        let mut state = self.telling.state();
        state.wanted = processes;
        if state.wanted == state.told || std::mem::replace(&mut state.telling, true) {
            return;
        }
        let isolated = self.clone();
        let thread = std::thread::Builder::new().name("levada/beside".to_string());
        // Without a thread it is told the next time that something changes.
        state.telling = thread.spawn(move || isolated.tell_beside()).is_ok();
    }

    /// Until it has been told what is so.
    fn tell_beside(&self) {
        loop {
            let process = {
                let mut state = self.telling.state();
                state.telling = state.wanted != state.told;
                if !state.telling {
                    return;
                }
                state.wanted.clone()
            };
            // A process answers, or ends.
            let client = self.client.clone().within(EVER);
            let body = json!(Processes {
                process: process.clone()
            });
            let told: Result<Processes, Failed> = client.call(Method::PUT, "/beside", &body);
            let mut state = self.telling.state();
            if told.is_err() {
                state.telling = false;
                return;
            }
            state.told = process;
        }
    }
}

impl AllIsolated {
    /// Tells each that has been loaded who computes beside it: this host, and the others.
    pub(crate) fn tell_beside(&self) {
        let living: Vec<Arc<Isolated>> = self.living().collect();
        let mut all: BTreeSet<u32> = living.iter().map(|i| i.process).collect();
        all.insert(std::process::id());
        for isolated in living.iter().filter(|i| i.is_loaded()) {
            let mut others = all.clone();
            others.remove(&isolated.process);
            isolated.is_beside(others);
        }
    }
}
