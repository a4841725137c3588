// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Long firings. An actor in a firing that may not end cannot be moved, and nothing may be moved to its worker: the
//! runtime has moved away the actors that waited behind it.
//!
//! Actors with usually long firings are different: they are measured, and get a core or a large part of one.

use levada_map::App;
use levada_sys::{ActorCounters, Counters};
use std::time::Duration;

/// The time after which the runtime moves waiting actors away (`STUCK_MS`).
const FIRING_OVERRUN: Duration = Duration::from_millis(100);

/// The firing is long, and longer than any before.
fn is_overrunning(actor: &ActorCounters) -> bool {
    actor.runs >= FIRING_OVERRUN && actor.runs >= actor.longest
}

/// The numbers of these actors, and their workers.
pub fn overrunning(counters: &Counters) -> impl Iterator<Item = (usize, u32)> {
    let all = counters.actors.iter().enumerate();
    all.filter(|(_, a)| is_overrunning(a))
        .map(|(i, a)| (i, a.worker))
}

/// The application with these actors pinned to their workers.
pub fn pin_overrunning(mut app: App, counters: &Counters) -> App {
    for (actor, worker) in overrunning(counters) {
        app.actors[actor].pin = Some(worker);
    }
    app
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_firing_is_endless_that_lasts_longer_than_those_before() {
        let actor = |runs, longest| ActorCounters {
            worker: 3,
            runs: Duration::from_millis(runs),
            longest: Duration::from_millis(longest),
            ..ActorCounters::default()
        };
        let counters = Counters {
            actors: vec![
                actor(99, 99),
                actor(100, 100),
                actor(150, 151),
                actor(4000, 4000),
                actor(0, 0),
            ],
            ..Counters::default()
        };
        let found: Vec<_> = overrunning(&counters).collect();
        assert_eq!(found, [(1, 3), (3, 3)]);
    }
}
