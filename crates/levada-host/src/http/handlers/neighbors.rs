// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Other processes that compute on the same cores. The host measures their CPU usage while applications
//! run, and places less on the cores that they use.

use crate::http::body::{Answer, SharedState, read_json};
use crate::model::error::{Kind, Refusal};
use crate::protocol::{Failed, Processes};
use axum::Json;
use axum::extract::{Request, State as Of};
use axum::response::{IntoResponse, Response};

/// Maximum number of processes: sampling each takes some time.
const PROCESSES_MAX: usize = 1024;

/// The neighbor processes that the host was told of
#[utoipa::path(get, path = "/neighbors", responses((status = 200, body = Processes)))]
pub async fn neighbors(Of(served): SharedState) -> Json<Processes> {
    let process = served.isolated.neighbors.all().clone();
    Json(Processes { process })
}

/// Set the list of processes that compute on the same cores: the host places less where they use more. Its own
/// applications need not be listed
#[utoipa::path(put, path = "/neighbors", request_body = Processes, responses((status = 200, body = Processes),
    (status = 400, body = Failed, description = "These are too many, or no processes")))]
pub async fn set_neighbors(Of(served): SharedState, request: Request) -> Response {
    let asked: Processes = match read_json(request).await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    let answer: Answer<Processes> = match asked.process.len() {
        0..=PROCESSES_MAX => {
            let mut all = served.isolated.neighbors.all();
            *all = asked.process;
            all.remove(&std::process::id());
            let process = all.clone();
            Ok(Json(Processes { process }))
        }
        many => {
            let what =
                format!("{many} processes are too many: no more than {PROCESSES_MAX} are observed");
            Err(Refusal::new(Kind::Wrong, what).into())
        }
    };
    answer.into_response()
}
