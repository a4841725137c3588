// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long whoever has something to do again waits for the lease of its core, where other programs compute there, too.
//! An application that lies on several cores waits so at each hand-over from one to another; together on one it waits once.

use levada_map::Machine;
use std::time::{Duration, Instant};

/// So many waits say what a wait takes; and what they say is so until there were none for so long.
const ENOUGH: u64 = 8;
const LATELY: Duration = Duration::from_secs(2);

/// Those who compute all the time wait from the end of a turn of theirs, for the turns of all others. Whoever comes
/// when something has come for it waits for what is left of one more: half of one (`TURN_NS` in lease_client.c).
const HALF_A_TURN: f64 = 2e6;

pub(crate) struct Waits {
    /// How often anybody had waited, and for how many nanoseconds in all, when that last said something.
    before: (u64, u64),
    at: Instant,
    mean: f64,
}

impl Waits {
    pub fn new() -> Waits {
        Waits {
            before: (0, 0),
            at: Instant::now(),
            mean: 0.0,
        }
    }

    /// So often, and so long, anybody has waited by now for any core.
    pub fn look(&mut self, now: (u64, u64)) {
        let waits = now.0.saturating_sub(self.before.0);
        if waits >= ENOUGH {
            self.mean = now.1.saturating_sub(self.before.1) as f64 / waits as f64;
        } else if self.at.elapsed() > LATELY {
            self.mean = 0.0;
        } else {
            return;
        }
        (self.before, self.at) = (now, Instant::now());
    }

    /// The machine on which workers wait so.
    pub fn of(&self, mut machine: Machine) -> Machine {
        if self.mean > 0.0 {
            let costs = &mut machine.costs;
            costs.wake += self.mean + HALF_A_TURN;
            costs.asleep += self.mean + HALF_A_TURN;
        }
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_a_mean_of_those_that_there_were_lately() {
        let (mut waits, usual) = (Waits::new(), Machine::new(2));
        let told = |waits: &Waits| {
            let costs = waits.of(usual.clone()).costs;
            let more = [
                costs.wake - usual.costs.wake,
                costs.asleep - usual.costs.asleep,
            ];
            assert_eq!(more[0], more[1]);
            more[0]
        };
        assert_eq!(told(&waits), 0.0);
        waits.look((100, 400_000_000));
        assert_eq!(told(&waits), 6e6);
        // Few say nothing yet; together with others they do.
        waits.look((104, 401_000_000));
        assert_eq!(told(&waits), 6e6);
        waits.look((110, 410_000_000));
        assert_eq!(told(&waits), 3e6);
        waits.at -= 2 * LATELY;
        waits.look((111, 410_000_000));
        assert_eq!(told(&waits), 0.0);
    }
}
