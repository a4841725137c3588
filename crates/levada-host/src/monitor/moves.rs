// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Moves of actors between shared cores: by the mapper after a change, by the balancer's search, and back to their
//! pins; and moves that the runtime has made.

use crate::mapping;
use crate::monitor::{Monitor, MonitoredApp};
use levada_map::{Balancer, Placement, Search, SearchResult};
use std::time::{Duration, Instant};

/// With at most this number of actors, a search takes no longer than a sample and runs on the monitor thread.
const INLINE_SEARCH_ACTORS_MAX: usize = 64;
/// Searches use at most 1/`SEARCH_PAUSE_FACTOR` of a core.
const SEARCH_PAUSE_FACTOR: u32 = 20;

/// Minimum interval for returning actors to their pins: a long firing there may move them away again.
const PIN_INTERVAL: Duration = Duration::from_secs(1);

impl Monitor<'_> {
    pub(crate) fn sharing(&self) -> &[MonitoredApp] {
        let sharing = self.apps.partition_point(|w| w.first_actor < usize::MAX);
        &self.apps[..sharing]
    }

    pub(crate) fn balancer_of(&self, placement: Placement, before: Option<&Balancer>) -> Balancer {
        let balancer = Balancer::new(self.shared.machine.clone(), placement);
        let balancer = balancer.restricted_to(self.available_workers.clone());
        let balancer = balancer.with_available(&self.shared.left_by_isolated(false));
        let mut balancer = match before {
            Some(before) => balancer.continuing(before),
            None => balancer,
        };
        balancer.set_stuck(self.overrunning.iter().copied());
        balancer
    }

    /// A single application without a reserved rate is left to the balancer.
    fn is_to_be_mapped(&self) -> bool {
        self.sharing().len() > 1 || self.any_rate_reserved()
    }

    /// Whether any application that shares cores has a reserved rate.
    fn any_rate_reserved(&self) -> bool {
        let mut all = self.sharing().iter();
        all.any(|w| w.hosted.limits.rate.is_some())
    }

    /// Starts the mapper for all applications that share cores, because the applications or cores have changed or a
    /// reserved rate is missed; or (`wished`) because the balancer has found an improvement.
    pub(crate) fn map(&mut self, wished: bool) {
        if !self.shared.balance || !self.is_to_be_mapped() {
            return;
        }
        self.samples_unmapped = None;
        self.idle_app_resumed = false;
        if self.mapping {
            self.mapping_is_stale = true;
            self.mapping_wished_by_balancer &= wished;
            return;
        }
        self.mapping_wished_by_balancer = wished;
        let machine = &self.shared.machine;
        let left = self
            .balancer
            .as_ref()
            .map(|b| b.available(machine.workers()));
        let machine = self
            .lease_waits
            .of(machine.with_available(&left.unwrap_or_default()));
        let all = self.sharing().iter().map(|w| (&*w.hosted, &w.before));
        self.mapping = mapping::remap(self.shared, machine, self.generation, all);
    }

    /// The mapper's result has arrived.
    pub(crate) fn on_mapped(&mut self, changes: u64, placement: Placement) {
        self.mapping = false;
        if std::mem::take(&mut self.mapping_is_stale) || changes != self.generation {
            if self.samples_unmapped.is_none() {
                self.map(self.mapping_wished_by_balancer && changes == self.generation);
            }
            return;
        }
        let there = self.balancer.as_ref().map(|b| b.placement().to_vec());
        let Some(there) = there.filter(|t| t.len() == placement.len()) else {
            return;
        };
        let all = placement.iter().zip(&there).enumerate();
        let moves: Vec<(usize, u32)> = all
            .filter(|(_, (new, old))| new != old)
            .map(|(actor, (new, _))| (actor, *new))
            .collect();
        if moves.is_empty() {
            return;
        }
        // When several applications come or go, each is a reason to map again, and one mapping could reverse the moves
        // of the last one.
        let returns = self
            .balancer
            .as_ref()
            .and_then(|b| b.return_delay(&placement));
        if let Some(wait) = returns.filter(|_| !self.mapping_wished_by_balancer) {
            self.mapping_deferred_until = Some(Instant::now() + wait);
            return;
        }
        self.apply_moves(moves);
        let before = self.balancer.take();
        let balancer = self
            .balancer_of(placement, before.as_ref())
            .with_measured_placement();
        self.balancer = Some(match &before {
            Some(before) => balancer.replacing(before, self.mapping_wished_by_balancer),
            None => balancer,
        });
    }

    /// Searches for a better placement: here, or on another thread if that may take long.
    pub(crate) fn search(&mut self, search: Search) {
        if search.actors() <= INLINE_SEARCH_ACTORS_MAX {
            let found = search.run();
            self.on_found(self.generation, found);
        } else if !self.searching && self.search_from <= Instant::now() {
            self.searching = mapping::search(self.shared, self.generation, search);
        }
    }

    /// A search on another thread has ended after this time.
    pub(crate) fn on_search_done(&mut self, took: Duration) {
        self.searching = false;
        self.search_from = Instant::now() + took * SEARCH_PAUSE_FACTOR;
    }

    /// With reserved rates the mapper decides, because balanced loads may still break a reservation. While the mapper
    /// is running nothing is moved: its result would reverse that.
    pub(crate) fn on_found(&mut self, changes: u64, found: SearchResult) {
        if self.mapping {
            return;
        }
        let ask = self.any_rate_reserved();
        let Some(balancer) = self
            .balancer
            .as_mut()
            .filter(|_| changes == self.generation)
        else {
            return;
        };
        if !ask {
            let moves = balancer.moves(found);
            self.apply_moves(moves);
        } else if balancer.is_worth_asking(&found) && self.starvation_backoff.is_due() {
            self.map(true);
        }
    }

    /// Follows the moves that the runtime has made because of a long firing.
    pub(crate) fn follow_runtime_moves(&mut self) {
        let actors =
            |w: &MonitoredApp| w.before.actors.iter().map(|a| a.target).collect::<Vec<_>>();
        let placement: Placement = self.sharing().iter().flat_map(actors).collect();
        let Some(balancer) = &mut self.balancer else {
            return;
        };
        if placement == balancer.placement() {
            return;
        }
        let sharing = self.apps.partition_point(|w| w.first_actor < usize::MAX);
        for watched in &self.apps[..sharing] {
            watched.hosted.emit_moves(&self.shared.events);
        }
        balancer.set_placement(placement);
    }

    /// Returns pinned actors that are elsewhere, because their worker was reserved or overrun.
    pub(crate) fn restore_pins(&mut self) {
        let mut moves = Vec::new();
        for watched in self.sharing() {
            let actors = watched
                .before
                .actors
                .iter()
                .zip(watched.hosted.placement.pins());
            let away = actors.enumerate().filter_map(|(i, (actor, pin))| {
                let home =
                    pin.filter(|pin| *pin != actor.target && self.available_workers.contains(pin))?;
                let stuck = self.overrunning.iter().any(|(_, worker)| *worker == home);
                (!stuck).then_some((watched.first_actor + i, home))
            });
            moves.extend(away);
        }
        if !moves.is_empty() {
            self.pins_from = Instant::now() + PIN_INTERVAL;
            self.apply_moves(moves);
        }
    }

    fn apply_moves(&mut self, moves: Vec<(usize, u32)>) {
        for (actor, worker) in moves {
            let at = self.apps.partition_point(|w| w.first_actor <= actor);
            let Some(watched) = at.checked_sub(1).map(|i| &self.apps[i]) else {
                continue;
            };
            let index = actor - watched.first_actor;
            let hosted = &watched.hosted;
            if hosted.move_actor(&self.shared.events, index, worker) == Ok(true) {
                hosted.count_move();
            }
        }
    }
}
