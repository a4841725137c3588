// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The event queue: ends of worker steps and of actor rests. A worker has at most one step, so
//! these are kept in a tournament tree (Knuth, The Art of Computer Programming, volume 3, section
//! 5.4.1); replacing an entry replays only the matches on its path. Rests are in a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Time (bits of a positive float, which have the same order) and number.
type Event = (u64, usize);

/// No event.
const NEVER: Event = (u64::MAX, usize::MAX);

pub(super) struct EventTournament {
    /// The winner is at index 1, the players of match i are at 2i and 2i + 1, and workers start at
    /// index `workers`.
    matches: Vec<Event>,
    workers: usize,
    rests: BinaryHeap<Reverse<Event>>,
}

pub(super) enum Next {
    /// Stays the next event until the worker's end is set again.
    Worker(usize),
    Actor(usize),
}

impl EventTournament {
    pub fn of(workers: usize) -> EventTournament {
        let workers = workers.next_power_of_two();
        EventTournament {
            matches: vec![NEVER; 2 * workers],
            workers,
            rests: BinaryHeap::new(),
        }
    }

    /// Sets the end of a worker's step; none if it has none.
    pub fn set_worker_end(&mut self, worker: usize, at: Option<f64>) {
        let mut place = self.workers + worker;
        self.matches[place] = at.map_or(NEVER, |at| (at.to_bits(), worker));
        while place > 1 {
            // At equal times the lower worker number wins, which is on the left.
            let (left, right) = (self.matches[place & !1], self.matches[place | 1]);
            place /= 2;
            let winner = if right.0 < left.0 { right } else { left };
            if self.matches[place] == winner {
                break;
            }
            self.matches[place] = winner;
        }
    }

    pub fn add_rest_end(&mut self, actor: usize, at: f64) {
        self.rests.push(Reverse((at.to_bits(), actor)));
    }

    /// The next event and its time; at equal times workers precede actors.
    pub fn next(&mut self) -> Option<(f64, Next)> {
        let (at, worker) = self.matches[1];
        match self.rests.peek() {
            Some(&Reverse((rest, actor))) if rest < at => {
                self.rests.pop();
                Some((f64::from_bits(rest), Next::Actor(actor)))
            }
            _ if worker == NEVER.1 => None,
            _ => Some((f64::from_bits(at), Next::Worker(worker))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_next_event_agrees_with_a_sorted_list() {
        for workers in [1, 2, 3, 7, 64, 100] {
            let (mut tournament, mut random) =
                (EventTournament::of(workers), Random::new(workers as u64));
            let mut list: Vec<(u64, usize, usize)> = Vec::new();
            assert!(tournament.next().is_none());
            for turn in 0..2000 {
                let (worker, at) = (random.below(workers), random.below(50) as f64);
                match random.below(8) {
                    0 => {
                        tournament.add_rest_end(turn, at);
                        list.push((at.to_bits(), 1, turn));
                    }
                    more => {
                        let at = (more > 2).then_some(at);
                        tournament.set_worker_end(worker, at);
                        list.retain(|&(_, kind, of)| (kind, of) != (0, worker));
                        list.extend(at.map(|at| (at.to_bits(), 0, worker)));
                    }
                }
                if turn % 3 > 0 {
                    continue;
                }
                list.sort();
                let is = tournament.next().map(|(at, next)| match next {
                    Next::Worker(worker) => (at.to_bits(), 0, worker),
                    Next::Actor(actor) => (at.to_bits(), 1, actor),
                });
                assert_eq!(is, list.first().copied());
                if list.first().is_some_and(|first| first.1 == 1) {
                    list.remove(0);
                }
            }
        }
    }
}
