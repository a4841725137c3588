// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The registry of applications, by number: those that are loaded, and the last ones that have ended.

use crate::app::AppEntry;
use crate::model::app_state::State;
use crate::model::outcome::Ended;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

/// Number of ended applications that are kept.
const ENDED_MAX: usize = 256;

#[derive(Default)]
pub(crate) struct Registry {
    pub apps: BTreeMap<u64, AppEntry>,
    /// The ended ones, in the order of their ends.
    ended: VecDeque<u64>,
    pub last_number: u64,
}

impl Registry {
    /// The newest application of that name that does not wait for its predecessor's end; earlier ones have ended.
    pub fn find(&self, name: &str) -> Option<&AppEntry> {
        let mut all = self.apps.values().rev();
        all.find(|a| a.name == name && self.predecessor(a).is_none())
    }

    /// The applications that can be found by name. A new version that waits for its predecessor's end is not among
    /// them.
    pub fn visible(&self) -> Vec<&AppEntry> {
        let mut names = HashSet::with_capacity(self.apps.len());
        let all = self.apps.values().rev();
        let found = all.filter(|a| self.predecessor(a).is_none() && names.insert(&*a.name));
        let mut found: Vec<&AppEntry> = found.collect();
        found.reverse();
        found
    }

    /// The previous version, if this one waits for its end.
    pub fn predecessor(&self, new: &AppEntry) -> Option<&AppEntry> {
        let old = self.apps.get(&new.successor_of?);
        old.filter(|old| old.ended.is_none())
    }

    /// The next version, which waits for the end of this one.
    pub fn successor(&self, old: u64) -> Option<&AppEntry> {
        let mut all = self.apps.values();
        all.find(|a| a.successor_of == Some(old) && a.hosted.is_some())
    }

    /// Next versions of this one that have ended.
    pub fn ended_successors(&self, old: u64) -> Vec<u64> {
        let all = self.apps.values();
        let after = all.filter(|a| a.successor_of == Some(old) && a.ended.is_some());
        after.map(|a| a.number).collect()
    }

    /// Forgets ended applications of that name, up to this number.
    pub fn forget(&mut self, name: &str, last: u64) {
        let stays = |seen: &AppEntry| seen.name != name || seen.ended.is_none();
        self.apps.retain(|n, seen| *n > last || stays(seen));
    }

    /// The waiting next versions, by the number of their predecessor.
    pub(crate) fn waiting_successors(&self) -> BTreeMap<u64, &AppEntry> {
        let all = self.apps.values();
        all.filter_map(|new| Some((self.predecessor(new)?.number, new)))
            .collect()
    }

    /// Records an end; if too many have ended, the oldest ends are forgotten.
    pub(crate) fn record_end(&mut self, ended: Ended, state: State) {
        let number = ended.number;
        let Some(seen) = self.apps.get_mut(&number) else {
            return;
        };
        seen.state = state;
        seen.hosted = None;
        seen.ended = Some(Arc::new(ended));
        self.ended.push_back(number);
        let apps = &mut self.apps;
        self.ended.retain(|n| apps.contains_key(n));
        while self.ended.len() > ENDED_MAX {
            self.ended.pop_front().and_then(|n| apps.remove(&n));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::outcome::Outcome;
    use crate::model::unconsumed::Unconsumed;
    use levada_sys::Counters;
    use std::time::SystemTime;

    /// An application that ran long and ended last is not the one that is forgotten.
    #[test]
    fn the_oldest_end_is_forgotten_first() {
        let mut table = Registry::default();
        let many = ENDED_MAX as u64 + 3;
        for number in 1..=many {
            let seen = AppEntry {
                number,
                name: number.to_string(),
                network_class: String::new(),
                priority: 0,
                bytes: 0,
                loaded: SystemTime::now(),
                successor_of: None,
                state: State::Running,
                hosted: None,
                ended: None,
            };
            table.apps.insert(number, seen);
        }
        for number in (2..=many).chain([1]) {
            let ended = Ended {
                number,
                outcome: Outcome::Done,
                seconds: 0.0,
                counters: Counters::default(),
                shapes: Vec::new(),
                progress: None,
                moves: 0,
                unconsumed: Unconsumed::default(),
            };
            table.record_end(ended, State::Ended);
        }
        assert_eq!(table.apps.len(), ENDED_MAX);
        assert!(table.apps.contains_key(&1) && !table.apps.contains_key(&2));
    }
}
