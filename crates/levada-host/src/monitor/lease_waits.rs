// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mean time that a waking worker waits for its core's lease, when other programs hold leases. An application
//! on several cores waits at each hand-over between them; on one core it waits once. The mapper receives this as an
//! additional wake-up cost.

use levada_map::Machine;
use std::time::{Duration, Instant};

/// Number of waits that make the mean significant; with fewer new ones, it is valid for this time.
const WAITS_MIN: u64 = 8;
const MEAN_VALIDITY: Duration = Duration::from_secs(2);

/// CPU-bound workers wait from the end of their turn, for the turns of all others. A worker that wakes up waits in
/// addition for the rest of one turn: half a turn, in ns (`TURN_NS` in lease_client.c).
const HALF_TURN_NS: f64 = 2e6;

pub(crate) struct LeaseWaits {
    /// Number of waits, and their total in ns, when the mean was last computed.
    before: (u64, u64),
    at: Instant,
    mean_ns: f64,
}

impl LeaseWaits {
    pub fn new() -> LeaseWaits {
        LeaseWaits {
            before: (0, 0),
            at: Instant::now(),
            mean_ns: 0.0,
        }
    }

    /// `now`: number of waits on all cores, and their total in ns.
    pub fn sample(&mut self, now: (u64, u64)) {
        let waits = now.0.saturating_sub(self.before.0);
        if waits >= WAITS_MIN {
            self.mean_ns = now.1.saturating_sub(self.before.1) as f64 / waits as f64;
        } else if self.at.elapsed() > MEAN_VALIDITY {
            self.mean_ns = 0.0;
        } else {
            return;
        }
        (self.before, self.at) = (now, Instant::now());
    }

    /// The machine with this additional wake-up cost.
    pub fn of(&self, mut machine: Machine) -> Machine {
        if self.mean_ns > 0.0 {
            let costs = &mut machine.costs;
            costs.wake += self.mean_ns + HALF_TURN_NS;
            costs.asleep += self.mean_ns + HALF_TURN_NS;
        }
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_of_recent_waits() {
        let (mut waits, usual) = (LeaseWaits::new(), Machine::new(2));
        let told = |waits: &LeaseWaits| {
            let costs = waits.of(usual.clone()).costs;
            let more = [
                costs.wake - usual.costs.wake,
                costs.asleep - usual.costs.asleep,
            ];
            assert_eq!(more[0], more[1]);
            more[0]
        };
        assert_eq!(told(&waits), 0.0);
        waits.sample((100, 400_000_000));
        assert_eq!(told(&waits), 6e6);
        // A few are not significant yet; together with others they are.
        waits.sample((104, 401_000_000));
        assert_eq!(told(&waits), 6e6);
        waits.sample((110, 410_000_000));
        assert_eq!(told(&waits), 3e6);
        waits.at -= 2 * MEAN_VALIDITY;
        waits.sample((111, 410_000_000));
        assert_eq!(told(&waits), 0.0);
    }
}
