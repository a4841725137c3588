// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Core reservations for other processes: a core is left to a process until it ends or the core is taken back.

use crate::model::error::{Kind, Refusal};
use crate::ops::state::ServerState;
use crate::protocol::timeout::timeout_from;
use crate::protocol::{CoreReservation, CoreReservationRequest, Failed, REQUEST_TIMEOUT_S};
use crate::util::lock::lock;
use std::collections::HashMap;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

/// Reservations by worker.
#[derive(Default)]
pub struct CoreReservations(Mutex<Reservations>);

#[derive(Default)]
struct Reservations {
    last: u64,
    by_worker: HashMap<u32, Reservation>,
}

struct Reservation {
    number: u64,
    /// Closed when the core is returned, which ends the watch of the process.
    _watch_end: PipeWriter,
}

impl CoreReservations {
    fn all(&self) -> MutexGuard<'_, Reservations> {
        lock(&self.0)
    }

    fn add(&self, worker: u32, lasts: PipeWriter) -> u64 {
        let mut all = self.all();
        all.last += 1;
        let number = all.last;
        let one = Reservation {
            number,
            _watch_end: lasts,
        };
        all.by_worker.insert(worker, one);
        number
    }

    /// Returns whether the worker's core was reserved; with a number, only by that reservation.
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

/// The worker that is pinned to that core.
fn worker_on(served: &ServerState, cpu: i32) -> Result<u32, Refusal> {
    let runtime = served.host.runtime();
    let on = |&w: &u32| runtime.worker_counters(w).is_ok_and(|c| c.cpu == cpu);
    (0..runtime.workers()).find(on).ok_or_else(|| {
        let what = format!("no worker of this host is on core {cpu}");
        Refusal::new(Kind::Unknown, what)
    })
}

/// A descriptor that becomes readable when the process ends.
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

/// Waits until the process has ended, or the core was returned.
fn wait_for(process: &OwnedFd, over: &PipeReader) {
    let mut fds = [process.as_raw_fd(), over.as_raw_fd()].map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: two descriptors of this frame; an interrupted call is repeated.
    while unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) } < 1 {}
}

/// Reserves a core for another process: nothing of the host runs there when this returns.
pub(crate) fn leave_core(
    served: &Arc<ServerState>,
    cpu: i32,
    asked: &CoreReservationRequest,
) -> Result<CoreReservation, Failed> {
    let timeout = timeout_from(asked.timeout, REQUEST_TIMEOUT_S)?;
    let worker = worker_on(served, cpu)?;
    let process = watch(asked.process)?;
    let (over, lasts) = std::io::pipe()
        .map_err(|e| Refusal::new(Kind::Limit, format!("cannot create a pipe: {e}")))?;
    served.host.vacate_core(worker, timeout)?;
    let number = served.reservations.add(worker, lasts);
    let watched = served.clone();
    let watcher = std::thread::Builder::new().name("levada/reserve".to_string());
    let started = watcher.spawn(move || {
        wait_for(&process, &over);
        if watched.reservations.remove(worker, Some(number)) {
            watched.host.return_core(worker);
        }
    });
    if started.is_err() && served.reservations.remove(worker, Some(number)) {
        served.host.return_core(worker);
        return Err(Refusal::new(Kind::Limit, "a thread cannot be started").into());
    }
    Ok(CoreReservation { cpu, worker })
}

/// Takes a reserved core back.
pub(crate) fn take_core_back(served: &ServerState, cpu: i32) -> Result<CoreReservation, Failed> {
    let worker = worker_on(served, cpu)?;
    if !served.reservations.remove(worker, None) {
        let what = format!("core {cpu} is not reserved");
        return Err(Refusal::new(Kind::Unknown, what).into());
    }
    served.host.return_core(worker);
    Ok(CoreReservation { cpu, worker })
}
