// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server: accepts the connections of a host's socket, and limits what one client can do to the others.

use crate::http::body::RETRY_AFTER_S;
use crate::http::follow_slots::CommandSlot;
use crate::http::router::router;
use crate::http::socket::Socket;
use crate::model::error::Refusal;
use crate::ops::prepare_process::Client;
use crate::ops::state::ServerState;
use crate::protocol::version;
use crate::util::at_fork::all_is_own;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use levada_text::escaped;
use std::convert::Infallible;
use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};

/// Maximum number of connections, without those that follow events; further ones are turned away.
const CONNECTIONS_MAX: usize = 128;
/// Timeout for the head of a request, and for idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for reading what a disconnected client has sent.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Time that responses in progress have when the host ends.
const LAST_RESPONSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves until `end` completes, and then until responses in progress have been sent. Requests that wait for an
/// application are not awaited.
pub fn serve(socket: &Socket, served: Arc<ServerState>, end: Arc<Notify>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(CONNECTIONS_MAX)
        .thread_name("levada/request")
        .build()?;
    let listener = socket.listener.try_clone()?;
    listener.set_nonblocking(true)?;
    let done = runtime.block_on(async move {
        let listener = tokio::net::UnixListener::from_std(listener)?;
        all_is_own();
        // Before the first request is served, so that requests wait for applications that are yet to be restored.
        if let Some(all) = crate::ops::restore::to_restore(&served) {
            let served = served.clone();
            tokio::task::spawn_blocking(move || crate::ops::restore::restore(&served, all));
        }
        let preparing = served.clone();
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let (ends, ending) = watch::channel(());
        let done = tokio::select! {
            done = accept(socket, listener, served, &places, &ending) => done,
            () = end.notified() => Ok(()),
        };
        preparing.preparing.end();
        drop(ends);
        let all = async {
            tokio::join!(
                places.acquire_many(CONNECTIONS_MAX as u32),
                preparing.followers.end()
            )
        };
        drop(tokio::time::timeout(LAST_RESPONSE_TIMEOUT, all).await);
        Ok::<_, std::io::Error>(done)
    })?;
    runtime.shutdown_background();
    done
}

/// Each connection has one of `places`, and ends when `ending` says so: at once, or after the response in progress.
async fn accept(
    socket: &Socket,
    mut listener: tokio::net::UnixListener,
    served: Arc<ServerState>,
    places: &Arc<Semaphore>,
    ending: &watch::Receiver<()>,
) -> std::io::Result<()> {
    let router = router(served);
    let mut renewed = Box::pin(socket.renewed());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            rebound = &mut renewed => {
                listener = heard_at(socket, rebound)?;
                renewed = Box::pin(socket.renewed());
                continue;
            }
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(_) => {
                // Too many files are open; some will be closed.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            turn_away(&stream);
            continue;
        };
        let place = CommandSlot::new(place);
        let left = place.clone();
        // Long operations are abandoned when their client has disconnected.
        let client = Client::new(&stream).ok();
        let gone = has_gone(client.clone());
        let inner = TowerToHyperService::new(router.clone());
        let service = hyper::service::service_fn(
            move |mut request: hyper::Request<hyper::body::Incoming>| {
                if let Some(client) = &client {
                    request.extensions_mut().insert(client.clone());
                }
                request.extensions_mut().insert(left.clone());
                let answered = hyper::service::Service::call(&inner, request);
                async move {
                    let mut response = answered.await?;
                    let says = HeaderValue::from_static(version::SERVER);
                    response.headers_mut().insert(header::SERVER, says);
                    Ok::<_, Infallible>(response)
                }
            },
        );
        let mut ending = ending.clone();
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(64 << 10)
                .half_close(true);
            // Errors of a connection concern only its client.
            let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
            let serve = async {
                tokio::select! {
                    _ = &mut connection => return,
                    _ = ending.changed() => {}
                }
                connection.as_mut().graceful_shutdown();
                drop(connection.await);
            };
            tokio::select! {
                () = serve => {}
                () = gone => {}
            }
            place.give_back();
        });
    }
}

/// The socket was removed by another program and has been renewed; or cannot be renewed, and clients do not find this
/// host any more.
fn heard_at(
    socket: &Socket,
    rebound: Result<std::os::unix::net::UnixListener, Refusal>,
) -> std::io::Result<tokio::net::UnixListener> {
    let path = socket.path().map(|path| path.display().to_string());
    let path = path.unwrap_or_default();
    let rebound = rebound.map_err(|e| {
        let what = format!("the socket was removed, and no command can find this host: {e}");
        std::io::Error::other(what)
    })?;
    let line = format!("{path} was removed: this host listens there again\n");
    let _ = std::io::stderr()
        .lock()
        .write_all(escaped(&line).as_bytes());
    rebound.set_nonblocking(true)?;
    tokio::net::UnixListener::from_std(rebound)
}

/// Waits until the client has disconnected and everything it has sent has been read. Operations in progress may
/// continue.
async fn has_gone(client: Option<Client>) {
    match client {
        Some(client) if client.gone().await.is_ok() => tokio::time::sleep(DRAIN_TIMEOUT).await,
        // Without a descriptor to watch, a disconnect is noticed by the connection itself.
        _ => std::future::pending().await,
    }
}

/// Answers without blocking: a client that does not read must not delay the others.
fn turn_away(stream: &tokio::net::UnixStream) {
    let body = "{\"error\":\"the host has too many connections\",\
                \"help\":\"close some, or try again later\",\"code\":\"busy\"}";
    let text = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: \
         {}\r\nretry-after: {RETRY_AFTER_S}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.try_write(text.as_bytes());
}
