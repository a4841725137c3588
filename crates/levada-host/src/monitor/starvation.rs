// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who could run, and has no turn: its worker is busy with what goes before it. What it would take is not
//! measured then, so to the balancer it is nothing, wherever it is; the mapper, which knows what a unit of it takes, is
//! asked again.

use levada_sys::Counters;
use std::time::{Duration, Instant};

/// So long it has had none.
const LONG: Duration = Duration::from_secs(1);
/// The mapper is asked again after so long at the least, and after longer each time.
const FIRST: Duration = Duration::from_secs(2);
const LAST: Duration = Duration::from_secs(64);

/// Of an application: when each of its actors last had a turn, or needed none.
pub struct Turns(Vec<Instant>);

impl Turns {
    pub fn new(actors: usize) -> Turns {
        Turns(vec![Instant::now(); actors])
    }

    /// `held`: none of it may run now. Whether some actor starves.
    pub fn look(&mut self, before: &Counters, now: &Counters, held: bool) -> bool {
        let actors = before.actors.iter().zip(&now.actors);
        let at = Instant::now();
        for (last, (before, now)) in self.0.iter_mut().zip(actors) {
            let turn = now.activations != before.activations || now.busy != before.busy;
            if held || turn || now.waits {
                *last = at;
            }
        }
        self.0.iter().any(|last| at.duration_since(*last) > LONG)
    }
}

/// When the mapper may be asked again.
pub struct Again {
    from: Instant,
    pause: Duration,
}

impl Again {
    pub fn new() -> Again {
        Again {
            from: Instant::now(),
            pause: FIRST,
        }
    }

    /// Is it time? Then the next time is later, unless nobody has asked for as long again.
    pub fn may(&mut self) -> bool {
        let now = Instant::now();
        if now < self.from {
            return false;
        }
        if now - self.from > self.pause {
            self.pause = FIRST;
        }
        self.from = now + self.pause;
        self.pause = (self.pause * 2).min(LAST);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use levada_sys::ActorCounters;

    #[test]
    fn who_could_run_and_does_not_starves() {
        let actor = |activations, waits| ActorCounters {
            activations,
            waits,
            ..ActorCounters::default()
        };
        let of = |actors: [ActorCounters; 2]| Counters {
            actors: actors.into(),
            ..Counters::default()
        };
        let before = of([actor(1, true), actor(1, false)]);
        let mut turns = Turns::new(2);
        assert!(!turns.look(&before, &before, false));
        turns.0[0] -= 2 * LONG;
        assert!(!turns.look(&before, &before, false)); // it waits
        turns.0[1] -= 2 * LONG;
        assert!(turns.look(&before, &before, false));
        assert!(!turns.look(&before, &of([actor(1, true), actor(2, false)]), false));
        turns.0[1] -= 2 * LONG;
        assert!(!turns.look(&before, &before, true)); // it may not
        let mut again = Again::new();
        assert!(again.may() && !again.may());
    }
}
