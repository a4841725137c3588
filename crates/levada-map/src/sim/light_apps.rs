// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who needs little of a worker goes first there, as in the runtime (runtime/src/sched/ready_queue.h): the actors of an application that
//! have had less than a sixteenth of it of late, or what is let in at once more than that. All of these together have no more
//! than the last two have. Another worker that wakes one of them ends the turn of who runs; so turns are much shorter
//! where many applications have but small actors on a core.

use super::ready_queue::{First, PLACE_PLAIN};
use super::{Entity, OTHERS_DIVISOR, QueueClass, Simulator, WAKE_CREDIT_NS};

/// What is due for longer than so many times what is let in at once is forgotten.
const DEBT_MAX_CREDITS: f64 = 8.0;

/// What the actors of an application have had of a core, of each that has some there, as a virtual schedule (the generic cell
/// rate algorithm of ITU-T I.371): until when that is no more than the part of it that is little.
#[derive(Default)]
pub(super) struct UsageShares(Vec<f64>);

impl UsageShares {
    /// Those of all actors, which are told theirs. (Where one application is alone, none are needed: it goes before nobody.)
    pub fn of_all(entities: &mut [Entity<'_>], cores: usize) -> UsageShares {
        let mut last = vec![(usize::MAX, 0); cores];
        let mut count = 0;
        for entity in entities {
            let (app, share) = &mut last[entity.core()];
            if *app != entity.app {
                (*app, *share) = (entity.app, count);
                count += 1;
            }
            entity.share = *share;
        }
        UsageShares(vec![OTHERS_DIVISOR * WAKE_CREDIT_NS; count as usize])
    }

    /// A turn has ended that took so long.
    pub fn charge(&mut self, share: u32, end: f64, took: f64) {
        if let Some(until) = self.0.get_mut(share as usize) {
            *until = until.clamp(
                end,
                end + DEBT_MAX_CREDITS * OTHERS_DIVISOR * WAKE_CREDIT_NS,
            ) + OTHERS_DIVISOR * took;
        }
    }

    /// Since when the worker has run what it runs.
    fn is_below_share(&self, share: u32, since: f64) -> bool {
        let until = self.0.get(share as usize);
        until.is_some_and(|until| *until <= since + OTHERS_DIVISOR * WAKE_CREDIT_NS)
    }
}

impl Simulator<'_> {
    /// Whether an actor needs little, as it becomes ready; that is noted, too.
    pub(super) fn is_light(&mut self, actor: usize, core: usize) -> bool {
        let worker = &self.workers[core];
        let since = match worker.step {
            Some(_) => worker.step_end - worker.turn,
            None => self.now - worker.turn,
        };
        let entity = &mut self.entities[actor];
        entity.light = entity.promise.is_nan() && self.shares.is_below_share(entity.share, since);
        entity.light
    }

    /// The first of those that need little, if he is to go before these, who are the first of the others; and whether there are
    /// others of his priority who might have had the turn.
    pub(super) fn first_light(
        &self,
        worker: usize,
        usual: Option<&First>,
        yielded: Option<&First>,
    ) -> Option<(First, bool)> {
        let of = &self.workers[worker];
        let light = of.light.first(|_| PLACE_PLAIN)?;
        let level = |one: &First| self.priority_class(one.actor).0;
        let own = level(&light);
        let others = || usual.into_iter().chain(yielded).map(level);
        if others().any(|other| other < own) {
            return None;
        }
        let promise =
            usual.is_some_and(|one| level(one) == own && self.is_reserved_and_behind(one.actor));
        let beside = match promise {
            true => of.ready.has_unreserved(own),
            false => others().any(|other| other == own),
        };
        let may =
            (!promise || of.has_wake_credit()) && (!beside || of.light_excess_ns < WAKE_CREDIT_NS);
        may.then_some((light, beside))
    }

    /// A turn is over: those that need little have had so much more of late than they leave others, or less.
    pub(super) fn charge_light(&mut self, actor: usize, worker: usize) {
        let promised = self.is_behind_reservation(actor);
        let of = &mut self.workers[worker];
        if of.ran_as == QueueClass::Light {
            let took = if of.others_waited { of.turn } else { 0.0 };
            of.light_excess_ns = (of.light_excess_ns + took).min(2.0 * WAKE_CREDIT_NS);
        } else if !promised {
            of.light_excess_ns = (of.light_excess_ns - of.turn).max(0.0);
        }
    }
}
