// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who does next to nothing, and waits for its input or for who takes its output: it stays where it is when others are
//! mapped, and has no part in that. Weighed by what a unit of it takes it would be moved as if it were at work, for
//! nothing; and back, when others come and go. When it begins again it is mapped like them.

/// Nanoseconds of a second: who takes less begins to rest, and who takes more has begun again. In between it goes on as
/// it did.
const RESTS: f64 = 1e6;
const WAKES: f64 = 1e7;
/// Who has something to do each time, so often, has no turn to do it.
const STARVES: u32 = 3;

#[derive(Default)]
pub(crate) struct Resting {
    rests: bool,
    /// Looks in a row at which it did not wait.
    ready: u32,
}

impl Resting {
    pub fn is(&self) -> bool {
        self.rests
    }

    /// It takes so many nanoseconds of a second, and waits now, or does not. Whether it has begun again.
    pub fn look(&mut self, takes: f64, waits: bool) -> bool {
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
    fn who_has_no_turn_does_not_rest() {
        let mut one = Resting::default();
        one.look(0.0, true);
        assert!(one.is());
        let begins = [false; 5].map(|waits| one.look(0.0, waits));
        assert_eq!(begins, [false, false, true, false, false]);
        assert!(!one.is());
    }
}
