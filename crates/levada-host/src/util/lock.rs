// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mutexes without poisoning: a panic of a thread that holds a lock spoils one request or one application, not the
//! host. Data behind a lock is consistent between any two statements.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    ignore_poison(mutex.lock())
}

/// The guard after a wait, also if a thread has panicked.
pub fn ignore_poison<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
