// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages to the monitor thread.

use levada_map::{Placement, SearchResult};
use std::time::Duration;

/// What the thread is told.
pub enum Note {
    /// This application has ended.
    Ended(u64),
    /// Something has been started, resumed or moved.
    Changed,
    /// A worker has something to do, after a time in which none had.
    Awake,
    /// Where the mapper puts all that ran at this count of changes.
    Mapped(u64, Placement),
    /// What a search for a better placement has found, for what was so then, and how long it took.
    Found(u64, SearchResult, Duration),
    Quit,
}
