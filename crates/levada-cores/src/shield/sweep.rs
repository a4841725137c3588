// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sweeps: every thread that may run on the shield's cores gets other cores. A thread forked
//! between listing and moving inherits the old mask, so sweeps are repeated until one finds
//! nothing; and periodically after that, since programs may change their masks at any time.

use super::granted_masks::GrantedMasks;
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine, Stat};
use crate::undo_log::UndoLog;
use crate::undo_log::format::{Entry, LogState, ThreadMove};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

/// The rules for a sweep, and what earlier sweeps found.
#[derive(Clone, Debug, Default)]
pub struct Sweeper {
    pub shield: CoreSet,
    /// The target of threads without other cores; cores of later shields are subtracted.
    pub others: CoreSet,
    /// A single target core for everything on the shield's cores, as in the paper.
    pub lightest: Option<u32>,
    /// Only processes of this user.
    pub user: Option<u32>,
    /// Names or ids of processes that are not moved.
    pub exclude: Vec<String>,
    /// The program on the cores: these processes and their descendants, except the guard.
    pub inside: Vec<i32>,
    pub guard: i32,
    /// The process that holds the shield for a process that started it: a descendant of the program
    /// that is moved.
    pub holder: i32,
    /// Threads that belong to the program without the rest of their processes.
    pub threads: Vec<i32>,
    /// Processes known to belong to the program, even if their parents have ended.
    pub known: HashSet<(i32, u64)>,
    /// The last attempt per thread: it need not be logged again, and not repeated if the kernel
    /// refused it.
    pub tried: HashMap<i32, Tried>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    pub task: ThreadMove,
    pub refused: bool,
}

/// The result of one or more sweeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepReport {
    pub threads: u64,
    pub kernel_threads: u64,
    pub rounds: u32,
    /// Threads that stay: name and id by reason.
    pub stays: BTreeMap<&'static str, Vec<String>>,
}

impl SweepReport {
    pub fn moved(&self) -> u64 {
        self.threads + self.kernel_threads
    }

    pub fn stay(&mut self, why: &'static str, thread: String) {
        let list = self.stays.entry(why).or_default();
        if !list.contains(&thread) {
            list.push(thread);
        }
    }
}

pub const KERNEL_BOUND: &str = "kernel threads of the core itself";
pub const PROTECTED: &str = "protected";
pub const REFUSED: &str = "refused by the kernel";
pub const FOREIGN: &str = "other users' processes";

impl Sweeper {
    pub fn protects(&self, stat: &Stat) -> bool {
        let id = stat.id.to_string();
        self.exclude.iter().any(|p| *p == stat.name || *p == id)
    }

    /// Whether a process belongs to the program.
    pub fn is_inside<K: Kernel>(&mut self, machine: &Machine<K>, pid: i32) -> bool {
        let mut path = Vec::new();
        let mut at = pid;
        let inside = loop {
            if at <= 1 || at == self.guard || at == self.holder || path.len() > 100 {
                break false;
            }
            if self.inside.contains(&at) {
                break true;
            }
            let Some(stat) = machine.process(at) else {
                break false;
            };
            if self.known.contains(&(at, stat.start)) {
                break true;
            }
            path.push((at, stat.start));
            at = stat.parent;
        };
        if inside {
            self.known.extend(path);
        }
        inside
    }

    /// The new mask of a thread that may run on the shield's cores.
    fn target(&self, mask: &CoreSet, core: u32, others: &CoreSet) -> CoreSet {
        let rest = mask.without(&self.shield);
        match self.lightest {
            Some(lightest) if self.shield.has(core) => CoreSet::one(lightest),
            _ if rest.is_empty() => others.clone(),
            _ => rest,
        }
    }

    /// Forgets ended threads and processes: their ids may be reused.
    fn forget<K: Kernel>(&mut self, machine: &Machine<K>, there: &HashSet<i32>) {
        self.tried.retain(|tid, _| there.contains(tid));
        let lives = |pid: i32, start: u64| machine.process(pid).is_some_and(|s| s.start == start);
        self.known.retain(|(pid, start)| lives(*pid, *start));
    }

    /// Lists all threads, logs each move, and makes the moves. Returns their number.
    pub fn sweep<K: Kernel>(
        &mut self,
        machine: &Machine<K>,
        undo_log: &mut UndoLog,
        swept: &mut SweepReport,
    ) -> io::Result<u64> {
        let mut moves: Vec<(ThreadMove, Stat)> = Vec::new();
        let mut there = HashSet::new();
        for pid in machine.processes() {
            let mut process = None;
            for tid in machine.threads(pid) {
                there.insert(tid);
                let Ok(mask) = machine.kernel.affinity(tid) else {
                    continue;
                };
                if !mask.intersects(&self.shield) {
                    continue;
                }
                let Some(stat) = machine.thread(pid, tid).filter(|s| !s.is_dead()) else {
                    continue;
                };
                let thread = || format!("{} ({tid})", stat.name);
                if stat.is_bound() {
                    // Other bound threads follow the mask of the work queues.
                    if mask.is_subset(&self.shield) {
                        swept.stay(KERNEL_BOUND, thread());
                    }
                    continue;
                }
                if process.is_none() {
                    process = machine.process(pid);
                }
                let Some(leader) = &process else { continue };
                if self.user.is_some_and(|u| machine.owner(pid) != Some(u)) {
                    swept.stay(FOREIGN, pid.to_string());
                    continue;
                }
                if self.protects(leader) {
                    swept.stay(PROTECTED, format!("{} ({pid})", leader.name));
                    continue;
                }
                if self.threads.contains(&tid) || self.is_inside(machine, pid) {
                    continue;
                }
                let task = ThreadMove {
                    pid,
                    tid,
                    start: stat.start,
                    old: mask,
                    new: CoreSet::default(),
                };
                moves.push((task, stat));
            }
        }
        self.forget(machine, &there);
        if moves.is_empty() {
            swept.rounds += 1;
            return Ok(0);
        }
        // Read after the masks: a mask granted by another shield was logged before it was set.
        let record = LogState::read(&undo_log.path)?;
        let granted = GrantedMasks::by_others(&record, undo_log.number);
        let others = self
            .others
            .without(&record.cores_of_others(undo_log.number));
        for (task, stat) in &mut moves {
            task.new = self.target(&task.old, stat.core, &others);
            task.old = granted.original_mask(machine, task.pid, (task.tid, task.start), &task.old);
        }
        let before = |task: &ThreadMove| self.tried.get(&task.tid).filter(|t| t.task == *task);
        moves.retain(|(task, stat)| {
            let refused = before(task).is_some_and(|t| t.refused);
            if refused {
                swept.stay(REFUSED, format!("{} ({})", stat.name, task.tid));
            }
            !refused
        });
        let new = moves.iter().filter(|(task, _)| before(task).is_none());
        let lines: Vec<Entry> = new
            .map(|(task, _)| Entry::ThreadMove(task.clone()))
            .collect();
        undo_log.add(&lines)?;
        let mut moved = 0;
        for (task, stat) in moves {
            let tried = Tried {
                task: task.clone(),
                refused: false,
            };
            let tried = self.tried.entry(task.tid).insert_entry(tried).into_mut();
            match machine.kernel.set_affinity(task.tid, &task.new) {
                Ok(()) if stat.is_kernel() => swept.kernel_threads += 1,
                Ok(()) => swept.threads += 1,
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(_) => {
                    tried.refused = true;
                    swept.stay(REFUSED, format!("{} ({})", stat.name, task.tid));
                    continue;
                }
            }
            moved += 1;
        }
        swept.rounds += 1;
        Ok(moved)
    }

    /// Sweeps until nothing is moved.
    pub fn clean<K: Kernel>(
        &mut self,
        machine: &Machine<K>,
        undo_log: &mut UndoLog,
    ) -> io::Result<SweepReport> {
        /// Limit for programs that fork endlessly; the periodic sweeps take over.
        const ROUNDS: u32 = 50;
        let mut swept = SweepReport::default();
        while self.sweep(machine, undo_log, &mut swept)? > 0 && swept.rounds < ROUNDS {}
        Ok(swept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::{TestMachine, set, sweeper};

    #[test]
    fn every_thread_is_logged_and_moved() {
        let fake = TestMachine::new("0-3");
        fake.task(100, 100, 1, "lame", "0-3");
        fake.task(100, 101, 1, "lame", "3");
        fake.task(200, 200, 1, "elsewhere", "0-1");
        fake.kernel_thread(2, "kthreadd", "0-3", true);
        fake.kernel_thread(30, "ksoftirqd/3", "3", false);
        fake.kernel_thread(31, "kworker/u8:0", "0-3", false);
        let mut undo_log = fake.undo_log();
        let swept = sweeper().clean(&fake.machine, &mut undo_log).unwrap();
        assert_eq!(
            (swept.threads, swept.kernel_threads, swept.rounds),
            (2, 1, 2)
        );
        assert_eq!(fake.mask(100), set("0-2"));
        assert_eq!(
            fake.mask(101),
            set("0-2"),
            "a thread with only this core gets all others"
        );
        assert_eq!(fake.mask(200), set("0-1"));
        assert_eq!(fake.mask(2), set("0-2"));
        assert_eq!(fake.mask(30), set("3"));
        assert_eq!(swept.stays[KERNEL_BOUND], ["ksoftirqd/3 (30)"]);
        assert_eq!(fake.record(&undo_log).tasks.len(), 3);
    }

    #[test]
    fn children_of_a_fork_storm_are_found() {
        let fake = TestMachine::new("0-3");
        fake.task(100, 100, 1, "storm", "0-3");
        // It forks while the first sweep moves it: the child has the old mask.
        fake.forks_when_moved(100, 300);
        fake.forks_when_moved(300, 301);
        let mut undo_log = fake.undo_log();
        let swept = sweeper().clean(&fake.machine, &mut undo_log).unwrap();
        for id in [100, 300, 301] {
            assert_eq!(fake.mask(id), set("0-2"), "{id}");
        }
        assert_eq!(swept.rounds, 4);
    }

    #[test]
    fn the_papers_method_moves_everything_to_one_core() {
        let fake = TestMachine::new("0-3");
        fake.task(100, 100, 1, "was on it", "0-3");
        fake.task(200, 200, 1, "was not", "0-3");
        fake.last_core(100, 3);
        fake.last_core(200, 1);
        let mut sweeper = Sweeper {
            lightest: Some(0),
            ..sweeper()
        };
        sweeper.clean(&fake.machine, &mut fake.undo_log()).unwrap();
        assert_eq!(fake.mask(100), set("0"));
        assert_eq!(fake.mask(200), set("0-2"));
    }

    #[test]
    fn the_program_inside_its_children_and_the_protected_stay() {
        let fake = TestMachine::new("0-3");
        fake.task(50, 50, 1, "levada", "0-3");
        fake.task(51, 51, 50, "levada-guard", "0-3");
        fake.task(60, 60, 50, "critical", "3");
        fake.task(61, 61, 60, "child", "3");
        fake.task(70, 70, 1, "sshd", "0-3");
        fake.task(80, 80, 1, "intruder", "3");
        let mut sweeper = Sweeper {
            guard: 51,
            inside: vec![50],
            exclude: vec!["sshd".into()],
            ..sweeper()
        };
        // The tool itself is being moved.
        fake.set_mask(50, "0-2");
        let mut undo_log = fake.undo_log();
        let swept = sweeper.clean(&fake.machine, &mut undo_log).unwrap();
        assert_eq!(fake.mask(51), set("0-2"));
        assert_eq!(fake.mask(60), set("3"));
        assert_eq!(fake.mask(61), set("3"));
        assert_eq!(fake.mask(70), set("0-3"));
        assert_eq!(fake.mask(80), set("0-2"));
        assert_eq!(swept.stays[PROTECTED], ["sshd (70)"]);
        // The grandchild is still known after its parent has ended.
        fake.end(60);
        fake.reparent(61, 1);
        sweeper.clean(&fake.machine, &mut undo_log).unwrap();
        assert_eq!(fake.mask(61), set("3"));
        let known = [(50, fake.start(50)), (61, fake.start(61))];
        assert!(
            sweeper.known.is_subset(&known.into()),
            "{:?}",
            sweeper.known
        );
    }

    #[test]
    fn repeated_attempts_are_logged_once() {
        let fake = TestMachine::new("0-3");
        fake.task(80, 80, 1, "stubborn", "3");
        fake.task(90, 90, 1, "frozen", "1,3");
        fake.refuses_moves(90);
        let (mut sweeper, mut undo_log) = (sweeper(), fake.undo_log());
        for round in 0..10 {
            // It sets its mask again each time.
            fake.set_mask(80, "3");
            let mut swept = SweepReport::default();
            let moved = sweeper
                .sweep(&fake.machine, &mut undo_log, &mut swept)
                .unwrap();
            assert_eq!((moved, fake.mask(80)), (1, set("0-2")), "{round}");
            assert_eq!(swept.stays[REFUSED], ["frozen (90)"], "{round}");
        }
        assert_eq!(fake.record(&undo_log).tasks.len(), 2);
        // Another original mask needs another line.
        fake.set_mask(80, "2-3");
        sweeper.clean(&fake.machine, &mut undo_log).unwrap();
        assert_eq!(fake.record(&undo_log).tasks.len(), 3);
        fake.end(80);
        fake.end(90);
        sweeper.clean(&fake.machine, &mut undo_log).unwrap();
        assert!(sweeper.tried.is_empty());
    }

    #[test]
    fn without_privileges_only_own_processes_are_moved() {
        let fake = TestMachine::new("0-3");
        fake.task(100, 100, 1, "mine", "0-3");
        // SAFETY: has no preconditions.
        let me = unsafe { libc::geteuid() };
        let mut sweeper = Sweeper {
            user: Some(me + 1),
            ..sweeper()
        };
        let swept = sweeper.clean(&fake.machine, &mut fake.undo_log()).unwrap();
        assert_eq!(fake.mask(100), set("0-3"));
        assert_eq!(swept.stays[FOREIGN], ["100"]);
        sweeper.user = Some(me);
        sweeper.clean(&fake.machine, &mut fake.undo_log()).unwrap();
        assert_eq!(fake.mask(100), set("0-2"));
    }
}
