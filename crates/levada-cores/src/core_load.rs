// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CPU load per core and thread, from two samples; the least loaded core, and the cores that are
//! cheapest to vacate.

use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::topology::Topology;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// A sample of all CPU times.
pub struct Sample {
    at: Instant,
    /// Busy and total ticks of each core.
    cores: BTreeMap<u32, (u64, u64)>,
    /// Run time of each thread, by its id and start time.
    ran: HashMap<(i32, u64), Thread>,
}

#[derive(Clone, Debug)]
struct Thread {
    pid: i32,
    name: String,
    core: u32,
    ran: u64,
    kernel: bool,
}

/// A thread and the fraction of one core that it used.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadLoad {
    pub pid: i32,
    pub tid: i32,
    pub name: String,
    /// The core that the thread ran on last.
    pub core: u32,
    pub share: f64,
    pub kernel: bool,
}

/// The load between two samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// The busy fraction of each core, from 0 to 1.
    pub busy: BTreeMap<u32, f64>,
    /// All threads, in descending order of load.
    pub work: Vec<ThreadLoad>,
}

impl Sample {
    pub fn now<K: Kernel>(machine: &Machine<K>) -> Sample {
        let mut ran = HashMap::new();
        for pid in machine.processes() {
            for tid in machine.threads(pid) {
                let Some(stat) = machine.thread(pid, tid).filter(|s| !s.is_dead()) else {
                    continue;
                };
                let thread = Thread {
                    pid,
                    core: stat.core,
                    kernel: stat.is_kernel(),
                    // Without schedstat, in ticks of 10 ms.
                    ran: machine
                        .run_time_ns(pid, tid)
                        .unwrap_or(stat.ticks * 10_000_000),
                    name: stat.name,
                };
                ran.insert((tid, stat.start), thread);
            }
        }
        Sample {
            at: Instant::now(),
            cores: cpu_ticks(machine),
            ran,
        }
    }
}

fn cpu_ticks<K: Kernel>(machine: &Machine<K>) -> BTreeMap<u32, (u64, u64)> {
    let text = machine.read(&machine.proc.join("stat")).unwrap_or_default();
    let line = |l: &str| {
        let mut words = l.strip_prefix("cpu")?.split_whitespace();
        let core = words.next()?.parse().ok()?;
        let cpu_ticks: Vec<u64> = words.filter_map(|w| w.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is included in user
        let all: u64 = cpu_ticks.iter().take(8).sum();
        let idle: u64 = cpu_ticks.iter().skip(3).take(2).sum();
        Some((core, (all - idle, all)))
    };
    // The line "cpu" without a number is the sum.
    text.lines()
        .filter(|l| !l.starts_with("cpu "))
        .filter_map(line)
        .collect()
}

impl Load {
    pub fn between(first: &Sample, second: &Sample) -> Load {
        let seconds = (second.at - first.at).as_secs_f64().max(1e-6);
        let mut load = Load::default();
        for ((tid, start), thread) in &second.ran {
            // A thread that is not in the first sample started after it.
            let before = first.ran.get(&(*tid, *start)).map_or(0, |t| t.ran);
            load.work.push(ThreadLoad {
                pid: thread.pid,
                tid: *tid,
                name: thread.name.clone(),
                core: thread.core,
                share: thread.ran.saturating_sub(before) as f64 / 1e9 / seconds,
                kernel: thread.kernel,
            });
        }
        load.work
            .sort_by(|a, b| b.share.total_cmp(&a.share).then(a.tid.cmp(&b.tid)));
        for (core, (busy, all)) in &second.cores {
            let (busy_before, all_before) = first.cores.get(core).copied().unwrap_or_default();
            let all = all.saturating_sub(all_before).max(1);
            let busy = busy.saturating_sub(busy_before) as f64 / all as f64;
            // The larger of the two: ticks are coarse, and threads may have ended between the
            // samples.
            let work: f64 = load.on(&CoreSet::one(*core)).map(|w| w.share).sum();
            load.busy.insert(*core, busy.max(work).min(1.0));
        }
        load
    }

    /// The threads that ran last on one of these cores.
    pub fn on<'a>(&'a self, cores: &'a CoreSet) -> impl Iterator<Item = &'a ThreadLoad> {
        self.work.iter().filter(|w| cores.has(w.core))
    }

    pub fn busy_of(&self, core: u32) -> f64 {
        self.busy.get(&core).copied().unwrap_or(0.0)
    }

    /// The least loaded of these cores; among equals the first.
    pub fn lightest(&self, cores: &CoreSet) -> Option<u32> {
        let order = |a: &u32, b: &u32| self.busy_of(*a).total_cmp(&self.busy_of(*b));
        cores.iter().min_by(order)
    }

    /// The `count` cores that are cheapest to vacate, without shielded ones. Hardware threads of
    /// one physical core are taken together if possible, since a sibling slows the program on the
    /// shielded core. Among equals the last, since the first core serves most interrupts.
    pub fn cheapest(&self, count: usize, topology: &Topology, shielded: &CoreSet) -> CoreSet {
        let usable = topology.online.and(&topology.allowed).without(shielded);
        let mut chosen = CoreSet::default();
        while chosen.len() < count {
            let left = count - chosen.len();
            let free = usable.without(&chosen);
            let mut best: Option<(f64, CoreSet)> = None;
            for core in free.iter() {
                let all = topology.core(core).map(|c| c.siblings.and(&free));
                let group = match all.filter(|g| !g.is_empty() && g.len() <= left) {
                    Some(group) => group,
                    None => CoreSet::one(core),
                };
                let work: f64 = group.iter().map(|c| self.busy_of(c)).sum();
                // In steps of 5 %; smaller differences are noise.
                let cost = (work / group.len() as f64 * 20.0).round();
                // Prefers a core with siblings that are chosen already.
                let torn = topology.other_threads(&group).without(&chosen).len();
                let cost = cost + 0.5 * torn as f64;
                if best.as_ref().is_none_or(|(least, _)| cost <= *least) {
                    best = Some((cost, group));
                }
            }
            match best {
                Some((_, group)) => chosen = chosen.or(&group),
                None => break,
            }
        }
        chosen
    }
}

/// The load of this machine over the given time.
pub fn measure(moment: Duration) -> Load {
    let machine = Machine::this();
    let first = Sample::now(&machine);
    std::thread::sleep(moment);
    Load::between(&first, &Sample::now(&machine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::{TestMachine, set};

    fn load_of(busy: &[f64]) -> Load {
        Load {
            busy: busy
                .iter()
                .enumerate()
                .map(|(i, b)| (i as u32, *b))
                .collect(),
            work: Vec::new(),
        }
    }

    #[test]
    fn a_load_is_the_difference_of_two_samples() {
        let fake = TestMachine::new("0-1");
        fake.task(100, 100, 1, "lame", "0-1");
        fake.last_core(100, 1);
        fake.proc(
            "stat",
            "cpu 9 9\ncpu0 10 0 0 90 0 0 0 0 0 0\ncpu1 50 0 0 50 0 0 0 0 0 0\n",
        );
        let first = Sample::now(&fake.machine);
        fake.proc("100/task/100/schedstat", "30000000 0 1\n");
        fake.proc(
            "stat",
            "cpu 9 9\ncpu0 15 0 0 95 0 0 0 0 0 0\ncpu1 51 0 0 59 0 0 0 0 0 0\n",
        );
        let mut second = Sample::now(&fake.machine);
        second.at = first.at + std::time::Duration::from_millis(100);
        let load = Load::between(&first, &second);
        assert_eq!(load.busy_of(0), 0.5);
        assert!(
            (load.busy_of(1) - 0.3).abs() < 1e-9,
            "its threads ran for longer than the ticks show"
        );
        assert_eq!(load.work[0].name, "lame");
        assert!((load.work[0].share - 0.3).abs() < 1e-9);
        assert_eq!(load.on(&set("1")).count(), 1);
        assert_eq!(load.on(&set("0")).count(), 0);
    }

    #[test]
    fn the_lightest_is_found() {
        let load = load_of(&[0.9, 0.2, 0.1, 0.0]);
        assert_eq!(load.lightest(&set("0-2")), Some(2));
        assert_eq!(load.lightest(&set("0-1")), Some(1));
        assert_eq!(load.lightest(&CoreSet::default()), None);
    }

    #[test]
    fn the_cheapest_are_found() {
        let fake = TestMachine::new("0-3");
        let topology = Topology::of(&fake.machine);
        let load = load_of(&[0.0, 0.9, 0.3, 0.01]);
        assert_eq!(load.cheapest(1, &topology, &CoreSet::default()), set("3"));
        assert_eq!(load.cheapest(2, &topology, &CoreSet::default()), set("0,3"));
        assert_eq!(
            load.cheapest(3, &topology, &CoreSet::default()),
            set("0,2-3")
        );
        assert_eq!(
            load_of(&[0.0; 4]).cheapest(1, &topology, &CoreSet::default()),
            set("3")
        );
        assert_eq!(load.cheapest(9, &topology, &CoreSet::default()), set("0-3"));
        assert_eq!(load.cheapest(1, &topology, &set("3")), set("0"));
    }

    #[test]
    fn hardware_threads_of_one_core_are_taken_together() {
        let fake = TestMachine::new("0-3");
        for (core, list) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            let at = format!("devices/system/cpu/cpu{core}/topology/thread_siblings_list");
            fake.sys(&at, list);
        }
        let topology = Topology::of(&fake.machine);
        let load = load_of(&[0.1, 0.5, 0.1, 0.0]);
        assert_eq!(load.cheapest(2, &topology, &CoreSet::default()), set("0,2"));
        assert_eq!(load.cheapest(1, &topology, &CoreSet::default()), set("3"));
        // A whole physical core, and half of the other one.
        assert_eq!(
            load.cheapest(3, &topology, &CoreSet::default()),
            set("0,2-3")
        );
    }
}
