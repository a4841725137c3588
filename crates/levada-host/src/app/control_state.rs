// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an application was told: to pause, to go on, to come to its end.

use crate::util::lock::lock;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub(crate) struct Told {
    /// Who has it in hand may pause it, resume it, end its sources or replace it.
    hand: Mutex<()>,
    /// Its limits hold it, as if it were paused. In hand or not, that is locked for a moment only, or for a
    /// firing that is waited for: so the limits are kept whatever else is done to it.
    held: Mutex<bool>,
    /// Somebody takes it away, whether or not it has begun, and waits for its end.
    pub goes: AtomicBool,
    /// Its sources have been ended, whatever else is done to it.
    pub drains: AtomicBool,
}

impl Told {
    /// Takes it in hand; none: somebody else has had it until then.
    pub fn in_hand(&self, until: Instant) -> Option<MutexGuard<'_, ()>> {
        loop {
            match self.hand.try_lock() {
                Ok(hand) => return Some(hand),
                Err(TryLockError::Poisoned(hand)) => return Some(hand.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => return None,
            }
        }
    }

    /// Whether its limits hold it, which nobody changes meanwhile.
    pub fn held(&self) -> MutexGuard<'_, bool> {
        lock(&self.held)
    }

    /// The same for who only asks; none: who pauses it has that in hand, as long as a firing lasts.
    pub fn is_held(&self) -> Option<bool> {
        match self.held.try_lock() {
            Ok(held) => Some(*held),
            Err(TryLockError::Poisoned(held)) => Some(*held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
