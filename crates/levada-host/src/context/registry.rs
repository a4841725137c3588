// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The registry of applications.

use crate::app::Seen;
use crate::model::app_state::State;
use crate::model::outcome::Ended;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

/// So many that have ended are remembered.
const REMEMBERED: usize = 256;

#[derive(Default)]
pub(crate) struct Table {
    pub apps: BTreeMap<u64, Seen>,
    /// Who has ended, in that order.
    over: VecDeque<u64>,
    pub last: u64,
}

impl Table {
    /// The newest of that name that waits for nobody's end: those before it have ended.
    pub fn find(&self, name: &str) -> Option<&Seen> {
        let mut all = self.apps.values().rev();
        all.find(|a| a.name == name && self.before(a).is_none())
    }

    /// Those that are found by their names. A new version that waits for the end of the one before it is not among them: it has
    /// no part in anything before that.
    pub fn seen(&self) -> Vec<&Seen> {
        let mut names = HashSet::with_capacity(self.apps.len());
        let all = self.apps.values().rev();
        let found = all.filter(|a| self.before(a).is_none() && names.insert(&*a.name));
        let mut found: Vec<&Seen> = found.collect();
        found.reverse();
        found
    }

    /// The one whose end this one waits for.
    pub fn before(&self, new: &Seen) -> Option<&Seen> {
        let old = self.apps.get(&new.after?);
        old.filter(|old| old.ended.is_none())
    }

    /// The one that waits for the end of this one.
    pub fn next(&self, old: u64) -> Option<&Seen> {
        let mut all = self.apps.values();
        all.find(|a| a.after == Some(old) && a.hosted.is_some())
    }

    /// Those that were to take over from this one, and have ended.
    pub fn ended_after(&self, old: u64) -> Vec<u64> {
        let all = self.apps.values();
        let after = all.filter(|a| a.after == Some(old) && a.ended.is_some());
        after.map(|a| a.number).collect()
    }

    /// Forgets what has ended of that name, up to this number.
    pub fn forget(&mut self, name: &str, last: u64) {
        let stays = |seen: &Seen| seen.name != name || seen.ended.is_none();
        self.apps.retain(|n, seen| *n > last || stays(seen));
    }

    /// Those that wait, by whose end they wait for.
    pub(crate) fn waiting(&self) -> BTreeMap<u64, &Seen> {
        let all = self.apps.values();
        all.filter_map(|new| Some((self.before(new)?.number, new)))
            .collect()
    }

    /// Of too many that have ended those are forgotten that ended first.
    pub(crate) fn end(&mut self, ended: Ended, state: State) {
        let number = ended.number;
        let Some(seen) = self.apps.get_mut(&number) else {
            return;
        };
        seen.state = state;
        seen.hosted = None;
        seen.ended = Some(Arc::new(ended));
        self.over.push_back(number);
        let apps = &mut self.apps;
        self.over.retain(|n| apps.contains_key(n));
        while self.over.len() > REMEMBERED {
            self.over.pop_front().and_then(|n| apps.remove(&n));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::outcome::Outcome;
    use levada_sys::Counters;
    use std::time::SystemTime;

    /// Who runs for long and ends last is not the one that is forgotten.
    #[test]
    fn who_ended_first_is_forgotten_first() {
        let mut table = Table::default();
        let many = REMEMBERED as u64 + 3;
        for number in 1..=many {
            let seen = Seen {
                number,
                name: number.to_string(),
                class: String::new(),
                priority: 0,
                bytes: 0,
                loaded: SystemTime::now(),
                after: None,
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
            };
            table.end(ended, State::Ended);
        }
        assert_eq!(table.apps.len(), REMEMBERED);
        assert!(table.apps.contains_key(&1) && !table.apps.contains_key(&2));
    }
}
