// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ready queue of a worker: by priority, then by age, except that the order of actors with
//! reserved rates changes with time. Selection looks only at actors that can have changed their
//! order.

use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct ReadyQueue {
    /// Highest priority first.
    levels: Vec<Level>,
    /// Number of actors in the queue.
    there: u32,
    /// Number of actors ever added.
    count: u32,
}

/// The actors of one priority.
#[derive(Default)]
struct Level {
    plain: VecDeque<One>,
    /// Actors of applications with reserved rates: their order among the others changes with time.
    reserved: VecDeque<One>,
}

/// A smaller number has been ready for longer.
#[derive(Clone, Copy)]
struct One {
    number: u32,
    actor: u32,
}

/// The part of the queue that an actor goes to.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadyKey {
    /// Index of its priority; 0 is the highest.
    pub level: usize,
    pub reserved: bool,
}

/// The selected actor, to be passed to [`ReadyQueue::take`].
pub(super) struct First {
    pub actor: usize,
    level: usize,
    /// Its index among those with reserved rates; none: it is the first of the others.
    at: Option<usize>,
}

/// Order within a priority: actors without a reserved rate, the first place, and the last.
pub(super) const PLACE_PLAIN: u8 = 1;
pub(super) const PLACE_FIRST: u8 = 0;
pub(super) const PLACE_LAST: u8 = 2;

impl ReadyQueue {
    pub fn is_empty(&self) -> bool {
        self.there == 0
    }

    pub fn add(&mut self, actor: usize, class: ReadyKey) {
        if self.levels.len() <= class.level {
            self.levels.resize_with(class.level + 1, Level::default);
        }
        let level = &mut self.levels[class.level];
        let queue = if class.reserved {
            &mut level.reserved
        } else {
            &mut level.plain
        };
        queue.push_back(One {
            number: self.count,
            actor: actor as u32,
        });
        self.count += 1;
        self.there += 1;
    }

    /// The actors of a level that have reserved rates.
    pub fn reserved(&self, level: usize) -> impl Iterator<Item = usize> {
        let all = self.levels.get(level).into_iter().flat_map(|l| &l.reserved);
        all.map(|one| one.actor as usize)
    }

    /// Whether a level has actors without reserved rates.
    pub fn has_unreserved(&self, level: usize) -> bool {
        self.levels.get(level).is_some_and(|l| !l.plain.is_empty())
    }

    /// The actor that has been ready for longest, whatever its priority.
    pub fn oldest(&self) -> Option<usize> {
        let all = self.levels.iter().flat_map(|l| [&l.plain, &l.reserved]);
        let oldest = all.filter_map(VecDeque::front).min_by_key(|one| one.number);
        oldest.map(|one| one.actor as usize)
    }

    /// The first actor by priority, then by `place` (asked only for actors with reserved rates),
    /// then by age.
    pub fn first(&self, place: impl Fn(usize) -> u8) -> Option<First> {
        if self.is_empty() {
            return None;
        }
        let mut levels = self.levels.iter().enumerate();
        let (number, level) = levels.find(|(_, level)| !level.is_empty())?;
        let plain = level.plain.front();
        let mut first = plain.map(|one| ((PLACE_PLAIN, one.number), None, one.actor as usize));
        for (at, one) in level.reserved.iter().enumerate() {
            let actor = one.actor as usize;
            let key = (place(actor), one.number);
            if first.is_none_or(|(than, ..)| key < than) {
                first = Some((key, Some(at), actor));
            }
            if key.0 == PLACE_FIRST {
                break;
            }
        }
        first.map(|(_, at, actor)| First {
            actor,
            level: number,
            at,
        })
    }

    pub fn take(&mut self, first: First) -> usize {
        let level = &mut self.levels[first.level];
        match first.at {
            Some(at) => level.reserved.remove(at),
            None => level.plain.pop_front(),
        };
        self.there -= 1;
        first.actor
    }
}

impl Level {
    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.reserved.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_priority_then_by_place_then_by_age() {
        let class = |level, reserved| ReadyKey { level, reserved };
        let mut ready = ReadyQueue::default();
        assert!(ready.is_empty() && ready.oldest().is_none() && ready.first(|_| 0).is_none());
        let all = [
            (0, 1, false),
            (1, 0, false),
            (2, 0, true),
            (3, 0, true),
            (4, 0, false),
        ];
        for (actor, level, reserved) in all {
            ready.add(actor, class(level, reserved));
        }
        assert_eq!(ready.oldest(), Some(0));
        let mut next = |place: &dyn Fn(usize) -> u8| {
            let first = ready.first(place).unwrap();
            ready.take(first)
        };
        // An actor behind its reservation is first, one that had its share is last, others go by
        // age.
        assert_eq!(
            next(&|actor| if actor == 3 { PLACE_FIRST } else { PLACE_PLAIN }),
            3
        );
        assert_eq!(next(&|_| 2), 1);
        assert_eq!(next(&|_| PLACE_PLAIN), 2);
        assert_eq!(next(&|_| PLACE_FIRST), 4);
        assert_eq!(next(&|_| PLACE_FIRST), 0);
        assert!(ready.is_empty());
    }
}
