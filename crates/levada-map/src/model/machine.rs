// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The target machine: cores, their speeds, and the cost of communication between them.

/// A core that a worker runs on. Cores with equal numbers in a field share that resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Core {
    /// Relative speed: 1 is the core on which times were measured.
    pub speed: f64,
    /// The physical core; its hardware threads share it.
    pub physical: u32,
    /// The last-level cache.
    pub cache: u32,
    pub socket: u32,
}

/// Costs of communication and of switching between actors, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Per byte and for each of the two actors: between hardware threads of one core, cores that
    /// share a cache, cores of one socket, and sockets.
    pub byte: [f64; 4],
    /// Switching to another actor.
    pub turn: f64,
    /// From a push until an idle worker that still polls starts the actor.
    pub wake: f64,
    /// How long an idle worker polls before it sleeps.
    pub spin: f64,
    /// From a push until a sleeping worker starts the actor.
    pub asleep: f64,
}

impl Default for Costs {
    /// In a stream with prefetching, moving a cache line of 64 bytes between two cores costs each
    /// side about 6 ns; three times as much between cores without a common cache. Waking a thread
    /// on another core by a futex takes 15 to 25 µs in a virtual machine.
    fn default() -> Costs {
        Costs {
            byte: [0.05, 0.1, 0.3, 0.6],
            turn: 80.0,
            wake: 300.0,
            spin: 30e3,
            asleep: 20e3,
        }
    }
}

/// A core's available capacity differs from the largest one only if it is below this fraction of
/// it.
const SIMILAR_AVAILABILITY: f64 = 0.8;

/// The policy by which a worker chooses the next actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// The actor that became ready first. Actors behind their reserved rate precede, and leave the
    /// others a fraction of the time.
    #[default]
    EventDriven,
    /// All actors in turn, whether they can fire or not, each until it cannot fire: section 3 of
    /// the paper.
    RoundRobin,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub cores: Vec<Core>,
    pub costs: Costs,
    /// The scheduling policy of the workers; simulation uses the same.
    pub scheduling: Scheduling,
}

impl Machine {
    /// Equal cores around one cache.
    pub fn new(cores: usize) -> Machine {
        Machine::with_topology(cores, 1, cores.max(1), cores.max(1))
    }

    /// Equal cores with `threads` hardware threads per physical core, `cache` cores per cache and
    /// `socket` cores per socket.
    pub fn with_topology(cores: usize, threads: usize, cache: usize, socket: usize) -> Machine {
        let core = |i: usize| Core {
            speed: 1.0,
            physical: (i / threads.max(1)) as u32,
            cache: (i / cache.max(1)) as u32,
            socket: (i / socket.max(1)) as u32,
        };
        Machine {
            cores: (0..cores).map(core).collect(),
            costs: Costs::default(),
            scheduling: Scheduling::default(),
        }
    }

    pub fn workers(&self) -> usize {
        self.cores.len()
    }

    /// The distance of two cores, as an index of [`Costs::byte`].
    pub fn distance(&self, a: u32, b: u32) -> usize {
        let (a, b) = (&self.cores[a as usize], &self.cores[b as usize]);
        match () {
            () if a.physical == b.physical => 0,
            () if a.cache == b.cache => 1,
            () if a.socket == b.socket => 2,
            () => 3,
        }
    }

    /// The cost of a byte between two cores, for each of them.
    pub fn byte(&self, a: u32, b: u32) -> f64 {
        if a == b {
            0.0
        } else {
            self.costs.byte[self.distance(a, b)]
        }
    }

    /// The cost of a byte between two cores that share a cache, which is the usual case.
    pub fn shared_cache_byte(&self) -> f64 {
        self.costs.byte[1]
    }

    /// The largest cost of a byte between any two of the cores.
    pub fn farthest_byte(&self) -> f64 {
        let differ = |of: fn(&Core) -> u32| self.cores.iter().any(|c| of(c) != of(&self.cores[0]));
        let far = match () {
            () if differ(|c| c.socket) => 3,
            () if differ(|c| c.cache) => 2,
            () if differ(|c| c.physical) => 1,
            () => 0,
        };
        self.costs.byte[..=far].iter().copied().fold(0.0, f64::max)
    }

    /// Sum of the core speeds.
    pub fn capacity(&self) -> f64 {
        self.cores.iter().map(|c| c.speed).sum()
    }

    /// The speed of the fastest core.
    pub fn fastest(&self) -> f64 {
        self.cores.iter().map(|c| c.speed).fold(0.0, f64::max)
    }

    /// True if all cores have the same speed and the same distance from each other.
    pub fn uniform(&self) -> bool {
        let cores = 0..self.cores.len() as u32;
        let Some(first) = self.cores.first() else {
            return true;
        };
        self.cores.iter().all(|c| c.speed == first.speed)
            && cores.clone().all(|a| {
                let near = cores.clone().filter(|&b| b != a);
                near.map(|b| self.byte(a, b))
                    .all(|cost| cost == self.byte(0, 1))
            })
    }

    /// Scales the speed of each core by the fraction of it that other programs leave (`left`).
    /// Cores with similar fractions are treated as equal.
    pub fn with_available(&self, left: &[f64]) -> Machine {
        let mut machine = self.clone();
        let most = left.iter().copied().fold(0.0, f64::max);
        for (core, left) in machine.cores.iter_mut().zip(left) {
            core.speed *= if *left < most * SIMILAR_AVAILABILITY {
                *left
            } else {
                most
            };
        }
        machine
    }

    /// The machine with these cores only, in this order.
    pub fn subset(&self, cores: &[u32]) -> Machine {
        Machine {
            cores: cores.iter().map(|&c| self.cores[c as usize]).collect(),
            costs: self.costs,
            scheduling: self.scheduling,
        }
    }
}
