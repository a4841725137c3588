// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Timeouts of requests.

use crate::model::error::{Kind, Refusal};
use crate::util::deadline::EVER;
use std::time::Duration;

/// A limit of time as a request gives it, in seconds.
pub(crate) fn limit(given: Option<f64>, usual: f64) -> Result<Duration, Refusal> {
    let within = given.unwrap_or(usual);
    Duration::try_from_secs_f64(within)
        .map(|within| within.min(EVER))
        .map_err(|e| {
            let within = levada_map::format_number(within);
            Refusal::new(Kind::Wrong, format!("within={within} is no time: {e}"))
        })
}
