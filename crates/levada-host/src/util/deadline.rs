// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Deadlines that do not overflow, whatever timeout a client gives.

use std::time::{Duration, Instant};

/// Longer timeouts are clamped to this, which can be added to a time.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(1 << 20);

pub fn deadline(timeout: Duration) -> Instant {
    Instant::now() + timeout.min(TIMEOUT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_too_long() {
        let now = Instant::now();
        assert!(deadline(Duration::MAX) > now + TIMEOUT_MAX / 2);
        assert!(deadline(Duration::ZERO) < now + TIMEOUT_MAX / 2);
    }
}
