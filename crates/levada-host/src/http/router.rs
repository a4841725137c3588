// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The routes of the HTTP interface, and its OpenAPI document, which is generated from the same types and handlers.

use crate::http::body::error_response;
use crate::http::handlers::{applications, control, events, neighbors, observe, reservations};
use crate::http::openapi as responses;
use crate::ops::state::ServerState;
use crate::protocol::Failed;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use std::sync::Arc;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Levada host",
        description = "Applications on the cores of one machine. Every error is an object with `error`, as \
                       Failed says, also those of paths that are not here (404); only what is no HTTP, or has \
                       too large a head, is answered without a body (400, 414, 431)."
    ),
    paths(
        observe::host,
        applications::list,
        applications::load,
        applications::load_manifest,
        applications::show,
        applications::unload_all_ended,
        applications::unload,
        control::pause,
        control::resume,
        control::move_actor,
        control::replace,
        control::why,
        reservations::reserve_core,
        reservations::release_core,
        neighbors::neighbors,
        neighbors::set_neighbors,
        observe::map,
        observe::stats,
        observe::metrics,
        events::events,
        openapi
    ),
    components(schemas(Failed))
)]
struct Document;

/// The OpenAPI document.
pub fn document() -> utoipa::openapi::OpenApi {
    responses::complete(Document::openapi())
}

/// This document
#[utoipa::path(get, path = "/openapi.json",
    responses((status = 200, body = Object, description = "In the form that is called OpenAPI")))]
async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(document())
}

async fn not_found(request: Request) -> Response {
    let what = format!("there is no {}: see /openapi.json", request.uri().path());
    error_response(StatusCode::NOT_FOUND, what)
}

async fn method_not_allowed(request: Request) -> Response {
    let what = format!(
        "{} cannot be used on {}",
        request.method(),
        request.uri().path()
    );
    error_response(StatusCode::METHOD_NOT_ALLOWED, what)
}

pub fn router(served: Arc<ServerState>) -> Router {
    Router::new()
        .route("/host", get(observe::host))
        .route(
            "/applications",
            get(applications::list)
                .post(applications::load)
                .delete(applications::unload_all_ended),
        )
        .route("/manifest", post(applications::load_manifest))
        .route(
            "/applications/{name}",
            get(applications::show).delete(applications::unload),
        )
        .route("/applications/{name}/pause", post(control::pause))
        .route("/applications/{name}/resume", post(control::resume))
        .route("/applications/{name}/move", post(control::move_actor))
        .route("/applications/{name}/replace", post(control::replace))
        .route("/applications/{name}/why", get(control::why))
        .route(
            "/cores/{cpu}/reservation",
            post(reservations::reserve_core).delete(reservations::release_core),
        )
        .route(
            "/neighbors",
            get(neighbors::neighbors).put(neighbors::set_neighbors),
        )
        .route("/map", get(observe::map))
        .route("/stats", get(observe::stats))
        .route("/metrics", get(observe::metrics))
        .route("/events", get(events::events))
        .route("/openapi.json", get(openapi))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(served)
}
