// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the host needs to know of isolated processes, implemented by `isolated`.

use std::collections::BTreeMap;
use std::time::Duration;

/// All of them together.
pub(crate) trait Beside: Send + Sync {
    /// None of them runs on a core that is not for all when this returns. Who keeps one, in words, where that lasts
    /// for longer than `within`; when it is for all again, they are to be told.
    fn leave(&self, within: Duration) -> Result<(), String>;

    /// Tells them, without waiting for it, which cores are for all now, and who computes beside them.
    fn tell(&self);

    /// The part of each worker's core that they take, as they say.
    fn loads(&self) -> Vec<f64>;

    /// The parts that they take of cores, each of them, as the system says; nobody is asked. What is known already, or
    /// `now`, for which they may have to be looked at for a moment.
    fn taken(&self, now: bool) -> BTreeMap<i32, Vec<f64>>;

    /// The names of their applications.
    fn names(&self) -> Vec<String>;
}
