// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Priority of light applications, as in the runtime (runtime/src/sched/ready_queue.h): the actors
//! of an application that recently used less than 1/16 of a worker precede others there. Their
//! extra time relative to others is limited to `WAKE_CREDIT_NS`. A light actor that another worker
//! wakes preempts the running one, so turns are much shorter on cores with many small applications.

use super::ready_queue::{First, PLACE_PLAIN};
use super::{Entity, OTHERS_DIVISOR, QueueClass, Simulator, WAKE_CREDIT_NS};

/// Maximum debt of an application, in multiples of its allowance.
const DEBT_MAX_CREDITS: f64 = 8.0;

/// Usage of a core by each application that has actors there: the virtual scheduling form of the
/// generic cell rate algorithm (ITU-T I.371). Each entry is the theoretical time at which the usage
/// equals 1/16 of the elapsed time.
#[derive(Default)]
pub(super) struct UsageShares(Vec<f64>);

impl UsageShares {
    /// One entry per application and core; stores its index in the actors. (A single application
    /// needs none.)
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

    /// Charges a turn of `took` nanoseconds that ended at `end`.
    pub fn charge(&mut self, share: u32, end: f64, took: f64) {
        if let Some(until) = self.0.get_mut(share as usize) {
            *until = until.clamp(
                end,
                end + DEBT_MAX_CREDITS * OTHERS_DIVISOR * WAKE_CREDIT_NS,
            ) + OTHERS_DIVISOR * took;
        }
    }

    /// Whether the usage is below the share; `since` is the start of the worker's current turn.
    fn is_below_share(&self, share: u32, since: f64) -> bool {
        let until = self.0.get(share as usize);
        until.is_some_and(|until| *until <= since + OTHERS_DIVISOR * WAKE_CREDIT_NS)
    }
}

impl Simulator<'_> {
    /// Whether an actor that becomes ready is light; stored in the actor.
    pub(super) fn is_light(&mut self, actor: usize, core: usize) -> bool {
        let worker = &self.workers[core];
        let since = match worker.step {
            Some(_) => worker.step_end - worker.turn,
            None => self.now - worker.turn,
        };
        let entity = &mut self.entities[actor];
        entity.light =
            entity.reserved_rate.is_nan() && self.shares.is_below_share(entity.share, since);
        entity.light
    }

    /// The first light actor if it is to precede these, the first actors of the other queues; and
    /// whether other actors of its priority wait.
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
        let has_reserved =
            usual.is_some_and(|one| level(one) == own && self.is_reserved_and_behind(one.actor));
        let others_wait = if has_reserved {
            of.ready.has_unreserved(own)
        } else {
            others().any(|other| other == own)
        };
        let may = (!has_reserved || of.has_wake_credit())
            && (!others_wait || of.light_excess_ns < WAKE_CREDIT_NS);
        may.then_some((light, others_wait))
    }

    /// At the end of a turn: updates the extra time of light actors relative to the others.
    pub(super) fn charge_light(&mut self, actor: usize, worker: usize) {
        let reserved = self.is_behind_reservation(actor);
        let of = &mut self.workers[worker];
        if of.ran_as == QueueClass::Light {
            let took = if of.others_waited { of.turn } else { 0.0 };
            of.light_excess_ns = (of.light_excess_ns + took).min(2.0 * WAKE_CREDIT_NS);
        } else if !reserved {
            of.light_excess_ns = (of.light_excess_ns - of.turn).max(0.0);
        }
    }
}
