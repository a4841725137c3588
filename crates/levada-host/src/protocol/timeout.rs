// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Timeouts of requests.

use crate::model::error::{Kind, Refusal};
use crate::util::deadline::TIMEOUT_MAX;
use std::time::Duration;

/// The timeout of a request, given in seconds; `usual` is the default in seconds.
pub(crate) fn timeout_from(given: Option<f64>, usual: f64) -> Result<Duration, Refusal> {
    let timeout = given.unwrap_or(usual);
    Duration::try_from_secs_f64(timeout)
        .map(|timeout| timeout.min(TIMEOUT_MAX))
        .map_err(|e| {
            let timeout = levada_map::format_number(timeout);
            Refusal::new(Kind::Wrong, format!("timeout={timeout} is not a time: {e}"))
        })
}
