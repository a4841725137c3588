// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Other processes that compute on the same cores, of which a host is told: what they take of each core is seen as long
//! as something of the host runs, and less of that is put there.
//!
//! So the process of an isolated application knows of all that has part of its cores: its host tells it who that is
//! when it has been loaded, and whenever another one comes or goes. What those do it sees itself, which costs nothing while
//! it has nothing to do. Who is stopped meanwhile is told when it goes on, of what is so then.

use super::isolated::{AllIsolated, Isolated};
use super::{Answer, Failed, Kind, Of, Refusal, Shared, read};
use crate::deadline::EVER;
use crate::lock::lock;
use axum::Json;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use utoipa::ToSchema;

/// To look at each takes some time.
const MOST: usize = 1024;

/// Processes by their numbers.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Processes {
    pub process: BTreeSet<u32>,
}

/// Of which processes this host has been told.
#[derive(Debug, Default)]
pub struct Others(Mutex<BTreeSet<u32>>);

impl Others {
    fn all(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        lock(&self.0)
    }

    /// Each with a number that no application has.
    pub(super) fn numbered(&self) -> Vec<(u64, u32)> {
        let all = self.all();
        all.iter().map(|&p| (u64::MAX - u64::from(p), p)).collect()
    }
}

/// The processes beside the host of which it has been told
#[utoipa::path(get, path = "/beside", responses((status = 200, body = Processes)))]
pub async fn told(Of(served): Shared) -> Json<Processes> {
    let process = served.isolated.others.all().clone();
    Json(Processes { process })
}

/// Tell it which processes compute on the same cores: it puts less where they take more. These and no others from then
/// on; applications of its own, isolated or not, it knows
#[utoipa::path(put, path = "/beside", request_body = Processes, responses((status = 200, body = Processes),
    (status = 400, body = Failed, description = "These are too many, or no processes")))]
pub async fn tell(Of(served): Shared, request: Request) -> Response {
    let asked: Processes = match read(request).await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    let answer: Answer<Processes> = match asked.process.len() {
        0..=MOST => {
            let mut all = served.isolated.others.all();
            *all = asked.process;
            all.remove(&std::process::id());
            let process = all.clone();
            Ok(Json(Processes { process }))
        }
        many => {
            let what = format!("{many} processes are too many: no more than {MOST} are looked at");
            Err(Refusal::new(Kind::Wrong, what).into())
        }
    };
    answer.into_response()
}

// ---- the other side ----------------------------------------------------------------------------

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
    pub(super) fn tell_beside(&self) {
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
