// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is promised a rate gets no more than that, and what has a share of the cores no more than that: its sources rest when they are ahead, until a time that is among
//! the ends of steps, and what they did not take in time is lost to them, as it is in the host.

use super::{Entity, Machinery};

/// So many seconds what was promised and not taken is kept, and so many units at the least: the host's rule for
/// what it promises, too.
pub const SAVED: f64 = 0.5;
pub const SAVED_UNITS: f64 = 2.0;

/// What a source may do by its application's promise and share.
pub(super) struct Cap {
    /// Firings a nanosecond.
    pub(super) rate: f64,
    /// Firings that it may have at once: of what was due and not made, more than that is lost.
    pub(super) saved: f64,
    pub(super) lost: f64,
    /// Lost already when it was counted from.
    pub(super) before: f64,
}

/// So many firings a source may be ahead of what is due: a unit, and one at the least.
fn ahead(entity: &Entity<'_>) -> f64 {
    entity.firings.max(1.0)
}

impl Machinery<'_> {
    /// How many firings it may make by what its application gets: a unit more than were due.
    pub(super) fn allowed(&self, entity: &Entity<'_>) -> u64 {
        match &entity.cap {
            Some(cap) => self.due(entity, cap).min(cap.saved) as u64,
            None => u64::MAX,
        }
    }

    fn due(&self, entity: &Entity<'_>, cap: &Cap) -> f64 {
        cap.rate * self.now + ahead(entity) + 1e-6 - cap.lost - entity.done as f64
    }

    /// Of what it was to do until now, more than it may make up for is lost.
    pub(super) fn lose(&mut self, actor: usize) {
        let entity = &self.entities[actor];
        let Some(cap) = &entity.cap else { return };
        let more = self.due(entity, cap) - cap.saved;
        if let Some(cap) = self.entities[actor].cap.as_mut().filter(|_| more > 0.0) {
            cap.lost += more;
        }
    }

    pub(super) fn lose_all(&mut self) {
        (0..self.entities.len()).for_each(|actor| self.lose(actor));
    }

    /// It can do nothing for now; if that is by what it may, it goes on when it may again.
    pub(super) fn let_rest(&mut self, actor: usize) {
        let entity = &self.entities[actor];
        let cap = entity.cap.as_ref();
        let due = cap.filter(|_| !entity.rests && self.allowed(entity) == 0);
        // For some of a unit at once: each firing by itself would be a step.
        let some = (entity.firings / 8.0).min(f64::from(entity.step)).max(1.0);
        let at = due.map(|cap| (entity.done as f64 + some + cap.lost - ahead(entity)) / cap.rate);
        let entity = &mut self.entities[actor];
        entity.ready = false;
        if let Some(at) = at {
            entity.rests = true;
            entity.rested = true;
            self.ends.of_rest(actor, at.max(self.now + 1.0));
        }
    }
}
