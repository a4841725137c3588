// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pending loads and replacements. A name is pending from acceptance until the application has started or the
//! replacement is complete.
//!
//! Requests that address it by name block meanwhile, since an application that has not started would look like a
//! paused one. Applications of one manifest become visible together. Names that a restore has yet to load are
//! pending as well.

use crate::model::error::{Kind, Refusal};
use crate::util::lock::{ignore_poison, lock};
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub struct PendingLoads {
    state: Mutex<PendingState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PendingState {
    /// Pending names and their kinds. A name may be there twice: a restore loads it, it is unloaded before it has
    /// started, and another application of that name is loaded.
    pending: Vec<(String, PendingKind)>,
    /// Names that a restore has yet to load.
    to_restore: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingKind {
    Loaded,
    /// With others, all or none.
    Together(Number),
    Replaced,
}

/// The number of a pending application; an earlier one of that name may have ended before it, and a later one may
/// exist since it was unloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// Not assigned yet, and higher than this; no other application of that name is loaded now.
    After(u64),
    Is(u64),
}

impl PendingState {
    /// The error for a request that must wait for this name; `lives`: an application of this name exists.
    fn blocked_by(&self, name: &str, lives: impl Fn() -> bool) -> Option<Refusal> {
        let refusal = |why: &str, help: String| {
            let what = format!("{name} {why}");
            Some(Refusal::new(Kind::Timeout, what).help(help))
        };
        let again = "try again, or wait longer".to_string();
        match self.pending.iter().find(|n| n.0 == name) {
            Some((_, PendingKind::Loaded | PendingKind::Together(_))) => {
                refusal("is being loaded", again)
            }
            Some((_, PendingKind::Replaced)) => refusal("is being replaced", again),
            // Another application has that name meanwhile.
            None if !self.to_restore.contains(name) || lives() => None,
            None => refusal(
                "is not loaded yet: it is to be loaded again, as the last host had loaded it",
                format!("try again, or wait longer; levada resume {name} loads it at once"),
            ),
        }
    }

    /// Whether the application with this number belongs to a manifest that has not completely started.
    fn hides(&self, name: &str, number: u64) -> bool {
        let mut of_name = self.pending.iter().filter(|n| n.0 == name);
        of_name.any(|(_, what)| match what {
            PendingKind::Together(Number::After(last)) => number > *last,
            PendingKind::Together(Number::Is(own)) => number == *own,
            PendingKind::Loaded | PendingKind::Replaced => false,
        })
    }
}

impl PendingLoads {
    fn state(&self) -> MutexGuard<'_, PendingState> {
        lock(&self.state)
    }

    /// A restore is going to load these names.
    pub fn set_due(&self, names: impl Iterator<Item = String>) {
        self.state().to_restore.extend(names);
    }

    /// Whether a restore has yet to load it.
    pub fn is_due(&self, name: &str) -> bool {
        self.state().to_restore.contains(name)
    }

    /// A restore does not load it any more.
    pub fn clear_due(&self, name: &str) {
        self.state().to_restore.remove(name);
        self.changed.notify_all();
    }

    /// Begins a load; names become pending when they are [added](PendingLoad::add), until the value is dropped.
    pub fn start_load(&self) -> PendingLoad<'_> {
        self.start(PendingKind::Loaded)
    }

    /// The same for a manifest: its applications, with numbers above `last`, stay
    /// [invisible](PendingLoads::with_visibility) until then.
    pub fn start_manifest(&self, last: u64) -> PendingLoad<'_> {
        self.start(PendingKind::Together(Number::After(last)))
    }

    fn start(&self, as_what: PendingKind) -> PendingLoad<'_> {
        PendingLoad {
            all: self,
            kind: as_what,
            names: Vec::new(),
        }
    }

    /// Calls `look` while no load begins or ends; its argument says which names and numbers are visible.
    pub fn with_visibility<T>(&self, look: impl FnOnce(&dyn Fn(&str, u64) -> bool) -> T) -> T {
        let state = self.state();
        look(&|name, number| !state.hides(name, number))
    }

    /// Begins a load of this name, unless it is pending.
    pub fn try_load(&self, name: &str) -> Option<PendingLoad<'_>> {
        let mut state = self.state();
        let taken = state.pending.iter().any(|n| n.0 == name);
        (!taken).then(|| self.enter(&mut state, name, PendingKind::Loaded))
    }

    /// The same, as soon as it is not pending.
    pub fn load_when_free(&self, name: &str) -> PendingLoad<'_> {
        let taken = |state: &mut PendingState| state.pending.iter().any(|n| n.0 == name);
        let state = self.changed.wait_while(self.state(), taken);
        let mut state = ignore_poison(state);
        self.enter(&mut state, name, PendingKind::Loaded)
    }

    fn enter(&self, state: &mut PendingState, name: &str, what: PendingKind) -> PendingLoad<'_> {
        state.to_restore.remove(name);
        state.pending.push((name.to_string(), what));
        PendingLoad {
            all: self,
            kind: what,
            names: vec![(name.to_string(), what)],
        }
    }

    /// Waits until the name is not pending; returns the time that is left.
    pub fn wait(
        &self,
        name: &str,
        timeout: Duration,
        lives: impl Fn() -> bool,
    ) -> Result<Duration, Refusal> {
        self.wait_free(name, timeout, lives).map(|(_, left)| left)
    }

    /// The same, and begins a replacement, until the value is dropped.
    pub fn start_replace(
        &self,
        name: &str,
        timeout: Duration,
        lives: impl Fn() -> bool,
    ) -> Result<(PendingLoad<'_>, Duration), Refusal> {
        let (mut state, left) = self.wait_free(name, timeout, lives)?;
        Ok((self.enter(&mut state, name, PendingKind::Replaced), left))
    }

    fn wait_free(
        &self,
        name: &str,
        timeout: Duration,
        lives: impl Fn() -> bool,
    ) -> Result<(MutexGuard<'_, PendingState>, Duration), Refusal> {
        let begun = Instant::now();
        let (mut state, mut left) = (self.state(), timeout);
        while let Some(why) = state.blocked_by(name, &lives) {
            left = timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(why);
            }
            let waited = self.changed.wait_timeout(state, left);
            state = ignore_poison(waited).0;
        }
        Ok((state, left))
    }
}

/// The names that one request loads or replaces; they stop being pending when it is dropped.
#[derive(Debug)]
pub struct PendingLoad<'a> {
    all: &'a PendingLoads,
    /// The kind of the names that are added.
    kind: PendingKind,
    names: Vec<(String, PendingKind)>,
}

impl PendingLoad<'_> {
    /// Adds a name.
    pub fn add(&mut self, name: &str) {
        let one = (name.to_string(), self.kind);
        self.all.state().pending.push(one.clone());
        self.names.push(one);
    }

    /// Sets the number of an added name.
    pub fn set_number(&mut self, name: &str, number: u64) {
        let Some(own) = self.names.iter_mut().find(|own| own.0 == name) else {
            return;
        };
        let mut state = self.all.state();
        if let PendingKind::Together(_) = own.1
            && let Some(there) = state.pending.iter_mut().find(|n| *n == own)
        {
            own.1 = PendingKind::Together(Number::Is(number));
            there.1 = own.1;
        }
    }
}

impl Drop for PendingLoad<'_> {
    fn drop(&mut self) {
        let mut state = self.all.state();
        for one in &self.names {
            if let Some(at) = state.pending.iter().position(|n| n == one) {
                state.pending.swap_remove(at);
            }
        }
        self.all.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT_TIMEOUT: Duration = Duration::from_millis(1);
    const LONG_TIMEOUT: Duration = Duration::from_secs(60);

    fn says(all: &PendingLoads, name: &str, lives: bool) -> String {
        let waited = all.wait(name, SHORT_TIMEOUT, || lives);
        waited.map_or_else(|why| why.what, |_| "nothing".to_string())
    }

    #[test]
    fn a_pending_name_is_waited_for() {
        let all = PendingLoads::default();
        assert_eq!(all.wait("a", LONG_TIMEOUT, || false).unwrap(), LONG_TIMEOUT);
        let mut coming = all.start_load();
        coming.add("a");
        coming.add("b");
        assert!(all.try_load("b").is_none());
        assert_eq!(says(&all, "a", true), "a is being loaded");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| all.start_replace("b", LONG_TIMEOUT, || true).map(drop));
            drop(coming);
            waits.join().unwrap().unwrap();
        });
        let (replaced, _) = all.start_replace("a", SHORT_TIMEOUT, || true).unwrap();
        assert_eq!(says(&all, "a", true), "a is being replaced");
        drop(replaced);
        assert_eq!(says(&all, "a", true), "nothing");
    }

    #[test]
    fn a_name_to_restore_is_waited_for_until_it_is_loaded_or_forgotten() {
        let all = PendingLoads::default();
        all.set_due(["a", "b", "c"].map(str::to_string).into_iter());
        assert!(says(&all, "a", false).contains("a is not loaded yet: it is to be loaded again"));
        // Another application has its name.
        assert_eq!(says(&all, "a", true), "nothing");
        let loads = all.try_load("a").unwrap();
        assert_eq!(says(&all, "a", true), "a is being loaded");
        drop(loads);
        all.clear_due("b");
        drop(all.load_when_free("c"));
        for name in ["a", "b", "c"] {
            assert_eq!(says(&all, name, false), "nothing");
        }
    }

    #[test]
    fn no_application_of_a_manifest_is_visible_before_all_are() {
        let all = PendingLoads::default();
        let sees = |name: &str, number| all.with_visibility(|sees| sees(name, number));
        let mut coming = all.start_manifest(3);
        coming.add("a");
        coming.add("b");
        assert_eq!(says(&all, "a", true), "a is being loaded");
        // Earlier applications of that name, and others, are visible.
        assert!(!sees("a", 4) && !sees("b", 5) && sees("a", 3) && sees("c", 6));
        // So is a later one of its name.
        coming.set_number("b", 5);
        assert!(!sees("b", 5) && sees("b", 6));
        drop(coming);
        assert!(sees("a", 4) && sees("b", 5));
        // A single load hides nothing.
        let mut one = all.start_load();
        one.add("a");
        assert!(sees("a", 6));
    }

    /// Two loads of the same name: it is pending until both are done.
    #[test]
    fn a_removed_application_is_not_taken_for_another() {
        let all = PendingLoads::default();
        let (mut first, mut second) = (all.start_load(), all.start_load());
        first.add("a");
        second.add("a");
        drop(first);
        assert_eq!(says(&all, "a", true), "a is being loaded");
        drop(second);
        assert_eq!(says(&all, "a", true), "nothing");
    }
}
