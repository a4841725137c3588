// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Moves that come back: when something is to go to a core that something, this or another, has left for the same core
//! a while ago, that is evidence that it should have stayed. So what sends it there has to be so for a while, without a break;
//! and for longer each time.

use std::collections::BTreeSet;
use std::time::Duration;

/// A move that is none back has to be worth it for so long; one that is, for so long at first, so many times as long each
/// time, and never longer than that.
const MOVE_HOLD: Duration = Duration::from_millis(300);
const RETURN_HOLD_FIRST: Duration = Duration::from_secs(2);
const RETURN_HOLD_FACTOR: u32 = 3;
const RETURN_HOLD_MAX: Duration = Duration::from_secs(60);
/// After so long without any move it has nothing to do with what was before.
const FORGET_AFTER: Duration = Duration::from_secs(120);

#[derive(Clone, Debug, Default)]
pub struct MoveHysteresis {
    now: Duration,
    /// From which core to which one something went, and when the last of it did.
    routes: BTreeSet<(u32, u32)>,
    moved_at: Duration,
    /// Since when a move was worth it each time that somebody has looked.
    worth_since: Option<Duration>,
    /// For how long the last one that came back had to be worth it.
    return_hold: Duration,
}

/// From where to where something goes, when what is on these seats is to be on those.
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

    /// There is nothing that is worth it.
    pub fn reset(&mut self) {
        self.worth_since = None;
    }

    fn reverses(&self, seats: &[u32], better: &[u32]) -> bool {
        routes(seats, better).any(|(from, to)| self.routes.contains(&(to, from)))
    }

    /// For how long what would come back has to wait since something has gone just now; none: nothing would.
    pub fn return_delay(&self, seats: &[u32], new: &[u32]) -> Option<Duration> {
        let left = RETURN_HOLD_FIRST.checked_sub(self.now.saturating_sub(self.moved_at));
        left.filter(|left| !left.is_zero() && self.reverses(seats, new))
    }

    /// For how long what comes back now has to be worth it.
    fn next_return_hold(&self) -> Duration {
        (self.return_hold * RETURN_HOLD_FACTOR).clamp(RETURN_HOLD_FIRST, RETURN_HOLD_MAX)
    }

    /// Is it time for what is worth it now?
    pub fn is_due(&mut self, seats: &[u32], better: &[u32]) -> bool {
        let worth_since = *self.worth_since.get_or_insert(self.now);
        let return_hold = match self.reverses(seats, better) {
            true => self.next_return_hold(),
            false => MOVE_HOLD,
        };
        self.now - worth_since >= return_hold
    }

    /// What was on these seats has been moved to those.
    pub fn record_move(&mut self, seats: &[u32], new: &[u32]) {
        if self.reverses(seats, new) {
            self.return_hold = self.next_return_hold();
        }
        self.record_forced_move(seats, new);
    }

    /// The same, for another reason than that it looked better: who is late must go, and others come or leave. That is
    /// no evidence of how well we judge, but what goes back from there is a move back.
    pub fn record_forced_move(&mut self, seats: &[u32], new: &[u32]) {
        self.routes.extend(routes(seats, new));
        (self.moved_at, self.worth_since) = (self.now, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_waits_for_longer_each_time() {
        let mut hysteresis = MoveHysteresis::default();
        let step = Duration::from_millis(100);
        // After how long it is moved, when it is worth it from now on.
        let mut after = |from: [u32; 2], to: [u32; 2]| {
            let steps = (0..2000).find(|_| {
                hysteresis.advance(step);
                hysteresis.is_due(&from, &to)
            });
            hysteresis.record_move(&from, &to);
            steps.map(|steps| steps * 100)
        };
        assert_eq!(after([0, 0], [0, 1]), Some(300));
        assert_eq!(after([0, 1], [2, 1]), Some(300)); // elsewhere
        assert_eq!(after([0, 1], [0, 0]), Some(2000));
        assert_eq!(after([0, 0], [1, 0]), Some(6000)); // another one
        assert_eq!(after([1, 0], [0, 0]), Some(18000));
        assert_eq!(after([0, 0], [0, 1]), Some(54000));
        assert_eq!(after([0, 1], [0, 0]), Some(60000));
        hysteresis.advance(FORGET_AFTER);
        assert!(!hysteresis.is_due(&[0], &[1]));
        // And only what is so all the time.
        hysteresis.advance(MOVE_HOLD - step);
        hysteresis.reset();
        hysteresis.advance(step);
        assert!(!hysteresis.is_due(&[0], &[1]));
        hysteresis.advance(MOVE_HOLD);
        assert!(hysteresis.is_due(&[0], &[1]));
    }

    #[test]
    fn who_is_sent_to_and_fro_makes_nobody_wait_for_longer() {
        let mut hysteresis = MoveHysteresis::default();
        for _ in 0..10 {
            hysteresis.record_forced_move(&[0], &[1]);
            hysteresis.record_forced_move(&[1], &[0]);
        }
        // It is still a move back, the first one.
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
