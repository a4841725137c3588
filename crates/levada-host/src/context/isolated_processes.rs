// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface through which the lower folders use the processes of isolated applications; `isolated` implements
//! it.

use std::collections::BTreeMap;
use std::time::Duration;

/// The processes of all isolated applications.
pub(crate) trait IsolatedProcesses: Send + Sync {
    /// Returns when none of them runs on a reserved core. If one does for longer than `timeout`, the error names it;
    /// the caller must notify them when the core is no longer reserved.
    fn vacate_reserved_cores(&self, timeout: Duration) -> Result<(), String>;

    /// Sends them, without waiting, the reserved cores and the processes on the same cores.
    fn notify_cores_and_neighbors(&self);

    /// The load on each worker's core, as they report it.
    fn loads(&self) -> Vec<f64>;

    /// The CPU usage of each process per core, as the kernel reports it; the processes are not asked. The last known
    /// values, or with `now` a new sample, which may take a moment.
    fn cpu_usage(&self, now: bool) -> BTreeMap<i32, Vec<f64>>;

    /// The names of their applications.
    fn names(&self) -> Vec<String>;
}
