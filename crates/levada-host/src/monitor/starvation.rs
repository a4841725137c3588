// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starvation: an actor is ready but gets no turn, because its worker is busy with actors that are scheduled first.
//! Its cost is not measured then, so the balancer sees none; the mapper, which knows the cost per unit, is asked
//! again.

use levada_sys::Counters;
use std::time::{Duration, Instant};

/// An actor starves if it is ready and has had no turn for this time.
const STARVATION_TIME: Duration = Duration::from_secs(1);
/// First and longest interval between two mappings because of starvation.
const INTERVAL_MIN: Duration = Duration::from_secs(2);
const INTERVAL_MAX: Duration = Duration::from_secs(64);

/// For each actor of an application: when it last had a turn, or needed none.
pub struct TurnTracker(Vec<Instant>);

impl TurnTracker {
    pub fn new(actors: usize) -> TurnTracker {
        TurnTracker(vec![Instant::now(); actors])
    }

    /// `held`: the application may not run now. Returns whether an actor starves.
    pub fn sample(&mut self, before: &Counters, now: &Counters, held: bool) -> bool {
        let actors = before.actors.iter().zip(&now.actors);
        let at = Instant::now();
        for (last, (before, now)) in self.0.iter_mut().zip(actors) {
            let turn = now.activations != before.activations || now.busy != before.busy;
            if held || turn || now.waits {
                *last = at;
            }
        }
        self.0
            .iter()
            .any(|last| at.duration_since(*last) > STARVATION_TIME)
    }
}

/// Exponential backoff of mappings.
pub struct Backoff {
    from: Instant,
    pause: Duration,
}

impl Backoff {
    pub fn new() -> Backoff {
        Backoff {
            from: Instant::now(),
            pause: INTERVAL_MIN,
        }
    }

    /// If it is due, the next interval is doubled; it is reset after an interval without a request.
    pub fn is_due(&mut self) -> bool {
        let now = Instant::now();
        if now < self.from {
            return false;
        }
        if now - self.from > self.pause {
            self.pause = INTERVAL_MIN;
        }
        self.from = now + self.pause;
        self.pause = (self.pause * 2).min(INTERVAL_MAX);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use levada_sys::ActorCounters;

    #[test]
    fn a_ready_actor_without_a_turn_starves() {
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
        let mut turns = TurnTracker::new(2);
        assert!(!turns.sample(&before, &before, false));
        turns.0[0] -= 2 * STARVATION_TIME;
        assert!(!turns.sample(&before, &before, false)); // it waits
        turns.0[1] -= 2 * STARVATION_TIME;
        assert!(turns.sample(&before, &before, false));
        assert!(!turns.sample(&before, &of([actor(1, true), actor(2, false)]), false));
        turns.0[1] -= 2 * STARVATION_TIME;
        assert!(!turns.sample(&before, &before, true)); // it may not
        let mut again = Backoff::new();
        assert!(again.is_due() && !again.is_due());
    }
}
