// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The placement of an application: the announced worker of each actor, and pins.
//!
//! Actors are moved by the mapper, by users, and by the runtime (from a core that is taken away, or from behind a
//! long firing). Each move is announced once, here.

use crate::app::HostedApp;
use crate::model::events::Events;
use crate::util::lock::lock;
use levada_sys::Error;
use std::sync::Mutex;

#[derive(Debug)]
pub struct ActorPlacement {
    announced: Mutex<Vec<u32>>,
    /// Empty if no actor is pinned.
    pins: Mutex<Vec<Option<u32>>>,
}

impl ActorPlacement {
    /// The initial placement.
    pub(crate) fn new(placement: Vec<u32>, pins: Vec<Option<u32>>) -> ActorPlacement {
        ActorPlacement {
            announced: Mutex::new(placement),
            pins: Mutex::new(pins),
        }
    }

    /// The worker that each actor is pinned to; empty if no actor is pinned.
    pub fn pins(&self) -> Vec<Option<u32>> {
        lock(&self.pins).clone()
    }

    /// Calls `what` with each actor and its announced worker.
    pub(crate) fn for_each(&self, mut what: impl FnMut(usize, u32)) {
        let told = lock(&self.announced);
        told.iter().enumerate().for_each(|(i, &at)| what(i, at));
    }

    /// Pins an actor to a worker, or unpins it. Returns the previous pin.
    pub(crate) fn pin(&self, actor: usize, worker: Option<u32>) -> Option<u32> {
        let mut pins = lock(&self.pins);
        if pins.len() <= actor {
            pins.resize(actor + 1, None);
        }
        std::mem::replace(&mut pins[actor], worker)
    }
}

/// Emits the event of a move, if the worker has changed. Returns whether it has.
fn emit_move(events: &Events, name: &str, actor: &str, seat: &mut u32, worker: u32) -> bool {
    let from = std::mem::replace(seat, worker);
    if from != worker {
        events.emit_moved(name, actor, from, worker);
    }
    from != worker
}

impl HostedApp {
    /// Moves an actor to a worker, and emits the event if that has changed. Returns whether it has.
    pub(crate) fn move_actor(
        &self,
        events: &Events,
        actor: usize,
        worker: u32,
    ) -> Result<bool, Error> {
        // Locked meanwhile: a concurrent search for moves of the runtime sees all of this, or nothing.
        let mut told = lock(&self.placement.announced);
        self.app.move_actor(actor as u32, worker)?;
        let names = self.app.network().actor_names();
        Ok(match (told.get_mut(actor), names.get(actor)) {
            (Some(seat), Some(actor)) => emit_move(events, &self.name, actor, seat, worker),
            _ => false,
        })
    }

    /// The same without an event, for an application that has not been announced yet.
    pub(crate) fn move_actor_silently(&self, actor: usize, worker: u32) -> Result<(), Error> {
        let mut told = lock(&self.placement.announced);
        self.app.move_actor(actor as u32, worker)?;
        if let Some(seat) = told.get_mut(actor) {
            *seat = worker;
        }
        Ok(())
    }

    /// Emits events for the moves that the runtime has made.
    pub(crate) fn emit_moves(&self, events: &Events) {
        let mut told = lock(&self.placement.announced);
        let counters = self.app.counters().unwrap_or_default();
        for (actor, seat) in counters.actors.iter().zip(told.iter_mut()) {
            if emit_move(events, &self.name, &actor.name, seat, actor.target) {
                self.count_move();
            }
        }
    }
}
