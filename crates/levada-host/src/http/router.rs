// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host's interface: HTTP with JSON. `/openapi.json` describes it, made of the same types and
//! handlers.
//!
//! One thread serves all connections. What may take long runs on a thread beside it, so a client that
//! waits for an application to end keeps no other one waiting.

pub use crate::http::body::LARGEST_REQUEST;
use crate::http::body::{
    Answer, Shared, aside, aside_for_long, aside_to_end, full, query, read, refuse,
};
use crate::http::follow_slots;
use crate::http::metrics;
use crate::http::neighbors;
use crate::http::openapi;
use crate::http::path::At;
use crate::http::reservations;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::{Line, Missed};
use crate::model::outcome::Outcome;
use crate::ops::event_followers::FOLLOWERS;
use crate::ops::load::load_all;
use crate::ops::pause::{Change, change_by_name};
use crate::ops::prepare_process::Client;
use crate::ops::ready;
use crate::ops::replace::replace_now;
use crate::ops::restore::{not_loaded, until_there};
use crate::ops::sharing_report;
pub use crate::ops::state::Served;
use crate::ops::unload::{unload_by_name, unload_ended};
use crate::ops::workers::workers;
use crate::protocol::timeout::limit;
use crate::protocol::*;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, Request, State as Of};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http_body_util::channel::Channel;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use utoipa::OpenApi;

/// A follower of events hears at least this often that the host lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

// ---- what can be asked for ---------------------------------------------------------------------

/// What there is to say of the host.
pub fn info(served: &Served) -> HostInfo {
    HostInfo {
        version: env!("CARGO_PKG_VERSION").to_string(),
        pid: std::process::id(),
        seconds: served.began.elapsed().as_secs_f64(),
        workers: served.host.runtime().workers(),
        realtime: served.host.runtime().realtime(),
        applications: served.live(),
        preparing: served.preparing.count(),
        left: served.memory.as_ref().map(|m| m.left()).unwrap_or_default(),
    }
}

/// The host itself
#[utoipa::path(get, path = "/host", responses((status = 200, body = HostInfo)))]
async fn host(Of(served): Shared) -> Json<HostInfo> {
    Json(info(&served))
}

/// All applications
#[utoipa::path(get, path = "/applications", responses((status = 200, body = Vec<Application>)))]
async fn list(Of(served): Shared) -> Answer<Vec<Application>> {
    let all = aside(&served, |served| Ok(served.applications())).await?;
    Ok(Json(all))
}

/// Load an application and start it
#[utoipa::path(post, path = "/applications", request_body = LoadRequest, responses(
    (status = 201, body = Details, description = "It runs"),
    (status = 400, body = Failed, description = "The request, or the application, is wrong"),
    (status = 404, body = Failed, description = "It has been unloaded at once"),
    (status = 409, body = Failed, description = "There is one of this name, or it has taken too long"),
    (status = 507, body = Failed, description = "It claims more than there is, or would break a promise")))]
async fn load(Of(served): Shared, request: Request) -> Response {
    let client = request.extensions().get::<Client>().cloned();
    let request: LoadRequest = match read(request).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    match aside_for_long(&served, move |served| {
        let loaded = load_all(served, vec![request], client.as_ref())?.pop();
        loaded.ok_or_else(|| Refusal::new(Kind::Unknown, "it has been unloaded at once").into())
    })
    .await
    {
        Ok(details) => (StatusCode::CREATED, Json(details)).into_response(),
        Err(failed) => failed.into_response(),
    }
}

/// Load several applications and start them, all or none
#[utoipa::path(post, path = "/manifest", request_body = Manifest, responses(
    (status = 201, body = Vec<Details>, description = "All of them run"),
    (status = 400, body = Failed, description = "Something is wrong with one: none is loaded"),
    (status = 409, body = Failed, description = "There is one of such a name, or one has taken too long"),
    (status = 507, body = Failed, description = "They claim more than there is, or would break a promise")))]
async fn load_manifest(Of(served): Shared, request: Request) -> Response {
    let client = request.extensions().get::<Client>().cloned();
    let manifest: Manifest = match read(request).await {
        Ok(manifest) => manifest,
        Err(refused) => return refused,
    };
    match aside_for_long(&served, move |served| {
        if manifest.application.is_empty() {
            let what = "there is no application in the manifest";
            return Err(Refusal::new(Kind::Wrong, what)
                .help("each is a table [[application]], with the network that it is")
                .into());
        }
        // Those of a manifest are mapped together, by what runs.
        if let Some(one) = manifest.application.iter().find(|a| !a.beside.is_empty()) {
            let what = format!("{}: beside is not for manifests", ready::whose(one));
            return Err(Refusal::new(Kind::Wrong, what)
                .help("leave it out, or load that application alone by a request")
                .into());
        }
        load_all(served, manifest.application, client.as_ref())
    })
    .await
    {
        Ok(all) => (StatusCode::CREATED, Json(all)).into_response(),
        Err(failed) => failed.into_response(),
    }
}

/// An application with its actors and channels
#[utoipa::path(get, path = "/applications/{name}", params(("name" = String, Path)), responses(
    (status = 200, body = Details), (status = 400, body = Failed), (status = 404, body = Failed)))]
async fn show(Of(served): Shared, At(name): At<String>) -> Answer<Details> {
    let show = move |served: &Served| {
        if let Some(isolated) = served.isolated.find(&name) {
            return Ok(isolated.details());
        }
        let unknown = match served.host.find(&name) {
            Ok(seen) => return Ok(Details::from(&seen)),
            Err(unknown) => unknown,
        };
        let out = served.left_out().into_iter().find(|a| a.name == name);
        let unknown = || not_loaded(served, &name).unwrap_or(unknown);
        Ok(Details {
            application: out.ok_or_else(unknown)?,
            ..Details::default()
        })
    };
    // One that is restored at this moment is in one of these places or in another, but it may go on between two looks.
    let show = move |served: &Served| show(served).or_else(|_: Failed| show(served));
    Ok(Json(aside(&served, show).await?))
}

/// Take away all applications that have ended or failed
#[utoipa::path(delete, path = "/applications", responses((status = 200, body = Vec<Unloaded>),
    (status = 507, body = Failed, description = "All are unloaded, and that cannot be saved of one of them")))]
async fn unload_all_ended(Of(served): Shared) -> Answer<Vec<Unloaded>> {
    let gone = aside(&served, unload_ended).await?;
    Ok(Json(gone))
}

/// Take an application away: when what is in flight has come out, or at once
#[utoipa::path(delete, path = "/applications/{name}", params(("name" = String, Path), UnloadQuery),
    responses((status = 200, body = Unloaded), (status = 400, body = Failed), (status = 404, body = Failed),
    (status = 409, body = Failed, description = "It is draining still, or cannot be drained"),
    (status = 507, body = Failed, description = "It is unloaded, and that cannot be saved; or too many wait")))]
async fn unload(
    Of(served): Shared,
    At(name): At<String>,
    asked: Result<Query<UnloadQuery>, QueryRejection>,
) -> Answer<Unloaded> {
    let query = query(asked)?;
    let within = limit(query.within, WITHIN)?;
    let unload = move |served: &Served, within| unload_by_name(served, name, query.now, within);
    let unloaded = match query.now {
        true => aside_to_end(&served, within, unload).await,
        false => aside_for_long(&served, move |served| unload(served, within)).await,
    };
    Ok(Json(unloaded?))
}

async fn changed(
    served: Arc<Served>,
    name: String,
    asked: Result<Query<WithinQuery>, QueryRejection>,
    change: Change,
) -> Answer<Application> {
    let within = limit(query(asked)?.within, WITHIN)?;
    let changed = aside_for_long(&served, move |served| {
        change_by_name(served, &name, within, change)
    });
    Ok(Json(changed.await?))
}

/// Let nothing of an application run
#[utoipa::path(post, path = "/applications/{name}/pause", params(("name" = String, Path), WithinQuery), responses(
    (status = 200, body = Application), (status = 400, body = Failed),
    (status = 404, body = Failed), (status = 409, body = Failed),
    (status = 507, body = Failed, description = "It is paused, and that cannot be remembered; or too many wait")))]
async fn pause(
    Of(served): Shared,
    At(name): At<String>,
    asked: Result<Query<WithinQuery>, QueryRejection>,
) -> Answer<Application> {
    changed(served, name, asked, Change::Pause).await
}

/// Let it go on, from where it was; or load again what was left out when the host began
#[utoipa::path(post, path = "/applications/{name}/resume", params(("name" = String, Path), WithinQuery), responses(
    (status = 200, body = Application), (status = 400, body = Failed),
    (status = 404, body = Failed), (status = 409, body = Failed),
    (status = 507, body = Failed, description = "It goes on, and that cannot be remembered; or too many wait")))]
async fn resume(
    Of(served): Shared,
    At(name): At<String>,
    asked: Result<Query<WithinQuery>, QueryRejection>,
) -> Answer<Application> {
    changed(served, name, asked, Change::Resume).await
}

/// How long who is asked for what takes no time may take for it, if that is said.
fn answers_within(
    asked: Result<Query<AnswerQuery>, QueryRejection>,
) -> Result<Option<Duration>, Failed> {
    let within = query(asked)?.within;
    let within = within.map(|within| limit(Some(within), within));
    Ok(within.transpose()?)
}

/// Put an actor on a worker, where it stays; or let the mapper move it again
#[utoipa::path(post, path = "/applications/{name}/move", params(("name" = String, Path), AnswerQuery),
    request_body = MoveRequest, responses((status = 200, body = Application), (status = 400, body = Failed),
    (status = 404, body = Failed), (status = 409, body = Failed),
    (status = 507, body = Failed, description = "Too many wait")))]
async fn move_actor(
    Of(served): Shared,
    At(name): At<String>,
    asked: Result<Query<AnswerQuery>, QueryRejection>,
    request: Request,
) -> Response {
    let within = match answers_within(asked) {
        Ok(within) => within,
        Err(failed) => return failed.into_response(),
    };
    let request: MoveRequest = match read(request).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let moved = aside_for_long(&served, move |served| {
        if request.worker.is_some() == request.free {
            let what = "a move says either to which worker, or that the actor is free";
            return Err(Refusal::new(Kind::Wrong, what).into());
        }
        let waits = within.unwrap_or(Duration::from_secs_f64(WITHIN));
        let left = until_there(served, &name, waits)?;
        if let Some(isolated) = served.isolated.find(&name) {
            // Its process knows only that it is to keep off that core.
            let closed = |worker| served.host.is_for_all(worker, &request.actor);
            request.worker.map_or(Ok(()), closed)?;
            return isolated.move_actor(&request, within.map(|_| left));
        }
        let host = &served.host;
        host.move_actor(&name, &request.actor, request.worker)?;
        Ok(Application::from(&host.find(&name)?))
    });
    moved.await.map(Json).into_response()
}

/// Let a new version take an application's place, between two elements
#[utoipa::path(post, path = "/applications/{name}/replace", params(("name" = String, Path)),
    request_body = ReplaceRequest, responses((status = 200, body = Details),
    (status = 400, body = Failed, description = "The new version is wrong: the old one goes on"),
    (status = 404, body = Failed),
    (status = 409, body = Failed, description = "It cannot be replaced now: the old one goes on"),
    (status = 507, body = Failed, description = "It claims more than there is, or would break a promise, or too many \
        wait: the old one goes on; or it runs, and that cannot be remembered for the next host")))]
async fn replace(Of(served): Shared, At(name): At<String>, request: Request) -> Response {
    let client = request.extensions().get::<Client>().cloned();
    let request: ReplaceRequest = match read(request).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let replaced = aside_for_long(&served, move |served| {
        replace_now(served, &name, request, client.as_ref())
    });
    replaced.await.map(Json).into_response()
}

/// Who waits for whom, in words
#[utoipa::path(get, path = "/applications/{name}/why", params(("name" = String, Path), AnswerQuery), responses(
    (status = 200, body = Why), (status = 400, body = Failed), (status = 404, body = Failed),
    (status = 409, body = Failed, description = "Its process has just ended"),
    (status = 507, body = Failed, description = "Too many wait for as long as they say")))]
async fn why(
    Of(served): Shared,
    At(name): At<String>,
    asked: Result<Query<AnswerQuery>, QueryRejection>,
) -> Answer<Why> {
    let within = answers_within(asked)?;
    let why = move |served: &Served| {
        if let Some(isolated) = served.isolated.find(&name) {
            return isolated.why(within);
        }
        if let Some(why) = not_loaded(served, &name) {
            return Ok(Why {
                application: name.clone(),
                text: why.what + "\n",
            });
        }
        let seen = served.host.find(&name)?;
        let text = match (&seen.hosted, &seen.ended) {
            (Some(hosted), _) if seen.state == State::Paused => hosted.app.why(),
            (Some(hosted), _) => hosted.why() + &sharing_report::text(served, hosted),
            (None, Some(ended)) => match &ended.outcome {
                Outcome::Deadlock(why) => why.clone(),
                other if other.is_good() => format!("{name} has ended: {}\n", other.text()),
                other => format!("{name} has failed: {}\n", other.text()),
            },
            (None, None) => String::new(),
        };
        Ok(Why {
            application: name.clone(),
            text,
        })
    };
    let why = move |served: &Served| match why(served) {
        // As with `show`.
        Err(failed) if failed.kind == Some(Kind::Unknown) => why(served),
        done => done,
    };
    let why = match within {
        Some(_) => aside_for_long(&served, why).await,
        None => aside(&served, why).await,
    };
    Ok(Json(why?))
}

/// Which actor sits on which worker
#[utoipa::path(get, path = "/map", responses((status = 200, body = Vec<Worker>)))]
async fn map(Of(served): Shared) -> Answer<Vec<Worker>> {
    let map = |served: &Served| {
        let mut all = workers(served, &served.host.list());
        for (isolated, theirs) in served.isolated.workers() {
            isolated.add_to(&mut all, theirs);
        }
        Ok(all)
    };
    Ok(Json(aside(&served, map).await?))
}

fn stats_with(served: &Served, application: Vec<Application>) -> Stats {
    Stats {
        host: info(served),
        worker: workers(served, &served.host.list()),
        application,
    }
}

/// Totals of workers and applications
#[utoipa::path(get, path = "/stats", responses((status = 200, body = Stats)))]
async fn stats(Of(served): Shared) -> Answer<Stats> {
    let stats = aside(&served, |served| {
        Ok(stats_with(served, served.applications()))
    });
    Ok(Json(stats.await?))
}

/// All counters, as Prometheus reads them
#[utoipa::path(get, path = "/metrics",
    responses((status = 200, body = String, content_type = "text/plain; version=0.0.4; charset=utf-8")))]
async fn metrics(Of(served): Shared) -> Result<Response, Failed> {
    let text = aside(&served, |served| {
        let details = served.details();
        let applications = details.iter().map(|d| d.application.clone()).collect();
        Ok(metrics::text(&stats_with(served, applications), &details))
    });
    let text = text.await?;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// What has happened, and with `follow` what happens: an event a line, as JSON, or how many were missed; an
/// empty line now and then says that the host lives
#[utoipa::path(get, path = "/events", params(EventsQuery),
    responses((status = 200, body = Line, content_type = "application/x-ndjson"),
    (status = 400, body = Failed)))]
async fn events(
    Of(served): Shared,
    place: Option<Extension<follow_slots::Place>>,
    asked: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Response, Failed> {
    let query = query(asked)?;
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
        let what = format!("{} follow the events already, and no more may", FOLLOWERS);
        let help = "ask without follow now and then, with since; or try again later";
        return Ok(full(what, help));
    };
    // It is among the followers now; the connection ends with that, since it has no other place any more.
    if let Some(Extension(place)) = place {
        place.give_back();
    }
    let (mut sender, channel) = Channel::<Bytes>::new(16);
    let mut ending = served.followers.ending();
    tokio::spawn(async move {
        // Whoever has gone is not written to any more.
        for event in &kept {
            if sender.send_data(line(event)).await.is_err() {
                return;
            }
        }
        loop {
            let next = tokio::select! {
                biased;
                next = tokio::time::timeout(HEARTBEAT, then.recv()) => next,
                // All that has happened has been told: this is a whole answer.
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

// ---- the whole ---------------------------------------------------------------------------------

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Levada host",
        description = "Applications on the cores of one machine. Every error is an object with `error`, as \
                       Failed says, also those of paths that are not here (404); only what is no HTTP, or has \
                       too large a head, is answered without a body (400, 414, 431)."
    ),
    paths(
        host,
        list,
        load,
        load_manifest,
        show,
        unload_all_ended,
        unload,
        pause,
        resume,
        move_actor,
        replace,
        why,
        reservations::leave,
        reservations::come_back,
        neighbors::told,
        neighbors::tell,
        map,
        stats,
        metrics,
        events,
        openapi
    ),
    components(schemas(Failed))
)]
struct Document;

/// The document that describes all this.
pub fn document() -> utoipa::openapi::OpenApi {
    openapi::complete(Document::openapi())
}

/// This document
#[utoipa::path(get, path = "/openapi.json",
    responses((status = 200, body = Object, description = "In the form that is called OpenAPI")))]
async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(document())
}

async fn nowhere(request: Request) -> Response {
    let what = format!("there is no {}: see /openapi.json", request.uri().path());
    refuse(StatusCode::NOT_FOUND, what)
}

async fn not_so(request: Request) -> Response {
    let what = format!(
        "{} cannot be used on {}",
        request.method(),
        request.uri().path()
    );
    refuse(StatusCode::METHOD_NOT_ALLOWED, what)
}

pub fn router(served: Arc<Served>) -> Router {
    Router::new()
        .route("/host", get(host))
        .route(
            "/applications",
            get(list).post(load).delete(unload_all_ended),
        )
        .route("/manifest", post(load_manifest))
        .route("/applications/{name}", get(show).delete(unload))
        .route("/applications/{name}/pause", post(pause))
        .route("/applications/{name}/resume", post(resume))
        .route("/applications/{name}/move", post(move_actor))
        .route("/applications/{name}/replace", post(replace))
        .route("/applications/{name}/why", get(why))
        .route(
            "/cores/{cpu}/away",
            post(reservations::leave).delete(reservations::come_back),
        )
        .route("/beside", get(neighbors::told).put(neighbors::tell))
        .route("/map", get(map))
        .route("/stats", get(stats))
        .route("/metrics", get(metrics))
        .route("/events", get(events))
        .route("/openapi.json", get(openapi))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .with_state(served)
}
