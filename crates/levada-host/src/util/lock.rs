// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Locks in a host. Who panics with one in hand spoils one request, or one application, and not the host: what a lock
//! guards here is whole between any two statements, so the next one goes on with it.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    whole(mutex.lock())
}

/// What is behind a lock again after a wait, too.
pub fn whole<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
