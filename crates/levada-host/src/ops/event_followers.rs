// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slots for clients that follow the events.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Maximum number of followers.
pub const FOLLOWERS_MAX: usize = 128;

/// The slots of followers, and whether the event streams end.
pub struct Followers {
    places: Arc<Semaphore>,
    ends: watch::Sender<bool>,
}

impl Default for Followers {
    fn default() -> Followers {
        Followers {
            places: Arc::new(Semaphore::new(FOLLOWERS_MAX)),
            ends: watch::Sender::new(false),
        }
    }
}

impl Followers {
    /// A slot for one more; none if all are in use.
    pub fn enter(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// True when the host ends.
    pub fn ending(&self) -> watch::Receiver<bool> {
        self.ends.subscribe()
    }

    /// Ends the event streams; returns when all followers have received everything.
    pub async fn end(&self) {
        self.ends.send_replace(true);
        drop(self.places.acquire_many(FOLLOWERS_MAX as u32).await);
    }
}
