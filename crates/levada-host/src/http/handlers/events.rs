// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `/events`.

use crate::http::body::{SharedState, read_query, unavailable};
use crate::http::follow_slots;
use crate::model::events::{Line, Missed};
use crate::ops::event_followers::FOLLOWERS_MAX;
use crate::protocol::{EventsQuery, Failed};
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, State as Of};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use http_body_util::channel::Channel;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// An idle event stream carries an empty line at least this often.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The kept events, and with `follow` also later ones: one JSON object per line, or the number of missed events; an
/// empty line now and then shows that the host is alive
#[utoipa::path(get, path = "/events", params(EventsQuery),
    responses((status = 200, body = Line, content_type = "application/x-ndjson"),
    (status = 400, body = Failed)))]
pub(crate) async fn events(
    Of(served): SharedState,
    place: Option<Extension<follow_slots::CommandSlot>>,
    asked: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Response, Failed> {
    let query = read_query(asked)?;
    let (kept, mut then) = served.host.events().follow(query.since);
    let line = |told: &Line| {
        let mut line = serde_json::to_vec(told).unwrap_or_default();
        line.push(b'\n');
        Bytes::from(line)
    };
    let kind = HeaderValue::from_static("application/x-ndjson");
    let head = [(header::CONTENT_TYPE, kind)];
    if !query.follow {
        let all: Vec<u8> = kept.iter().flat_map(|e| line(e).to_vec()).collect();
        return Ok((head, all).into_response());
    }
    let Some(follows) = served.followers.enter() else {
        let what = format!(
            "{} follow the events already, and no more may",
            FOLLOWERS_MAX
        );
        let help = "ask without follow now and then, with since; or try again later";
        return Ok(unavailable(what, help));
    };
    // The connection now counts as a follower, and must end with this response, since it has no command slot any more.
    if let Some(Extension(place)) = place {
        place.give_back();
    }
    let (mut sender, channel) = Channel::<Bytes>::new(16);
    let mut ending = served.followers.ending();
    tokio::spawn(async move {
        // Stop when the client has disconnected.
        for event in &kept {
            if sender.send_data(line(event)).await.is_err() {
                return;
            }
        }
        loop {
            let next = tokio::select! {
                biased;
                next = tokio::time::timeout(HEARTBEAT, then.recv()) => next,
                // All events have been sent: the response is complete.
                _ = ending.wait_for(|ends| *ends) => return,
            };
            let next = match next {
                Ok(Ok(event)) => line(&Line::Event(event)),
                Ok(Err(RecvError::Lagged(missed))) => line(&Line::Missed(Missed::of(missed))),
                Ok(Err(RecvError::Closed)) => return,
                Err(_) => Bytes::from_static(b"\n"),
            };
            if sender.send_data(next).await.is_err() {
                return;
            }
        }
    });
    let close = [(header::CONNECTION, HeaderValue::from_static("close"))];
    Ok((head, close, follow_slots::body(channel, follows)).into_response())
}
