// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cores that the host leaves to somebody else, such as a shield, for as long as that process lives.

use crate::http::body::{Answer, Shared, aside, aside_for_long, limit, read};
use crate::http::path::At;
use crate::model::error::{Kind, Refusal};
use crate::ops::state::Served;
use crate::protocol::{Failed, WITHIN};
use crate::util::lock::lock;
use axum::Json;
use axum::extract::Request;
use axum::extract::State as Of;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use utoipa::ToSchema;

/// For whom a core is left.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AwayRequest {
    /// When this process ends, the core comes back.
    pub process: i32,
    /// So long, in seconds, what runs there may take to leave; 30 if not said. All is as it was then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
}

/// A core that is left.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Away {
    pub cpu: i32,
    pub worker: u32,
}

/// By worker: which leaving of it is meant.
#[derive(Default)]
pub struct AllAway(Mutex<Numbered>);

#[derive(Default)]
struct Numbered {
    last: u64,
    by_worker: HashMap<u32, One>,
}

struct One {
    number: u64,
    /// Closed when the core has come back: nobody need watch that process any more.
    _lasts: PipeWriter,
}

impl AllAway {
    fn all(&self) -> MutexGuard<'_, Numbered> {
        lock(&self.0)
    }

    fn add(&self, worker: u32, lasts: PipeWriter) -> u64 {
        let mut all = self.all();
        all.last += 1;
        let number = all.last;
        let one = One {
            number,
            _lasts: lasts,
        };
        all.by_worker.insert(worker, one);
        number
    }

    /// Whether it was away; of one number alone, if that is said.
    fn remove(&self, worker: u32, number: Option<u64>) -> bool {
        let mut all = self.all();
        let there = all.by_worker.get(&worker).map(|one| one.number);
        let meant = there.is_some_and(|n| number.is_none_or(|number| number == n));
        if meant {
            all.by_worker.remove(&worker);
        }
        meant
    }
}

/// Which worker is pinned to that core.
fn worker_on(served: &Served, cpu: i32) -> Result<u32, Refusal> {
    let runtime = served.host.runtime();
    let on = |&w: &u32| runtime.worker_counters(w).is_ok_and(|c| c.cpu == cpu);
    (0..runtime.workers()).find(on).ok_or_else(|| {
        let what = format!("no worker of this host is on core {cpu}");
        Refusal::new(Kind::Unknown, what)
    })
}

/// Readable when the process has ended.
fn watch(process: i32) -> Result<OwnedFd, Refusal> {
    // SAFETY: no pointers; what comes back is ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    if fd < 0 {
        let what = format!("process {process}: {}", std::io::Error::last_os_error());
        return Err(Refusal::new(Kind::Wrong, what));
    }
    // SAFETY: just opened.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Until the process has ended, or the core has come back.
fn wait_for(process: &OwnedFd, over: &PipeReader) {
    let mut fds = [process.as_raw_fd(), over.as_raw_fd()].map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: these two descriptors; it is interrupted and begins again.
    while unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) } < 1 {}
}

fn leave_core(served: &Arc<Served>, cpu: i32, asked: &AwayRequest) -> Result<Away, Failed> {
    let within = limit(asked.within, WITHIN)?;
    let worker = worker_on(served, cpu)?;
    let process = watch(asked.process)?;
    let (over, lasts) = std::io::pipe()
        .map_err(|e| Refusal::new(Kind::Limit, format!("there can be no pipe: {e}")))?;
    served.host.leave_core(worker, within)?;
    let number = served.away.add(worker, lasts);
    let watched = served.clone();
    let watcher = std::thread::Builder::new().name("levada/away".to_string());
    let started = watcher.spawn(move || {
        wait_for(&process, &over);
        if watched.away.remove(worker, Some(number)) {
            watched.host.come_back(worker);
        }
    });
    if started.is_err() && served.away.remove(worker, Some(number)) {
        served.host.come_back(worker);
        return Err(Refusal::new(Kind::Limit, "a thread cannot be started").into());
    }
    Ok(Away { cpu, worker })
}

/// Leave a core to somebody else: nothing of the host runs there when the answer comes
#[utoipa::path(post, path = "/cores/{cpu}/away", params(("cpu" = i32, Path)), request_body = AwayRequest,
    responses((status = 200, body = Away),
    (status = 400, body = Failed, description = "There is no such process, or `within` is no time"),
    (status = 404, body = Failed, description = "No worker is on that core"),
    (status = 409, body = Failed, description = "It is somebody's already, or the last one; or somebody keeps it, \
        as `error` says, and all is as it was"),
    (status = 507, body = Failed, description = "There are no more threads")))]
pub async fn leave(Of(served): Shared, At(cpu): At<i32>, request: Request) -> Response {
    let asked: AwayRequest = match read(request).await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    let own = served.clone();
    match aside_for_long(&served, move |_| leave_core(&own, cpu, &asked)).await {
        Ok(away) => (StatusCode::OK, Json(away)).into_response(),
        Err(failed) => failed.into_response(),
    }
}

/// Take a core back that was left
#[utoipa::path(delete, path = "/cores/{cpu}/away", params(("cpu" = i32, Path)), responses(
    (status = 200, body = Away), (status = 400, body = Failed),
    (status = 404, body = Failed, description = "No worker is on that core, or it is not away")))]
pub async fn come_back(Of(served): Shared, At(cpu): At<i32>) -> Answer<Away> {
    let back = move |served: &Served| {
        let worker = worker_on(served, cpu)?;
        if !served.away.remove(worker, None) {
            let what = format!("core {cpu} is not away");
            return Err(Refusal::new(Kind::Unknown, what).into());
        }
        served.host.come_back(worker);
        Ok(Away { cpu, worker })
    };
    Ok(Json(aside(&served, back).await?))
}
