// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `/cores/{cpu}/reservation`: a core that the host leaves to another process, such as a shield, while that process
//! lives.

use crate::http::body::{Answer, SharedState, read_json, run_on_thread, run_waiting};
use crate::http::path::At;
use crate::ops::reservations::{leave_core, take_core_back};
use crate::ops::state::ServerState;
use crate::protocol::{CoreReservation, CoreReservationRequest, Failed};
use axum::Json;
use axum::extract::{Request, State as Of};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// Reserve a core for another process: nothing of the host runs there when the response arrives
#[utoipa::path(post, path = "/cores/{cpu}/reservation", params(("cpu" = i32, Path)),
    request_body = CoreReservationRequest, responses((status = 200, body = CoreReservation),
    (status = 400, body = Failed, description = "There is no such process, or `timeout` is no time"),
    (status = 404, body = Failed, description = "No worker is on that core"),
    (status = 409, body = Failed, description = "It is reserved already, or the last one; or it stays occupied, \
        as `error` says, and nothing has changed"),
    (status = 507, body = Failed, description = "There are no more threads")))]
pub async fn reserve_core(Of(served): SharedState, At(cpu): At<i32>, request: Request) -> Response {
    let asked: CoreReservationRequest = match read_json(request).await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    let own = served.clone();
    match run_waiting(&served, move |_| leave_core(&own, cpu, &asked)).await {
        Ok(reserved) => (StatusCode::OK, Json(reserved)).into_response(),
        Err(failed) => failed.into_response(),
    }
}

/// Take back a reserved core
#[utoipa::path(delete, path = "/cores/{cpu}/reservation", params(("cpu" = i32, Path)), responses(
    (status = 200, body = CoreReservation), (status = 400, body = Failed),
    (status = 404, body = Failed, description = "No worker is on that core, or it is not reserved")))]
pub async fn release_core(Of(served): SharedState, At(cpu): At<i32>) -> Answer<CoreReservation> {
    let back = move |served: &ServerState| take_core_back(served, cpu);
    Ok(Json(run_on_thread(&served, back).await?))
}
