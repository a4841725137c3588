// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine that is mapped onto: its cores, how fast each is, and how far apart any two are.

/// A core that a worker runs on, and what it shares with others: equal numbers, shared things.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Core {
    /// 1 is the core that times were measured on; half as fast is 0.5.
    pub speed: f64,
    /// The physical core: its hardware threads share it.
    pub physical: u32,
    /// The last level of cache.
    pub cache: u32,
    pub socket: u32,
}

/// What it costs, in nanoseconds, that two actors do not sit on one core, and that they take turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A byte, to each of the two, between threads of one core; cores that share a cache; cores of one
    /// socket; sockets.
    pub byte: [f64; 4],
    /// To begin with another actor.
    pub turn: f64,
    /// From a push until a worker that has nothing else to do begins.
    pub wake: f64,
    /// So long such a worker looks around, before it sleeps.
    pub spin: f64,
    /// From a push until one that sleeps begins.
    pub asleep: f64,
}

impl Default for Costs {
    /// A cache line of 64 bytes between two cores costs each side about 6 ns in a stream, where the
    /// lines are asked for ahead; three times that between cores that share no cache. To wake a thread on
    /// another core by a futex takes 15 to 25 µs in a virtual machine.
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

/// What others leave of a core makes a difference when it is less than this part of what they leave of another.
const SIMILAR_AVAILABILITY: f64 = 0.8;

/// How a worker chooses what runs next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// Who became ready first, and who is behind its promise before that, which leaves the others a part.
    #[default]
    EventDriven,
    /// All in turn, whether they can fire or not, each until it can no more: section 3 of the paper.
    RoundRobin,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub cores: Vec<Core>,
    pub costs: Costs,
    /// How its workers choose: what is mapped is judged by that.
    pub scheduling: Scheduling,
}

impl Machine {
    /// Equal cores around one cache.
    pub fn new(cores: usize) -> Machine {
        Machine::with_topology(cores, 1, cores.max(1), cores.max(1))
    }

    /// Equal cores: so many `threads` to a physical core, so many cores to a `cache` and a `socket`.
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

    /// How far two cores are from each other: an index of [`Costs::byte`].
    pub fn distance(&self, a: u32, b: u32) -> usize {
        let (a, b) = (&self.cores[a as usize], &self.cores[b as usize]);
        match () {
            () if a.physical == b.physical => 0,
            () if a.cache == b.cache => 1,
            () if a.socket == b.socket => 2,
            () => 3,
        }
    }

    /// What a byte between two cores costs each of them.
    pub fn byte(&self, a: u32, b: u32) -> f64 {
        match a == b {
            true => 0.0,
            false => self.costs.byte[self.distance(a, b)],
        }
    }

    /// What a byte costs between two cores that share a cache, as most do.
    pub fn shared_cache_byte(&self) -> f64 {
        self.costs.byte[1]
    }

    /// What a byte between two cores may cost each of them at the most.
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

    /// All cores together, in cores of speed 1.
    pub fn capacity(&self) -> f64 {
        self.cores.iter().map(|c| c.speed).sum()
    }

    /// The speed of the fastest core.
    pub fn fastest(&self) -> f64 {
        self.cores.iter().map(|c| c.speed).fold(0.0, f64::max)
    }

    /// Whether one core is as good as another, and as near to any.
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

    /// Each core as fast as what others leave of it, core by core. Where they leave about as much of each, or have
    /// nothing, one is as good as another.
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

    /// Only these cores, in this order.
    pub fn subset(&self, cores: &[u32]) -> Machine {
        Machine {
            cores: cores.iter().map(|&c| self.cores[c as usize]).collect(),
            costs: self.costs,
            scheduling: self.scheduling,
        }
    }
}
