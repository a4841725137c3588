// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is promised a rate gets no more than that, and what has a share of the cores no more than that: its sources rest when they are ahead, until a time that is among
//! the ends of steps, and what they did not take in time is lost to them, as it is in the host.

use super::{Entity, Simulator};

/// So many seconds what was promised and not taken is kept, and so many units at the least: the host's rule for
/// what it promises, too.
pub const RATE_BURST_S: f64 = 0.5;
pub const RATE_BURST_UNITS: f64 = 2.0;

/// What a source may do by its application's promise and share.
pub(super) struct RateLimiter {
    /// Firings a nanosecond.
    pub(super) rate: f64,
    /// Firings that it may have at once: of what was due and not made, more than that is lost.
    pub(super) saved: f64,
    pub(super) lost: f64,
    /// Lost already when it was counted from.
    pub(super) lost_before: f64,
}

/// So many firings a source may be ahead of what is due: a unit, and one at the least.
fn ahead(entity: &Entity<'_>) -> f64 {
    entity.firings.max(1.0)
}

impl Simulator<'_> {
    /// How many firings it may make by what its application gets: a unit more than were due.
    pub(super) fn firings_allowed(&self, entity: &Entity<'_>) -> u64 {
        match &entity.limiter {
            Some(limiter) => self.due(entity, limiter).min(limiter.saved) as u64,
            None => u64::MAX,
        }
    }

    fn due(&self, entity: &Entity<'_>, limiter: &RateLimiter) -> f64 {
        limiter.rate * self.now + ahead(entity) + 1e-6 - limiter.lost - entity.done as f64
    }

    /// Of what it was to do until now, more than it may make up for is lost.
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

    /// It can do nothing for now; if that is by what it may, it goes on when it may again.
    pub(super) fn suspend(&mut self, actor: usize) {
        let entity = &self.entities[actor];
        let limiter = entity.limiter.as_ref();
        let due = limiter.filter(|_| !entity.resting && self.firings_allowed(entity) == 0);
        // For some of a unit at once: each firing by itself would be a step.
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
