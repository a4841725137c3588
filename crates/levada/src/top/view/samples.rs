// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two replies to the same request; rates are computed from their difference.

pub(super) struct Samples<T> {
    pub now: T,
    at: f64,
    before: Option<(f64, T)>,
    /// Minimum interval in seconds: units that are counted in steps, such as frames, would have meaningless rates
    /// between replies in quick succession after a key.
    shortest: f64,
}

impl<T> Samples<T> {
    pub fn new(at: f64, now: T, shortest: f64) -> Samples<T> {
        Samples {
            shortest,
            now,
            at,
            before: None,
        }
    }

    /// Takes a new reply. One that arrives soon after the last replaces it.
    pub fn take(&mut self, at: f64, now: T) {
        let was = (self.at, std::mem::replace(&mut self.now, now));
        if self.before.is_none() || at - self.at >= self.shortest {
            self.before = Some(was);
        }
        self.at = at;
    }

    /// The earlier reply, and the seconds between it and the later one.
    pub fn before(&self) -> Option<(&T, f64)> {
        let (at, before) = self.before.as_ref()?;
        let seconds = self.at - at;
        (seconds >= self.shortest).then_some((before, seconds))
    }
}

/// The busy fraction of `cores` in `seconds`, at most 1: the two readings are not taken at exactly the same time.
pub(super) fn busy(now: f64, was: f64, seconds: f64, cores: usize) -> f64 {
    ((now - was) / seconds).clamp(0.0, cores as f64)
}
