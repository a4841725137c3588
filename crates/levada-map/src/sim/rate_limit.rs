// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rate limits: the sources of an application with a reserved rate or a CPU limit rest when they
//! are ahead of it. Unused allowance expires beyond a limit, as in the host.

use super::{Entity, Simulator};

/// Unused allowance that is kept, in seconds and at least in units. The host uses the same limits.
pub const RATE_BURST_S: f64 = 0.5;
pub const RATE_BURST_UNITS: f64 = 2.0;

/// The rate limit of a source.
pub(super) struct RateLimiter {
    /// Firings per nanosecond.
    pub(super) rate: f64,
    /// Maximum number of firings of unused allowance; more expires.
    pub(super) saved: f64,
    pub(super) lost: f64,
    /// Expired when counting started.
    pub(super) lost_before: f64,
}

/// The number of firings that a source may be ahead: one unit, and at least one firing.
fn ahead(entity: &Entity<'_>) -> f64 {
    entity.firings.max(1.0)
}

impl Simulator<'_> {
    /// The number of firings that the rate limit permits now.
    pub(super) fn firings_allowed(&self, entity: &Entity<'_>) -> u64 {
        match &entity.limiter {
            Some(limiter) => self.due(entity, limiter).min(limiter.saved) as u64,
            None => u64::MAX,
        }
    }

    fn due(&self, entity: &Entity<'_>, limiter: &RateLimiter) -> f64 {
        limiter.rate * self.now + ahead(entity) + 1e-6 - limiter.lost - entity.done as f64
    }

    /// Expires the allowance beyond the limit.
    pub(super) fn drop_unused(&mut self, actor: usize) {
        let entity = &self.entities[actor];
        let Some(limiter) = &entity.limiter else {
            return;
        };
        let more = self.due(entity, limiter) - limiter.saved;
        if let Some(limiter) = self.entities[actor].limiter.as_mut().filter(|_| more > 0.0) {
            limiter.lost += more;
        }
    }

    pub(super) fn drop_all_unused(&mut self) {
        (0..self.entities.len()).for_each(|actor| self.drop_unused(actor));
    }

    /// The actor cannot fire now. If the rate limit is the reason, it resumes at a known time.
    pub(super) fn suspend(&mut self, actor: usize) {
        let entity = &self.entities[actor];
        let limiter = entity.limiter.as_ref();
        let due = limiter.filter(|_| !entity.resting && self.firings_allowed(entity) == 0);
        // Resumes for several firings at once; otherwise each would be a step.
        let some = (entity.firings / 8.0).min(f64::from(entity.step)).max(1.0);
        let at = due.map(|limiter| {
            (entity.done as f64 + some + limiter.lost - ahead(entity)) / limiter.rate
        });
        let entity = &mut self.entities[actor];
        entity.ready = false;
        if let Some(at) = at {
            entity.resting = true;
            entity.rested = true;
            self.events.add_rest_end(actor, at.max(self.now + 1.0));
        }
    }
}
