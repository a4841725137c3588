// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures what it costs to transfer a byte between two cores of this machine: the time that two threads need to
//! pass blocks through a ring, minus the time that each needs alone. Both compute about 1 ns per word, as actors
//! do: the hardware prefetches the next lines meanwhile, so the cost is much less than the latency of a line.
//!
//! Memory order: `written` and `read` are stored with release and loaded with acquire; the words lie between them.

use levada_map::Machine;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The default size of a channel, and the part of it at which the other side is woken.
const WORDS: usize = 16 * 1024;
const BLOCK: usize = 1024;
/// The median of this number of blocks is used, so that interruptions do not count.
const BLOCKS: usize = 64;
/// A pair that takes longer, which is ten times as long as usual, does not have both cores for itself: no result.
const MEASUREMENT_TIMEOUT: Duration = Duration::from_millis(2);
/// Minimum cost in ns per byte; smaller results are not significant.
const BYTE_NS_MIN: f64 = 0.001;

struct Ring {
    words: Vec<AtomicU32>,
    written: AtomicUsize,
    read: AtomicUsize,
}

impl Ring {
    fn new() -> Ring {
        Ring {
            words: (0..WORDS).map(|_| AtomicU32::new(0)).collect(),
            written: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
        }
    }

    fn block(&self, n: usize) -> &[AtomicU32] {
        let first = n * BLOCK % WORDS;
        &self.words[first..first + BLOCK]
    }

    /// The duration in ns.
    fn write(&self, n: usize, x: &mut u32) -> f64 {
        let start = Instant::now();
        for word in self.block(n) {
            *x = x.wrapping_mul(5).rotate_left(1).wrapping_add(1);
            word.store(*x, Ordering::Relaxed);
        }
        let took = start.elapsed();
        self.written.store(n + 1, Ordering::Release);
        took.as_nanos() as f64
    }

    fn read(&self, n: usize, x: &mut u32) -> f64 {
        let start = Instant::now();
        for word in self.block(n) {
            *x = x.wrapping_mul(5).rotate_left(1) ^ word.load(Ordering::Relaxed);
        }
        std::hint::black_box(*x);
        let took = start.elapsed();
        self.read.store(n + 1, Ordering::Release);
        took.as_nanos() as f64
    }
}

/// The machine with measured costs per byte between the cores `cpus`; nothing else may run there now. For a distance
/// without a pair of cores the default is scaled by the measured ratio.
pub fn with_measured_byte_cost(machine: &Machine, cpus: &[i32]) -> Machine {
    let usual = machine.costs.byte;
    let mut found = [None; 4];
    for (distance, found) in found.iter_mut().enumerate() {
        let all = 0..cpus.len() as u32;
        let mut pairs = all.clone().flat_map(|a| (0..a).map(move |b| (a, b)));
        let pair = pairs.find(|(a, b)| machine.distance(*a, *b) == distance);
        *found = pair.and_then(|(a, b)| measure_pair(cpus[a as usize], cpus[b as usize]));
    }
    let mut machine = machine.clone();
    machine.costs.byte = in_proportion(usual, found);
    machine
}

fn in_proportion(usual: [f64; 4], found: [Option<f64>; 4]) -> [f64; 4] {
    let known = |i: usize| Some((i, found[i]?));
    std::array::from_fn(|i| {
        let nearest = (0..usual.len()).filter_map(known);
        let nearest = nearest.min_by_key(|(k, _)| k.abs_diff(i));
        nearest.map_or(usual[i], |(k, cost)| usual[i] * cost / usual[k])
    })
}

/// The cost per byte between two cores, for each of them; none: one of them was not available. One thread on each core
/// measures first what it needs alone, since one core may be slower at the moment: a start next to busy programs waits
/// for each thread that it creates.
fn measure_pair(a: i32, b: i32) -> Option<f64> {
    let ring = Ring::new();
    let room = |n: usize| n < ring.read.load(Ordering::Acquire) + WORDS / BLOCK;
    let there = |n: usize| n < ring.written.load(Ordering::Acquire);
    let (writing, reading) = std::thread::scope(|scope| {
        let writes = scope.spawn(|| {
            let (alone, _) = measure_single(a)?;
            Some(side(&room, |n, x| ring.write(n, x))? - alone)
        });
        let reads = scope.spawn(|| {
            let (_, alone) = measure_single(b)?;
            Some(side(&there, |n, x| ring.read(n, x))? - alone)
        });
        (writes.join().ok(), reads.join().ok())
    });
    let bytes = (BLOCK * size_of::<u32>()) as f64;
    let more = writing?? + reading??;
    Some((more / (2.0 * bytes)).max(BYTE_NS_MIN))
}

/// Writing and reading a block on one core, to which this thread is pinned.
fn measure_single(cpu: i32) -> Option<(f64, f64)> {
    pin(cpu)?;
    let (ring, mut x) = (Ring::new(), 0);
    let both = (0..BLOCKS).map(|n| (ring.write(n, &mut x), ring.read(n, &mut x)));
    let (wrote, read): (Vec<f64>, Vec<f64>) = both.unzip();
    Some((median(wrote), median(read)))
}

fn side(may: &impl Fn(usize) -> bool, does: impl Fn(usize, &mut u32) -> f64) -> Option<f64> {
    let start = Instant::now();
    let (mut times, mut x) = (Vec::with_capacity(BLOCKS), 0);
    for n in 0..BLOCKS {
        while !may(n) {
            if start.elapsed() > MEASUREMENT_TIMEOUT {
                return None;
            }
            std::hint::spin_loop();
        }
        times.push(does(n, &mut x));
    }
    Some(median(times))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Pins this thread to that CPU.
fn pin(cpu: i32) -> Option<()> {
    let cpu = usize::try_from(cpu).ok()?;
    // SAFETY: all zeros is a valid set, which belongs to this thread.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu >= 8 * size_of_val(&set) {
            return None;
        }
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    (done == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_measured_costs_in_proportion() {
        let usual = [1.0, 2.0, 6.0, 12.0];
        assert_eq!(in_proportion(usual, [None; 4]), usual);
        let near = [None, Some(1.0), None, None];
        assert_eq!(in_proportion(usual, near), [0.5, 1.0, 3.0, 6.0]);
        let both = [None, Some(1.0), None, Some(12.0)];
        assert_eq!(in_proportion(usual, both), [0.5, 1.0, 3.0, 12.0]);
    }

    /// On a busy machine the result is a cost of whatever size; a missing core has none.
    #[test]
    fn a_byte_between_cores_costs_something() {
        // SAFETY: has no preconditions.
        let here = unsafe { libc::sched_getcpu() };
        let machine = Machine::new(2);
        let costs = with_measured_byte_cost(&machine, &[here, here]).costs.byte;
        assert!(costs.iter().all(|c| c.is_finite() && *c > 0.0), "{costs:?}");
        assert_eq!(with_measured_byte_cost(&machine, &[0, i32::MAX]), machine);
        assert_eq!(with_measured_byte_cost(&machine, &[0, -1]), machine);
        assert_eq!(
            with_measured_byte_cost(&Machine::new(1), &[0]).costs,
            Machine::new(1).costs
        );
    }
}
