// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who is in a firing that seems not to end: the runtime moves away what waits behind it, and nothing is to come back
//! there; nor can it be moved itself.
//!
//! Who fires for long as a rule is another thing: he is measured, and needs a core, or a good part of one.

use levada_map::App;
use levada_sys::{ActorCounters, Counters};
use std::time::Duration;

/// As long as the runtime lets others wait (`STUCK_MS`).
const LONG: Duration = Duration::from_millis(100);

/// It lasts for long, and for longer than any before.
fn is_stuck(actor: &ActorCounters) -> bool {
    actor.runs >= LONG && actor.runs >= actor.longest
}

/// Those, by their numbers, and the workers that they are on.
pub fn stuck(counters: &Counters) -> impl Iterator<Item = (usize, u32)> {
    let all = counters.actors.iter().enumerate();
    all.filter(|(_, a)| is_stuck(a)).map(|(i, a)| (i, a.worker))
}

/// The application with them where they are.
pub fn pinned(mut app: App, counters: &Counters) -> App {
    for (actor, worker) in stuck(counters) {
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
        let found: Vec<_> = stuck(&counters).collect();
        assert_eq!(found, [(1, 3), (3, 3)]);
    }
}
