// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CPU usage per core of the processes of isolated applications, and of neighbor processes that the host was told
//! of, from the kernel's counters of their threads. The processes are not asked: a stopped one does not answer, and
//! an untrusted one may answer anything.
//!
//! Usage is the difference of two samples. Samples are taken while applications of the host run; a caller after an
//! idle period waits for a second sample.

use crate::util::lock::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Minimum interval between samples, as a time and as a multiple of a sample's duration; a sample that is several
/// times older is outdated.
const SAMPLE_INTERVAL_MIN: Duration = Duration::from_millis(500);
const LOOKS: u32 = 100;
const STALE: u32 = 4;
/// The kernel counts in units of 10 ms: minimum time between two samples.
const SAMPLE_SPACING_MIN: Duration = Duration::from_millis(20);
/// Time constant of the mean, in seconds.
const MEAN_TIME_S: f64 = 1.0;

#[derive(Default)]
pub(crate) struct CpuUsage(Mutex<All>);

#[derive(Default)]
struct All {
    /// By the numbers of the applications.
    process: BTreeMap<u64, Process>,
    /// Duration of a sample of all processes.
    took: Duration,
}

/// A thread: its number, the CPU where it ran last, and its CPU time in seconds.
type Thread = (u32, i32, f64);

struct Process {
    at: Instant,
    computed: BTreeMap<u32, f64>,
    /// The usage per CPU; none: there was only one sample.
    part: Option<BTreeMap<i32, f64>>,
}

impl Process {
    fn new(at: Instant, threads: &[Thread]) -> Process {
        Process {
            at,
            computed: computed(threads),
            part: None,
        }
    }

    /// Newer samples weigh more.
    fn look(&mut self, at: Instant, threads: &[Thread]) {
        let seconds = (at - self.at).as_secs_f64();
        let mut new: BTreeMap<i32, f64> = BTreeMap::new();
        for (number, cpu, is) in threads {
            let was = self.computed.get(number).copied().unwrap_or(0.0);
            *new.entry(*cpu).or_default() += (is - was).max(0.0) / seconds;
        }
        let weight = match self.part {
            Some(_) => 1.0 - (-seconds / MEAN_TIME_S).exp(),
            None => 1.0,
        };
        let mean = self.part.get_or_insert_default();
        let cores: BTreeSet<i32> = mean.keys().chain(new.keys()).copied().collect();
        for cpu in cores {
            let part = new.get(&cpu).copied().unwrap_or(0.0).min(1.0);
            let mean = mean.entry(cpu).or_default();
            *mean += weight * (part - *mean);
        }
        (self.at, self.computed) = (at, computed(threads));
    }
}

fn computed(threads: &[Thread]) -> BTreeMap<u32, f64> {
    threads
        .iter()
        .map(|(n, _, seconds)| (*n, *seconds))
        .collect()
}

impl CpuUsage {
    fn all(&self) -> MutexGuard<'_, All> {
        lock(&self.0)
    }

    /// The usage per CPU of each of these processes, given by number and process. With `now` each has a value, if
    /// necessary by a second sample a moment later.
    pub fn by(&self, living: &[(u64, u32)], now: bool) -> BTreeMap<i32, Vec<f64>> {
        if self.look(living, false) && now {
            std::thread::sleep(SAMPLE_SPACING_MIN);
            self.look(living, true);
        }
        let mut taken: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
        let all = self.all();
        let parts = all.process.values().filter_map(|p| p.part.as_ref());
        for (cpu, part) in parts.flatten() {
            taken.entry(*cpu).or_default().push(*part);
        }
        taken
    }

    /// Samples the processes that were not sampled recently; `again`: or that have only one sample. Returns whether
    /// there are such.
    fn look(&self, living: &[(u64, u32)], again: bool) -> bool {
        let (mut all, began) = (self.all(), Instant::now());
        let All { process, took } = &mut *all;
        process.retain(|number, _| living.iter().any(|(n, _)| n == number));
        let often = SAMPLE_INTERVAL_MIN.max(*took * LOOKS);
        let mut looked = 0;
        for (number, pid) in living {
            let known = process.get(number);
            let age = known.map_or(Duration::MAX, |known| known.at.elapsed());
            let first = known.is_some_and(|known| known.part.is_none());
            if age
                < if again && first {
                    SAMPLE_SPACING_MIN
                } else {
                    often
                }
            {
                continue;
            }
            let threads = threads(*pid);
            let at = Instant::now();
            match process.get_mut(number).filter(|_| age < often * STALE) {
                Some(known) => known.look(at, &threads),
                None => drop(process.insert(*number, Process::new(at, &threads))),
            }
            looked += 1;
        }
        if looked > 0 {
            *took = began.elapsed() / looked * living.len() as u32;
        }
        process.values().any(|known| known.part.is_none())
    }
}

/// The threads of a process that has not ended.
fn threads(process: u32) -> Vec<Thread> {
    // SAFETY: has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
    let all = std::fs::read_dir(format!("/proc/{process}/task"));
    let all = all.into_iter().flatten().flatten();
    let threads = all.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let (cpu, computed) = read(&std::fs::read_to_string(entry.path().join("stat")).ok()?)?;
        Some((number, cpu, computed as f64 / ticks))
    });
    threads.collect()
}

/// The CPU and the ticks from a thread's `stat` line. The thread's name may contain anything.
fn read(stat: &str) -> Option<(i32, u64)> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let field = |number: usize| rest.split(' ').nth(number - 3);
    let ticks = |number| field(number)?.parse::<u64>().ok();
    let computed = ticks(14)?.checked_add(ticks(15)?)?;
    Some((field(39)?.trim().parse().ok()?, computed))
}

/// The neighbor processes that this host was told of.
#[derive(Debug, Default)]
pub struct Neighbors(Mutex<BTreeSet<u32>>);

impl Neighbors {
    pub(crate) fn all(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        lock(&self.0)
    }

    /// Each with a number that no application has.
    pub(crate) fn numbered(&self) -> Vec<(u64, u32)> {
        let all = self.all();
        all.iter().map(|&p| (u64::MAX - u64::from(p), p)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_line_is_parsed_whatever_the_program_name_contains() {
        let line = "4711 (a) R 1 (b) S 1 1 1 0 -1 4194368 1 0 0 0 250 50 0 0 20 0 1 0 \
                    1 2 3 4 5 6 7 8 0 0 0 0 0 0 0 0 17 3 0 0\n";
        assert_eq!(read(line), Some((3, 300)));
        for bad in [
            "",
            "4711 (a",
            "4711 (a) S 1 2 3",
            &line.replace("250", "-1"),
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
        let own = threads(std::process::id());
        assert!(
            own.iter().any(|(n, _, _)| *n == std::process::id()),
            "{own:?}"
        );
        assert_eq!(threads(u32::MAX), Vec::new());
    }

    #[test]
    fn what_is_taken_is_what_has_been_computed_since_the_last_look() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        // Earlier CPU time is not counted.
        let mut process = Process::new(at(0), &[(1, 0, 500.0), (2, 1, 0.0)]);
        assert_eq!(process.part, None);
        let near = |process: &Process, wanted: &[(i32, f64)]| {
            let part = process.part.as_ref().unwrap();
            let good = |(cpu, is): &(i32, f64)| (part[cpu] - is).abs() < 0.02;
            assert!(
                part.len() == wanted.len() && wanted.iter().all(good),
                "{part:?}"
            );
        };
        process.look(at(100), &[(1, 0, 500.1), (2, 1, 0.02)]);
        near(&process, &[(0, 1.0), (1, 0.2)]);
        // One thread has moved, one has ended, and one is new.
        process.look(at(10_000), &[(1, 2, 509.99), (3, 0, 4.95)]);
        near(&process, &[(0, 0.5), (1, 0.0), (2, 1.0)]);
        // A short interval is a small part of the mean, and usage is at most one core.
        process.look(at(10_100), &[(1, 2, 519.0), (3, 0, 4.95)]);
        near(&process, &[(0, 0.45), (1, 0.0), (2, 1.0)]);
    }

    #[test]
    fn this_process_takes_what_it_computes() {
        let (taken, living) = (CpuUsage::default(), [(1, std::process::id())]);
        assert!(
            taken.by(&living, false).is_empty(),
            "it has been looked at once"
        );
        let ends = std::sync::atomic::AtomicBool::new(false);
        let ordering = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(ordering) {
                    std::hint::spin_loop()
                }
            });
            let begin = Instant::now();
            let computes = || {
                let all = taken.by(&living, true);
                all.values().flatten().sum::<f64>() > 0.2
            };
            while !computes() {
                assert!(begin.elapsed() < Duration::from_secs(300));
                std::thread::sleep(Duration::from_millis(100));
            }
            ends.store(true, ordering);
        });
        assert!(taken.by(&[], true).is_empty(), "it has ended");
    }
}
