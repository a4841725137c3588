// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who is to sit elsewhere, of those that share cores: by the mapper, when others run than before; by a search, while the same
//! run; and who was moved by the runtime, or must go back to where somebody wants him.

use crate::mapping;
use crate::monitor::{Watch, Watched};
use levada_map::{Balancer, Placement, Search, SearchResult};
use std::time::{Duration, Instant};

/// With no more actors than that a search takes no longer than a look.
const FEW: usize = 64;
/// Of the time of a core, searches take no more than this part.
const SEARCHES: u32 = 20;

/// Actors are sent where they must stay no more often: an action there that lasts sends them away again.
const HOME_AGAIN: Duration = Duration::from_secs(1);

impl Watch<'_> {
    pub(crate) fn sharing(&self) -> &[Watched] {
        let sharing = self.all.partition_point(|w| w.first < usize::MAX);
        &self.all[..sharing]
    }

    pub(crate) fn balancer_of(&self, placement: Placement, before: Option<&Balancer>) -> Balancer {
        let balancer = Balancer::new(self.shared.machine.clone(), placement);
        let balancer = balancer.restricted_to(self.open.clone());
        let balancer = balancer.with_available(&self.shared.left_beside(false));
        let mut balancer = match before {
            Some(before) => balancer.continuing(before),
            None => balancer,
        };
        balancer.set_stuck(self.stuck.iter().copied());
        balancer
    }

    /// One alone that is promised nothing is the balancer's.
    fn is_to_be_mapped(&self) -> bool {
        self.sharing().len() > 1 || self.is_promised()
    }

    /// Whether any of those that share cores is promised a rate.
    fn is_promised(&self) -> bool {
        let mut all = self.sharing().iter();
        all.any(|w| w.hosted.limits.rate.is_some())
    }

    /// Asks the mapper where all of them should be: now that others run than before, or who is promised something is
    /// late; or (`wished`) only since the balancer has found something better.
    pub(crate) fn map(&mut self, wished: bool) {
        if !self.shared.balance || !self.is_to_be_mapped() {
            return;
        }
        self.unmapped = None;
        self.woken = false;
        if self.maps {
            self.stale = true;
            self.wished &= wished;
            return;
        }
        self.wished = wished;
        let machine = &self.shared.machine;
        let left = self
            .balancer
            .as_ref()
            .map(|b| b.available(machine.workers()));
        let machine = self
            .waits
            .of(machine.with_available(&left.unwrap_or_default()));
        let all = self.sharing().iter().map(|w| (&*w.hosted, &w.before));
        self.maps = mapping::remap(self.shared, machine, self.changes, all);
    }

    /// The mapper has answered.
    pub(crate) fn mapped(&mut self, changes: u64, placement: Placement) {
        self.maps = false;
        if std::mem::take(&mut self.stale) || changes != self.changes {
            if self.unmapped.is_none() {
                self.map(self.wished && changes == self.changes);
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
        // Where several come, or go, each in turn is a reason to map anew; what one sends away the next one sends back.
        let returns = self
            .balancer
            .as_ref()
            .and_then(|b| b.return_delay(&placement));
        if let Some(wait) = returns.filter(|_| !self.wished) {
            self.put_off = Some(Instant::now() + wait);
            return;
        }
        self.make(moves);
        let before = self.balancer.take();
        let balancer = self
            .balancer_of(placement, before.as_ref())
            .with_measured_placement();
        self.balancer = Some(match &before {
            Some(before) => balancer.replacing(before, self.wished),
            None => balancer,
        });
    }

    /// Looks for a better placement: here, or aside where that may take long, while the next samples are taken.
    pub(crate) fn search(&mut self, search: Search) {
        if search.actors() <= FEW {
            let found = search.run();
            self.found(self.changes, found);
        } else if !self.searches && self.search_from <= Instant::now() {
            self.searches = mapping::search(self.shared, self.changes, search);
        }
    }

    /// One that went on aside is over, after so long a time.
    pub(crate) fn searched(&mut self, took: Duration) {
        self.searches = false;
        self.search_from = Instant::now() + took * SEARCHES;
    }

    /// Where something is promised the mapper has the last word, which knows promises: even loads may break one. While it is
    /// at work nothing is moved: it would send back what has gone since it was asked.
    pub(crate) fn found(&mut self, changes: u64, found: SearchResult) {
        if self.maps {
            return;
        }
        let ask = self.is_promised();
        let Some(balancer) = self.balancer.as_mut().filter(|_| changes == self.changes) else {
            return;
        };
        if !ask {
            let moves = balancer.moves(found);
            self.make(moves);
        } else if balancer.is_worth_asking(&found) && self.again.may() {
            self.map(true);
        }
    }

    /// What waited behind an action that did not end was given to other workers by the runtime.
    pub(crate) fn follow(&mut self) {
        let actors = |w: &Watched| w.before.actors.iter().map(|a| a.target).collect::<Vec<_>>();
        let placement: Placement = self.sharing().iter().flat_map(actors).collect();
        let Some(balancer) = &mut self.balancer else {
            return;
        };
        if placement == balancer.placement() {
            return;
        }
        let sharing = self.all.partition_point(|w| w.first < usize::MAX);
        for watched in &self.all[..sharing] {
            watched.hosted.tell_moves(&self.shared.events);
        }
        balancer.set_placement(placement);
    }

    /// Who must stay on a worker and is elsewhere, since that was away or an action there did not end, goes back.
    pub(crate) fn keep_pins(&mut self) {
        let mut moves = Vec::new();
        for watched in self.sharing() {
            let actors = watched
                .before
                .actors
                .iter()
                .zip(watched.hosted.seats.pins());
            let away = actors.enumerate().filter_map(|(i, (actor, pin))| {
                let home = pin.filter(|pin| *pin != actor.target && self.open.contains(pin))?;
                let stuck = self.stuck.iter().any(|(_, worker)| *worker == home);
                (!stuck).then_some((watched.first + i, home))
            });
            moves.extend(away);
        }
        if !moves.is_empty() {
            self.pins_from = Instant::now() + HOME_AGAIN;
            self.make(moves);
        }
    }

    fn make(&mut self, moves: Vec<(usize, u32)>) {
        for (actor, worker) in moves {
            let at = self.all.partition_point(|w| w.first <= actor);
            let Some(watched) = at.checked_sub(1).map(|i| &self.all[i]) else {
                continue;
            };
            let index = actor - watched.first;
            let hosted = &watched.hosted;
            if hosted.seat(&self.shared.events, index, worker) == Ok(true) {
                hosted.count_move();
            }
        }
    }
}
