// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading requests and writing responses: bodies, query strings, error responses, and threads for requests that
//! may block.

use crate::model::error::{Kind, Refusal};
use crate::ops::state::ServerState;
use crate::protocol::lenient::Named;
use crate::protocol::{Failed, read_error};
use axum::Json;
use axum::body::HttpBody;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State as Of};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Maximum size of a request body, in bytes.
pub const LARGEST_REQUEST: usize = 1 << 20;
/// Timeout for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) type SharedState = Of<Arc<ServerState>>;
pub(crate) type Answer<T> = Result<Json<T>, Failed>;

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = self.kind.and_then(Kind::http_status);
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self)).into_response()
    }
}

pub(crate) fn error_response(status: StatusCode, what: impl Into<String>) -> Response {
    let failed = Failed {
        error: what.into(),
        kind: Some(Kind::of_http_status(status.as_u16())),
        ..Failed::default()
    };
    (status, Json(failed)).into_response()
}

/// Value of Retry-After, in seconds.
pub(crate) const RETRY_AFTER_S: &str = "2";

/// 503 Service Unavailable.
pub(crate) fn unavailable(what: String, help: &str) -> Response {
    let failed = Failed {
        error: what,
        help: Some(help.to_string()),
        kind: Some(Kind::Busy),
        ..Failed::default()
    };
    let again = [(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S))];
    (StatusCode::SERVICE_UNAVAILABLE, again, Json(failed)).into_response()
}

/// Runs an operation that may block on a thread of its own; refused if no thread can be started.
pub(crate) async fn run_on_thread<T: Send + 'static>(
    served: &Arc<ServerState>,
    f: impl FnOnce(&ServerState) -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let served = served.clone();
    let (sender, done) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("levada/request".to_string())
        .spawn(move || drop(sender.send(f(&served))))
        .map_err(|e| {
            let what = format!("cannot start a thread for the request: {e}");
            Refusal::new(Kind::Limit, what)
        })?;
    done.await.unwrap_or_else(|_| {
        Err(Failed {
            error: "this could not be done: an error in the host".to_string(),
            ..Failed::default()
        })
    })
}

/// Maximum number of requests that wait for an application. Their clients may have disconnected, so connections do not
/// bound them.
const WAITING_MAX: usize = 1024;
static WAITING_SLOTS: Semaphore = Semaphore::const_new(WAITING_MAX);

/// The same, for an operation that may wait as long as the client's timeout.
pub(crate) async fn run_waiting<T: Send + 'static>(
    served: &Arc<ServerState>,
    f: impl FnOnce(&ServerState) -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let place = WAITING_SLOTS.try_acquire().map_err(|_| {
        let what = format!("{WAITING_MAX} requests wait for applications, which is the limit");
        Refusal::new(Kind::Limit, what)
            .help("levada unload NAME --now ends what is waited for; or try again later")
    })?;
    run_on_thread(served, move |served| {
        let _place = place;
        f(served)
    })
    .await
}

/// Maximum number of requests that wait for an immediate end; further ones wait only this long.
const ENDING_MAX: usize = 128;
const ENDING_EXCESS_TIMEOUT: Duration = Duration::from_secs(1);
static ENDING_SLOTS: Semaphore = Semaphore::const_new(ENDING_MAX);

/// The same, for an operation that ends something immediately and gets its timeout as argument. Never refused, because
/// others wait for that end.
pub(crate) async fn run_ending<T: Send + 'static>(
    served: &Arc<ServerState>,
    timeout: Duration,
    f: impl FnOnce(&ServerState, Duration) -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let place = ENDING_SLOTS.try_acquire().ok();
    let timeout = match place {
        Some(_) => timeout,
        None => timeout.min(ENDING_EXCESS_TIMEOUT),
    };
    run_on_thread(served, move |served| {
        let _place = place;
        f(served, timeout)
    })
    .await
}

/// The body of a request as JSON, whatever its content type.
pub(crate) async fn read_json<T: serde::de::DeserializeOwned>(
    request: Request,
) -> Result<T, Response> {
    let too_large = || {
        let what = format!("the request has more than {LARGEST_REQUEST} bytes");
        error_response(StatusCode::PAYLOAD_TOO_LARGE, what)
    };
    // A body that announces its size is refused without reading it.
    let says = request.body().size_hint().lower();
    if says > LARGEST_REQUEST as u64 {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), LARGEST_REQUEST).collect();
    let bytes = match tokio::time::timeout(BODY_TIMEOUT, body).await {
        Ok(Ok(all)) => all.to_bytes(),
        Ok(Err(e)) if e.is::<LengthLimitError>() => {
            return Err(too_large());
        }
        Ok(Err(e)) => {
            let what = format!("the request is incomplete: {e}");
            return Err(error_response(StatusCode::BAD_REQUEST, what));
        }
        Err(_) => {
            let what = format!("the request was not complete within {BODY_TIMEOUT:?}");
            return Err(error_response(StatusCode::REQUEST_TIMEOUT, what));
        }
    };
    let read = serde_json::from_slice(&bytes).map(|Named(read)| read);
    read.map_err(|e| {
        let what = format!(
            "the request is not what is expected here: {}",
            read_error(&e)
        );
        error_response(StatusCode::BAD_REQUEST, what)
    })
}

/// The parameters of the query string.
pub(crate) fn read_query<T>(read: Result<Query<T>, QueryRejection>) -> Result<T, Failed> {
    match read {
        Ok(Query(query)) => Ok(query),
        Err(e) => {
            let said = e.body_text();
            let why = said.strip_prefix("Failed to deserialize query string: ");
            let why = why.unwrap_or(&said);
            let why = read_error(&why);
            let what = format!("invalid query string: {why}");
            Err(Refusal::new(Kind::Wrong, what).into())
        }
    }
}
