// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `/applications/{name}/...`: pause, resume, move, replace, why.

use crate::http::body::{Answer, SharedState, read_json, read_query, run_on_thread, run_waiting};
use crate::http::path::At;
use crate::ops::inspect::wait_report;
use crate::ops::move_actor::move_by_name;
use crate::ops::pause::{PauseCommand, change_by_name};
use crate::ops::prepare_process::Client;
use crate::ops::replace::replace_now;
use crate::ops::state::ServerState;
use crate::protocol::timeout::timeout_from;
use crate::protocol::{
    AnswerQuery, Application, Details, Failed, MoveRequest, REQUEST_TIMEOUT_S, ReplaceRequest,
    TimeoutQuery, Why,
};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State as Of};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;

async fn changed(
    served: Arc<ServerState>,
    name: String,
    asked: Result<Query<TimeoutQuery>, QueryRejection>,
    change: PauseCommand,
) -> Answer<Application> {
    let timeout = timeout_from(read_query(asked)?.timeout, REQUEST_TIMEOUT_S)?;
    let changed = run_waiting(&served, move |served| {
        change_by_name(served, &name, timeout, change)
    });
    Ok(Json(changed.await?))
}

/// Pause an application
#[utoipa::path(post, path = "/applications/{name}/pause", params(("name" = String, Path), TimeoutQuery), responses(
    (status = 200, body = Application), (status = 400, body = Failed),
    (status = 404, body = Failed), (status = 409, body = Failed),
    (status = 507, body = Failed, description = "It is paused, and that cannot be remembered; or too many wait")))]
pub(crate) async fn pause(
    Of(served): SharedState,
    At(name): At<String>,
    asked: Result<Query<TimeoutQuery>, QueryRejection>,
) -> Answer<Application> {
    changed(served, name, asked, PauseCommand::Pause).await
}

/// Resume a paused application, or load one that was not restored when the host started
#[utoipa::path(post, path = "/applications/{name}/resume", params(("name" = String, Path), TimeoutQuery), responses(
    (status = 200, body = Application), (status = 400, body = Failed),
    (status = 404, body = Failed), (status = 409, body = Failed),
    (status = 507, body = Failed, description = "It goes on, and that cannot be remembered; or too many wait")))]
pub(crate) async fn resume(
    Of(served): SharedState,
    At(name): At<String>,
    asked: Result<Query<TimeoutQuery>, QueryRejection>,
) -> Answer<Application> {
    changed(served, name, asked, PauseCommand::Resume).await
}

/// The timeout of a request that takes no time itself, if one is given.
fn reply_timeout(
    asked: Result<Query<AnswerQuery>, QueryRejection>,
) -> Result<Option<Duration>, Failed> {
    let timeout = read_query(asked)?.timeout;
    let timeout = timeout.map(|timeout| timeout_from(Some(timeout), timeout));
    Ok(timeout.transpose()?)
}

/// Move an actor to a worker and pin it there, or unpin it
#[utoipa::path(post, path = "/applications/{name}/move", params(("name" = String, Path), AnswerQuery),
    request_body = MoveRequest, responses((status = 200, body = Application), (status = 400, body = Failed),
    (status = 404, body = Failed), (status = 409, body = Failed),
    (status = 507, body = Failed, description = "Too many wait")))]
pub(crate) async fn move_actor(
    Of(served): SharedState,
    At(name): At<String>,
    asked: Result<Query<AnswerQuery>, QueryRejection>,
    request: Request,
) -> Response {
    let timeout = match reply_timeout(asked) {
        Ok(timeout) => timeout,
        Err(failed) => return failed.into_response(),
    };
    let request: MoveRequest = match read_json(request).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let moved = run_waiting(&served, move |served| {
        move_by_name(served, &name, &request, timeout)
    });
    moved.await.map(Json).into_response()
}

/// Replace an application by a new version, between two firings
#[utoipa::path(post, path = "/applications/{name}/replace", params(("name" = String, Path)),
    request_body = ReplaceRequest, responses((status = 200, body = Details),
    (status = 400, body = Failed, description = "The new version is wrong: the old one goes on"),
    (status = 404, body = Failed),
    (status = 409, body = Failed, description = "It cannot be replaced now: the old one goes on"),
    (status = 507, body = Failed, description = "It claims more than there is, or would break a reserved rate, or too \
        many wait: the old one goes on; or it runs, and that cannot be remembered for the next host")))]
pub(crate) async fn replace(
    Of(served): SharedState,
    At(name): At<String>,
    request: Request,
) -> Response {
    let client = request.extensions().get::<Client>().cloned();
    let request: ReplaceRequest = match read_json(request).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let replaced = run_waiting(&served, move |served| {
        replace_now(served, &name, request, client.as_ref())
    });
    replaced.await.map(Json).into_response()
}

/// The wait report of an application, as text
#[utoipa::path(get, path = "/applications/{name}/why", params(("name" = String, Path), AnswerQuery), responses(
    (status = 200, body = Why), (status = 400, body = Failed), (status = 404, body = Failed),
    (status = 409, body = Failed, description = "Its process has just ended"),
    (status = 507, body = Failed, description = "Too many wait for as long as they say")))]
pub(crate) async fn why(
    Of(served): SharedState,
    At(name): At<String>,
    asked: Result<Query<AnswerQuery>, QueryRejection>,
) -> Answer<Why> {
    let timeout = reply_timeout(asked)?;
    let why = move |served: &ServerState| wait_report(served, &name, timeout);
    let why = match timeout {
        Some(_) => run_waiting(&served, why).await,
        None => run_on_thread(&served, why).await,
    };
    Ok(Json(why?))
}
