// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The affinity masks that shields have granted, and to which threads. They determine the original
//! mask of a thread with a granted mask: it is in the log if the thread was moved itself; a thread
//! created since inherited its mask, and its original mask is that of the ancestor it comes from.

use super::method::Method;
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::undo_log::format::{LogState, ShieldRecord, ThreadMove};
use std::collections::{BTreeMap, HashMap, HashSet};

pub struct GrantedMasks<'a> {
    since: u64,
    by_thread: HashMap<(i32, u64), Vec<&'a ThreadMove>>,
    by_process: HashMap<i32, Vec<&'a ThreadMove>>,
    /// For each granted mask, how many threads had which original mask.
    original_masks: BTreeMap<&'a CoreSet, BTreeMap<&'a CoreSet, u64>>,
    /// For each shield the mask that it granted most often, and that of its program: a thread with
    /// one of these and without living ancestors gets the most frequent original mask. For other
    /// masks this would be a guess.
    common: HashSet<&'a CoreSet>,
}

impl<'a> GrantedMasks<'a> {
    /// By all shields.
    pub fn all(record: &'a LogState) -> GrantedMasks<'a> {
        GrantedMasks::by(record, |_| true)
    }

    /// Inherited masks by all shields except one; moves of a thread itself count in any case.
    pub fn by_others(record: &'a LogState, number: u32) -> GrantedMasks<'a> {
        GrantedMasks::by(record, |by| by != number)
    }

    fn by(record: &'a LogState, counts: impl Fn(u32) -> bool) -> GrantedMasks<'a> {
        // With cgroups, masks are not granted by shields.
        let by_masks =
            |held: &ShieldRecord| Method::from_name(&held.method).is_none_or(Method::is_watched);
        let watched = record.shields.iter().filter(|held| by_masks(held));
        let mut granted = GrantedMasks {
            since: record.shields.iter().map(|s| s.since).min().unwrap_or(0),
            by_thread: HashMap::new(),
            by_process: HashMap::new(),
            original_masks: BTreeMap::new(),
            common: watched.map(|s| &s.cores).collect(),
        };
        let mut of_shield: BTreeMap<u32, BTreeMap<&CoreSet, u64>> = BTreeMap::new();
        for (by, task) in &record.tasks {
            let thread = granted.by_thread.entry((task.tid, task.start));
            thread.or_default().push(task);
            if !counts(*by) {
                continue;
            }
            granted.by_process.entry(task.pid).or_default().push(task);
            let original_masks = granted.original_masks.entry(&task.new).or_default();
            *original_masks.entry(&task.old).or_default() += 1;
            *of_shield
                .entry(*by)
                .or_default()
                .entry(&task.new)
                .or_default() += 1;
        }
        for (by, masks) in of_shield {
            if !record.shield(by).is_none_or(by_masks) {
                continue;
            }
            let most = masks.iter().max_by_key(|(_, n)| **n);
            granted.common.extend(most.map(|(mask, _)| *mask));
        }
        granted
    }

    /// All moves of a thread, in order.
    pub fn to(&self, tid: i32, start: u64) -> &[&'a ThreadMove] {
        let of = self.by_thread.get(&(tid, start));
        of.map(Vec::as_slice).unwrap_or_default()
    }

    /// The moves of each thread.
    pub fn threads(&self) -> impl Iterator<Item = &[&'a ThreadMove]> {
        self.by_thread.values().map(Vec::as_slice)
    }

    /// The original mask of a thread that has this mask now: from its own moves or those of its
    /// ancestors; the mask itself if no shield granted it.
    pub fn original_mask<K: Kernel>(
        &self,
        machine: &Machine<K>,
        pid: i32,
        (tid, start): (i32, u64),
        mask: &CoreSet,
    ) -> CoreSet {
        let own = self.to(tid, start);
        let inherited = || self.inherited(machine, pid, start, mask).cloned();
        let original = match own.last() {
            Some(last) if own.iter().any(|t| t.new == *mask) => Some(last.old.clone()),
            Some(_) => None,
            None => inherited(),
        };
        original.unwrap_or_else(|| mask.clone())
    }

    /// The original mask that a thread without moves of its own inherited; none if no shield
    /// granted its mask.
    pub fn inherited<K: Kernel>(
        &self,
        machine: &Machine<K>,
        pid: i32,
        start: u64,
        mask: &CoreSet,
    ) -> Option<&'a CoreSet> {
        let original_masks = self
            .original_masks
            .get(mask)
            .filter(|_| start >= self.since)?;
        let of_most = || {
            let all = Some(original_masks).filter(|_| self.common.contains(mask))?;
            let most = all
                .iter()
                .max_by_key(|(_, n)| **n)
                .map(|(original, _)| *original);
            most.filter(|original| mask.is_subset(original))
        };
        let original = self.of_ancestor(machine, pid, mask).or_else(of_most);
        original.filter(|original| *original != mask)
    }

    /// The original mask of the nearest thread that was granted this mask: in the same process, its
    /// parent, and so on.
    fn of_ancestor<K: Kernel>(
        &self,
        machine: &Machine<K>,
        pid: i32,
        mask: &CoreSet,
    ) -> Option<&'a CoreSet> {
        let mut at = pid;
        for _ in 0..100 {
            let process = machine.process(at)?;
            // A process younger than its threads has reused the id.
            let of = self.by_process.get(&at).map(Vec::as_slice);
            let mut of = of.unwrap_or_default().iter().rev();
            if let Some(task) = of.find(|t| t.start >= process.start && t.new == *mask) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::{TestMachine, set};

    #[test]
    fn the_original_mask_is_the_one_before_all_shields() {
        let fake = TestMachine::new("0-3");
        let granted = |by: u32, old: &str, new: &str| {
            let (old, new) = (set(old), set(new));
            let (pid, tid, start) = (20, 21, 5);
            (
                by,
                ThreadMove {
                    pid,
                    tid,
                    start,
                    old,
                    new,
                },
            )
        };
        let mut record = LogState {
            tasks: vec![granted(3, "0-3", "0-2"), granted(2, "0-3", "0-1")],
            ..LogState::default()
        };
        let original = |record: &LogState, start: u64, now: &str| {
            GrantedMasks::all(record).original_mask(&fake.machine, 20, (21, start), &set(now))
        };
        for (now, asked) in [("0-1", "0-3"), ("0-2", "0-3"), ("1", "1")] {
            assert_eq!(original(&record, 5, now), set(asked), "{now}");
        }
        // The thread changes its mask in between.
        record.tasks.push(granted(3, "1,3", "1"));
        assert_eq!(original(&record, 5, "1"), set("1,3"));
        assert_eq!(original(&record, 5, "0-2"), set("1,3"));
    }

    #[test]
    fn a_new_thread_has_the_original_mask_of_its_parent() {
        let fake = TestMachine::new("0-3");
        fake.task(100, 100, 1, "parent", "0-2");
        fake.task(101, 101, 100, "child", "0-2");
        let task = ThreadMove {
            pid: 100,
            tid: 100,
            start: fake.start(100),
            old: set("3"),
            new: set("0-2"),
        };
        let record = LogState {
            tasks: vec![(3, task)],
            ..LogState::default()
        };
        let original = |granted: &GrantedMasks, mask: &str| {
            granted.original_mask(&fake.machine, 101, (101, fake.start(101)), &set(mask))
        };
        assert_eq!(original(&GrantedMasks::all(&record), "0-2"), set("3"));
        let mut record = record;
        record.tasks[0].1.old = set("0-3");
        assert_eq!(original(&GrantedMasks::all(&record), "0-2"), set("0-3"));
        assert_eq!(original(&GrantedMasks::all(&record), "0-1"), set("0-1"));
        assert_eq!(
            original(&GrantedMasks::by_others(&record, 3), "0-2"),
            set("0-2")
        );
        assert_eq!(
            original(&GrantedMasks::by_others(&record, 2), "0-2"),
            set("0-3")
        );
    }
}
