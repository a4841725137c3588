// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long is waited at the most, where somebody else says so: what nobody lives to see is a limit all the same.

use std::time::{Duration, Instant};

/// Longer than anybody waits is not told apart, and can be added to a time.
pub const EVER: Duration = Duration::from_secs(1 << 20);

pub fn deadline(within: Duration) -> Instant {
    Instant::now() + within.min(EVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_too_long() {
        let now = Instant::now();
        assert!(deadline(Duration::MAX) > now + EVER / 2);
        assert!(deadline(Duration::ZERO) < now + EVER / 2);
    }
}
