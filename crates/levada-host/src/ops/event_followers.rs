// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Those that follow the events.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// More at a time are turned away.
pub const FOLLOWERS: usize = 128;

/// The places of followers, and whether what they follow ends.
pub struct Followers {
    places: Arc<Semaphore>,
    ends: watch::Sender<bool>,
}

impl Default for Followers {
    fn default() -> Followers {
        Followers {
            places: Arc::new(Semaphore::new(FOLLOWERS)),
            ends: watch::Sender::new(false),
        }
    }
}

impl Followers {
    /// A place for one more; none: there is none.
    pub fn enter(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// True when the host ends.
    pub fn ending(&self) -> watch::Receiver<bool> {
        self.ends.subscribe()
    }

    /// The host ends: returns when all followers have been told all.
    pub async fn end(&self) {
        self.ends.send_replace(true);
        drop(self.places.acquire_many(FOLLOWERS as u32).await);
    }
}
