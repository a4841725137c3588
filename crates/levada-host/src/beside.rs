// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who computes for this host in processes of their own: what it has to know of them where it gives cores away.

use crate::table::Shared;
use std::collections::BTreeSet;
use std::time::Duration;

/// All of them together.
pub(crate) trait Beside: Send + Sync {
    /// None of them runs on a core that is not for all when this returns. Who keeps one, in words, where that lasts
    /// for longer than `within`; when it is for all again, they are to be told.
    fn leave(&self, within: Duration) -> Result<(), String>;

    /// Tells them, without waiting for it, which cores are for all now.
    fn tell(&self);

    /// The part of each worker's core that they take.
    fn loads(&self) -> Vec<f64>;
}

impl Shared {
    /// The cores that are not for all. A worker that has no core of its own is nowhere.
    pub fn closed(&self) -> BTreeSet<i32> {
        let open = self.runtime.open();
        let closed = (0..self.runtime.workers()).filter(|worker| !open.contains(worker));
        let cpus = closed.filter_map(|w| self.runtime.worker_counters(w).ok());
        cpus.map(|c| c.cpu).filter(|&cpu| cpu >= 0).collect()
    }

    pub fn beside(&self) -> Option<&dyn Beside> {
        self.beside.get().map(|beside| &**beside)
    }
}
