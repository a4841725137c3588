// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Detects native code that does not return. Code compiled from CAL is abandoned at any point when its time limit
//! is over or its application ends. Native code is not, since it may hold a system lock: if it does not return,
//! only the end of the process ends it.

use levada_sys::App;
use std::time::{Duration, Instant};

/// Time beyond the limit before a hang is reported.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct NativeHang {
    limit: Option<Duration>,
    asked: Option<Instant>,
    /// For each actor, its number of activations and the longest activation at the last check.
    seen: Vec<(u64, Duration)>,
}

impl NativeHang {
    /// `limit`: the time limit of one action.
    pub fn new(limit: Option<Duration>) -> NativeHang {
        NativeHang {
            limit,
            asked: None,
            seen: Vec::new(),
        }
    }

    /// Describes an actor that does not end although it should; `stopped`: all actors should end.
    pub fn check(&mut self, app: &App, stopped: bool) -> Option<String> {
        if stopped && self.asked.is_none() {
            self.asked = Some(Instant::now());
        }
        let over = self.asked.is_some_and(|at| at.elapsed() > GRACE);
        if self.limit.is_none() && !over {
            return None;
        }
        let now = app.counters().ok()?.actors;
        let before = std::mem::take(&mut self.seen);
        let found = now.iter().zip(&before).find(|(a, (activations, longest))| {
            // It is still in the activation of the last check, which is its longest.
            let goes_on = !a.waits && a.activations == *activations && a.longest > *longest;
            goes_on && (over || self.limit.is_some_and(|l| a.longest > l + GRACE))
        });
        let found = found.map(|(a, _)| {
            let ms = a.longest.as_millis();
            format!(
                "{} has been in native code for {ms} ms, and does not come back",
                a.name
            )
        });
        self.seen = now.iter().map(|a| (a.activations, a.longest)).collect();
        found
    }
}
