// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A simulated machine: workers run the actors of a mix under a placement, and it is counted what
//! each application gets done.
//!
//! Time is discrete: what happens next is the end of some worker's *step*, a few firings of one actor
//! (a quarter of its smallest channel at the most). Others see what it has put and got of a channel, and who waits
//! for that is woken, when that is half of it, or the turn is over, as compiled actors push and pop: so of a large channel later
//! than of a small one. An actor's turn
//! lasts until it can fire no more, or until others have waited for the length of a turn, or for less where another
//! worker woke them, or for that firing alone where those need little; and then others go first for as long as it had.
//! With round robin it lasts for as many firings as it could make when it began, as Orcc's do.
//! The same input gives the same rates to the last bit.

mod build;
mod cpu_yield;
mod event_tournament;
mod light_apps;
mod ports;
mod profile_cursor;
mod rate_limit;
mod ready_queue;
mod scheduler;
mod stats;
mod steady_state;

pub use rate_limit::{RATE_BURST_S, RATE_BURST_UNITS};
#[cfg(test)]
pub(crate) use steady_state::simulate_until_settled;
pub(crate) use steady_state::{SteadyStateRun, WarmStart, steady_state_steps};
pub use steady_state::{expected, simulate};

use crate::model::machine::{Machine, Scheduling};
use crate::model::mix::Mix;
use cpu_yield::CpuYield;
use event_tournament::{EventTournament, Next};
use light_apps::UsageShares;
use ports::Ports;
use profile_cursor::ProfileCursor;
use rate_limit::RateLimiter;
use ready_queue::{ReadyKey, ReadyQueue};

#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Units a second of each application.
    pub rates: Vec<f64>,
    /// The same of its actor that came to the fewest, which is hardly less where the rates have settled: while
    /// channels fill, those before them do more than those behind.
    pub slowest: Vec<f64>,
    /// The share of the time that each core computed.
    pub busy: Vec<f64>,
    /// How many seconds were simulated.
    pub seconds: f64,
    /// How often the actors of each application have fired in these, in the mean.
    pub firings: Vec<f64>,
    /// Whether each application has gone through its course at least once, where it has one: its rates are those of
    /// whole courses then.
    pub whole: bool,
}

/// The runtime's clock for fairness.
const TURN_NS: f64 = 4e6;
/// So long a turn has to be for somebody of the same rank whom another worker wakes.
const WAKE_PREEMPT_NS: f64 = 5e5;
/// And what it leaves those of the same priority that promises go before: these may do so for so long at one time,
/// and others have one part of so many then.
const RESERVED_BURST_NS: f64 = 1e8;
const OTHERS_DIVISOR: f64 = 16.0;
/// Of that those have so much at once who have had no turn since they became ready.
const WAKE_CREDIT_NS: f64 = 2e6;
/// What compiled actors put or get of a channel before they push or pop: one part of so many.
const PUBLISH_DIVISOR: f64 = 2.0;
/// After so many steps it is looked for applications that are stuck.
const STUCK_CHECK_STEPS: usize = 1024;
/// To look at an actor that cannot fire.
const POLL_NS: f64 = 20.0;

/// A line of the cache: of thousands of actors, most of what a step takes is waiting for memory.
#[repr(align(64))]
struct Ring {
    from: u32,
    to: u32,
    /// Elements a firing of the producer, and of the consumer.
    put: f64,
    pop: f64,
    room: f64,
    initial: f64,
    /// Firings of the producer that the consumer sees, and of the consumer that the producer sees.
    pushed: u64,
    popped: u64,
    /// After so many the producer pushes, and the consumer pops.
    pushes: u32,
    pops: u32,
}

/// An actor. What is asked at each step is in one line of the cache, what is asked seldom behind it.
#[repr(C, align(64))]
struct Entity<'a> {
    done: u64,
    /// Nanoseconds a firing where it sits.
    firing: f64,
    /// Firings of a unit.
    firings: f64,
    /// Units a second that its application is promised; none is not a number.
    promise: f64,
    /// It is a source of what is promised a rate.
    limiter: Option<Box<RateLimiter>>,
    /// Where it is in its application's course.
    cursor: Option<Box<ProfileCursor<'a>>>,
    core: u32,
    /// Firings of one step at the most.
    step: u32,
    /// Its priority, counted from the highest.
    level: u32,
    ready: bool,
    /// It rests until a time that is to come.
    resting: bool,
    /// And has since it was counted from.
    rested: bool,
    /// As it became ready, it needed little of its worker.
    light: bool,
    app: usize,
    /// What its application has had of its core.
    share: u32,
    done_before: u64,
}

/// The same of a worker: what a step that goes on needs, then what a turn does.
#[derive(Default)]
#[repr(C, align(64))]
struct Worker {
    /// The actor whose step ends next, and how many firings that is; none: about to choose.
    step: Option<(u32, u32)>,
    awake: bool,
    /// Somebody whom another worker has woken is to go before who runs.
    preempt_requested: bool,
    /// As what he was ready; and whether others of his priority were, too, who need more, where he needs little.
    ran_as: QueueClass,
    others_waited: bool,
    turn: f64,
    /// How long the step takes, and when it ends.
    step_ns: f64,
    step_end: f64,
    busy: f64,
    /// Since when it has had nothing to do, where it is not awake.
    idle_since: f64,
    yield_debt_ns: f64,
    /// So much more than others those have had that need little.
    light_excess_ns: f64,
    /// Firings left in a turn of round robin.
    quota: u64,
    /// Those that need little of it.
    light: ReadyQueue,
    ready: ReadyQueue,
    /// Those that could go on after a turn; others of their rank go first for as long.
    yielded: ReadyQueue,
    /// How long promises have gone before others, and before those that have had a turn.
    reserved_excess_ready: f64,
    reserved_excess_yielded: f64,
    actors: Vec<usize>,
    next: usize,
}

/// As what somebody is ready.
#[derive(Clone, Copy, Default, PartialEq)]
enum QueueClass {
    Light,
    #[default]
    Ready,
    Yielded,
}

struct Simulator<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    scheduling: Scheduling,
    entities: Vec<Entity<'a>>,
    rings: Vec<Ring>,
    ports: Ports,
    workers: Vec<Worker>,
    shares: UsageShares,
    /// Units a second that each application gets at the most.
    limits: Vec<Option<f64>>,
    events: EventTournament,
    now: f64,
    /// Ends that were come to.
    steps: usize,
    yielding: CpuYield,
    has_ranks: bool,
}

/// To make a real number of one that may have all 64 bits takes several times as long.
fn to_f64(count: u64) -> f64 {
    count as i64 as f64
}

impl Ring {
    /// The elements that the consumer sees, when it has fired so often.
    fn elements_visible(&self, consumer: u64) -> f64 {
        self.initial + to_f64(self.pushed) * self.put - to_f64(consumer) * self.pop
    }

    /// The room that the producer sees, when it has fired so often.
    fn room_visible(&self, producer: u64) -> f64 {
        self.room - self.initial - to_f64(producer) * self.put + to_f64(self.popped) * self.pop
    }

    fn set_room(&mut self, room: f64) {
        let seen = |each: f64| (room / PUBLISH_DIVISOR / each - 1e-6).ceil().max(1.0) as u32;
        (self.room, self.pushes, self.pops) = (room, seen(self.put), seen(self.pop));
    }

    /// Firings until the producer pushes, or the consumer pops, when it has made so many: none, now.
    fn firings_until_published(&self, done: u64, output: bool) -> u64 {
        let (seen, all) = match output {
            true => (self.pushed, self.pushes),
            false => (self.popped, self.pops),
        };
        u64::from(all).saturating_sub(done - seen)
    }

    /// How many firings the producer, or the consumer, can make by what it sees, when it has made so many: up to `most`.
    fn firings_possible(&self, done: u64, output: bool, most: u64) -> u64 {
        let (there, each) = match output {
            true => (self.room_visible(done), self.put),
            false => (self.elements_visible(done), self.pop),
        };
        // What rounding took must not stop anybody for ever. To multiply takes much less time than to divide.
        match there + 1e-6 * each >= to_f64(most) * each {
            true => most,
            false => most.min((there / each + 1e-6).max(0.0) as i64 as u64),
        }
    }
}

impl Entity<'_> {
    fn core(&self) -> usize {
        self.core as usize
    }

    fn class(&self) -> ReadyKey {
        ReadyKey {
            level: self.level as usize,
            promised: !self.promise.is_nan(),
        }
    }

    /// Nanoseconds of its next firings.
    fn takes(&self, firings: u64) -> f64 {
        let mean = to_f64(firings) * self.firing;
        match &self.cursor {
            // Where they cost nothing, time passes all the same.
            Some(cursor) => {
                let takes = mean + cursor.beyond(self.done, firings);
                (takes * cursor.scatter(self.done)).max(1.0)
            }
            None => mean,
        }
    }
}

impl Simulator<'_> {
    /// How many firings an actor can make now, by what it sees of its channels.
    fn firings_possible(&self, actor: usize, most: u64) -> u64 {
        let entity = &self.entities[actor];
        let mut least = most.min(self.firings_allowed(entity));
        for port in self.ports.of(actor) {
            least = self.rings[port.ring()].firings_possible(entity.done, port.is_output(), least);
        }
        least
    }

    /// The same in one step, that ends where others come to see something.
    fn next_step_firings(&self, actor: usize) -> u64 {
        let entity = &self.entities[actor];
        let mut least = u64::from(entity.step).min(self.firings_allowed(entity));
        for port in self.ports.of(actor) {
            if least == 0 {
                break;
            }
            let (ring, output) = (&self.rings[port.ring()], port.is_output());
            let seen = ring.firings_until_published(entity.done, output);
            least = ring.firings_possible(entity.done, output, least.min(seen));
        }
        least
    }

    fn run(&mut self, steps: usize) {
        let every = STUCK_CHECK_STEPS.max(4 * self.entities.len());
        for _ in 0..steps {
            self.steps += 1;
            if self.steps.is_multiple_of(every) {
                self.enlarge_deadlocked();
            }
            self.yielding.before_step();
            let Some((at, next)) = self.events.next() else {
                if !self.enlarge_deadlocked() {
                    return;
                }
                continue;
            };
            self.now = at;
            match next {
                Next::Worker(worker) => self.end(worker),
                Next::Actor(actor) => {
                    self.entities[actor].resting = false;
                    self.wake(actor, usize::MAX);
                }
            }
        }
    }

    /// Makes room in applications of which nothing can fire: a real network has enough, or it would not
    /// have been measured, and here some actor's bursts were averaged away. Whether there were such.
    fn enlarge_deadlocked(&mut self) -> bool {
        let mut any = false;
        for actors in self.mix.ranges() {
            let waits = |i: usize| {
                let entity = &self.entities[i];
                !entity.ready && !entity.resting && self.firings_possible(i, 1) == 0
            };
            if !actors.clone().all(waits) {
                continue;
            }
            for ring in &mut self.rings {
                if actors.contains(&(ring.from as usize)) && ring.room < 1e15 {
                    ring.set_room(2.0 * ring.room);
                    ring.initial *= 2.0;
                    any = true;
                }
            }
            actors.for_each(|actor| self.wake(actor, usize::MAX));
        }
        any
    }

    /// A worker's step has ended.
    fn end(&mut self, worker: usize) {
        let mut go_on = None;
        let ran = self.workers[worker].step.take();
        let ran = ran.map(|(actor, firings)| (actor as usize, u64::from(firings)));
        if let Some((actor, firings)) = ran {
            self.charge_reserved(worker, actor);
            let entity = &mut self.entities[actor];
            entity.done += firings;
            if let Some(cursor) = &mut entity.cursor {
                cursor.came_to(entity.done, self.now);
            }
            self.publish(actor, worker, false);
            let can = self.next_step_firings(actor);
            let of = &mut self.workers[worker];
            of.quota = of.quota.saturating_sub(firings);
            if self.scheduling == Scheduling::RoundRobin {
                go_on = (can.min(of.quota) > 0).then(|| (actor, can.min(of.quota), 0.0));
            } else if can > 0 && !of.preempt_requested && (of.turn < TURN_NS || of.queues_empty()) {
                go_on = Some((actor, can, 0.0));
            } else {
                self.end_turn(actor, worker, can > 0);
            }
        }
        if go_on.is_none() {
            if let Some((actor, _)) = ran {
                self.publish(actor, worker, true);
            }
            self.workers[worker].turn = 0.0;
            self.workers[worker].preempt_requested = false;
            go_on = match self.scheduling {
                Scheduling::EventDriven => self.first(worker),
                Scheduling::RoundRobin => self.round_robin(worker),
            };
        }
        match go_on {
            Some((actor, firings, before)) => {
                self.drop_unused(actor);
                let time = self.entities[actor].takes(firings) + before;
                let worker_of = &mut self.workers[worker];
                worker_of.step = Some((actor as u32, firings as u32));
                worker_of.turn += time;
                worker_of.busy += time;
                worker_of.step_ns = time;
                worker_of.step_end = self.now + time;
                self.events.set_worker_end(worker, Some(worker_of.step_end));
            }
            None => {
                self.events.set_worker_end(worker, None);
                self.workers[worker].awake = false;
                self.workers[worker].idle_since = self.now;
                self.workers[worker].reserved_excess_ready = 0.0;
                self.workers[worker].reserved_excess_yielded = 0.0;
                self.workers[worker].light_excess_ns = 0.0;
            }
        }
    }

    /// Others see what this one has put and got where that is half of a channel, or its turn is over; who waits for it is
    /// woken then.
    fn publish(&mut self, actor: usize, worker: usize, over: bool) {
        let done = self.entities[actor].done;
        for i in 0..self.ports.of(actor).len() {
            let port = self.ports.of(actor)[i];
            let (ring, output) = (&mut self.rings[port.ring()], port.is_output());
            if !over && ring.firings_until_published(done, output) > 0 {
                continue;
            }
            let peer = match output {
                true => {
                    ring.pushed = done;
                    ring.to
                }
                false => {
                    ring.popped = done;
                    ring.from
                }
            };
            self.wake(peer as usize, worker);
        }
    }

    /// Makes an actor ready that can fire, and wakes its worker.
    fn wake(&mut self, actor: usize, by: usize) {
        if self.entities[actor].ready {
            return;
        }
        if self.next_step_firings(actor) == 0 {
            return self.suspend(actor);
        }
        self.entities[actor].ready = true;
        let core = self.entities[actor].core();
        if self.scheduling == Scheduling::EventDriven {
            if core != by && self.preempts(actor, core) {
                self.request_preemption(core);
            }
            self.make_ready(actor, core);
        }
        let worker = &mut self.workers[core];
        if !worker.awake && core != by {
            worker.awake = true;
            let costs = &self.machine.costs;
            let asleep = self.now - worker.idle_since > costs.spin;
            let at = self.now + if asleep { costs.asleep } else { costs.wake };
            self.events.set_worker_end(core, Some(at));
        }
    }
}
