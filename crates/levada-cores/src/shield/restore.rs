// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Restores the state before one shield from the undo log. Any process that finds the log may do
//! so, repeatedly: the tool at its end, the guard if the tool has died, a later tool if both have.
//! While other shields exist, masks and files get back only the cores of this shield.

use super::cgroups;
use super::granted_masks::GrantedMasks;
use super::irq_affinity::{self, without};
use super::method::Method;
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::undo_log::format::{Entry, KernelFile, LogState, ShieldRecord, ThreadMove};
use crate::undo_log::{LockedLog, UndoLog};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restored {
    pub cores: CoreSet,
    /// Threads that got their original mask back.
    pub threads: u64,
    /// Threads created meanwhile with an inherited granted mask.
    pub widened: u64,
    /// Threads that changed their own mask meanwhile; left as they are.
    pub changed: u64,
    /// Thread ids that were reused meanwhile.
    pub reused: u64,
    pub evicted: u64,
    pub failed: Vec<String>,
}

/// Ends a shield; none if it has ended already. Concurrent calls are serialized, and only the first
/// has an effect.
pub fn restore_shield<K: Kernel>(
    machine: &Machine<K>,
    undo_log: &UndoLog,
) -> io::Result<Option<Restored>> {
    let Some((locked, restored, left)) = undo(machine, undo_log)? else {
        return Ok(None);
    };
    locked.replace(&left)?;
    Ok(Some(restored))
}

/// The same without updating the log; if the process is killed here, the restoration is repeated.
pub(crate) fn undo<K: Kernel>(
    machine: &Machine<K>,
    undo_log: &UndoLog,
) -> io::Result<Option<(LockedLog, Restored, LogState)>> {
    // Without a log there is nothing to lock.
    if undo_log.path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let locked = LockedLog::open(&undo_log.path)?;
    let record = locked.read()?.unwrap_or_default();
    let held = record.shield(undo_log.number);
    let Some(held) = held.filter(|held| held.tool == undo_log.tool) else {
        return Ok(None);
    };
    let mut back = Restoration::new(machine, &record, held);
    back.restore(&locked)?;
    Ok(Some((locked, back.done, back.left)))
}

/// A restoration in progress.
struct Restoration<'a, K: Kernel> {
    machine: &'a Machine<K>,
    record: &'a LogState,
    held: &'a ShieldRecord,
    granted: GrantedMasks<'a>,
    online: CoreSet,
    remaining: RemainingShields,
    is_last: bool,
    /// The remaining content of the log, under the number of one of the remaining shields.
    left: LogState,
    number: u32,
    done: Restored,
}

impl<'a, K: Kernel> Restoration<'a, K> {
    fn new(
        machine: &'a Machine<K>,
        record: &'a LogState,
        held: &'a ShieldRecord,
    ) -> Restoration<'a, K> {
        let mut left = LogState {
            shields: record.others(held.number).cloned().collect(),
            outside: record.outside.clone(),
            ..LogState::default()
        };
        // If another shield has changed the weight of this session as well, it inherits the
        // original value.
        for other in &mut left.shields {
            if let (Some(theirs), Some(own)) = (&mut other.session, held.session)
                && theirs.0 == own.0
                && theirs.1 == own.2
            {
                theirs.1 = own.1;
            }
        }
        Restoration {
            machine,
            record,
            held,
            granted: GrantedMasks::all(record),
            online: machine.online(),
            remaining: RemainingShields::of(&left),
            is_last: left.shields.is_empty(),
            number: left.shields.first().map_or(held.number, |s| s.number),
            left,
            done: Restored {
                cores: held.cores.clone(),
                evicted: held.evicted,
                ..Restored::default()
            },
        }
    }

    fn restore(&mut self, locked: &LockedLog) -> io::Result<()> {
        let (failed, came) = cgroups::remove_groups(self.machine, self.record, self.held);
        self.done.failed = failed;
        let mut moves = self.moves();
        moves.extend(self.stray_moves(&came));
        // Logged before the change, as always: a later restoration must recognize these masks as
        // granted.
        if !self.is_last {
            let lines = moves
                .iter()
                .map(|t| Entry::ThreadMove(t.clone()).line(self.number));
            locked.append(&lines.collect::<String>())?;
        }
        for task in moves {
            match self.machine.kernel.set_affinity(task.tid, &task.new) {
                Ok(()) => self.done.threads += 1,
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(e) => {
                    let what = format!("thread {}: {e}", task.tid);
                    self.done.failed.push(what);
                }
            }
        }
        // Repeated for threads created meanwhile.
        for _ in 0..20 {
            let widened = widen_inherited(self.machine, self.record, &self.remaining);
            self.done.widened += widened;
            if widened == 0 {
                break;
            }
        }
        self.files(locked);
        let others = self.left.shields.iter().filter_map(|s| s.session);
        if let Some((session, old, new)) = self.held.session
            && !others.into_iter().any(|(id, ..)| id == session)
        {
            restore_session(self.machine, session, old, new);
        }
        Ok(())
    }

    /// The masks to restore; entries of threads that stay narrowed are kept in the log.
    fn moves(&mut self) -> Vec<ThreadMove> {
        let mut moves = Vec::new();
        let number = self.number;
        // With cgroups, the kernel handles most masks; those that it discards are restored with the
        // last shield.
        let groups = !self.is_last && self.remaining.cores.is_empty();
        let shields = self.record.cores_of_others(self.held.number);
        for history in self.granted.threads() {
            let Some(last) = history.last() else { continue };
            match self.machine.thread(last.pid, last.tid) {
                None => continue,
                Some(stat) if stat.start != last.start => {
                    self.done.reused += 1;
                    continue;
                }
                Some(_) => {}
            }
            let Ok(now) = self.machine.kernel.affinity(last.tid) else {
                continue;
            };
            let is_forgotten = groups && last.new == self.online;
            let is_others =
                self.remaining.owns(&last.new) || self.remaining.owns(&now) || is_forgotten;
            if is_others {
                self.left.tasks.push((number, ThreadMove::clone(last)));
                continue;
            }
            let task = ThreadMove {
                new: without(&last.old, &shields, &self.online),
                ..ThreadMove::clone(last)
            };
            // A thread also has its original mask if a guard has logged a move and not made it yet.
            let is_given = now == last.old || history.iter().any(|t| t.new == now);
            if now != task.new && !is_given {
                self.done.changed += 1;
                continue;
            }
            if task.new != task.old {
                self.left.tasks.push((number, task.clone()));
            }
            if now != task.new {
                moves.push(task);
            }
        }
        moves
    }

    /// Older kernels let processes that return to the root group run on the cores of other
    /// partitions.
    fn stray_moves(&mut self, came: &[i32]) -> Vec<ThreadMove> {
        let shielded_cores = self.record.cores_of_others(self.held.number);
        let mut stray_moves = Vec::new();
        for (pid, tid) in came
            .iter()
            .flat_map(|p| self.machine.threads(*p).into_iter().map(|t| (*p, t)))
        {
            let mask = self.machine.kernel.affinity(tid).unwrap_or_default();
            let stat = self.machine.thread(pid, tid);
            stray_moves.extend(
                stat.filter(|_| mask.intersects(&shielded_cores))
                    .map(|stat| ThreadMove {
                        pid,
                        tid,
                        start: stat.start,
                        new: without(&mask, &shielded_cores, &self.online),
                        old: mask,
                    }),
            );
        }
        let kept = stray_moves.iter().map(|t| (self.number, t.clone()));
        self.left.tasks.extend(kept);
        stray_moves
    }

    fn files(&mut self, locked: &LockedLog) {
        let mut histories: BTreeMap<&PathBuf, Vec<&KernelFile>> = BTreeMap::new();
        for (_, kernel_file) in &self.record.kernel_files {
            histories
                .entry(&kernel_file.path)
                .or_default()
                .push(kernel_file);
        }
        let shields = self.record.cores_of_others(self.held.number);
        for (path, history) in histories {
            let (number, left) = (self.number, &mut self.left.kernel_files);
            let mut note = |kernel_file: KernelFile| {
                left.push((number, kernel_file.clone()));
                locked.append(&Entry::KernelFile(kernel_file).line(number))
            };
            match irq_affinity::restore_file(
                self.machine,
                &history,
                &shields,
                &self.online,
                &mut note,
            ) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                // It was refused before, as well.
                Err(_) if !path.exists() => {}
                Err(e) => self.done.failed.push(format!("{}: {e}", path.display())),
            }
        }
    }
}

/// The shields that remain.
#[derive(Default)]
pub struct RemainingShields {
    /// The cores that other threads must not use; empty with cgroups, where the kernel sees to
    /// that.
    pub cores: CoreSet,
    /// Single target cores of remaining shields.
    pins: Vec<CoreSet>,
}

impl RemainingShields {
    pub fn of(record: &LogState) -> RemainingShields {
        let is_watched =
            |held: &&ShieldRecord| Method::from_name(&held.method).is_none_or(Method::is_watched);
        let watched = record.shields.iter().filter(is_watched);
        RemainingShields {
            cores: watched.fold(CoreSet::default(), |all, held| all.or(&held.cores)),
            pins: record
                .shields
                .iter()
                .filter_map(|s| s.lightest.map(CoreSet::one))
                .collect(),
        }
    }

    /// Whether a thread with this mask belongs to a remaining shield or was put there by one.
    fn owns(&self, mask: &CoreSet) -> bool {
        mask.intersects(&self.cores) && mask.is_subset(&self.cores) || self.pins.contains(mask)
    }
}

/// Restores the original masks of threads that were created since and inherited a granted mask,
/// without the cores of the remaining shields. Returns their number.
pub fn widen_inherited<K: Kernel>(
    machine: &Machine<K>,
    record: &LogState,
    remaining: &RemainingShields,
) -> u64 {
    if record.tasks.is_empty() {
        return 0;
    }
    let granted = GrantedMasks::all(record);
    let masks: HashSet<&CoreSet> = record.tasks.iter().map(|(_, t)| &t.new).collect();
    let online = machine.online();
    let mut widened = 0;
    for pid in machine.processes() {
        for tid in machine.threads(pid) {
            let Ok(mask) = machine.kernel.affinity(tid) else {
                continue;
            };
            if !masks.contains(&mask) || remaining.owns(&mask) {
                continue;
            }
            let stat = machine.thread(pid, tid);
            let stat = stat.filter(|s| !s.is_bound() && !s.is_dead());
            let Some(stat) = stat.filter(|s| granted.to(tid, s.start).is_empty()) else {
                continue;
            };
            let original = granted.inherited(machine, pid, stat.start, &mask);
            let back = original.map(|original| without(original, &remaining.cores, &online));
            if let Some(back) = back.filter(|back| *back != mask)
                && machine.kernel.set_affinity(tid, &back).is_ok()
            {
                widened += 1;
            }
        }
    }
    widened
}

/// Restores the nice value of a session's autogroup, if a process of the session still exists.
fn restore_session<K: Kernel>(machine: &Machine<K>, session: i32, old: i32, new: i32) {
    for pid in machine.processes() {
        if machine.process(pid).is_none_or(|s| s.session != session) {
            continue;
        }
        let path = machine.proc.join(format!("{pid}/autogroup"));
        let text = machine.read(&path).unwrap_or_default();
        if text.trim().ends_with(&format!("nice {new}")) {
            let _ = machine.kernel.write(&path, &old.to_string());
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::{TestMachine, set, sweeper};
    use std::fs;
    use std::path::Path;

    /// A core swept by affinity masks, with its log.
    fn swept(fake: &TestMachine) -> UndoLog {
        let mut undo_log = fake.undo_log();
        let begin = Entry::Shield(set("3"), fake.start(100));
        undo_log.add(&[begin]).unwrap();
        sweeper().clean(&fake.machine, &mut undo_log).unwrap();
        undo_log
    }

    fn settled(fake: &TestMachine) -> Restored {
        let undo_log = UndoLog::of(&fake.log_path(), 3, None);
        restore_shield(&fake.machine, &undo_log).unwrap().unwrap()
    }

    #[test]
    fn restoring_is_complete_and_idempotent() {
        let fake = TestMachine::new("0-3");
        fake.task(1, 1, 0, "init", "0-3");
        fake.task(100, 100, 1, "a", "0-3");
        fake.task(100, 101, 1, "a", "3");
        fake.task(200, 200, 1, "b", "2-3");
        let before = fake.everything();
        swept(&fake);
        assert_ne!(fake.everything(), before);
        let done = settled(&fake);
        assert_eq!((done.threads, done.widened, done.changed), (4, 0, 0));
        assert_eq!(fake.everything(), before);
        let again = UndoLog::of(&fake.log_path(), 3, None);
        assert!(restore_shield(&fake.machine, &again).unwrap().is_none());
    }

    #[test]
    fn a_thread_that_changed_its_mask_is_left_alone() {
        let fake = TestMachine::new("0-3");
        fake.task(100, 100, 1, "a", "0-3");
        fake.task(101, 101, 1, "b", "0-3");
        swept(&fake);
        fake.set_mask(100, "1");
        let done = settled(&fake);
        assert_eq!((done.threads, done.changed), (1, 1));
        assert_eq!(fake.mask(100), set("1"));
    }

    #[test]
    fn a_reused_id_is_noticed() {
        let fake = TestMachine::new("0-3");
        fake.task(100, 100, 1, "a", "0-3");
        fake.task(110, 110, 1, "a", "0-3");
        fake.task(150, 150, 1, "b", "1,3");
        swept(&fake);
        fake.end(150);
        fake.task(150, 150, 1, "another", "1");
        let done = settled(&fake);
        assert_eq!((done.threads, done.reused), (2, 1));
        assert_eq!(fake.mask(150), set("1"), "another thread has this id now");
    }

    #[test]
    fn children_born_meanwhile_are_widened_to_what_their_ancestors_had() {
        let fake = TestMachine::new("0-3");
        fake.task(100, 100, 1, "everywhere", "0-3");
        fake.task(101, 101, 1, "everywhere, too", "0-3");
        fake.task(110, 110, 1, "narrow", "1-3");
        fake.task(120, 120, 1, "was there before", "0-2");
        // It was created before the shield, so its mask is its own.
        fake.reparent(120, 100);
        let mut undo_log = swept(&fake);
        undo_log
            .add(&[Entry::Shield(set("3"), fake.start(120) + 1)])
            .unwrap();
        for (child, parent, mask) in [
            (300, 100, "0-2"),
            (301, 300, "0-2"),
            (310, 110, "1-2"),
            (320, 999, "0-2"),
            (330, 100, "0"),
        ] {
            fake.task(child, child, parent, "child", mask);
        }
        fake.task(100, 105, 1, "thread", "0-2");
        let done = settled(&fake);
        for id in [100, 300, 301, 105] {
            assert_eq!(fake.mask(id), set("0-3"), "{id}");
        }
        assert_eq!(fake.mask(310), set("1-3"));
        assert_eq!(
            fake.mask(320),
            set("0-3"),
            "an orphan gets the most frequent mask"
        );
        assert_eq!(fake.mask(330), set("0"), "this is its own wish");
        assert_eq!(fake.mask(120), set("0-2"), "it was so before");
        assert_eq!(done.widened, 5);
    }

    #[test]
    fn a_log_cannot_change_other_files() {
        let fake = TestMachine::new("0-3");
        let victim = fake.log_path().with_file_name("victim");
        fs::create_dir_all(victim.parent().unwrap()).unwrap();
        fs::write(&victim, "").unwrap();
        let groups = fake.log_path().with_file_name("levada-shield-3");
        fs::create_dir_all(&groups).unwrap();
        let around = fake.machine.sys.join("../run/victim");
        let mut undo_log = fake.undo_log();
        let kernel_file = |path: &Path, new: &str| {
            Entry::KernelFile(KernelFile {
                path: path.to_path_buf(),
                old: "0-3".into(),
                new: new.into(),
            })
        };
        fake.sys("empty", "");
        let entries = [
            kernel_file(&victim, ""),
            kernel_file(&around, ""),
            kernel_file(&fake.machine.sys.join("empty"), ""),
            Entry::Inside(groups.clone()),
            Entry::Outside(fake.machine.sys.join("devices")),
        ];
        undo_log.add(&entries).unwrap();
        let done = settled(&fake);
        assert_eq!(done.failed.len(), 4, "{:?}", done.failed);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "");
        assert_eq!(
            fake.text("sys/empty"),
            "",
            "an empty set was not written by a shield"
        );
        assert!(groups.exists() && fake.exists("sys/devices"));
    }

    #[test]
    fn a_logged_move_that_was_not_made_is_harmless() {
        let fake = TestMachine::new("0-3");
        fake.task(100, 100, 1, "a", "0-3");
        let mut undo_log = fake.undo_log();
        undo_log
            .add(&[Entry::ThreadMove(ThreadMove {
                pid: 100,
                tid: 100,
                start: fake.start(100),
                old: set("0-3"),
                new: set("0-2"),
            })])
            .unwrap();
        let done = settled(&fake);
        assert_eq!((done.threads, done.changed), (0, 0));
        assert_eq!(fake.mask(100), set("0-3"));
    }
}
