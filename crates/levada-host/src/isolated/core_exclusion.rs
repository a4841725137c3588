// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes of isolated applications keep off the cores that are not for all in their host: an application has
//! one to itself, or somebody else has it.
//!
//! Each process has workers on all cores. It is told in the words of the interface: `POST /cores/N/away` for its
//! host's process, and `DELETE` when the core is for all again. What it has been told, and what it is to be told, is
//! compared by one thread for each, which there is only as long as these differ: a process that is stopped answers when
//! it goes on, and is then told what is so then.

use crate::context::Shared;
use crate::isolated::{AllIsolated, Isolated};
use crate::model::error::Kind;
use crate::protocol::Failed;
use crate::protocol::{Away, AwayRequest};
use crate::util::deadline::EVER;
use crate::util::lock::lock;
use hyper::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// So much longer than what runs on a core may take to leave it, its process has for an answer.
const ANSWERS: Duration = Duration::from_millis(300);

/// What one process has been told.
#[derive(Debug)]
pub struct Leaving {
    of: Weak<Shared>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The cores that it has left.
    away: BTreeSet<i32>,
    /// A thread tells it.
    telling: bool,
    /// Who wants to know how that went, of what is so from then on.
    asked: Vec<Asked>,
}

#[derive(Debug)]
struct Asked {
    within: Duration,
    answer: Sender<Result<(), String>>,
}

impl Leaving {
    pub(crate) fn new(of: Weak<Shared>) -> Leaving {
        Leaving {
            of,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn host(&self) -> Option<Arc<Shared>> {
        self.of.upgrade()
    }

    /// None: the host is going.
    fn closed(&self) -> Option<BTreeSet<i32>> {
        self.of.upgrade().map(|shared| shared.closed())
    }
}

impl Isolated {
    /// It is told which cores it may use. The answer comes when it uses no others; it says who keeps one of them
    /// for longer than `within`.
    pub(crate) fn leave(self: &Arc<Self>, within: Duration) -> Receiver<Result<(), String>> {
        let (answer, answered) = mpsc::channel();
        let mut state = self.leaving.state();
        if !state.telling && self.leaving.closed().is_none_or(|c| c == state.away) {
            let _ = answer.send(Ok(()));
            return answered;
        }
        state.asked.push(Asked { within, answer });
        if !std::mem::replace(&mut state.telling, true) {
            let isolated = self.clone();
            let thread = std::thread::Builder::new().name("levada/leaving".to_string());
            if thread.spawn(move || isolated.tell_cores()).is_err() {
                // Whoever waits hears that nobody will answer.
                state.telling = false;
                state.asked.clear();
            }
        }
        answered
    }

    fn tell_cores(&self) {
        loop {
            let mut state = self.leaving.state();
            let asked = std::mem::take(&mut state.asked);
            let Some(within) = asked.iter().map(|a| a.within).max() else {
                state.telling = false;
                return;
            };
            drop(state);
            let told = self.tell_all_cores(within);
            for one in asked {
                let _ = one.answer.send(told.clone());
            }
        }
    }

    /// Until it has been told what is so.
    fn tell_all_cores(&self, within: Duration) -> Result<(), String> {
        while let Some(closed) = self.leaving.closed() {
            let away = self.leaving.state().away.clone();
            // First what it may use again: without that it may have no other one.
            let (cpu, leaves) = match (away.difference(&closed).next(), closed.difference(&away)) {
                (Some(&back), _) => (back, false),
                (None, mut more) => match more.next() {
                    Some(&cpu) => (cpu, true),
                    None => break,
                },
            };
            let told = match leaves {
                true => self.tell_core(Method::POST, cpu, &json!(for_us(within))),
                false => self.tell_core(Method::DELETE, cpu, &Value::Null),
            };
            match told {
                Ok(_) => {}
                // It has no worker there; or that core is not away.
                Err(failed) if failed.kind == Some(Kind::Unknown) => {}
                Err(_) if !self.lives() => break,
                Err(failed) => return Err(self.keeps(&failed)),
            }
            let away = &mut self.leaving.state().away;
            match leaves {
                true => away.insert(cpu),
                false => away.remove(&cpu),
            };
        }
        Ok(())
    }

    fn tell_core(&self, method: Method, cpu: i32, body: &Value) -> Result<Away, Failed> {
        // A process answers, or ends.
        let client = self.client.clone().within(EVER);
        let told = client.call(method, &format!("/cores/{cpu}/away"), body);
        told.map_err(|failed| self.explained(failed))
    }

    fn keeps(&self, failed: &Failed) -> String {
        format!(
            "{}, in process {}: {}",
            self.name, self.process, failed.error
        )
    }
}

/// When this host ends, so do they.
fn for_us(within: Duration) -> AwayRequest {
    AwayRequest {
        process: std::process::id() as i32,
        within: Some(within.as_secs_f64()),
    }
}

impl AllIsolated {
    /// Each leaves the cores that are not for all. Who keeps one, in words, for longer than `within`.
    pub(crate) fn leave_closed(&self, within: Duration) -> Result<(), String> {
        let all: Vec<_> = self.living().map(|i| (i.leave(within), i)).collect();
        let until = Instant::now() + within + ANSWERS;
        for (answered, isolated) in all {
            let left = until.saturating_duration_since(Instant::now());
            match answered.recv_timeout(left) {
                Ok(told) => told?,
                Err(_) if !isolated.lives() => {}
                Err(_) => {
                    let (name, process) = (&isolated.name, isolated.process);
                    return Err(format!("{name}, in process {process}, does not answer"));
                }
            }
        }
        Ok(())
    }

    /// Tells each which cores are for all, and waits for none.
    pub(crate) fn tell_closed(&self) {
        for isolated in self.living() {
            drop(isolated.leave(Duration::ZERO));
        }
    }
}
