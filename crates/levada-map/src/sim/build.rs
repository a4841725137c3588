// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Construction of the simulated machine from a mix, a machine and a placement.

use super::cpu_yield::CpuYield;
use super::event_tournament::EventTournament;
use super::light_apps::UsageShares;
use super::ports::Ports;
use super::profile_cursor::ProfileCursor;
use super::rate_limit::{RATE_BURST_S, RATE_BURST_UNITS, RateLimiter};
use super::{Entity, PUBLISH_BYTES, Ring, Simulator, TURN_NS, Worker};
use crate::model::graph::pipeline_order;
use crate::model::machine::{Machine, Scheduling};
use crate::model::mix::{App, Mix};

/// A step fills at most this part (1/n) of a channel, and half of what is published at once.
const STEP_DIVISOR: f64 = 4.0;
/// Size of a shortened channel, in nanoseconds of work, and its minimum in firings: small enough
/// for a steady state within milliseconds.
const SHORT_CHANNEL_NS: f64 = 20e6;
const SHORT_CHANNEL_FIRINGS: f64 = 16.0;
/// Maximum number of firings per step.
const STEP_FIRINGS_MAX: u32 = 1 << 30;

/// The number of firings that fill that part of a channel.
fn step_firings(room: f64, publish: f64, each: f64) -> u32 {
    let most = (room / STEP_DIVISOR).min(publish / 2.0);
    ((most / each) as u32).max(1)
}

impl<'a> Simulator<'a> {
    pub(super) fn new(
        mix: &'a Mix,
        machine: &'a Machine,
        placement: &[u32],
        scheduling: Scheduling,
    ) -> Simulator<'a> {
        let mut sim = Simulator {
            mix,
            machine,
            scheduling,
            entities: Vec::with_capacity(placement.len()),
            rings: Vec::new(),
            ports: Ports::default(),
            shares: UsageShares::default(),
            workers: (0..machine.workers()).map(|_| Worker::default()).collect(),
            limits: Vec::with_capacity(mix.apps.len()),
            events: EventTournament::of(machine.workers()),
            now: 0.0,
            steps: 0,
            yielding: CpuYield::default(),
            has_ranks: mix
                .apps
                .iter()
                .any(|a| a.reserved_rate.is_some() || a.priority != mix.apps[0].priority),
        };
        let levels = mix.priority_levels();
        for (number, app) in mix.apps.iter().enumerate() {
            let first = sim.entities.len();
            let cores = &placement[first..first + app.actors.len()];
            let level = levels.partition_point(|&p| p > app.priority);
            sim.add_actors(number, cores, level as u32);
            sim.add_channels(app, first);
        }
        if mix.apps.len() > 1 {
            sim.shares = UsageShares::of_all(&mut sim.entities, machine.workers());
        }
        sim.ports = Ports::of_all(sim.entities.len(), &sim.rings);
        for (actor, entity) in sim.entities.iter_mut().enumerate() {
            if sim.ports.of(actor).iter().any(|port| !port.is_output()) {
                entity.limiter = None;
            }
            // At least a nanosecond per step: otherwise an actor without cost would run forever at
            // one point in time, or exceed the range of the counters.
            entity.firing = entity.firing.max(1.0 / f64::from(entity.step));
            entity.step = entity.step.min((TURN_NS / entity.firing) as u32).max(1);
        }
        sim
    }

    fn add_actors(&mut self, number: usize, cores: &[u32], level: u32) {
        let app = &self.mix.apps[number];
        let speed = |core: u32| self.machine.cores[core as usize].speed;
        let there = app.actors.iter().zip(cores);
        let limit = app.rate_limit(there.map(|(actor, &core)| actor.time / speed(core)).sum());
        self.limits.push(limit);
        for (n, (actor, &core)) in app.actors.iter().zip(cores).enumerate() {
            let (firings, unit) = (actor.steps(), actor.time / speed(core));
            self.workers[core as usize].actors.push(self.entities.len());
            self.entities.push(Entity {
                done: 0,
                firing: unit / firings,
                firings,
                reserved_rate: app.reserved_rate.unwrap_or(f64::NAN),
                limiter: limit.map(|rate| {
                    Box::new(RateLimiter {
                        rate: rate * firings / 1e9,
                        saved: ((rate * RATE_BURST_S).max(RATE_BURST_UNITS) * firings).max(1.0),
                        lost: 0.0,
                        lost_before: 0.0,
                    })
                }),
                cursor: app
                    .cost_profile
                    .as_ref()
                    .map(|profile| Box::new(ProfileCursor::new(profile, n, unit, firings))),
                core,
                step: STEP_FIRINGS_MAX,
                level,
                ready: false,
                resting: false,
                rested: false,
                light: false,
                app: number,
                share: 0,
                done_before: 0,
            });
        }
    }

    /// Adds the channels of an application; `first` is the number of its first actor. Each end pays
    /// the cost of traffic with its firings.
    fn add_channels(&mut self, app: &App, first: usize) {
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
            let put = c.elements / self.entities[from].firings;
            let pop = c.elements / self.entities[to].firings;
            let room = c.capacity.max(put + pop);
            let publish = PUBLISH_BYTES / c.size; // infinite, if they have no size
            let byte = self
                .machine
                .byte(self.entities[from].core, self.entities[to].core);
            let cost = c.elements * c.size * byte;
            for (end, each) in [(from, put), (to, pop)] {
                let entity = &mut self.entities[end];
                entity.firing += cost / entity.firings;
                entity.step = entity.step.min(step_firings(room, publish, each));
            }
            let mut ring = Ring {
                from: from as u32,
                to: to as u32,
                put,
                pop,
                room,
                publish,
                // Feedback starts with initial elements; without them it would deadlock.
                initial: if place[c.to] < place[c.from] {
                    room / 2.0
                } else {
                    0.0
                },
                pushed: 0,
                popped: 0,
                pushes: 0,
                pops: 0,
            };
            ring.set_room(room);
            self.rings.push(ring);
        }
    }

    /// Shortens the channels to some milliseconds of work, so that the steady state is reached
    /// soon.
    pub(super) fn with_short_channels(mut self) -> Self {
        for ring in &mut self.rings {
            let (from, to) = (ring.from as usize, ring.to as usize);
            let (makes, takes) = (&self.entities[from], &self.entities[to]);
            let element = (makes.firing / ring.put).max(takes.firing / ring.pop);
            let firings = SHORT_CHANNEL_FIRINGS * ring.put.max(ring.pop);
            ring.set_room(ring.room.min((SHORT_CHANNEL_NS / element).max(firings)));
            for (end, each) in [(from, ring.put), (to, ring.pop)] {
                let entity = &mut self.entities[end];
                entity.step = entity.step.min(step_firings(ring.room, ring.publish, each));
            }
        }
        self
    }

    /// Fills the channels as in a steady state. Most are half full. Within a core shared by several
    /// applications they are alternately full and empty along the application, as a run from empty
    /// channels makes them; half-full channels would stay half full and halve the turns, which
    /// affects the scheduling order.
    pub(super) fn half_full(mut self) -> Self {
        let (shared, steps) = (self.sharing(), self.steps_from_sources());
        for ring in &mut self.rings {
            let [from, to] = [ring.from, ring.to].map(|actor| self.entities[actor as usize].core());
            ring.initial = match () {
                () if from != to || shared[from] < 2 || ring.initial > 0.0 => ring.room / 2.0,
                () if steps[ring.from as usize] % 2 == 0 => ring.room,
                () => 0.0,
            };
        }
        self
    }

    /// The number of applications on each core.
    fn sharing(&self) -> Vec<u32> {
        let mut sharing = vec![(0, usize::MAX); self.workers.len()];
        for entity in &self.entities {
            let (count, last) = &mut sharing[entity.core()];
            *count += u32::from(*last != entity.app);
            *last = entity.app;
        }
        sharing.into_iter().map(|(count, _)| count).collect()
    }

    /// The maximum number of channels from a source to each actor, without feedback.
    fn steps_from_sources(&self) -> Vec<u32> {
        let mut steps = vec![0; self.entities.len()];
        for (app, actors) in self.mix.apps.iter().zip(self.mix.ranges()) {
            let ends = app.channels.iter().map(|c| (c.from, c.to));
            for one in pipeline_order(app.actors.len(), ends) {
                let from = actors.start + one;
                for port in self.ports.of(from).iter().filter(|port| port.is_output()) {
                    let ring = &self.rings[port.ring()];
                    if ring.initial == 0.0 {
                        steps[ring.to as usize] = steps[ring.to as usize].max(steps[from] + 1);
                    }
                }
            }
        }
        steps
    }

    pub(super) fn started(mut self) -> Self {
        for actor in 0..self.entities.len() {
            self.wake(actor, usize::MAX);
        }
        self
    }
}
