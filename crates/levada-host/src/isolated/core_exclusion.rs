// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keeps the processes of isolated applications off reserved cores.
//!
//! Each child process has workers on all cores. The host sends it `POST /cores/N/reservation` for each reserved core,
//! and `DELETE` when the reservation ends. One thread per child, which exists only while there is a difference, sends
//! what the child does not know yet. A stopped process answers when it continues, and then receives the current
//! state.

use crate::context::HostContext;
use crate::isolated::{Isolated, IsolatedSet};
use crate::model::error::Kind;
use crate::protocol::Failed;
use crate::protocol::{CoreReservation, CoreReservationRequest};
use crate::util::deadline::TIMEOUT_MAX;
use crate::util::lock::lock;
use hyper::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// Additional time for the child's response, beyond the time for vacating the core.
const REPLY_MARGIN: Duration = Duration::from_millis(300);

/// The reserved cores as one child process knows them.
#[derive(Debug)]
pub struct CoreExclusion {
    host: Weak<HostContext>,
    state: Mutex<ExclusionState>,
}

#[derive(Debug, Default)]
struct ExclusionState {
    /// The cores that the child has vacated.
    excluded: BTreeSet<i32>,
    /// A thread is sending the difference.
    sending: bool,
    /// Callers that wait for the result of the state from then on.
    requests: Vec<ExclusionRequest>,
}

#[derive(Debug)]
struct ExclusionRequest {
    timeout: Duration,
    answer: Sender<Result<(), String>>,
}

impl CoreExclusion {
    pub(crate) fn new(of: Weak<HostContext>) -> CoreExclusion {
        CoreExclusion {
            host: of,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, ExclusionState> {
        lock(&self.state)
    }

    pub(crate) fn host(&self) -> Option<Arc<HostContext>> {
        self.host.upgrade()
    }

    /// None: the host is being dropped.
    fn reserved_cpus(&self) -> Option<BTreeSet<i32>> {
        self.host.upgrade().map(|shared| shared.reserved_cpus())
    }
}

impl Isolated {
    /// Sends the reserved cores to the child. The result arrives when the child uses none of them; it names what
    /// occupies one for longer than `timeout`.
    pub(crate) fn exclude_reserved_cores(
        self: &Arc<Self>,
        timeout: Duration,
    ) -> Receiver<Result<(), String>> {
        let (answer, answered) = mpsc::channel();
        let mut state = self.exclusion.state();
        if !state.sending
            && self
                .exclusion
                .reserved_cpus()
                .is_none_or(|c| c == state.excluded)
        {
            let _ = answer.send(Ok(()));
            return answered;
        }
        state.requests.push(ExclusionRequest { timeout, answer });
        if !std::mem::replace(&mut state.sending, true) {
            let isolated = self.clone();
            let thread = std::thread::Builder::new().name("levada/vacate".to_string());
            if thread.spawn(move || isolated.send_exclusions()).is_err() {
                // The waiting callers see that the channel is closed.
                state.sending = false;
                state.requests.clear();
            }
        }
        answered
    }

    fn send_exclusions(&self) {
        loop {
            let mut state = self.exclusion.state();
            let asked = std::mem::take(&mut state.requests);
            let Some(timeout) = asked.iter().map(|a| a.timeout).max() else {
                state.sending = false;
                return;
            };
            drop(state);
            let told = self.send_all_exclusions(timeout);
            for one in asked {
                let _ = one.answer.send(told.clone());
            }
        }
    }

    /// Sends until the child knows the current state.
    fn send_all_exclusions(&self, timeout: Duration) -> Result<(), String> {
        while let Some(closed) = self.exclusion.reserved_cpus() {
            let away = self.exclusion.state().excluded.clone();
            // First the cores that it may use again: it may have no other one.
            let (cpu, leaves) = match (away.difference(&closed).next(), closed.difference(&away)) {
                (Some(&back), _) => (back, false),
                (None, mut more) => match more.next() {
                    Some(&cpu) => (cpu, true),
                    None => break,
                },
            };
            let told = if leaves {
                self.send_exclusion(Method::POST, cpu, &json!(for_us(timeout)))
            } else {
                self.send_exclusion(Method::DELETE, cpu, &Value::Null)
            };
            match told {
                Ok(_) => {}
                // It has no worker there, or the core is not excluded.
                Err(failed) if failed.kind == Some(Kind::Unknown) => {}
                Err(_) if !self.lives() => break,
                Err(failed) => return Err(self.occupied_text(&failed)),
            }
            let away = &mut self.exclusion.state().excluded;
            if leaves {
                away.insert(cpu)
            } else {
                away.remove(&cpu)
            };
        }
        Ok(())
    }

    fn send_exclusion(
        &self,
        method: Method,
        cpu: i32,
        body: &Value,
    ) -> Result<CoreReservation, Failed> {
        // A process answers, or ends.
        let client = self.client.clone().timeout(TIMEOUT_MAX);
        let told = client.call(method, &format!("/cores/{cpu}/reservation"), body);
        told.map_err(|failed| self.explained(failed))
    }

    fn occupied_text(&self, failed: &Failed) -> String {
        format!(
            "{}, in process {}: {}",
            self.name, self.process, failed.error
        )
    }
}

/// The reservation lasts until this host ends.
fn for_us(timeout: Duration) -> CoreReservationRequest {
    CoreReservationRequest {
        process: std::process::id() as i32,
        timeout: Some(timeout.as_secs_f64()),
    }
}

impl IsolatedSet {
    /// All children vacate the reserved cores. The error names what occupies one for longer than `timeout`.
    pub(crate) fn exclude_all(&self, timeout: Duration) -> Result<(), String> {
        let all: Vec<_> = self
            .living()
            .map(|i| (i.exclude_reserved_cores(timeout), i))
            .collect();
        let until = Instant::now() + timeout + REPLY_MARGIN;
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

    /// Sends each child the reserved cores, without waiting.
    pub(crate) fn notify_excluded(&self) {
        for isolated in self.living() {
            drop(isolated.exclude_reserved_cores(Duration::ZERO));
        }
    }
}
