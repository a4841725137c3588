// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Moves that come back: when something is to go to a core that something, this or another, has left for the same core
//! a while ago, that is evidence that it should have stayed. So what sends it there has to be so for a while, without a break;
//! and for longer each time.

use std::collections::BTreeSet;
use std::time::Duration;

/// A move that is none back has to be worth it for so long; one that is, for so long at first, so many times as long each
/// time, and never longer than that.
const ANY: Duration = Duration::from_millis(300);
const FIRST: Duration = Duration::from_secs(2);
const TIMES: u32 = 3;
const LONGEST: Duration = Duration::from_secs(60);
/// After so long without any move it has nothing to do with what was before.
const FORGOTTEN: Duration = Duration::from_secs(120);

#[derive(Clone, Debug, Default)]
pub struct Swings {
    now: Duration,
    /// From which core to which one something went, and when the last of it did.
    ways: BTreeSet<(u32, u32)>,
    moved_at: Duration,
    /// Since when a move was worth it each time that somebody has looked.
    worth: Option<Duration>,
    /// For how long the last one that came back had to be worth it.
    patience: Duration,
}

/// From where to where something goes, when what is on these seats is to be on those.
fn ways(seats: &[u32], better: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let both = seats.iter().copied().zip(better.iter().copied());
    both.filter(|(from, to)| from != to)
}

impl Swings {
    pub fn goes_by(&mut self, elapsed: Duration) {
        self.now += elapsed;
        if self.now.saturating_sub(self.moved_at) > FORGOTTEN {
            self.patience = Duration::ZERO;
            self.ways.clear();
        }
    }

    /// There is nothing that is worth it.
    pub fn nothing(&mut self) {
        self.worth = None;
    }

    fn comes_back(&self, seats: &[u32], better: &[u32]) -> bool {
        ways(seats, better).any(|(from, to)| self.ways.contains(&(to, from)))
    }

    /// For how long what would come back has to wait since something has gone just now; none: nothing would.
    pub fn returns(&self, seats: &[u32], new: &[u32]) -> Option<Duration> {
        let left = FIRST.checked_sub(self.now.saturating_sub(self.moved_at));
        left.filter(|left| !left.is_zero() && self.comes_back(seats, new))
    }

    /// For how long what comes back now has to be worth it.
    fn longer(&self) -> Duration {
        (self.patience * TIMES).clamp(FIRST, LONGEST)
    }

    /// Is it time for what is worth it now?
    pub fn may(&mut self, seats: &[u32], better: &[u32]) -> bool {
        let worth = *self.worth.get_or_insert(self.now);
        let patience = match self.comes_back(seats, better) {
            true => self.longer(),
            false => ANY,
        };
        self.now - worth >= patience
    }

    /// What was on these seats has been moved to those.
    pub fn moved(&mut self, seats: &[u32], new: &[u32]) {
        if self.comes_back(seats, new) {
            self.patience = self.longer();
        }
        self.sent(seats, new);
    }

    /// The same, for another reason than that it looked better: who is late must go, and others come or leave. That is
    /// no evidence of how well we judge, but what goes back from there is a move back.
    pub fn sent(&mut self, seats: &[u32], new: &[u32]) {
        self.ways.extend(ways(seats, new));
        (self.moved_at, self.worth) = (self.now, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_waits_for_longer_each_time() {
        let mut swings = Swings::default();
        let step = Duration::from_millis(100);
        // After how long it is moved, when it is worth it from now on.
        let mut after = |from: [u32; 2], to: [u32; 2]| {
            let steps = (0..2000).find(|_| {
                swings.goes_by(step);
                swings.may(&from, &to)
            });
            swings.moved(&from, &to);
            steps.map(|steps| steps * 100)
        };
        assert_eq!(after([0, 0], [0, 1]), Some(300));
        assert_eq!(after([0, 1], [2, 1]), Some(300)); // elsewhere
        assert_eq!(after([0, 1], [0, 0]), Some(2000));
        assert_eq!(after([0, 0], [1, 0]), Some(6000)); // another one
        assert_eq!(after([1, 0], [0, 0]), Some(18000));
        assert_eq!(after([0, 0], [0, 1]), Some(54000));
        assert_eq!(after([0, 1], [0, 0]), Some(60000));
        swings.goes_by(FORGOTTEN);
        assert!(!swings.may(&[0], &[1]));
        // And only what is so all the time.
        swings.goes_by(ANY - step);
        swings.nothing();
        swings.goes_by(step);
        assert!(!swings.may(&[0], &[1]));
        swings.goes_by(ANY);
        assert!(swings.may(&[0], &[1]));
    }

    #[test]
    fn who_is_sent_to_and_fro_makes_nobody_wait_for_longer() {
        let mut swings = Swings::default();
        for _ in 0..10 {
            swings.sent(&[0], &[1]);
            swings.sent(&[1], &[0]);
        }
        // It is still a move back, the first one.
        assert!(!swings.may(&[0], &[1]));
        swings.goes_by(FIRST - Duration::from_millis(1));
        assert!(!swings.may(&[0], &[1]));
        assert_eq!(swings.returns(&[0], &[1]), Some(Duration::from_millis(1)));
        assert_eq!(swings.returns(&[0], &[2]), None);
        swings.goes_by(Duration::from_millis(1));
        assert_eq!(swings.returns(&[0], &[1]), None);
        assert!(swings.may(&[0], &[1]));
        swings.moved(&[0], &[1]);
        assert_eq!(swings.longer(), FIRST * TIMES);
    }
}
