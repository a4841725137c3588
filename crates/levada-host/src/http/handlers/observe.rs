// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `/host`, `/map`, `/stats`, `/metrics`.

use crate::http::body::{Answer, SharedState, run_on_thread};
use crate::http::metrics as prometheus;
use crate::ops::inspect::{info, stats_with, worker_map};
use crate::ops::state::ServerState;
use crate::protocol::{Failed, HostInfo, Stats, Worker};
use axum::Json;
use axum::extract::State as Of;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// The host
#[utoipa::path(get, path = "/host", responses((status = 200, body = HostInfo)))]
pub(crate) async fn host(Of(served): SharedState) -> Json<HostInfo> {
    Json(info(&served))
}

/// The workers and the actors on each
#[utoipa::path(get, path = "/map", responses((status = 200, body = Vec<Worker>)))]
pub(crate) async fn map(Of(served): SharedState) -> Answer<Vec<Worker>> {
    let map = |served: &ServerState| Ok(worker_map(served));
    Ok(Json(run_on_thread(&served, map).await?))
}

/// Totals of workers and applications
#[utoipa::path(get, path = "/stats", responses((status = 200, body = Stats)))]
pub(crate) async fn stats(Of(served): SharedState) -> Answer<Stats> {
    let stats = run_on_thread(&served, |served| {
        Ok(stats_with(served, served.applications()))
    });
    Ok(Json(stats.await?))
}

/// All counters in the Prometheus text format
#[utoipa::path(get, path = "/metrics",
    responses((status = 200, body = String, content_type = "text/plain; version=0.0.4; charset=utf-8")))]
pub(crate) async fn metrics(Of(served): SharedState) -> Result<Response, Failed> {
    let text = run_on_thread(&served, |served| {
        let details = served.details();
        let applications = details.iter().map(|d| d.application.clone()).collect();
        Ok(prometheus::text(
            &stats_with(served, applications),
            &details,
        ))
    });
    let text = text.await?;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
