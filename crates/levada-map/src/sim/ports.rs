// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The channel ends of all actors in one array, which stays in the cache with thousands of actors.

use super::Ring;

#[derive(Clone, Copy)]
pub(super) struct Port(u32);

/// `places` has the index of the first end of each actor.
#[derive(Default)]
pub(super) struct Ports {
    places: Vec<u32>,
    all: Vec<Port>,
}

impl Port {
    fn new(ring: usize, output: bool) -> Port {
        Port((ring as u32) << 1 | u32::from(output))
    }

    pub fn ring(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// True if the actor is the producer.
    pub fn is_output(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Ports {
    /// The ends of each actor, in the order of the channels.
    pub fn of_all(actors: usize, rings: &[Ring]) -> Ports {
        let mut places = vec![0; actors + 1];
        for ring in rings {
            places[ring.from as usize + 1] += 1;
            places[ring.to as usize + 1] += 1;
        }
        for actor in 0..actors {
            places[actor + 1] += places[actor];
        }
        let mut all = vec![Port(0); 2 * rings.len()];
        let mut next = places.clone();
        for (number, ring) in rings.iter().enumerate() {
            for (actor, output) in [(ring.from, true), (ring.to, false)] {
                let next = &mut next[actor as usize];
                all[*next as usize] = Port::new(number, output);
                *next += 1;
            }
        }
        Ports { places, all }
    }

    pub fn of(&self, actor: usize) -> &[Port] {
        &self.all[self.places[actor] as usize..self.places[actor + 1] as usize]
    }
}
