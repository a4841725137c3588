// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hysteresis against migration ping-pong. A move that reverses a recent route (from core a to core
//! b, whichever actor took it) must be worthwhile without a break for a hold time, which grows with
//! each reversal.

use std::collections::BTreeSet;
use std::time::Duration;

/// Hold times: of a move that reverses no route; of a first reversal, the factor of growth, and the
/// maximum.
const MOVE_HOLD: Duration = Duration::from_millis(300);
const RETURN_HOLD_FIRST: Duration = Duration::from_secs(2);
const RETURN_HOLD_FACTOR: u32 = 3;
const RETURN_HOLD_MAX: Duration = Duration::from_secs(60);
/// After this time without any move, earlier routes are forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(120);

#[derive(Clone, Debug, Default)]
pub struct MoveHysteresis {
    now: Duration,
    /// Routes taken (from core, to core), and the time of the last move.
    routes: BTreeSet<(u32, u32)>,
    moved_at: Duration,
    /// Since when a move has been worthwhile at every check.
    worth_since: Option<Duration>,
    /// The hold time of the last reversal.
    return_hold: Duration,
}

/// The routes from one placement to another.
fn routes(seats: &[u32], better: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let both = seats.iter().copied().zip(better.iter().copied());
    both.filter(|(from, to)| from != to)
}

impl MoveHysteresis {
    pub fn advance(&mut self, elapsed: Duration) {
        self.now += elapsed;
        if self.now.saturating_sub(self.moved_at) > FORGET_AFTER {
            self.return_hold = Duration::ZERO;
            self.routes.clear();
        }
    }

    /// No move is worthwhile now.
    pub fn reset(&mut self) {
        self.worth_since = None;
    }

    fn reverses(&self, seats: &[u32], better: &[u32]) -> bool {
        routes(seats, better).any(|(from, to)| self.routes.contains(&(to, from)))
    }

    /// The remaining hold time if the new placement reverses a recent route; none otherwise.
    pub fn return_delay(&self, seats: &[u32], new: &[u32]) -> Option<Duration> {
        let left = RETURN_HOLD_FIRST.checked_sub(self.now.saturating_sub(self.moved_at));
        left.filter(|left| !left.is_zero() && self.reverses(seats, new))
    }

    /// The hold time of the next reversal.
    fn next_return_hold(&self) -> Duration {
        (self.return_hold * RETURN_HOLD_FACTOR).clamp(RETURN_HOLD_FIRST, RETURN_HOLD_MAX)
    }

    /// Returns whether the worthwhile move has been so for its hold time.
    pub fn is_due(&mut self, seats: &[u32], better: &[u32]) -> bool {
        let worth_since = *self.worth_since.get_or_insert(self.now);
        let return_hold = if self.reverses(seats, better) {
            self.next_return_hold()
        } else {
            MOVE_HOLD
        };
        self.now - worth_since >= return_hold
    }

    /// Records a move that was made because it looked better.
    pub fn record_move(&mut self, seats: &[u32], new: &[u32]) {
        if self.reverses(seats, new) {
            self.return_hold = self.next_return_hold();
        }
        self.record_forced_move(seats, new);
    }

    /// Records a move made for another reason, such as a missed rate or a load. It does not count
    /// as a wrong decision, but a move that reverses it is a reversal.
    pub fn record_forced_move(&mut self, seats: &[u32], new: &[u32]) {
        self.routes.extend(routes(seats, new));
        (self.moved_at, self.worth_since) = (self.now, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reversals_wait_longer_each_time() {
        let mut hysteresis = MoveHysteresis::default();
        let step = Duration::from_millis(100);
        // Milliseconds until a move is due that is worthwhile from now on.
        let mut after = |from: [u32; 2], to: [u32; 2]| {
            let steps = (0..2000).find(|_| {
                hysteresis.advance(step);
                hysteresis.is_due(&from, &to)
            });
            hysteresis.record_move(&from, &to);
            steps.map(|steps| steps * 100)
        };
        assert_eq!(after([0, 0], [0, 1]), Some(300));
        assert_eq!(after([0, 1], [2, 1]), Some(300)); // not a reversal
        assert_eq!(after([0, 1], [0, 0]), Some(2000));
        assert_eq!(after([0, 0], [1, 0]), Some(6000)); // a reversal by another actor
        assert_eq!(after([1, 0], [0, 0]), Some(18000));
        assert_eq!(after([0, 0], [0, 1]), Some(54000));
        assert_eq!(after([0, 1], [0, 0]), Some(60000));
        hysteresis.advance(FORGET_AFTER);
        assert!(!hysteresis.is_due(&[0], &[1]));
        // The condition must hold without a break.
        hysteresis.advance(MOVE_HOLD - step);
        hysteresis.reset();
        hysteresis.advance(step);
        assert!(!hysteresis.is_due(&[0], &[1]));
        hysteresis.advance(MOVE_HOLD);
        assert!(hysteresis.is_due(&[0], &[1]));
    }

    #[test]
    fn forced_moves_do_not_extend_the_hold_time() {
        let mut hysteresis = MoveHysteresis::default();
        for _ in 0..10 {
            hysteresis.record_forced_move(&[0], &[1]);
            hysteresis.record_forced_move(&[1], &[0]);
        }
        // It is a reversal, the first one.
        assert!(!hysteresis.is_due(&[0], &[1]));
        hysteresis.advance(RETURN_HOLD_FIRST - Duration::from_millis(1));
        assert!(!hysteresis.is_due(&[0], &[1]));
        assert_eq!(
            hysteresis.return_delay(&[0], &[1]),
            Some(Duration::from_millis(1))
        );
        assert_eq!(hysteresis.return_delay(&[0], &[2]), None);
        hysteresis.advance(Duration::from_millis(1));
        assert_eq!(hysteresis.return_delay(&[0], &[1]), None);
        assert!(hysteresis.is_due(&[0], &[1]));
        hysteresis.record_move(&[0], &[1]);
        assert_eq!(
            hysteresis.next_return_hold(),
            RETURN_HOLD_FIRST * RETURN_HOLD_FACTOR
        );
    }
}
