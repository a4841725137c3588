// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All as it was before one shield, by what the ledger says. Whoever finds a ledger can do it, any number of
//! times: the tool at its end, the guard when the tool has died, somebody later when both have. While other
//! shields hold, what was narrowed for all of them gets back the cores of this one only.

use super::cgroups;
use super::granted_masks::Given;
use super::irq_affinity::{self, without};
use super::method::Rung;
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::undo_log::format::{Entry, Held, Knob, Record, Task};
use crate::undo_log::{Ledger, Locked};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;

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

/// Ends a shield; nothing if it has ended. Two who come at once do it one after the other, and the second finds
/// nothing to do.
pub fn settle<K: Kernel>(machine: &Machine<K>, ledger: &Ledger) -> io::Result<Option<Restored>> {
    let Some((locked, restored, left)) = take_back(machine, ledger)? else {
        return Ok(None);
    };
    locked.replace(&left)?;
    Ok(Some(restored))
}

/// The same before the ledger says that it is done. Whoever is killed here has it done again.
pub(crate) fn take_back<K: Kernel>(
    machine: &Machine<K>,
    ledger: &Ledger,
) -> io::Result<Option<(Locked, Restored, Record)>> {
    // Without a ledger there is nothing to be locked.
    if ledger.path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let locked = Locked::open(&ledger.path)?;
    let record = locked.read()?.unwrap_or_default();
    let held = record.shield(ledger.number);
    let Some(held) = held.filter(|held| held.tool == ledger.tool) else {
        return Ok(None);
    };
    let mut back = Back::new(machine, &record, held);
    back.restore(&locked)?;
    Ok(Some((locked, back.done, back.left)))
}

/// One shield while it is taken back.
struct Back<'a, K: Kernel> {
    machine: &'a Machine<K>,
    record: &'a Record,
    held: &'a Held,
    given: Given<'a>,
    online: CoreSet,
    remain: Remain,
    is_last: bool,
    /// What the ledger says then, in the name of one of those.
    left: Record,
    number: u32,
    done: Restored,
}

impl<'a, K: Kernel> Back<'a, K> {
    fn new(machine: &'a Machine<K>, record: &'a Record, held: &'a Held) -> Back<'a, K> {
        let mut left = Record {
            shields: record.but(held.number).cloned().collect(),
            outside: record.outside.clone(),
            ..Record::default()
        };
        // A session that another shield has given a weight, too, had this one before.
        for other in &mut left.shields {
            if let (Some(theirs), Some(own)) = (&mut other.session, held.session)
                && theirs.0 == own.0
                && theirs.1 == own.2
            {
                theirs.1 = own.1;
            }
        }
        Back {
            machine,
            record,
            held,
            given: Given::all(record),
            online: machine.online(),
            remain: Remain::of(&left),
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

    fn restore(&mut self, locked: &Locked) -> io::Result<()> {
        let (failed, came) = cgroups::dissolve(self.machine, self.record, self.held);
        self.done.failed = failed;
        let mut moves = self.moves();
        moves.extend(self.strays(&came));
        // Before it is done, as always: whoever comes after us must know these masks as given.
        if !self.is_last {
            let lines = moves
                .iter()
                .map(|t| Entry::Task(t.clone()).line(self.number));
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
        // Who is born while we look is found by the next look.
        for _ in 0..20 {
            let widened = widen(self.machine, self.record, &self.remain);
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

    /// Which thread gets what; what is to be kept of those that stay narrowed is kept.
    fn moves(&mut self) -> Vec<Task> {
        let mut moves = Vec::new();
        let number = self.number;
        // Where groups hold the shields, the kernel sees to the masks of most; those that it forgets come back
        // with the last.
        let groups = !self.is_last && self.remain.cores.is_empty();
        let shields = self.record.cores_but(self.held.number);
        for history in self.given.threads() {
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
            let is_others = self.remain.have(&last.new) || self.remain.have(&now) || is_forgotten;
            if is_others {
                self.left.tasks.push((number, Task::clone(last)));
                continue;
            }
            let task = Task {
                new: without(&last.old, &shields, &self.online),
                ..Task::clone(last)
            };
            // Its wish it has if another guard has written it down, and is about to move it.
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

    /// Older kernels let who comes home to the root of all groups onto the cores of other partitions.
    fn strays(&mut self, came: &[i32]) -> Vec<Task> {
        let shielded = self.record.cores_but(self.held.number);
        let mut strays = Vec::new();
        for (pid, tid) in came
            .iter()
            .flat_map(|p| self.machine.threads(*p).into_iter().map(|t| (*p, t)))
        {
            let mask = self.machine.kernel.affinity(tid).unwrap_or_default();
            let stat = self.machine.thread(pid, tid);
            strays.extend(stat.filter(|_| mask.meets(&shielded)).map(|stat| Task {
                pid,
                tid,
                start: stat.start,
                new: without(&mask, &shielded, &self.online),
                old: mask,
            }));
        }
        let kept = strays.iter().map(|t| (self.number, t.clone()));
        self.left.tasks.extend(kept);
        strays
    }

    fn files(&mut self, locked: &Locked) {
        let mut histories: BTreeMap<&PathBuf, Vec<&Knob>> = BTreeMap::new();
        for (_, knob) in &self.record.knobs {
            histories.entry(&knob.path).or_default().push(knob);
        }
        let shields = self.record.cores_but(self.held.number);
        for (path, history) in histories {
            let (number, left) = (self.number, &mut self.left.knobs);
            let mut note = |knob: Knob| {
                left.push((number, knob.clone()));
                locked.append(&Entry::Knob(knob).line(number))
            };
            match irq_affinity::put_back(self.machine, &history, &shields, &self.online, &mut note)
            {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                // It was refused when it was to be steered away, too.
                Err(_) if !path.exists() => {}
                Err(e) => self.done.failed.push(format!("{}: {e}", path.display())),
            }
        }
    }
}

/// The shields that go on.
#[derive(Default)]
pub struct Remain {
    /// Of which the masks of all others must be free; where groups hold shields, the kernel sees to that.
    pub cores: CoreSet,
    /// Where some of them have put what was on their cores.
    pins: Vec<CoreSet>,
}

impl Remain {
    pub fn of(record: &Record) -> Remain {
        let is_watched = |held: &&Held| Rung::from_name(&held.rung).is_none_or(Rung::is_watched);
        let watched = record.shields.iter().filter(is_watched);
        Remain {
            cores: watched.fold(CoreSet::default(), |all, held| all.or(&held.cores)),
            pins: record
                .shields
                .iter()
                .filter_map(|s| s.lightest.map(CoreSet::one))
                .collect(),
        }
    }

    /// Whether who has this mask is theirs, or was put there by them.
    fn have(&self, mask: &CoreSet) -> bool {
        mask.meets(&self.cores) && mask.is_within(&self.cores) || self.pins.contains(mask)
    }
}

/// Threads that were born since, carry a mask that a shield gave, and whose ancestors it moved, get what
/// those asked for, but for the cores of the shields that go on.
pub fn widen<K: Kernel>(machine: &Machine<K>, record: &Record, remain: &Remain) -> u64 {
    if record.tasks.is_empty() {
        return 0;
    }
    let given = Given::all(record);
    let masks: HashSet<&CoreSet> = record.tasks.iter().map(|(_, t)| &t.new).collect();
    let online = machine.online();
    let mut widened = 0;
    for pid in machine.processes() {
        for tid in machine.threads(pid) {
            let Ok(mask) = machine.kernel.affinity(tid) else {
                continue;
            };
            if !masks.contains(&mask) || remain.have(&mask) {
                continue;
            }
            let stat = machine.thread(pid, tid);
            let stat = stat.filter(|s| !s.is_bound() && !s.is_dead());
            let Some(stat) = stat.filter(|s| given.to(tid, s.start).is_empty()) else {
                continue;
            };
            let wish = given.inherited(machine, pid, stat.start, &mask);
            let back = wish.map(|wish| without(wish, &remain.cores, &online));
            if let Some(back) = back.filter(|back| *back != mask)
                && machine.kernel.set_affinity(tid, &back).is_ok()
            {
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
    use crate::test_machine::{Fake, broom, set};
    use std::fs;
    use std::path::Path;

    /// A core swept by affinities, with its ledger.
    fn swept(fake: &Fake) -> Ledger {
        let mut ledger = fake.ledger();
        let begin = Entry::Shield(set("3"), fake.start(100));
        ledger.add(&[begin]).unwrap();
        broom().clean(&fake.machine, &mut ledger).unwrap();
        ledger
    }

    fn settled(fake: &Fake) -> Restored {
        let ledger = Ledger::of(&fake.ledger_path(), 3, None);
        settle(&fake.machine, &ledger).unwrap().unwrap()
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
        let again = Ledger::of(&fake.ledger_path(), 3, None);
        assert!(settle(&fake.machine, &again).unwrap().is_none());
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
        let groups = fake.ledger_path().with_file_name("levada-shield-3");
        fs::create_dir_all(&groups).unwrap();
        let around = fake.machine.sys.join("../run/victim");
        let mut ledger = fake.ledger();
        let knob = |path: &Path, new: &str| {
            Entry::Knob(Knob {
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
