// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose turn is next on a worker.

use super::ready_queue::{BEST, First, LAST, PLAIN};
use super::{BECOME, HANDED, LOOK, Machinery, OTHERS, PROMISED, ReadyAs, TURN, Worker, real};

impl Worker {
    /// Whether others have not had yet what promises leave to those who have just become ready.
    pub(super) fn lets_in(&self) -> bool {
        self.promised_had + OTHERS * BECOME > 0.0
    }

    pub(super) fn nobody_waits(&self) -> bool {
        self.little.is_empty() && self.queue.is_empty() && self.after.is_empty()
    }
}

impl Machinery<'_> {
    /// Whether one that another worker has woken is let in before the turn of who runs is over: of a higher rank it
    /// is, and of the same priority if that turn is long enough.
    pub(super) fn goes_before(&self, actor: usize, core: usize) -> bool {
        let worker = &self.workers[core];
        let Some((running, _)) = worker.step else {
            return false;
        };
        let had = worker.turn - (worker.until - self.now);
        let rank = |actor: usize| {
            let (level, place) = self.class_of(actor);
            (level, !self.entities[actor].little, place)
        };
        let (other, own) = (rank(actor), rank(running as usize));
        other < own || (other.0 == own.0 && had > HANDED)
    }

    /// Who runs is to give way, with the end of the firing that he is in.
    pub(super) fn ask(&mut self, core: usize) {
        let worker = &mut self.workers[core];
        worker.asked = true;
        let Some((actor, firings)) = worker.step else {
            return;
        };
        let begin = worker.until - worker.takes;
        let each = worker.takes / f64::from(firings);
        let made = ((self.now - begin) / each)
            .ceil()
            .clamp(1.0, f64::from(firings));
        let less = worker.takes - made * each;
        if less > 0.0 {
            worker.step = Some((actor, made as u32));
            worker.takes -= less;
            worker.turn -= less;
            worker.busy -= less;
            worker.until -= less;
            self.ends.of_worker(core, Some(worker.until));
        }
    }

    pub(super) fn becomes_ready(&mut self, actor: usize, core: usize) {
        let class = self.entities[actor].class();
        match self.needs_little(actor, core) {
            true => self.workers[core].little.add(actor, class),
            false => self.workers[core].queue.add(actor, class),
        }
    }

    /// Event-driven: an actor's turn is over, and it could go on, or not.
    pub(super) fn turn_over(&mut self, actor: usize, worker: usize, goes_on: bool) {
        let class = self.entities[actor].class();
        let turn = self.workers[worker].turn;
        self.shares.had(self.entities[actor].share, self.now, turn);
        self.count_little(actor, worker);
        if goes_on && (class.promised || self.needs_little(actor, worker)) {
            return self.becomes_ready(actor, worker);
        }
        if goes_on {
            self.workers[worker].after.add(actor, class);
            self.workers[worker].others_left = turn;
            return;
        }
        let of = &self.workers[worker];
        let after = of.after.oldest().filter(|_| of.ran_as == ReadyAs::Usual);
        if after.is_some_and(|after| self.rank(after) == self.rank(actor)) {
            self.workers[worker].others_left -= turn;
        }
        self.let_rest(actor);
    }

    /// Event-driven: the first that is ready, by rank where applications differ.
    pub(super) fn first(&mut self, worker: usize) -> Option<(usize, u64, f64)> {
        loop {
            let (ready_as, first, beside) = self.next_of(worker)?;
            let of = &mut self.workers[worker];
            (of.ran_as, of.beside_little) = (ready_as, beside);
            let actor = match ready_as {
                ReadyAs::Little => of.little.take(first),
                ReadyAs::Usual => of.queue.take(first),
                ReadyAs::After => of.after.take(first),
            };
            match self.can(actor) {
                0 => self.let_rest(actor),
                can => return Some((actor, can, self.machine.costs.turn)),
            }
        }
    }

    /// Who that is, as what he is ready, and what [`Machinery::first_little`] says of the others.
    fn next_of(&self, worker: usize) -> Option<(ReadyAs, First, bool)> {
        let of = &self.workers[worker];
        let place = |actor| self.class_of(actor).1;
        let (first, after) = (of.queue.first(place), of.after.first(place));
        if let Some((little, beside)) = self.first_little(worker, first.as_ref(), after.as_ref()) {
            return Some((ReadyAs::Little, little, beside));
        }
        let (first, after) = match (first, after) {
            (Some(one), other) if self.is_promise(one.actor) => {
                self.beside_promise(worker, one, other)
            }
            (Some(one), Some(other)) => {
                let (first, after) = (self.class_of(one.actor), self.class_of(other.actor));
                let goes = after < first || (first == after && of.others_left <= 0.0);
                (Some(one), goes.then_some(other))
            }
            both => both,
        };
        match after {
            Some(after) => Some((ReadyAs::After, after, false)),
            None => Some((ReadyAs::Usual, first?, false)),
        }
    }

    /// Where a promise is the first that is ready, and `after` the first of who has had a turn: whoever has become ready is let
    /// in at once, who has had a turn later; the second of the two goes where there is one.
    fn beside_promise(
        &self,
        worker: usize,
        promise: First,
        after: Option<First>,
    ) -> (Option<First>, Option<First>) {
        let of = &self.workers[worker];
        let level = self.class_of(promise.actor).0;
        let last = |actor| if self.is_promise(actor) { LAST } else { PLAIN };
        let beside = |one: &First| self.class_of(one.actor) == (level, PLAIN);
        if after
            .as_ref()
            .is_some_and(|one| self.class_of(one.actor).0 < level)
        {
            return (Some(promise), after);
        }
        let usual = of.queue.first(last).filter(beside);
        let after = after.filter(beside);
        match (usual, after) {
            (Some(usual), _) if of.lets_in() => (Some(usual), None),
            (_, after) => (Some(promise), after.filter(|_| of.promised_long > PROMISED)),
        }
    }

    pub(super) fn is_promise(&self, actor: usize) -> bool {
        self.ranked && self.is_behind(actor)
    }

    /// Priority decides, then who is behind its promise comes first.
    pub(super) fn class_of(&self, actor: usize) -> (usize, u8) {
        let place = if self.is_promise(actor) { BEST } else { PLAIN };
        (self.entities[actor].class().level, place)
    }

    /// The same, but that such a one comes last for as long as others have not had their part.
    pub(super) fn rank(&self, actor: usize) -> (usize, u8) {
        let of = &self.workers[self.entities[actor].core()];
        match self.class_of(actor) {
            (level, BEST) if of.lets_in() => (level, LAST),
            class => class,
        }
    }

    pub(super) fn is_behind(&self, actor: usize) -> bool {
        let entity = &self.entities[actor];
        (real(entity.done) / entity.firings) < entity.promise * (self.now * 1e-9) * 1.01 + 1.0
    }

    /// A step of an actor has ended. What promises have while nobody waits is no debt, nor what others have while none
    /// waits; in that time what there was is forgotten.
    pub(super) fn count_promised(&mut self, worker: usize, actor: usize) {
        if !self.ranked {
            return;
        }
        let time = self.workers[worker].takes;
        let promised = self.is_behind(actor);
        let level = self.entities[actor].class().level;
        let of = &self.workers[worker];
        let mut waiting = of.queue.promised(level).chain(of.after.promised(level));
        let waited = !promised && waiting.any(|a| self.is_behind(a));
        drop(waiting);
        let of = &mut self.workers[worker];
        if promised {
            for had in [&mut of.promised_had, &mut of.promised_long] {
                *had += if *had > PROMISED { 0.0 } else { time };
            }
            return;
        }
        // In two halves, where there are both who have become ready and who have had a turn.
        let after = of.ran_as == ReadyAs::After;
        let both = match after {
            true => of.queue.has_plain(level) || of.little.has_plain(level),
            false => of.after.has_plain(level),
        };
        let took = time * OTHERS * if both { 2.0 } else { 1.0 };
        let after_others = |had: f64| match waited {
            false if had < 0.0 => (had + time).min(0.0),
            false => (had - took).max(0.0),
            true => (had - took).max(-PROMISED),
        };
        let (own, other) = match after {
            false => (&mut of.promised_had, &mut of.promised_long),
            true => (&mut of.promised_long, &mut of.promised_had),
        };
        *own = after_others(*own);
        // Where there are not both, one of them has the part of both.
        if *other > 0.0 && !both {
            *other = (*other - took).max(0.0);
        }
        if *other < 0.0 && !waited {
            *other = after_others(*other);
        }
    }

    /// Round robin: the next that can fire, of those of the highest rank where applications differ; each that is looked
    /// at costs.
    pub(super) fn around(&mut self, worker: usize) -> Option<(usize, u64, f64)> {
        let count = self.workers[worker].own.len();
        let mut found: Option<(usize, u64)> = None;
        let mut looked = 0;
        for behind in 0..count {
            let at = (self.workers[worker].next + behind) % count;
            let actor = self.workers[worker].own[at];
            let rank = |at: usize| self.rank(self.workers[worker].own[at]);
            if found.is_some_and(|(best, _)| rank(at) >= rank(best)) {
                continue;
            }
            match self.can(actor) {
                0 => self.let_rest(actor),
                can => found = Some((at, can)),
            }
            looked = behind;
            if found.is_some() && !self.ranked {
                break;
            }
        }
        let (at, can) = found?;
        let actor = self.workers[worker].own[at];
        self.entities[actor].ready = true;
        let turn = (TURN / self.entities[actor].firing) as u64;
        self.workers[worker].quota = self.could(actor, turn.max(1));
        self.workers[worker].next = (at + 1) % count;
        Some((actor, can, self.machine.costs.turn + LOOK * looked as f64))
    }
}
