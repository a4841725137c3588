// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who does next to nothing, and waits for its input or for who takes its output: it stays where it is when others are
//! mapped, and has no part in that. Weighed by what a unit of it takes it would be moved as if it were at work, for
//! nothing; and back, when others come and go. When it begins again it is mapped like them.
//!
//! And who has nothing to do at times: a clock, its input or who takes its output says how fast it is, and it takes no more
//! of the cores when there is more of them.

use std::time::Instant;

/// Nanoseconds of a second: who takes less begins to rest, and who takes more has begun again. In between it goes on as
/// it did.
const RESTS: f64 = 1e6;
const WAKES: f64 = 1e7;
/// Who has something to do each time, so often, has no turn to do it.
const STARVES: u32 = 3;
/// Who waits this part of the time is paced from outside: of so many looks, as newer ones count more; and not before there
/// were a fourth of that.
const PACED: f64 = 0.1;
const LOOKS: u32 = 16;
/// Of what it has taken at a look less and less counts, a third after so many seconds: of several seconds of work and rest the
/// work does.
const FADES: f64 = 15.0;

#[derive(Default)]
pub(crate) struct Resting {
    rests: bool,
    /// The part of the looks at which it waited, and how many there were.
    waits: f64,
    looks: u32,
    /// The most that it had lately taken of a second, and when.
    most: f64,
    at: Option<Instant>,
    /// Looks in a row at which it did not wait.
    ready: u32,
}

impl Resting {
    pub fn is(&self) -> bool {
        self.rests
    }

    /// Where something outside says how fast it is, the most that it has taken lately; not of who has something to do at each look.
    pub fn paced(&self) -> Option<f64> {
        let waits = self.looks >= LOOKS / 4 && self.waits >= PACED && self.ready < LOOKS;
        (self.rests || waits).then(|| self.faded())
    }

    fn faded(&self) -> f64 {
        let since = self.at.map_or(0.0, |at| at.elapsed().as_secs_f64());
        self.most * (-since / FADES).exp()
    }

    /// It takes so many nanoseconds of a second, and waits now, or does not. Whether it has begun again.
    pub fn look(&mut self, takes: f64, waits: bool) -> bool {
        self.most = takes.max(self.faded());
        self.at = Some(Instant::now());
        self.looks = (self.looks + 1).min(LOOKS);
        self.waits += (f64::from(u8::from(waits)) - self.waits) / f64::from(self.looks);
        self.ready = if waits { 0 } else { self.ready + 1 };
        let was = self.rests;
        let begins = takes > WAKES || self.ready >= STARVES;
        self.rests = !begins && (was || (waits && takes < RESTS));
        was && !self.rests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_nothing_rests_until_it_does_something() {
        let mut one = Resting::default();
        assert!(!one.look(5e8, true) && !one.is());
        assert!(!one.look(5e6, true) && !one.is());
        assert!(!one.look(0.0, false) && !one.is(), "it has no turn");
        assert!(!one.look(0.0, true) && one.is());
        // Now and then something, which it has not done yet at a look.
        assert!(!one.look(5e6, false) && one.is());
        assert!(!one.look(5e6, false) && one.is());
        assert!(!one.look(5e6, true) && one.is());
        assert!(one.look(2e7, true) && !one.is());
        assert!(!one.look(2e7, true) && !one.is());
    }

    #[test]
    fn who_waits_at_times_is_paced_from_outside() {
        let mut one = Resting::default();
        // At its beginning anybody waits.
        (0..3).for_each(|_| assert!(!one.look(1e9, true)));
        assert_eq!(one.paced(), None);
        (0..60).for_each(|_| assert!(!one.look(1e9, false)));
        assert_eq!(one.paced(), None);
        // A clock lets it go on in four of five milliseconds.
        (0..40).for_each(|i| assert!(!one.look(8e8, i % 5 == 0)));
        assert!(one.paced().is_some_and(|most| most > 7e8));
        // It rests for some seconds, and goes on.
        (0..10).for_each(|_| assert!(!one.look(5e6, true)));
        assert!(one.paced().is_some_and(|most| most > 6e8));
        // It has something to do always.
        (0..16).for_each(|_| assert!(!one.look(5e8, false)));
        assert_eq!(one.paced(), None);
    }

    #[test]
    fn who_has_no_turn_does_not_rest() {
        let mut one = Resting::default();
        one.look(0.0, true);
        assert!(one.is());
        let begins = [false; 5].map(|waits| one.look(0.0, waits));
        assert_eq!(begins, [false, false, true, false, false]);
        assert!(!one.is());
    }
}
