// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selection of the next actor of a worker.

use super::ready_queue::{First, PLACE_FIRST, PLACE_LAST, PLACE_PLAIN};
use super::{
    OTHERS_DIVISOR, POLL_NS, QueueClass, RESERVED_BURST_NS, Simulator, TURN_NS, WAKE_CREDIT_NS,
    WAKE_PREEMPT_NS, Worker, to_f64,
};

impl Worker {
    /// Whether newly ready actors have not yet used the time that actors with reserved rates leave
    /// them.
    pub(super) fn has_wake_credit(&self) -> bool {
        self.reserved_excess_ready + OTHERS_DIVISOR * WAKE_CREDIT_NS > 0.0
    }

    pub(super) fn queues_empty(&self) -> bool {
        self.light.is_empty() && self.ready.is_empty() && self.yielded.is_empty()
    }
}

impl Simulator<'_> {
    /// Whether an actor that another worker woke preempts the running one: if it has a higher rank,
    /// or the same priority and the turn has lasted long enough.
    pub(super) fn preempts(&self, actor: usize, core: usize) -> bool {
        let worker = &self.workers[core];
        let Some((running, _)) = worker.step else {
            return false;
        };
        let had = worker.turn - (worker.step_end - self.now);
        let rank = |actor: usize| {
            let (level, place) = self.priority_class(actor);
            (level, !self.entities[actor].light, place)
        };
        let (other, own) = (rank(actor), rank(running as usize));
        other < own || (other.0 == own.0 && had > WAKE_PREEMPT_NS)
    }

    /// Ends the running step after the current firing.
    pub(super) fn request_preemption(&mut self, core: usize) {
        let worker = &mut self.workers[core];
        worker.preempt_requested = true;
        let Some((actor, firings)) = worker.step else {
            return;
        };
        let begin = worker.step_end - worker.step_ns;
        let each = worker.step_ns / f64::from(firings);
        let made = ((self.now - begin) / each)
            .ceil()
            .clamp(1.0, f64::from(firings));
        let less = worker.step_ns - made * each;
        if less > 0.0 {
            worker.step = Some((actor, made as u32));
            worker.step_ns -= less;
            worker.turn -= less;
            worker.busy -= less;
            worker.step_end -= less;
            self.events.set_worker_end(core, Some(worker.step_end));
        }
    }

    pub(super) fn make_ready(&mut self, actor: usize, core: usize) {
        let class = self.entities[actor].class();
        if self.is_light(actor, core) {
            self.workers[core].light.add(actor, class)
        } else {
            self.workers[core].ready.add(actor, class)
        }
    }

    /// Event-driven: the turn of an actor is over; `goes_on` if it could continue.
    pub(super) fn end_turn(&mut self, actor: usize, worker: usize, goes_on: bool) {
        let class = self.entities[actor].class();
        let turn = self.workers[worker].turn;
        self.shares
            .charge(self.entities[actor].share, self.now, turn);
        self.charge_light(actor, worker);
        if goes_on && (class.reserved || self.is_light(actor, worker)) {
            return self.make_ready(actor, worker);
        }
        if goes_on {
            self.workers[worker].yielded.add(actor, class);
            self.workers[worker].yield_debt_ns = turn;
            return;
        }
        let of = &self.workers[worker];
        let yielded = of
            .yielded
            .oldest()
            .filter(|_| of.ran_as == QueueClass::Ready);
        if yielded.is_some_and(|yielded| self.rank(yielded) == self.rank(actor)) {
            self.workers[worker].yield_debt_ns -= turn;
        }
        self.suspend(actor);
    }

    /// Event-driven: the first ready actor that can fire, with the number of firings and the cost
    /// of the switch.
    pub(super) fn first(&mut self, worker: usize) -> Option<(usize, u64, f64)> {
        loop {
            let (ready_as, first, others_wait) = self.select(worker)?;
            let of = &mut self.workers[worker];
            (of.ran_as, of.others_waited) = (ready_as, others_wait);
            let actor = match ready_as {
                QueueClass::Light => of.light.take(first),
                QueueClass::Ready => of.ready.take(first),
                QueueClass::Yielded => of.yielded.take(first),
            };
            match self.next_step_firings(actor) {
                0 => self.suspend(actor),
                can => return Some((actor, can, self.machine.costs.turn)),
            }
        }
    }

    /// Its queue, the actor, and whether others waited (see [`Simulator::first_light`]).
    fn select(&self, worker: usize) -> Option<(QueueClass, First, bool)> {
        let of = &self.workers[worker];
        let place = |actor| self.priority_class(actor).1;
        let (first, yielded) = (of.ready.first(place), of.yielded.first(place));
        if let Some((light, others_wait)) =
            self.first_light(worker, first.as_ref(), yielded.as_ref())
        {
            return Some((QueueClass::Light, light, others_wait));
        }
        let (first, yielded) = match (first, yielded) {
            (Some(one), other) if self.is_reserved_and_behind(one.actor) => {
                self.select_with_reserved(worker, one, other)
            }
            (Some(one), Some(other)) => {
                let (first, yielded) = (
                    self.priority_class(one.actor),
                    self.priority_class(other.actor),
                );
                let goes = yielded < first || (first == yielded && of.yield_debt_ns <= 0.0);
                (Some(one), goes.then_some(other))
            }
            both => both,
        };
        match yielded {
            Some(yielded) => Some((QueueClass::Yielded, yielded, false)),
            None => Some((QueueClass::Ready, first?, false)),
        }
    }

    /// Selection if an actor with a reserved rate is first and `yielded` is the first of those that
    /// yielded: returns the first of the ready and of the yielded actors that are let in. A newly
    /// ready actor is let in at once, a yielded one later.
    fn select_with_reserved(
        &self,
        worker: usize,
        reserved: First,
        yielded: Option<First>,
    ) -> (Option<First>, Option<First>) {
        let of = &self.workers[worker];
        let level = self.priority_class(reserved.actor).0;
        let last = |actor| {
            if self.is_reserved_and_behind(actor) {
                PLACE_LAST
            } else {
                PLACE_PLAIN
            }
        };
        let is_peer = |one: &First| self.priority_class(one.actor) == (level, PLACE_PLAIN);
        if yielded
            .as_ref()
            .is_some_and(|one| self.priority_class(one.actor).0 < level)
        {
            return (Some(reserved), yielded);
        }
        let usual = of.ready.first(last).filter(is_peer);
        let yielded = yielded.filter(is_peer);
        match (usual, yielded) {
            (Some(usual), _) if of.has_wake_credit() => (Some(usual), None),
            (_, yielded) => (
                Some(reserved),
                yielded.filter(|_| of.reserved_excess_yielded > RESERVED_BURST_NS),
            ),
        }
    }

    pub(super) fn is_reserved_and_behind(&self, actor: usize) -> bool {
        self.has_ranks && self.is_behind_reservation(actor)
    }

    /// By priority; actors behind their reserved rates come first.
    pub(super) fn priority_class(&self, actor: usize) -> (usize, u8) {
        let place = if self.is_reserved_and_behind(actor) {
            PLACE_FIRST
        } else {
            PLACE_PLAIN
        };
        (self.entities[actor].class().level, place)
    }

    /// The same, but such an actor comes last while others are owed time.
    pub(super) fn rank(&self, actor: usize) -> (usize, u8) {
        let of = &self.workers[self.entities[actor].core()];
        match self.priority_class(actor) {
            (level, PLACE_FIRST) if of.has_wake_credit() => (level, PLACE_LAST),
            class => class,
        }
    }

    pub(super) fn is_behind_reservation(&self, actor: usize) -> bool {
        let entity = &self.entities[actor];
        (to_f64(entity.done) / entity.firings)
            < entity.reserved_rate * (self.now * 1e-9) * 1.01 + 1.0
    }

    /// At the end of a step: updates the time that actors with reserved rates have preceded others.
    /// Time without waiting actors causes no debt and pays off the debt there is.
    pub(super) fn charge_reserved(&mut self, worker: usize, actor: usize) {
        if !self.has_ranks {
            return;
        }
        let time = self.workers[worker].step_ns;
        let reserved = self.is_behind_reservation(actor);
        let level = self.entities[actor].class().level;
        let of = &self.workers[worker];
        let mut waiting = of.ready.reserved(level).chain(of.yielded.reserved(level));
        let waited = !reserved && waiting.any(|a| self.is_behind_reservation(a));
        drop(waiting);
        let of = &mut self.workers[worker];
        if reserved {
            for had in [
                &mut of.reserved_excess_ready,
                &mut of.reserved_excess_yielded,
            ] {
                *had += if *had > RESERVED_BURST_NS { 0.0 } else { time };
            }
            return;
        }
        // Split into halves if there are both newly ready and yielded actors.
        let yielded = of.ran_as == QueueClass::Yielded;
        let both = if yielded {
            of.ready.has_unreserved(level) || of.light.has_unreserved(level)
        } else {
            of.yielded.has_unreserved(level)
        };
        let took = time * OTHERS_DIVISOR * if both { 2.0 } else { 1.0 };
        let after_others = |had: f64| match waited {
            false if had < 0.0 => (had + time).min(0.0),
            false => (had - took).max(0.0),
            true => (had - took).max(-RESERVED_BURST_NS),
        };
        let (own, other) = if yielded {
            (
                &mut of.reserved_excess_yielded,
                &mut of.reserved_excess_ready,
            )
        } else {
            (
                &mut of.reserved_excess_ready,
                &mut of.reserved_excess_yielded,
            )
        };
        *own = after_others(*own);
        // If there is only one kind, it gets the part of both.
        if *other > 0.0 && !both {
            *other = (*other - took).max(0.0);
        }
        if *other < 0.0 && !waited {
            *other = after_others(*other);
        }
    }

    /// Round robin: the next actor that can fire, among those of the highest rank; each tested
    /// actor costs time.
    pub(super) fn round_robin(&mut self, worker: usize) -> Option<(usize, u64, f64)> {
        let count = self.workers[worker].actors.len();
        let mut found: Option<(usize, u64)> = None;
        let mut looked = 0;
        for behind in 0..count {
            let at = (self.workers[worker].next + behind) % count;
            let actor = self.workers[worker].actors[at];
            let rank = |at: usize| self.rank(self.workers[worker].actors[at]);
            if found.is_some_and(|(best, _)| rank(at) >= rank(best)) {
                continue;
            }
            match self.next_step_firings(actor) {
                0 => self.suspend(actor),
                can => found = Some((at, can)),
            }
            looked = behind;
            if found.is_some() && !self.has_ranks {
                break;
            }
        }
        let (at, can) = found?;
        let actor = self.workers[worker].actors[at];
        self.entities[actor].ready = true;
        let turn = (TURN_NS / self.entities[actor].firing) as u64;
        self.workers[worker].quota = self.firings_possible(actor, turn.max(1));
        self.workers[worker].next = (at + 1) % count;
        Some((
            actor,
            can,
            self.machine.costs.turn + POLL_NS * looked as f64,
        ))
    }
}
