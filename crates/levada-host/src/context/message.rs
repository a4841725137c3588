// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages to the monitor thread.

use levada_map::{Placement, SearchResult};
use std::time::Duration;

/// A message to the monitor thread.
pub enum MonitorMessage {
    /// This application has ended.
    Ended(u64),
    /// An application was started, resumed or moved, or the running set has changed.
    Changed,
    /// A worker has work after all were idle: samples have to be taken again.
    Awake,
    /// The mapper's placement of all applications that ran at this generation (the monitor's number of changes).
    Mapped(u64, Placement),
    /// The result of the balancer's search at this generation, and its duration.
    Found(u64, SearchResult, Duration),
    /// The thread ends.
    Quit,
}
