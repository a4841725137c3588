// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the actors of an application sit: where others have been told that each is, and which stay where
//! somebody wants them.
//!
//! Actors are moved by the mapper, by hand, and by the runtime: from a core that is taken away, or from
//! behind an action that lasts. Whoever it was, a move is told once, here.

use crate::app::Hosted;
use crate::model::events::Events;
use crate::util::lock::lock;
use levada_sys::Error;
use std::sync::Mutex;

#[derive(Debug)]
pub struct Seats {
    told: Mutex<Vec<u32>>,
    /// Empty where none must stay.
    pins: Mutex<Vec<Option<u32>>>,
}

impl Seats {
    /// As they are when it is loaded.
    pub(crate) fn new(placement: Vec<u32>, pins: Vec<Option<u32>>) -> Seats {
        Seats {
            told: Mutex::new(placement),
            pins: Mutex::new(pins),
        }
    }

    /// Workers that actors must stay on; empty where none must.
    pub fn pins(&self) -> Vec<Option<u32>> {
        lock(&self.pins).clone()
    }

    /// Calls `what` with each actor and the worker that others have been told it is on.
    pub(crate) fn each(&self, mut what: impl FnMut(usize, u32)) {
        let told = lock(&self.told);
        told.iter().enumerate().for_each(|(i, &at)| what(i, at));
    }

    /// From now on this actor must stay on that worker, or, with none, may be anywhere. What was so before.
    pub(crate) fn pin(&self, actor: usize, worker: Option<u32>) -> Option<u32> {
        let mut pins = lock(&self.pins);
        if pins.len() <= actor {
            pins.resize(actor + 1, None);
        }
        std::mem::replace(&mut pins[actor], worker)
    }
}

/// Says that an actor has gone to that worker, if that is new. Whether it is.
fn tell(events: &Events, name: &str, actor: &str, seat: &mut u32, worker: u32) -> bool {
    let from = std::mem::replace(seat, worker);
    if from != worker {
        events.moved(name, actor, from, worker);
    }
    from != worker
}

impl Hosted {
    /// Puts an actor on a worker, and says so where that is new: whether it is.
    pub(crate) fn seat(&self, events: &Events, actor: usize, worker: u32) -> Result<bool, Error> {
        // Held meanwhile: who looks for what others have moved sees all of this, or nothing.
        let mut told = lock(&self.seats.told);
        self.app.move_actor(actor as u32, worker)?;
        let names = self.app.network().actor_names();
        Ok(match (told.get_mut(actor), names.get(actor)) {
            (Some(seat), Some(actor)) => tell(events, &self.name, actor, seat, worker),
            _ => false,
        })
    }

    /// The same of one that others know nothing of yet.
    pub(crate) fn seat_unseen(&self, actor: usize, worker: u32) -> Result<(), Error> {
        let mut told = lock(&self.seats.told);
        self.app.move_actor(actor as u32, worker)?;
        if let Some(seat) = told.get_mut(actor) {
            *seat = worker;
        }
        Ok(())
    }

    /// Says what the runtime has moved.
    pub(crate) fn tell_moves(&self, events: &Events) {
        let mut told = lock(&self.seats.told);
        let counters = self.app.counters().unwrap_or_default();
        for (actor, seat) in counters.actors.iter().zip(told.iter_mut()) {
            if tell(events, &self.name, &actor.name, seat, actor.target) {
                self.count_move();
            }
        }
    }
}
