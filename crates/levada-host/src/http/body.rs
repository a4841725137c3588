// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How requests are read and answers written, whatever they are about: bodies, limits of time, refusals; and what may
//! take long beside the thread that serves.

use crate::model::error::{Kind, Refusal};
use crate::ops::state::Served;
use crate::protocol::Failed;
use crate::protocol::lenient::Named;
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

/// Larger requests are refused.
pub const LARGEST_REQUEST: usize = 1 << 20;
/// So long a client may take to send the body of a request.
const SLOWEST_REQUEST: Duration = Duration::from_secs(10);

pub(crate) type Shared = Of<Arc<Served>>;
pub(crate) type Answer<T> = Result<Json<T>, Failed>;

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = self.kind.and_then(Kind::http_status);
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self)).into_response()
    }
}

pub(crate) fn refuse(status: StatusCode, what: impl Into<String>) -> Response {
    let failed = Failed {
        error: what.into(),
        kind: Some(Kind::of_http_status(status.as_u16())),
        ..Failed::default()
    };
    (status, Json(failed)).into_response()
}

/// So long, in seconds, who is turned away should wait.
pub(crate) const AGAIN: &str = "2";

/// There is no place for one more.
pub(crate) fn full(what: String, help: &str) -> Response {
    let failed = Failed {
        error: what,
        help: Some(help.to_string()),
        kind: Some(Kind::Busy),
        ..Failed::default()
    };
    let again = [(header::RETRY_AFTER, HeaderValue::from_static(AGAIN))];
    (StatusCode::SERVICE_UNAVAILABLE, again, Json(failed)).into_response()
}

/// Does what may take long on a thread of its own; where there is no memory for one, it is refused.
pub(crate) async fn aside<T: Send + 'static>(
    served: &Arc<Served>,
    f: impl FnOnce(&Served) -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let served = served.clone();
    let (sender, done) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("levada/request".to_string())
        .spawn(move || drop(sender.send(f(&served))))
        .map_err(|e| {
            let what = format!("this could not be done: no thread can be started for it: {e}");
            Refusal::new(Kind::Limit, what)
        })?;
    done.await.unwrap_or_else(|_| {
        Err(Failed {
            error: "this could not be done: an error in the host".to_string(),
            ..Failed::default()
        })
    })
}

/// So many requests at a time may wait for what an application does: who has asked for it may have gone, and keeps
/// no connection then.
const WAITING: usize = 1024;
static PLACES: Semaphore = Semaphore::const_new(WAITING);

/// The same, of what may last as long as its client says.
pub(crate) async fn aside_for_long<T: Send + 'static>(
    served: &Arc<Served>,
    f: impl FnOnce(&Served) -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let place = PLACES.try_acquire().map_err(|_| {
        let what = format!("{WAITING} requests wait for what applications do, and no more may");
        Refusal::new(Kind::Limit, what)
            .help("levada unload NAME --now ends what is waited for; or try again later")
    })?;
    aside(served, move |served| {
        let _place = place;
        f(served)
    })
    .await
}

/// So many at a time may wait for what they have ended at once: more are waited for no longer than this.
const ENDING: usize = 128;
const ENDING_BESIDE: Duration = Duration::from_secs(1);
static ENDS: Semaphore = Semaphore::const_new(ENDING);

/// The same, of what ends something at once, and is told how long to wait for that: as others wait for it, it is never
/// refused.
pub(crate) async fn aside_to_end<T: Send + 'static>(
    served: &Arc<Served>,
    within: Duration,
    f: impl FnOnce(&Served, Duration) -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let place = ENDS.try_acquire().ok();
    let within = match place {
        Some(_) => within,
        None => within.min(ENDING_BESIDE),
    };
    aside(served, move |served| {
        let _place = place;
        f(served, within)
    })
    .await
}

/// The body of a request as JSON, whatever the client calls its type.
pub(crate) async fn read<T: serde::de::DeserializeOwned>(request: Request) -> Result<T, Response> {
    let too_large = || {
        let what = format!("the request has more than {LARGEST_REQUEST} bytes");
        refuse(StatusCode::PAYLOAD_TOO_LARGE, what)
    };
    // What says so itself is not waited for.
    let says = request.body().size_hint().lower();
    if says > LARGEST_REQUEST as u64 {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), LARGEST_REQUEST).collect();
    let bytes = match tokio::time::timeout(SLOWEST_REQUEST, body).await {
        Ok(Ok(all)) => all.to_bytes(),
        Ok(Err(e)) if e.is::<LengthLimitError>() => {
            return Err(too_large());
        }
        Ok(Err(e)) => {
            let what = format!("the request did not come whole: {e}");
            return Err(refuse(StatusCode::BAD_REQUEST, what));
        }
        Err(_) => {
            let what = format!("the request did not come within {SLOWEST_REQUEST:?}");
            return Err(refuse(StatusCode::REQUEST_TIMEOUT, what));
        }
    };
    let read = serde_json::from_slice(&bytes).map(|Named(read)| read);
    read.map_err(|e| {
        let what = format!("the request is not what is expected here: {e}");
        refuse(StatusCode::BAD_REQUEST, what)
    })
}

/// What stands behind the question mark of an address.
pub(crate) fn query<T>(read: Result<Query<T>, QueryRejection>) -> Result<T, Failed> {
    match read {
        Ok(Query(query)) => Ok(query),
        Err(e) => {
            let said = e.body_text();
            let why = said.strip_prefix("Failed to deserialize query string: ");
            let why = why.unwrap_or(&said);
            let what = format!("what stands behind ? in the address is not understood: {why}");
            Err(Refusal::new(Kind::Wrong, what).into())
        }
    }
}
