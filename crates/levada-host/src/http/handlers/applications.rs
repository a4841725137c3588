// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `/applications` and `/manifest`: list, show, load and unload.

use crate::http::body::{
    Answer, SharedState, read_json, read_query, run_ending, run_on_thread, run_waiting,
};
use crate::http::path::At;
use crate::ops::inspect::details_by_name;
use crate::ops::load::{load_manifest as load_manifest_now, load_one};
use crate::ops::prepare_process::Client;
use crate::ops::state::ServerState;
use crate::ops::unload::{unload_by_name, unload_ended};
use crate::protocol::timeout::timeout_from;
use crate::protocol::{
    Application, Details, Failed, LoadRequest, Manifest, REQUEST_TIMEOUT_S, UnloadQuery, Unloaded,
};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State as Of};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// All applications
#[utoipa::path(get, path = "/applications", responses((status = 200, body = Vec<Application>)))]
pub(crate) async fn list(Of(served): SharedState) -> Answer<Vec<Application>> {
    let all = run_on_thread(&served, |served| Ok(served.applications())).await?;
    Ok(Json(all))
}

/// Load an application and start it
#[utoipa::path(post, path = "/applications", request_body = LoadRequest, responses(
    (status = 201, body = Details, description = "It runs"),
    (status = 400, body = Failed, description = "The request, or the application, is wrong"),
    (status = 404, body = Failed, description = "It has been unloaded at once"),
    (status = 409, body = Failed, description = "There is one of this name, or it has taken too long"),
    (status = 507, body = Failed, description = "It claims more than there is, or would break a reserved rate")))]
pub(crate) async fn load(Of(served): SharedState, request: Request) -> Response {
    created(&served, request, load_one).await
}

/// Load several applications and start them, all or none
#[utoipa::path(post, path = "/manifest", request_body = Manifest, responses(
    (status = 201, body = Vec<Details>, description = "All of them run"),
    (status = 400, body = Failed, description = "Something is wrong with one: none is loaded"),
    (status = 409, body = Failed, description = "There is one of such a name, or one has taken too long"),
    (status = 507, body = Failed, description = "They claim more than there is, or would break a reserved rate")))]
pub(crate) async fn load_manifest(Of(served): SharedState, request: Request) -> Response {
    created(&served, request, load_manifest_now).await
}

/// Reads a request to load, and answers with what `load` has loaded.
async fn created<Body, Loaded>(
    served: &Arc<ServerState>,
    request: Request,
    load: fn(&ServerState, Body, Option<&Client>) -> Result<Loaded, Failed>,
) -> Response
where
    Body: DeserializeOwned + Send + 'static,
    Loaded: Serialize + Send + 'static,
{
    let client = request.extensions().get::<Client>().cloned();
    let body = match read_json(request).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    match run_waiting(served, move |served| load(served, body, client.as_ref())).await {
        Ok(loaded) => (StatusCode::CREATED, Json(loaded)).into_response(),
        Err(failed) => failed.into_response(),
    }
}

/// An application with its actors and channels
#[utoipa::path(get, path = "/applications/{name}", params(("name" = String, Path)), responses(
    (status = 200, body = Details), (status = 400, body = Failed), (status = 404, body = Failed)))]
pub(crate) async fn show(Of(served): SharedState, At(name): At<String>) -> Answer<Details> {
    let show = move |served: &ServerState| details_by_name(served, &name);
    Ok(Json(run_on_thread(&served, show).await?))
}

/// Unload all applications that have ended or failed
#[utoipa::path(delete, path = "/applications", responses((status = 200, body = Vec<Unloaded>),
    (status = 507, body = Failed, description = "All are unloaded, and that cannot be saved of one of them")))]
pub(crate) async fn unload_all_ended(Of(served): SharedState) -> Answer<Vec<Unloaded>> {
    let gone = run_on_thread(&served, unload_ended).await?;
    Ok(Json(gone))
}

/// Unload an application: drain it, or end it immediately
#[utoipa::path(delete, path = "/applications/{name}", params(("name" = String, Path), UnloadQuery),
    responses((status = 200, body = Unloaded), (status = 400, body = Failed), (status = 404, body = Failed),
    (status = 409, body = Failed, description = "It is draining still, or cannot be drained"),
    (status = 507, body = Failed, description = "It is unloaded, and that cannot be saved; or too many wait")))]
pub(crate) async fn unload(
    Of(served): SharedState,
    At(name): At<String>,
    asked: Result<Query<UnloadQuery>, QueryRejection>,
) -> Answer<Unloaded> {
    let query = read_query(asked)?;
    let timeout = timeout_from(query.timeout, REQUEST_TIMEOUT_S)?;
    let unload =
        move |served: &ServerState, timeout| unload_by_name(served, name, query.now, timeout);
    let unloaded = if query.now {
        run_ending(&served, timeout, unload).await
    } else {
        run_waiting(&served, move |served| unload(served, timeout)).await
    };
    Ok(Json(unloaded?))
}
