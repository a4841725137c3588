// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All as it was before, by what the ledger says. Whoever finds a ledger can do it, any number of times:
//! the tool at its end, the guard when the tool has died, somebody later when both have.

use crate::groups;
use crate::knobs;
use crate::ledger::{Record, Task, open_trusted};
use crate::machine::{Kernel, Machine};
use crate::set::CoreSet;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restored {
    pub cores: CoreSet,
    /// Threads that have their old mask again.
    pub threads: u64,
    /// Threads that were born meanwhile and carried the narrow mask.
    pub widened: u64,
    /// Those that changed their own mask meanwhile: left alone.
    pub changed: u64,
    /// Ids that belong to somebody else by now.
    pub reused: u64,
    pub evicted: u64,
    pub failed: Vec<String>,
}

/// Restores by the ledger at this place and removes it; nothing if there is none. Two who come at once
/// do it one after the other, and the second finds nothing to do.
pub fn settle<K: Kernel>(machine: &Machine<K>, path: &Path) -> io::Result<Option<Restored>> {
    let mut file = match open_trusted(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    // SAFETY: the descriptor is open.
    while unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
    let is_still_there = fs::metadata(path).is_ok_and(|m| {
        let own = file.metadata();
        own.is_ok_and(|o| (o.ino(), o.dev()) == (m.ino(), m.dev()))
    });
    if !is_still_there {
        return Ok(None);
    }
    let restored = restore(machine, &Record::of(&mut file)?);
    fs::remove_file(path)?;
    Ok(Some(restored))
}

pub fn restore<K: Kernel>(machine: &Machine<K>, record: &Record) -> Restored {
    let mut done = Restored {
        cores: record.cores.clone(),
        evicted: record.evicted,
        failed: groups::dissolve(machine, record),
        ..Restored::default()
    };
    // The last line of a thread counts: what it asked for before it was moved away again.
    let mut tasks: HashMap<(i32, u64), &Task> = HashMap::new();
    for task in &record.tasks {
        tasks.insert((task.tid, task.start), task);
    }
    for task in tasks.values() {
        match machine.thread(task.pid, task.tid) {
            None => continue,
            Some(stat) if stat.start != task.start => {
                done.reused += 1;
                continue;
            }
            Some(_) => {}
        }
        match machine.kernel.affinity(task.tid) {
            Ok(now) if now == task.old => {}
            Ok(now) if now != task.new => done.changed += 1,
            Ok(_) => match machine.kernel.set_affinity(task.tid, &task.old) {
                Ok(()) => done.threads += 1,
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(e) => done.failed.push(format!("thread {}: {e}", task.tid)),
            },
            Err(_) => {}
        }
    }
    // Who is born while we look is found by the next look.
    for _ in 0..20 {
        let widened = widen(machine, record);
        done.widened += widened;
        if widened == 0 {
            break;
        }
    }
    for knob in record.knobs.iter().rev() {
        match knobs::put_back(machine, knob) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            // It was refused when it was to be steered away, too.
            Err(_) if !knob.path.exists() => {}
            Err(e) => done.failed.push(format!("{}: {e}", knob.path.display())),
        }
    }
    if let Some((session, old, new)) = record.session {
        restore_session(machine, session, old, new);
    }
    done
}

/// The masks that a shield gave, and whom: for those who were born since and carry one of them.
struct Given<'a> {
    by_process: HashMap<i32, Vec<&'a Task>>,
    /// How many had which mask before they were given this one.
    olds: BTreeMap<&'a CoreSet, BTreeMap<&'a CoreSet, u64>>,
    /// The mask that most were given, and that of the program inside: who carries one of these and has no
    /// ancestors any more is given what most had. With other masks that would be a guess.
    common: [Option<&'a CoreSet>; 2],
}

impl<'a> Given<'a> {
    fn new(record: &'a Record) -> Given<'a> {
        let mut by_process: HashMap<i32, Vec<&Task>> = HashMap::new();
        let mut olds: BTreeMap<&CoreSet, BTreeMap<&CoreSet, u64>> = BTreeMap::new();
        for task in &record.tasks {
            by_process.entry(task.pid).or_default().push(task);
            *olds
                .entry(&task.new)
                .or_default()
                .entry(&task.old)
                .or_default() += 1;
        }
        let most = olds
            .iter()
            .max_by_key(|(_, olds)| olds.values().sum::<u64>());
        let common = [most.map(|(new, _)| *new), Some(&record.cores)];
        Given {
            by_process,
            olds,
            common,
        }
    }

    /// What those had from whom a thread of this process has its mask.
    fn before<K: Kernel>(
        &self,
        machine: &Machine<K>,
        pid: i32,
        mask: &CoreSet,
    ) -> Option<&'a CoreSet> {
        let from_ancestor = self.before_ancestor(machine, pid, mask);
        let from_most = || {
            let olds = self
                .olds
                .get(mask)
                .filter(|_| self.common.contains(&Some(mask)))?;
            olds.iter().max_by_key(|(_, n)| **n).map(|(old, _)| *old)
        };
        let old = from_ancestor.or_else(from_most);
        old.filter(|old| mask.is_within(old) && *old != mask)
    }

    /// The next of its process's threads, its parent's, and so on that was given this mask.
    fn before_ancestor<K: Kernel>(
        &self,
        machine: &Machine<K>,
        pid: i32,
        mask: &CoreSet,
    ) -> Option<&'a CoreSet> {
        let mut at = pid;
        for _ in 0..100 {
            let process = machine.process(at)?;
            // One that is younger than its threads has the id of another.
            let of = self
                .by_process
                .get(&at)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let mut of = of.iter().rev().filter(|t| t.start >= process.start);
            if let Some(task) = of.find(|t| t.new == *mask) {
                return Some(&task.old);
            }
            if at <= 1 {
                break;
            }
            at = process.parent;
        }
        None
    }
}

/// Threads that were born since, carry a mask that the shield gave, and whose ancestors it moved.
pub fn widen<K: Kernel>(machine: &Machine<K>, record: &Record) -> u64 {
    if record.tasks.is_empty() {
        return 0;
    }
    let tasks: HashSet<(i32, u64)> = record.tasks.iter().map(|t| (t.tid, t.start)).collect();
    let given = Given::new(record);
    let mut widened = 0;
    for pid in machine.processes() {
        for tid in machine.threads(pid) {
            let Ok(mask) = machine.kernel.affinity(tid) else {
                continue;
            };
            if !given.olds.contains_key(&mask) {
                continue;
            }
            let Some(stat) = machine.thread(pid, tid) else {
                continue;
            };
            let known = tasks.contains(&(tid, stat.start));
            if known || stat.start < record.since || stat.is_bound() || stat.is_dead() {
                continue;
            }
            let Some(old) = given.before(machine, pid, &mask) else {
                continue;
            };
            if machine.kernel.set_affinity(tid, old).is_ok() {
                widened += 1;
            }
        }
    }
    widened
}

/// The weight of a session, if anybody of it is still there.
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
    use crate::fake::{Fake, broom, set};
    use crate::ledger::{Entry, Ledger};

    /// A core swept by affinities, with its ledger.
    fn swept(fake: &Fake) -> Ledger {
        let mut ledger = fake.ledger();
        let begin = Entry::Shield(set("3"), fake.start(100));
        ledger.add(&[begin]).unwrap();
        broom().clean(&fake.machine, &mut ledger).unwrap();
        ledger
    }

    fn settled(fake: &Fake) -> Restored {
        let path = fake.ledger_path();
        settle(&fake.machine, &path).unwrap().unwrap()
    }

    #[test]
    fn all_is_as_before_and_twice_is_once() {
        let fake = Fake::new("0-3");
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
        let path = fake.ledger_path();
        assert!(settle(&fake.machine, &path).unwrap().is_none());
    }

    #[test]
    fn who_changed_his_own_mask_is_left_alone() {
        let fake = Fake::new("0-3");
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
        let fake = Fake::new("0-3");
        fake.task(100, 100, 1, "a", "0-3");
        fake.task(110, 110, 1, "a", "0-3");
        fake.task(150, 150, 1, "b", "1,3");
        swept(&fake);
        fake.end(150);
        fake.task(150, 150, 1, "another", "1");
        let done = settled(&fake);
        assert_eq!((done.threads, done.reused), (2, 1));
        assert_eq!(fake.mask(150), set("1"), "this is not who was moved");
    }

    #[test]
    fn children_born_meanwhile_are_widened_to_what_their_ancestors_had() {
        let fake = Fake::new("0-3");
        fake.task(100, 100, 1, "everywhere", "0-3");
        fake.task(101, 101, 1, "everywhere, too", "0-3");
        fake.task(110, 110, 1, "narrow", "1-3");
        fake.task(120, 120, 1, "was there before", "0-2");
        // Born before the shield, although nobody moved it.
        fake.reparent(120, 100);
        let mut ledger = swept(&fake);
        ledger
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
        assert_eq!(fake.mask(320), set("0-3"), "an orphan gets what most had");
        assert_eq!(fake.mask(330), set("0"), "this is its own wish");
        assert_eq!(fake.mask(120), set("0-2"), "it was so before");
        assert_eq!(done.widened, 5);
    }

    #[test]
    fn a_ledger_leads_nowhere_but_to_the_kernel_s_files() {
        let fake = Fake::new("0-3");
        let victim = fake.ledger_path().with_file_name("victim");
        fs::create_dir_all(victim.parent().unwrap()).unwrap();
        fs::write(&victim, "").unwrap();
        let groups = fake.ledger_path().with_file_name("levada-shield");
        fs::create_dir_all(&groups).unwrap();
        let around = fake.machine.sys.join("../run/victim");
        let mut ledger = fake.ledger();
        let knob = |path: &Path, new: &str| {
            Entry::Knob(crate::ledger::Knob {
                path: path.to_path_buf(),
                old: "0-3".into(),
                new: new.into(),
            })
        };
        fake.sys("empty", "");
        let entries = [
            knob(&victim, ""),
            knob(&around, ""),
            knob(&fake.machine.sys.join("empty"), ""),
            Entry::Inside(groups.clone()),
            Entry::Outside(fake.machine.sys.join("devices")),
        ];
        ledger.add(&entries).unwrap();
        let done = settled(&fake);
        assert_eq!(done.failed.len(), 4, "{:?}", done.failed);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "");
        assert_eq!(
            fake.text("sys/empty"),
            "",
            "no set is none that was written"
        );
        assert!(groups.exists() && fake.exists("sys/devices"));
    }

    #[test]
    fn a_move_that_never_came_needs_nothing() {
        let fake = Fake::new("0-3");
        fake.task(100, 100, 1, "a", "0-3");
        let mut ledger = fake.ledger();
        ledger
            .add(&[Entry::Task(Task {
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
