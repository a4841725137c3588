// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Discrete-event simulator: workers run the actors of a mix under a placement; the result is the
//! rate of each application.
//!
//! An event is the end of a worker's *step*: a few firings of one actor, at most half of what its
//! channels publish at once. As with compiled actors, the other end of a channel sees what was put
//! or got when that is half of the channel, or 8 KiB, or the turn is over, and a waiting actor is
//! woken then. A turn
//! lasts until the actor cannot fire, or until others have waited for the length of a turn; less if
//! another worker woke them, and only for the current firing if they are light. Afterwards others
//! precede for as long as the turn was.
//!
//! Under round robin a turn has as many firings as were possible at its start, as in Orcc. Equal
//! input gives bitwise equal rates.

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
pub use steady_state::{simulate, simulate_steady_state};

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
    /// Units per second of each application.
    pub rates: Vec<f64>,
    /// The same of its slowest actor. In the steady state both are nearly equal; while channels
    /// fill, actors before them are faster than actors behind.
    pub slowest: Vec<f64>,
    /// The fraction of the time that each core was busy.
    pub busy: Vec<f64>,
    /// The simulated time.
    pub seconds: f64,
    /// Mean number of firings per actor of each application.
    pub firings: Vec<f64>,
    /// Whether each application with a cost profile has completed it at least once; its rate then
    /// covers whole profiles.
    pub whole: bool,
}

/// Length of a turn, as in the runtime.
const TURN_NS: f64 = 4e6;
/// Minimum length of a turn before an actor of equal rank that another worker woke preempts it.
const WAKE_PREEMPT_NS: f64 = 5e5;
/// Actors with reserved rates precede others of their priority for at most this time; then the
/// others get 1/`OTHERS_DIVISOR` of it.
const RESERVED_BURST_NS: f64 = 1e8;
const OTHERS_DIVISOR: f64 = 16.0;
/// The part of it that newly ready actors may have at once.
const WAKE_CREDIT_NS: f64 = 2e6;
/// Compiled actors push or pop when they have put or got this part (1/n) of a channel, or this
/// number of bytes.
const PUBLISH_DIVISOR: f64 = 2.0;
const PUBLISH_BYTES: f64 = 8192.0;
/// Number of steps between checks for deadlocked applications.
const STUCK_CHECK_STEPS: usize = 1024;
/// The cost of testing an actor that cannot fire, under round robin.
const POLL_NS: f64 = 20.0;

/// A channel, in one cache line: with thousands of actors a step mostly waits for memory.
#[repr(align(64))]
struct Ring {
    from: u32,
    to: u32,
    /// Elements per firing of the producer, and of the consumer.
    put: f64,
    pop: f64,
    room: f64,
    /// Elements that are published at once, however large the channel is.
    publish: f64,
    initial: f64,
    /// Firings of the producer visible to the consumer, and of the consumer visible to the
    /// producer.
    pushed: u64,
    popped: u64,
    /// Number of firings after which the producer pushes, and the consumer pops.
    pushes: u32,
    pops: u32,
}

/// An actor. The fields that each step needs are in the first cache line.
#[repr(C, align(64))]
struct Entity<'a> {
    done: u64,
    /// Nanoseconds per firing on its core.
    firing: f64,
    /// Firings per unit.
    firings: f64,
    /// Reserved rate of its application in units per second; NaN if none.
    reserved_rate: f64,
    /// Only for sources of applications with a rate limit.
    limiter: Option<Box<RateLimiter>>,
    /// Its position in the cost profile of its application.
    cursor: Option<Box<ProfileCursor<'a>>>,
    core: u32,
    /// Maximum number of firings per step.
    step: u32,
    /// Index of its priority; 0 is the highest.
    level: u32,
    ready: bool,
    /// Suspended by the rate limiter until a known time.
    resting: bool,
    /// Was suspended since counting started.
    rested: bool,
    /// Was light when it became ready.
    light: bool,
    app: usize,
    /// Index of the usage of its core by its application.
    share: u32,
    done_before: u64,
}

/// A worker. The fields that each step needs come first, then those that each turn needs.
#[derive(Default)]
#[repr(C, align(64))]
struct Worker {
    /// The actor of the current step, and the number of its firings; none: about to select.
    step: Option<(u32, u32)>,
    awake: bool,
    /// An actor woken by another worker is to preempt the running one.
    preempt_requested: bool,
    /// The queue that the running actor came from; and whether other actors of its priority waited,
    /// if it is light.
    ran_as: QueueClass,
    others_waited: bool,
    turn: f64,
    /// Length of the step, and its end.
    step_ns: f64,
    step_end: f64,
    busy: f64,
    /// When it became idle, if it is not awake.
    idle_since: f64,
    yield_debt_ns: f64,
    /// Extra time that light actors have had relative to others.
    light_excess_ns: f64,
    /// Firings left in a turn under round robin.
    quota: u64,
    /// Light actors.
    light: ReadyQueue,
    ready: ReadyQueue,
    /// Actors that can continue after a full turn; others of their rank precede for as long.
    yielded: ReadyQueue,
    /// How long actors with reserved rates have preceded newly ready actors, and actors that
    /// yielded.
    reserved_excess_ready: f64,
    reserved_excess_yielded: f64,
    actors: Vec<usize>,
    next: usize,
}

/// The queue that a ready actor is in.
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
    /// Maximum rate of each application, in units per second.
    limits: Vec<Option<f64>>,
    events: EventTournament,
    now: f64,
    /// Number of events so far.
    steps: usize,
    yielding: CpuYield,
    has_ranks: bool,
}

/// Through a signed integer: converting the full range of u64 takes several times as long.
fn to_f64(count: u64) -> f64 {
    count as i64 as f64
}

impl Ring {
    /// The elements visible to the consumer after its first `consumer` firings.
    fn elements_visible(&self, consumer: u64) -> f64 {
        self.initial + to_f64(self.pushed) * self.put - to_f64(consumer) * self.pop
    }

    /// The room visible to the producer after its first `producer` firings.
    fn room_visible(&self, producer: u64) -> f64 {
        self.room - self.initial - to_f64(producer) * self.put + to_f64(self.popped) * self.pop
    }

    fn set_room(&mut self, room: f64) {
        let publish = (room / PUBLISH_DIVISOR).min(self.publish);
        let seen = |each: f64| (publish / each - 1e-6).ceil().max(1.0) as u32;
        (self.room, self.pushes, self.pops) = (room, seen(self.put), seen(self.pop));
    }

    /// Firings until the producer pushes, or the consumer pops, after `done` firings; 0: now.
    fn firings_until_published(&self, done: u64, output: bool) -> u64 {
        let (seen, all) = if output {
            (self.pushed, self.pushes)
        } else {
            (self.popped, self.pops)
        };
        u64::from(all).saturating_sub(done - seen)
    }

    /// The number of firings, up to `most`, that the visible state permits the producer or the
    /// consumer after `done` firings.
    fn firings_possible(&self, done: u64, output: bool, most: u64) -> u64 {
        let (there, each) = if output {
            (self.room_visible(done), self.put)
        } else {
            (self.elements_visible(done), self.pop)
        };
        // Tolerates rounding, which must not block an actor forever. Multiplication is much faster
        // than division.
        if there + 1e-6 * each >= to_f64(most) * each {
            most
        } else {
            most.min((there / each + 1e-6).max(0.0) as i64 as u64)
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
            reserved: !self.reserved_rate.is_nan(),
        }
    }

    /// Nanoseconds of the next firings.
    fn takes(&self, firings: u64) -> f64 {
        let mean = to_f64(firings) * self.firing;
        match &self.cursor {
            // Time passes even if the profile has no cost here.
            Some(cursor) => {
                let takes = mean + cursor.beyond(self.done, firings);
                (takes * cursor.scatter(self.done)).max(1.0)
            }
            None => mean,
        }
    }
}

impl Simulator<'_> {
    /// The number of firings, up to `most`, that the visible state of its channels permits an
    /// actor.
    fn firings_possible(&self, actor: usize, most: u64) -> u64 {
        let entity = &self.entities[actor];
        let mut least = most.min(self.firings_allowed(entity));
        for port in self.ports.of(actor) {
            least = self.rings[port.ring()].firings_possible(entity.done, port.is_output(), least);
        }
        least
    }

    /// The number of firings of the next step, which ends where another actor is to see its effect.
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

    /// Enlarges the channels of deadlocked applications: the real network has sufficient room,
    /// since it was measured; the simulated one averages bursts. Returns whether there was one.
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

    /// The end of a worker's step.
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

    /// Makes the effect of an actor's firings visible on channels where that is due or the turn is
    /// over (`over`), and wakes the other ends.
    fn publish(&mut self, actor: usize, worker: usize, over: bool) {
        let done = self.entities[actor].done;
        for i in 0..self.ports.of(actor).len() {
            let port = self.ports.of(actor)[i];
            let (ring, output) = (&mut self.rings[port.ring()], port.is_output());
            if !over && ring.firings_until_published(done, output) > 0 {
                continue;
            }
            let peer = if output {
                ring.pushed = done;
                ring.to
            } else {
                ring.popped = done;
                ring.from
            };
            self.wake(peer as usize, worker);
        }
    }

    /// Makes an actor ready if it can fire, and wakes its worker.
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
