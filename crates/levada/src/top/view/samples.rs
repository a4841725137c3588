// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two replies to the same request; rates are computed from their difference.

pub(super) struct Samples<T> {
    pub now: T,
    at: f64,
    before: Option<(f64, T)>,
    /// Seconds, at least, between which is measured: what is counted now and then, as frames are, would have any
    /// rate at all between an answer and the next one that a key has asked for soon after it.
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

    /// A new answer. One that comes soon after the last takes its place.
    pub fn take(&mut self, at: f64, now: T) {
        let was = (self.at, std::mem::replace(&mut self.now, now));
        if self.before.is_none() || at - self.at >= self.shortest {
            self.before = Some(was);
        }
        self.at = at;
    }

    /// The earlier answer, and the seconds from it to the later one.
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
