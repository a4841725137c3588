// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control state of an application: the lock that serialises pause, resume, drain and replace, and the flags that
//! those set.

use crate::util::lock::lock;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub(crate) struct ControlState {
    /// Serialises pause, resume, drain and replace.
    control_lock: Mutex<()>,
    /// True while a limit pauses the application. Locked only briefly, or while a pause waits for a firing;
    /// independent of `control_lock`, so that limits are enforced during any control operation.
    limited: Mutex<bool>,
    /// The application is being unloaded, whether or not it has started, and the unload waits for its end.
    pub unloading: AtomicBool,
    /// Its sources have been ended; stays set whatever else is done to it.
    pub draining: AtomicBool,
}

impl ControlState {
    /// Takes the control lock; none if it was held until then.
    pub fn lock_control(&self, until: Instant) -> Option<MutexGuard<'_, ()>> {
        loop {
            match self.control_lock.try_lock() {
                Ok(hand) => return Some(hand),
                Err(TryLockError::Poisoned(hand)) => return Some(hand.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => return None,
            }
        }
    }

    /// Locks the flag that says whether a limit pauses the application.
    pub fn lock_limited(&self) -> MutexGuard<'_, bool> {
        lock(&self.limited)
    }

    /// The same without waiting; none: a pause holds the lock while a firing ends.
    pub fn try_is_limited(&self) -> Option<bool> {
        match self.limited.try_lock() {
            Ok(held) => Some(*held),
            Err(TryLockError::Poisoned(held)) => Some(*held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
