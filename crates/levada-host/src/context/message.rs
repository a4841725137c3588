// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages to the monitor thread.

use levada_map::{Placement, SearchResult};
use std::time::Duration;

/// A message to the monitor thread.
pub enum MonitorMessage {
    /// This application has ended.
    Ended(u64),
    /// An application was started, resumed or moved, or cores have changed.
    Changed,
    /// A worker has work after all were idle.
    Awake,
    /// The mapper's placement of everything that ran at this generation.
    Mapped(u64, Placement),
    /// The result of a search for a better placement at this generation, and its duration.
    Found(u64, SearchResult, Duration),
    Quit,
}
