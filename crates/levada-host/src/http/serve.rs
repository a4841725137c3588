// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Serving: the connections of a host's socket, and what a client cannot do to the others.

use crate::http::body::AGAIN;
use crate::http::follow_slots::Place;
use crate::http::router::router;
use crate::http::socket::Socket;
use crate::model::error::Refusal;
use crate::ops::prepare_process::Client;
use crate::ops::state::Served;
use crate::util::at_fork::all_is_own;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use levada_text::escaped;
use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};

// The state folder has such a lock, too.

/// More connections at a time are turned away; those that follow events are not among them.
const CONNECTIONS: usize = 128;
/// So long a client may take for the head of a request, or be silent between two.
const SLOWEST_HEAD: Duration = Duration::from_secs(10);

/// So soon what a client has sent is read.
const READ: Duration = Duration::from_secs(1);
/// So long an answer has to be on its way when the host ends.
const LAST: Duration = Duration::from_millis(500);

/// Serves until `end` is told, and then until the answers that are on their way have gone. Who waits for an application to
/// end is not waited for.
pub fn serve(socket: &Socket, served: Arc<Served>, end: Arc<Notify>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(CONNECTIONS)
        .thread_name("levada/request")
        .build()?;
    let listener = socket.listener.try_clone()?;
    listener.set_nonblocking(true)?;
    let done = runtime.block_on(async move {
        let listener = tokio::net::UnixListener::from_std(listener)?;
        all_is_own();
        // Before anybody is served, who then waits for what is to come.
        if let Some(all) = crate::ops::restore::to_restore(&served) {
            let served = served.clone();
            tokio::task::spawn_blocking(move || crate::ops::restore::restore(&served, all));
        }
        let preparing = served.clone();
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let (ends, ending) = watch::channel(());
        let done = tokio::select! {
            done = accept(socket, listener, served, &places, &ending) => done,
            () = end.notified() => Ok(()),
        };
        preparing.preparing.end();
        drop(ends);
        let all = async {
            tokio::join!(
                places.acquire_many(CONNECTIONS as u32),
                preparing.followers.end()
            )
        };
        drop(tokio::time::timeout(LAST, all).await);
        Ok::<_, std::io::Error>(done)
    })?;
    runtime.shutdown_background();
    done
}

/// Each connection has one of `places`, and comes to its end when `ending` does: at once, or with the answer to what it
/// has asked.
async fn accept(
    socket: &Socket,
    mut listener: tokio::net::UnixListener,
    served: Arc<Served>,
    places: &Arc<Semaphore>,
    ending: &watch::Receiver<()>,
) -> std::io::Result<()> {
    let router = router(served);
    let mut renewed = Box::pin(socket.renewed());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            anew = &mut renewed => {
                listener = heard_at(socket, anew)?;
                renewed = Box::pin(socket.renewed());
                continue;
            }
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(_) => {
                // Too many files are open: some will be closed.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            turn_away(&stream);
            continue;
        };
        let place = Place::new(place);
        let left = place.clone();
        // What is long is not done for a client that has gone.
        let client = Client::new(&stream).ok();
        let gone = has_gone(client.clone());
        let inner = TowerToHyperService::new(router.clone());
        let service = hyper::service::service_fn(
            move |mut request: hyper::Request<hyper::body::Incoming>| {
                if let Some(client) = &client {
                    request.extensions_mut().insert(client.clone());
                }
                request.extensions_mut().insert(left.clone());
                hyper::service::Service::call(&inner, request)
            },
        );
        let mut ending = ending.clone();
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(SLOWEST_HEAD)
                .max_buf_size(64 << 10)
                .half_close(true);
            // What is wrong with a connection is between it and its client.
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

/// The socket was removed by another program, and is there again; or cannot be, and commands find this host no more.
fn heard_at(
    socket: &Socket,
    anew: Result<std::os::unix::net::UnixListener, Refusal>,
) -> std::io::Result<tokio::net::UnixListener> {
    let path = socket.path().map(|path| path.display().to_string());
    let path = path.unwrap_or_default();
    let anew = anew.map_err(|e| {
        let what = format!("the socket was removed, and no command can find this host: {e}");
        std::io::Error::other(what)
    })?;
    let line = format!("{path} was removed: this host listens there again\n");
    let _ = std::io::stderr()
        .lock()
        .write_all(escaped(&line).as_bytes());
    anew.set_nonblocking(true)?;
    tokio::net::UnixListener::from_std(anew)
}

/// Waits until a client has gone, and what it has sent until then has been read. What is done for it may go on.
async fn has_gone(client: Option<Client>) {
    match client {
        Some(client) if client.gone().await.is_ok() => tokio::time::sleep(READ).await,
        // Without descriptors for that it is heard of by its connection.
        _ => std::future::pending().await,
    }
}

/// Says so without waiting: a client that does not read must not hold up the others.
fn turn_away(stream: &tokio::net::UnixStream) {
    let body = "{\"error\":\"the host has too many connections\",\
                \"help\":\"close some, or try again later\",\"code\":\"busy\"}";
    let text = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: \
         {}\r\nretry-after: {AGAIN}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.try_write(text.as_bytes());
}
