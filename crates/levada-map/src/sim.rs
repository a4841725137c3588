// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A simulated machine: workers run the actors of a mix under a placement, and it is counted what
//! each application gets done.
//!
//! Time is discrete: what happens next is the end of some worker's *step*, a few firings of one actor
//! (a quarter of its smallest channel at the most). Others see what it has put and got of a channel, and who waits
//! for that is woken, when that is half of it, or the turn is over, as compiled actors push and pop: so of a large channel later
//! than of a small one. An actor's turn
//! lasts until it can fire no more, or until others have waited for the length of a turn, or for less where another
//! worker woke them, and then others go first for as long as it had; with round robin, for as many firings as it could
//! make when it began, as Orcc's do. What is promised a rate gets no more than that: its sources rest when they are
//! ahead, until a time that is among the ends of steps, and what they did not take in time is lost to them, as it is in
//! the host.
//! The same input gives the same rates to the last bit.

mod along;
mod turns;

use crate::graph::pipeline_order;
use crate::machine::Machine;
use crate::mix::Mix;
use along::Along;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How a worker chooses what runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Who became ready first, and who is behind its promise before that, which leaves the others a part.
    EventDriven,
    /// All in turn, whether they can fire or not, each until it can no more: section 3 of the paper.
    RoundRobin,
}

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
const TURN: f64 = 4e6;
/// So long a turn has to be for somebody of the same rank whom another worker wakes.
const HANDED: f64 = 5e5;
/// And what it leaves those of the same priority that promises go before: these may do so for so long at one time,
/// and others have one part of so many then.
const PROMISED: f64 = 1e8;
const OTHERS: f64 = 16.0;
/// What a step fills of a channel at the most: one part of so many.
const PARTS: f64 = 4.0;
/// What compiled actors put or get of a channel before they push or pop: one part of so many.
const SEEN: f64 = 2.0;
/// A channel in which elements are followed by what they lead to in some milliseconds: so many nanoseconds of work, and so
/// many firings at the least.
const SHORT: f64 = 20e6;
const SHORT_FIRINGS: f64 = 16.0;
/// Firings in one step, at the most.
const MOST: u64 = 1 << 30;
/// Rates have settled where the slowest actor is behind the mean by no more than this.
const UNSETTLED: f64 = 0.05;
/// Simulations go on for so many times their steps until then.
const LONGER: usize = 32;
/// Steps from which it is known what is to be expected: at least, and for each actor. In much fewer, some who are about to come to wait
/// seem to have settled.
const EXPECTED: usize = 300_000;
const EXPECTED_EACH: usize = 60;
/// After so many steps it is looked for applications that are stuck.
const LOOKS: usize = 1024;
/// To look at an actor that cannot fire.
const LOOK: f64 = 20.0;
/// So many seconds what was promised and not taken is kept, and so many units at the least: the host's rule for
/// what it promises, too.
pub const SAVED: f64 = 0.5;
pub const SAVED_UNITS: f64 = 2.0;

struct Ring {
    from: usize,
    to: usize,
    /// Elements a firing of the producer, and of the consumer.
    put: f64,
    pop: f64,
    room: f64,
    initial: f64,
    /// Firings of the producer that the consumer sees, and of the consumer that the producer sees.
    pushed: u64,
    popped: u64,
}

struct Entity<'a> {
    core: usize,
    app: usize,
    /// Nanoseconds a firing where it sits.
    firing: f64,
    firings: f64,
    done: u64,
    before: u64,
    /// Firings of one step at the most.
    step: u64,
    ready: bool,
    rings: Vec<(usize, bool)>,
    /// It is a source of what is promised a rate.
    cap: Option<Cap>,
    /// It rests until a time that is to come, and has since it was counted from.
    rests: bool,
    rested: bool,
    /// Where it is in its application's course.
    along: Option<Along<'a>>,
}

/// What a source may do by the promise.
struct Cap {
    /// Firings a nanosecond.
    rate: f64,
    /// Firings that it may have at once: of what was due and not made, more than that is lost.
    saved: f64,
    lost: f64,
    /// Lost already when it was counted from.
    before: f64,
}

#[derive(Default)]
struct Worker {
    queue: VecDeque<usize>,
    /// Those that could go on after a turn; others of their rank go first for as long.
    after: VecDeque<usize>,
    others_left: f64,
    /// How long promises have gone before others.
    promised_had: f64,
    own: Vec<usize>,
    next: usize,
    /// The actor whose step ends next, and how many firings that is; none: about to choose.
    step: Option<(usize, u64)>,
    until: f64,
    turn: f64,
    /// Somebody whom another worker has woken is to go before who runs.
    asked: bool,
    /// Firings left in a turn of round robin.
    quota: u64,
    awake: bool,
    /// Since when it has had nothing to do, where it is not awake.
    idle: f64,
    busy: f64,
}

struct Machinery<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    scheduling: Scheduling,
    entities: Vec<Entity<'a>>,
    rings: Vec<Ring>,
    workers: Vec<Worker>,
    /// Ends of steps, and behind all workers, of the rests of actors; times are positive, so their bits order
    /// as they do.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    now: f64,
    /// Ends that were come to.
    steps: usize,
    ranked: bool,
}

impl Ring {
    /// The elements that the consumer sees, when it has fired so often.
    fn there(&self, consumer: u64) -> f64 {
        self.initial + self.pushed as f64 * self.put - consumer as f64 * self.pop
    }

    /// The room that the producer sees, when it has fired so often.
    fn free(&self, producer: u64) -> f64 {
        self.room - self.initial - producer as f64 * self.put + self.popped as f64 * self.pop
    }

    /// Firings until the producer pushes, or the consumer pops, when it has made so many: none, now.
    fn until_seen(&self, done: u64, output: bool) -> u64 {
        let (seen, each) = match output {
            true => (self.pushed, self.put),
            false => (self.popped, self.pop),
        };
        let all = (self.room / SEEN / each - 1e-6).ceil().max(1.0) as u64;
        all.saturating_sub(done - seen)
    }
}

impl Entity<'_> {
    /// What it has done since it was counted from.
    fn units(&self) -> f64 {
        (self.done - self.before) as f64 / self.firings
    }

    /// Nanoseconds of its next firings.
    fn takes(&self, firings: u64) -> f64 {
        let mean = firings as f64 * self.firing;
        match &self.along {
            // Where they cost nothing, time passes all the same.
            Some(along) => {
                let takes = mean + along.beyond(self.done, firings);
                (takes * along.scatter(self.done)).max(1.0)
            }
            None => mean,
        }
    }

    /// Has it gone through its course since it was counted from, where it has one?
    fn is_through(&self) -> bool {
        self.along.as_ref().is_none_or(|a| a.whole().is_some())
    }

    /// Units a nanosecond since it was counted from, which is so long ago: in whole courses, where there were any.
    fn rate(&self, time: f64) -> f64 {
        let whole = self.along.as_ref().and_then(Along::whole);
        whole.unwrap_or(self.units() / time)
    }
}

/// So many firings a source may be ahead of what is due: a unit, and one at the least.
fn ahead(entity: &Entity<'_>) -> f64 {
    entity.firings.max(1.0)
}

/// Firings that make or take a part of a channel.
fn part(room: f64, each: f64) -> u64 {
    ((room / each / PARTS) as u64).max(1)
}

impl Simulated {
    pub(crate) fn all_settled(&self) -> bool {
        (0..self.rates.len()).all(|app| self.settled(app))
    }

    /// But for who gets nothing at all.
    fn all_fire(&self) -> bool {
        let mut rates = self.rates.iter().zip(&self.slowest);
        rates.all(|(&rate, &slowest)| slowest > 0.0 || rate == 0.0)
    }

    /// Do all actors of this application come to as many units as the others?
    pub fn settled(&self, app: usize) -> bool {
        self.slowest[app] >= (1.0 - UNSETTLED) * self.rates[app]
    }
}

/// Runs so many steps, a third of them to warm up.
pub fn simulate(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
    scheduling: Scheduling,
    steps: usize,
) -> Simulated {
    let mut sim = Machinery::new(mix, machine, placement, scheduling).started();
    sim.run(steps / 3);
    sim.counted(steps - steps / 3)
}

/// The same, for up to `LONGER` times as many steps, until the rates have settled: where there are many actors,
/// channels take long to fill. Where that is not long enough, or somebody has not fired at all, as the last of
/// thousands in a row, it begins anew with channels that are half full, as in the midst of a run.
pub fn simulate_until_settled(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
    scheduling: Scheduling,
    steps: usize,
) -> Simulated {
    let mut run = Settling::begin(mix, machine, placement, scheduling, steps);
    loop {
        if let Look::Settled(made) = run.look() {
            return made;
        }
    }
}

/// A simulation until the rates have settled, looked at on the way: who sees enough gives it up.
pub(crate) struct Settling<'a> {
    mix: &'a Mix,
    machine: &'a Machine,
    placement: &'a [u32],
    run: Machinery<'a>,
    steps: usize,
    /// So many of them were made to warm up, and so many were looked at last.
    warm: usize,
    window: usize,
    midway: bool,
}

/// What a look says.
pub(crate) enum Look {
    /// It goes on; so far it is like this.
    SoFar(Simulated),
    Settled(Simulated),
}

impl<'a> Settling<'a> {
    pub fn begin(
        mix: &'a Mix,
        machine: &'a Machine,
        placement: &'a [u32],
        scheduling: Scheduling,
        steps: usize,
    ) -> Settling<'a> {
        Settling {
            mix,
            machine,
            placement,
            run: Machinery::new(mix, machine, placement, scheduling).started(),
            steps,
            warm: 0,
            window: 0,
            midway: false,
        }
    }

    /// A first one while it warms up, which makes no difference to those that come.
    pub fn glance(&mut self) -> Simulated {
        let warm = self.steps / 3;
        self.run.run(warm / 3);
        self.warm = warm;
        self.run.counted(warm - warm / 3)
    }

    /// For twice as many steps as the last time.
    pub fn look(&mut self) -> Look {
        if self.window == 0 {
            self.run.run(self.steps / 3 - self.warm);
            self.window = self.steps - self.steps / 3;
        } else {
            self.window *= 2;
        }
        let made = self.run.counted(self.window);
        let settled = made.all_settled();
        let enough = self.window >= LONGER / 2 * self.steps || settled && made.whole;
        if enough && (settled || self.midway) {
            return Look::Settled(made);
        }
        if !self.midway && (enough || !made.all_fire()) {
            let how = self.run.scheduling;
            let anew = Machinery::new(self.mix, self.machine, self.placement, how);
            self.run = anew.half_full().started();
            (self.warm, self.window) = (0, 0);
            self.midway = true;
        }
        Look::SoFar(made)
    }
}

/// Steps from which it is known what is to be expected of so many actors.
pub(crate) fn expecting(mix: &Mix) -> usize {
    EXPECTED.max(EXPECTED_EACH * mix.actors())
}

/// What a placement can be expected to give: simulated for so long that a glance at it is no longer taken for how it goes.
pub fn expected(
    mix: &Mix,
    machine: &Machine,
    placement: &[u32],
    scheduling: Scheduling,
) -> Simulated {
    simulate_until_settled(mix, machine, placement, scheduling, expecting(mix))
}

/// A simulation that is begun in the midst of a run, with short channels that are half full, and looked at as it goes on:
/// the filling of channels is not counted as something done.
pub(crate) struct Midway<'a>(Machinery<'a>);

impl<'a> Midway<'a> {
    /// So many steps further on.
    pub fn begin(
        mix: &'a Mix,
        machine: &'a Machine,
        placement: &[u32],
        steps: usize,
    ) -> Midway<'a> {
        let begun = Machinery::new(mix, machine, placement, Scheduling::EventDriven);
        let mut sim = begun.shortened().half_full().started();
        sim.run(steps);
        Midway(sim)
    }

    /// By the next so many steps.
    pub fn counted(&mut self, steps: usize) -> Simulated {
        self.0.counted(steps)
    }
}

/// After so many steps, about 0.2 ms, the thread gives its core away. A host maps beside workers: let in once, a thread
/// goes on until a tick of the system's clock, for up to 4 ms, and one for idle time, too, where the worker was interrupted
/// and is not due by its share.
const GIVES_WAY: usize = 1024;

impl<'a> Machinery<'a> {
    /// With channels that hold no more than some milliseconds' worth, so that it soon goes as it would for ever.
    fn shortened(mut self) -> Self {
        for ring in &mut self.rings {
            let (from, to) = (&self.entities[ring.from], &self.entities[ring.to]);
            let element = (from.firing / ring.put).max(to.firing / ring.pop);
            let firings = SHORT_FIRINGS * ring.put.max(ring.pop);
            ring.room = ring.room.min((SHORT / element).max(firings));
            for (end, each) in [(ring.from, ring.put), (ring.to, ring.pop)] {
                let entity = &mut self.entities[end];
                entity.step = entity.step.min(part(ring.room, each));
            }
        }
        self
    }

    fn half_full(mut self) -> Self {
        for ring in &mut self.rings {
            ring.initial = ring.room / 2.0;
        }
        self
    }

    /// Units a second that each application can have at the most: what it has to do on its busiest core.
    fn most(&self) -> Vec<f64> {
        let mut work = vec![vec![0.0; self.workers.len()]; self.mix.apps.len()];
        for entity in &self.entities {
            work[entity.app][entity.core] += entity.firing * entity.firings;
        }
        let busiest = |cores: &Vec<f64>| cores.iter().copied().fold(0.0, f64::max);
        work.iter().map(|cores| 1e9 / busiest(cores)).collect()
    }

    /// Runs so many steps, and counts what was done in them.
    fn counted(&mut self, steps: usize) -> Simulated {
        let (mix, begin) = (self.mix, self.now);
        for entity in &mut self.entities {
            entity.before = entity.done;
            if let Some(along) = &mut entity.along {
                along.count_from(entity.done, begin);
            }
        }
        self.entities.iter_mut().for_each(|e| e.rested = e.rests);
        self.lose_all();
        let caps = self.entities.iter_mut().filter_map(|e| e.cap.as_mut());
        caps.for_each(|cap| cap.before = cap.lost);
        self.workers.iter_mut().for_each(|w| w.busy = 0.0);
        self.run(steps);
        let time = (self.now - begin).max(1.0);
        let mut rates = vec![0.0; mix.apps.len()];
        let mut slowest = vec![f64::INFINITY; mix.apps.len()];
        let mut firings = vec![0.0; mix.apps.len()];
        let kept = self.kept(time);
        for entity in &self.entities {
            let rate = 1e9 * entity.rate(time);
            let actors = mix.apps[entity.app].actors.len() as f64;
            rates[entity.app] += rate / actors;
            firings[entity.app] += (entity.done - entity.before) as f64 / actors;
            slowest[entity.app] = slowest[entity.app].min(rate);
        }
        // While channels fill, those before them do more than that.
        rates
            .iter_mut()
            .zip(self.most())
            .for_each(|(rate, most)| *rate = rate.min(most));
        for (i, app) in mix.apps.iter().enumerate() {
            if let Some(rate) = app.promise.and_then(|p| kept[i].map(|kept| p * kept)) {
                rates[i] = rate;
                slowest[i] = rate;
            }
        }
        let busy = self.workers.iter().map(|w| (w.busy / time).min(1.0));
        let mut all = self.entities.iter();
        let whole = all.all(|e| e.is_through() || rates[e.app] == 0.0);
        Simulated {
            rates,
            slowest,
            busy: busy.collect(),
            seconds: time / 1e9,
            firings,
            whole,
        }
    }

    /// Of each application that was ahead of what it is promised, the share of that which it had in so much time.
    fn kept(&mut self, time: f64) -> Vec<Option<f64>> {
        self.lose_all();
        let mut kept: Vec<Option<f64>> = vec![None; self.mix.apps.len()];
        for entity in self.entities.iter().filter(|e| e.rested) {
            if let Some(cap) = &entity.cap {
                // However few units that was in this time, it has had all but what was lost.
                let share = 1.0 - (cap.lost - cap.before) / (cap.rate * time);
                let least = kept[entity.app].unwrap_or(1.0).min(share);
                kept[entity.app] = Some(least.max(0.0));
            }
        }
        let mut longest = vec![0.0f64; self.workers.len()];
        for entity in &self.entities {
            longest[entity.core] = longest[entity.core].max(entity.firing);
        }
        for entity in &self.entities {
            let promise = self.mix.apps[entity.app].promise;
            if let (Some(kept), Some(promise)) = (&mut kept[entity.app], promise) {
                // Channels take what the source gives for long; who is behind it by more than what came since it may
                // have had its last turn does not keep up.
                let due = promise * time * 1e-9;
                let behind = 1.0 + promise * longest[entity.core] * 1e-9;
                *kept = kept.min((entity.units() + behind) / due);
            }
        }
        kept
    }

    fn new(
        mix: &'a Mix,
        machine: &'a Machine,
        placement: &[u32],
        scheduling: Scheduling,
    ) -> Machinery<'a> {
        let mut sim = Machinery {
            mix,
            machine,
            scheduling,
            entities: Vec::with_capacity(placement.len()),
            rings: Vec::new(),
            workers: (0..machine.workers()).map(|_| Worker::default()).collect(),
            ends: BinaryHeap::new(),
            now: 0.0,
            steps: 0,
            ranked: mix
                .apps
                .iter()
                .any(|a| a.promise.is_some() || a.priority != mix.apps[0].priority),
        };
        for (number, app) in mix.apps.iter().enumerate() {
            let first = sim.entities.len();
            for (n, actor) in app.actors.iter().enumerate() {
                let core = placement[sim.entities.len()] as usize;
                let firings = actor.steps();
                sim.workers[core].own.push(sim.entities.len());
                sim.entities.push(Entity {
                    core,
                    app: number,
                    firing: actor.time / firings / machine.cores[core].speed,
                    firings,
                    done: 0,
                    before: 0,
                    step: u64::MAX,
                    ready: false,
                    rings: Vec::new(),
                    cap: app.promise.map(|rate| Cap {
                        rate: rate * firings / 1e9,
                        saved: ((rate * SAVED).max(SAVED_UNITS) * firings).max(1.0),
                        lost: 0.0,
                        before: 0.0,
                    }),
                    rests: false,
                    rested: false,
                    along: app.course.as_ref().map(|course| {
                        let unit = actor.time / machine.cores[core].speed;
                        Along::new(course, n, unit, firings)
                    }),
                });
            }
            let order = pipeline_order(
                app.actors.len(),
                app.channels.iter().map(|c| (c.from, c.to)),
            );
            let mut place = vec![0; order.len()];
            order.iter().enumerate().for_each(|(i, &a)| place[a] = i);
            for c in &app.channels {
                if c.elements <= 0.0 || c.from == c.to {
                    continue;
                }
                let (from, to) = (first + c.from, first + c.to);
                let put = c.elements / sim.entities[from].firings;
                let pop = c.elements / sim.entities[to].firings;
                let room = c.capacity.max(put + pop);
                let cost = c.elements
                    * c.size
                    * machine.byte(sim.entities[from].core as u32, sim.entities[to].core as u32);
                for (end, each, output) in [(from, put, true), (to, pop, false)] {
                    let entity = &mut sim.entities[end];
                    entity.firing += cost / entity.firings;
                    entity.step = entity.step.min(part(room, each));
                    entity.rings.push((sim.rings.len(), output));
                }
                sim.rings.push(Ring {
                    from,
                    to,
                    put,
                    pop,
                    room,
                    // Feedback would never begin without elements that are there at first.
                    initial: if place[c.to] < place[c.from] {
                        room / 2.0
                    } else {
                        0.0
                    },
                    pushed: 0,
                    popped: 0,
                });
            }
        }
        for entity in &mut sim.entities {
            if entity.rings.iter().any(|&(_, output)| !output) {
                entity.cap = None;
            }
            // A step takes a nanosecond at the least: what takes no time must not run for ever at one
            // moment, nor make more firings than can be counted.
            entity.step = entity.step.min(MOST);
            entity.firing = entity.firing.max(1.0 / entity.step as f64);
            entity.step = entity.step.min((TURN / entity.firing) as u64).max(1);
        }
        sim
    }

    /// How many firings an actor can make now, by what it sees of its channels.
    fn could(&self, actor: usize, most: u64) -> u64 {
        let entity = &self.entities[actor];
        let mut least = most.min(self.allowed(entity));
        for &(ring, output) in &entity.rings {
            let ring = &self.rings[ring];
            let firings = match output {
                true => ring.free(entity.done) / ring.put,
                false => ring.there(entity.done) / ring.pop,
            };
            // What rounding took must not stop anybody for ever.
            least = least.min((firings + 1e-6).max(0.0) as u64);
        }
        least
    }

    /// The same in one step, that ends where others come to see something.
    fn can(&self, actor: usize) -> u64 {
        let entity = &self.entities[actor];
        let rings = entity.rings.iter();
        let seen = rings.map(|&(ring, output)| self.rings[ring].until_seen(entity.done, output));
        self.could(actor, seen.fold(entity.step, u64::min))
    }

    /// How many firings it may make by what its application is promised: a unit more than were due.
    fn allowed(&self, entity: &Entity<'_>) -> u64 {
        match &entity.cap {
            Some(cap) => self.due(entity, cap).min(cap.saved) as u64,
            None => u64::MAX,
        }
    }

    fn due(&self, entity: &Entity<'_>, cap: &Cap) -> f64 {
        cap.rate * self.now + ahead(entity) + 1e-6 - cap.lost - entity.done as f64
    }

    /// Of what it was to do until now, more than it may make up for is lost.
    fn lose(&mut self, actor: usize) {
        let entity = &self.entities[actor];
        let Some(cap) = &entity.cap else { return };
        let more = self.due(entity, cap) - cap.saved;
        if let Some(cap) = self.entities[actor].cap.as_mut().filter(|_| more > 0.0) {
            cap.lost += more;
        }
    }

    fn lose_all(&mut self) {
        (0..self.entities.len()).for_each(|actor| self.lose(actor));
    }

    /// It can do nothing for now; if that is by what it may, it goes on when it may again.
    fn let_rest(&mut self, actor: usize) {
        let entity = &self.entities[actor];
        let cap = entity.cap.as_ref();
        let due = cap.filter(|_| !entity.rests && self.allowed(entity) == 0);
        // For some of a unit at once: each firing by itself would be a step.
        let some = (entity.firings / 8.0).min(entity.step as f64).max(1.0);
        let at = due.map(|cap| (entity.done as f64 + some + cap.lost - ahead(entity)) / cap.rate);
        let entity = &mut self.entities[actor];
        entity.ready = false;
        if let Some(at) = at {
            entity.rests = true;
            entity.rested = true;
            let at = at.max(self.now + 1.0).to_bits();
            self.ends.push(Reverse((at, self.workers.len() + actor)));
        }
    }

    fn started(mut self) -> Self {
        for actor in 0..self.entities.len() {
            self.wake(actor, usize::MAX);
        }
        self
    }

    fn run(&mut self, steps: usize) {
        let every = LOOKS.max(4 * self.entities.len());
        for _ in 0..steps {
            self.steps += 1;
            if self.steps.is_multiple_of(every) {
                self.free_the_stuck();
            }
            if self.steps.is_multiple_of(GIVES_WAY) {
                std::thread::yield_now();
            }
            let Some(Reverse((at, worker))) = self.ends.pop() else {
                if !self.free_the_stuck() {
                    return;
                }
                continue;
            };
            self.now = f64::from_bits(at);
            match worker.checked_sub(self.workers.len()) {
                None => self.end(worker),
                Some(actor) => {
                    self.entities[actor].rests = false;
                    self.wake(actor, usize::MAX);
                }
            }
        }
    }

    /// Makes room in applications of which nothing can fire: a real network has enough, or it would not
    /// have been measured, and here some actor's bursts were averaged away. Whether there were such.
    fn free_the_stuck(&mut self) -> bool {
        let mut any = false;
        for actors in self.mix.ranges() {
            let waits = |i: usize| {
                let entity = &self.entities[i];
                !entity.ready && !entity.rests && self.could(i, 1) == 0
            };
            if !actors.clone().all(waits) {
                continue;
            }
            for ring in &mut self.rings {
                if actors.contains(&ring.from) && ring.room < 1e15 {
                    ring.room *= 2.0;
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
        if let Some((actor, firings)) = ran {
            let entity = &mut self.entities[actor];
            entity.done += firings;
            if let Some(along) = &mut entity.along {
                along.came_to(entity.done, self.now);
            }
            self.wake_peers(actor, worker, false);
            let (can, behind) = (self.can(actor), self.is_behind(actor));
            let of = &mut self.workers[worker];
            of.quota = of.quota.saturating_sub(firings);
            if self.scheduling == Scheduling::RoundRobin {
                go_on = (can.min(of.quota) > 0).then(|| (actor, can.min(of.quota), 0.0));
            } else if can > 0
                && !of.asked
                && (of.turn < TURN || of.queue.is_empty() && of.after.is_empty())
            {
                go_on = Some((actor, can, 0.0));
            } else if can > 0 && behind {
                of.queue.push_back(actor);
            } else if can > 0 {
                of.after.push_back(actor);
                of.others_left = of.turn;
            } else {
                let turn = of.turn;
                let one = self.workers[worker].after.front();
                if one.is_some_and(|&after| self.rank(after) == self.rank(actor)) {
                    self.workers[worker].others_left -= turn;
                }
                self.let_rest(actor);
            }
        }
        if go_on.is_none() {
            if let Some((actor, _)) = ran {
                self.wake_peers(actor, worker, true);
            }
            self.workers[worker].turn = 0.0;
            self.workers[worker].asked = false;
            go_on = match self.scheduling {
                Scheduling::EventDriven => self.first(worker),
                Scheduling::RoundRobin => self.around(worker),
            };
        }
        match go_on {
            Some((actor, firings, before)) => {
                self.lose(actor);
                let time = self.entities[actor].takes(firings) + before;
                self.count_promised(worker, actor, time);
                let worker_of = &mut self.workers[worker];
                worker_of.step = Some((actor, firings));
                worker_of.turn += time;
                worker_of.busy += time;
                worker_of.until = self.now + time;
                self.ends.push(Reverse((worker_of.until.to_bits(), worker)));
            }
            None => {
                self.workers[worker].awake = false;
                self.workers[worker].idle = self.now;
                self.workers[worker].promised_had = 0.0;
            }
        }
    }

    /// Others see what this one has put and got where that is half of a channel, or its turn is over; who waits for it is
    /// woken then.
    fn wake_peers(&mut self, actor: usize, worker: usize, over: bool) {
        let done = self.entities[actor].done;
        for i in 0..self.entities[actor].rings.len() {
            let (ring, output) = self.entities[actor].rings[i];
            let ring = &mut self.rings[ring];
            if !over && ring.until_seen(done, output) > 0 {
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
            self.wake(peer, worker);
        }
    }

    /// Makes an actor ready that can fire, and wakes its worker.
    fn wake(&mut self, actor: usize, by: usize) {
        if self.entities[actor].ready {
            return;
        }
        if self.can(actor) == 0 {
            return self.let_rest(actor);
        }
        self.entities[actor].ready = true;
        let core = self.entities[actor].core;
        if self.scheduling == Scheduling::EventDriven {
            self.workers[core].queue.push_back(actor);
            self.workers[core].asked |= core != by && self.goes_before(actor, core);
        }
        let worker = &mut self.workers[core];
        if !worker.awake && core != by {
            worker.awake = true;
            let costs = &self.machine.costs;
            let asleep = self.now - worker.idle > costs.spin;
            let at = self.now + if asleep { costs.asleep } else { costs.wake };
            let at = at.to_bits();
            self.ends.push(Reverse((at, core)));
        }
    }
}
