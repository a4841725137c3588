// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose turn is next on a worker.

use super::{BECOME, HANDED, LOOK, Machinery, OTHERS, PROMISED, TURN};
use std::cmp::Ordering;

impl Machinery<'_> {
    /// Whether one that another worker has woken is let in before the turn of who runs is over: of a higher rank it
    /// is, and of the same if that turn is long enough.
    pub(super) fn goes_before(&self, actor: usize, core: usize) -> bool {
        let worker = &self.workers[core];
        let Some((running, _)) = worker.step else {
            return false;
        };
        let had = worker.turn - (worker.until - self.now);
        match self.rank(actor).cmp(&self.rank(running)) {
            Ordering::Less => true,
            Ordering::Equal => had > HANDED,
            Ordering::Greater => false,
        }
    }

    /// Event-driven: the first that is ready, by rank where applications differ.
    pub(super) fn first(&mut self, worker: usize) -> Option<(usize, u64, f64)> {
        loop {
            let of = &self.workers[worker];
            let place = |actor| self.rank(actor).1;
            let (first, after) = (of.queue.first(place), of.after.first(place));
            let after = match (&first, after) {
                (Some(one), Some(other)) => {
                    let (first, after) = (self.rank(one.actor), self.rank(other.actor));
                    let either = first == after && of.others_left <= 0.0;
                    // Before who has had a turn a promise goes for longer.
                    let goes = first == (after.0, 2) && of.promised_had <= PROMISED;
                    (after < first && !goes || either).then_some(other)
                }
                (_, after) => after,
            };
            let of = &mut self.workers[worker];
            let actor = match after {
                Some(after) => of.after.take(after),
                None => of.queue.take(first?),
            };
            match self.can(actor) {
                0 => self.let_rest(actor),
                can => return Some((actor, can, self.machine.costs.turn)),
            }
        }
    }

    /// Priority decides, then who is behind its promise comes first; or last, where promises have gone before for some time.
    pub(super) fn rank(&self, actor: usize) -> (usize, u8) {
        let entity = &self.entities[actor];
        let had = self.workers[entity.core].promised_had;
        let place = match self.is_behind(actor) {
            true if had <= BECOME => 0,
            true => 2,
            false => 1,
        };
        (entity.class.level, place)
    }

    pub(super) fn is_behind(&self, actor: usize) -> bool {
        let entity = &self.entities[actor];
        entity.promise.is_some_and(|promise| {
            (entity.done as f64 / entity.firings) < promise * (self.now * 1e-9) * 1.01 + 1.0
        })
    }

    /// A step of an actor begins. What promises have while nobody waits is no debt, nor what others have while none
    /// waits.
    pub(super) fn count_promised(&mut self, worker: usize, actor: usize, time: f64) {
        if !self.ranked {
            return;
        }
        let behind = self.is_behind(actor);
        let waits = !behind
            && self.workers[worker]
                .queue
                .promised()
                .any(|a| self.is_behind(a));
        let had = &mut self.workers[worker].promised_had;
        match behind {
            true if *had > PROMISED => {}
            true => *had += time,
            false if waits => *had = (*had - time * OTHERS).max(-PROMISED),
            false if *had > 0.0 => *had = (*had - time * OTHERS).max(0.0),
            false => {}
        }
    }

    /// Round robin: the next that can fire, of those of the highest rank where applications differ; each that is looked
    /// at costs.
    pub(super) fn around(&mut self, worker: usize) -> Option<(usize, u64, f64)> {
        let count = self.workers[worker].own.len();
        let mut found: Option<(usize, u64)> = None;
        let mut looked = 0;
        for behind in 0..count {
            let at = (self.workers[worker].next + behind) % count;
            let actor = self.workers[worker].own[at];
            let rank = |at: usize| self.rank(self.workers[worker].own[at]);
            if found.is_some_and(|(best, _)| rank(at) >= rank(best)) {
                continue;
            }
            match self.can(actor) {
                0 => self.let_rest(actor),
                can => found = Some((at, can)),
            }
            looked = behind;
            if found.is_some() && !self.ranked {
                break;
            }
        }
        let (at, can) = found?;
        let actor = self.workers[worker].own[at];
        self.entities[actor].ready = true;
        let turn = (TURN / self.entities[actor].firing) as u64;
        self.workers[worker].quota = self.could(actor, turn.max(1));
        self.workers[worker].next = (at + 1) % count;
        Some((actor, can, self.machine.costs.turn + LOOK * looked as f64))
    }
}
