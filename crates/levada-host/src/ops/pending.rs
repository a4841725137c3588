// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who is on the way: from the moment that the host knows an application's name until it has begun, or a new version
//! has taken its place. What is done to it by name meanwhile would meet something that has not begun, and take it for
//! one that is paused; so it waits. Of several that are loaded together nobody sees one before all have begun: some of them,
//! while the others are on the way or are taken back, would be what a manifest never is. What a restore is still to
//! load is known here as well, and waited for.

use crate::model::error::{Kind, Refusal};
use crate::util::lock::{lock, whole};
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub struct AllComing {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Who is loaded or replaced now, and which of these. A name may be there twice: a restore loads it as any load does,
    /// and before the first has begun somebody may have unloaded it, and loads another.
    now: Vec<(String, What)>,
    /// Whom a restore is to load.
    due: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Loaded,
    /// With others, all or none.
    Together(Number),
    Replaced,
}

/// Which of those that have its name it is: another may have ended before it, or have come since it was unloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// One after this, and nobody else comes by that name now.
    After(u64),
    Is(u64),
}

impl State {
    /// What keeps others from this one, in words; `lives`: there is one of its name.
    fn keeps(&self, name: &str, lives: impl Fn() -> bool) -> Option<Refusal> {
        let refusal = |why: &str, help: String| {
            let what = format!("{name} {why}");
            Some(Refusal::new(Kind::Timeout, what).help(help))
        };
        let again = "try again, or wait longer".to_string();
        match self.now.iter().find(|n| n.0 == name) {
            Some((_, What::Loaded | What::Together(_))) => refusal("is being loaded", again),
            Some((_, What::Replaced)) => refusal("is being replaced", again),
            // Somebody else has that name meanwhile.
            None if !self.due.contains(name) || lives() => None,
            None => refusal(
                "is not loaded yet: it is to be loaded again, as the last host had loaded it",
                format!("try again, or wait longer; levada resume {name} loads it at once"),
            ),
        }
    }

    /// Whether the application with this number is one of several that have not all begun.
    fn hides(&self, name: &str, number: u64) -> bool {
        let mut of_name = self.now.iter().filter(|n| n.0 == name);
        of_name.any(|(_, what)| match what {
            What::Together(Number::After(last)) => number > *last,
            What::Together(Number::Is(own)) => number == *own,
            What::Loaded | What::Replaced => false,
        })
    }
}

impl AllComing {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A restore is to load these.
    pub fn are_due(&self, names: impl Iterator<Item = String>) {
        self.state().due.extend(names);
    }

    /// Whether a restore is still to load it.
    pub fn is_due(&self, name: &str) -> bool {
        self.state().due.contains(name)
    }

    /// A restore does not load it any more.
    pub fn is_not_due(&self, name: &str) {
        self.state().due.remove(name);
        self.changed.notify_all();
    }

    /// Nobody comes yet; who is [added](Coming::add) does until this is dropped.
    pub fn nobody(&self) -> Coming<'_> {
        self.nobody_as(What::Loaded)
    }

    /// The same; and nobody [sees](AllComing::seen) one of those that are added, whose numbers come after `last`, until then.
    pub fn nobody_together(&self, last: u64) -> Coming<'_> {
        self.nobody_as(What::Together(Number::After(last)))
    }

    fn nobody_as(&self, as_what: What) -> Coming<'_> {
        Coming {
            all: self,
            as_what,
            names: Vec::new(),
        }
    }

    /// Looks at what there is, by names and numbers, of which nobody begins to be on the way meanwhile, nor has come;
    /// `look` is told which of these may be seen.
    pub fn seen<T>(&self, look: impl FnOnce(&dyn Fn(&str, u64) -> bool) -> T) -> T {
        let state = self.state();
        look(&|name, number| !state.hides(name, number))
    }

    /// Loads one that nobody else does anything to now.
    pub fn loads(&self, name: &str) -> Option<Coming<'_>> {
        let mut state = self.state();
        let taken = state.now.iter().any(|n| n.0 == name);
        (!taken).then(|| self.enter(&mut state, name, What::Loaded))
    }

    /// The same, as soon as nobody does.
    pub fn loads_then(&self, name: &str) -> Coming<'_> {
        let taken = |state: &mut State| state.now.iter().any(|n| n.0 == name);
        let state = self.changed.wait_while(self.state(), taken);
        let mut state = whole(state);
        self.enter(&mut state, name, What::Loaded)
    }

    fn enter(&self, state: &mut State, name: &str, what: What) -> Coming<'_> {
        state.due.remove(name);
        state.now.push((name.to_string(), what));
        Coming {
            all: self,
            as_what: what,
            names: vec![(name.to_string(), what)],
        }
    }

    /// Waits until it is not on the way; what is left of that time then.
    pub fn wait(
        &self,
        name: &str,
        within: Duration,
        lives: impl Fn() -> bool,
    ) -> Result<Duration, Refusal> {
        self.free(name, within, lives).map(|(_, left)| left)
    }

    /// The same; and then it is replaced, for as long as this is there.
    pub fn replaces(
        &self,
        name: &str,
        within: Duration,
        lives: impl Fn() -> bool,
    ) -> Result<(Coming<'_>, Duration), Refusal> {
        let (mut state, left) = self.free(name, within, lives)?;
        Ok((self.enter(&mut state, name, What::Replaced), left))
    }

    fn free(
        &self,
        name: &str,
        within: Duration,
        lives: impl Fn() -> bool,
    ) -> Result<(MutexGuard<'_, State>, Duration), Refusal> {
        let begun = Instant::now();
        let (mut state, mut left) = (self.state(), within);
        while let Some(why) = state.keeps(name, &lives) {
            left = within.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(why);
            }
            let waited = self.changed.wait_timeout(state, left);
            state = whole(waited).0;
        }
        Ok((state, left))
    }
}

/// Those that one request loads or replaces, which are not on the way any more when this is dropped.
#[derive(Debug)]
pub struct Coming<'a> {
    all: &'a AllComing,
    /// What is added is this.
    as_what: What,
    names: Vec<(String, What)>,
}

impl Coming<'_> {
    /// This one is loaded, too.
    pub fn add(&mut self, name: &str) {
        let one = (name.to_string(), self.as_what);
        self.all.state().now.push(one.clone());
        self.names.push(one);
    }

    /// The one of this name that was added has this number.
    pub fn has_number(&mut self, name: &str, number: u64) {
        let Some(own) = self.names.iter_mut().find(|own| own.0 == name) else {
            return;
        };
        let mut state = self.all.state();
        if let What::Together(_) = own.1
            && let Some(there) = state.now.iter_mut().find(|n| *n == own)
        {
            own.1 = What::Together(Number::Is(number));
            there.1 = own.1;
        }
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        let mut state = self.all.state();
        for one in &self.names {
            if let Some(at) = state.now.iter().position(|n| n == one) {
                state.now.swap_remove(at);
            }
        }
        self.all.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(60);

    fn says(all: &AllComing, name: &str, lives: bool) -> String {
        let waited = all.wait(name, SOON, || lives);
        waited.map_or_else(|why| why.what, |_| "nothing".to_string())
    }

    #[test]
    fn who_is_on_the_way_is_waited_for() {
        let all = AllComing::default();
        assert_eq!(all.wait("a", LONG, || false).unwrap(), LONG);
        let mut coming = all.nobody();
        coming.add("a");
        coming.add("b");
        assert!(all.loads("b").is_none());
        assert_eq!(says(&all, "a", true), "a is being loaded");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| all.replaces("b", LONG, || true).map(drop));
            drop(coming);
            waits.join().unwrap().unwrap();
        });
        let (replaced, _) = all.replaces("a", SOON, || true).unwrap();
        assert_eq!(says(&all, "a", true), "a is being replaced");
        drop(replaced);
        assert_eq!(says(&all, "a", true), "nothing");
    }

    #[test]
    fn who_is_due_is_waited_for_until_it_is_there_or_forgotten() {
        let all = AllComing::default();
        all.are_due(["a", "b", "c"].map(str::to_string).into_iter());
        assert!(says(&all, "a", false).contains("a is not loaded yet: it is to be loaded again"));
        // Another one has its name.
        assert_eq!(says(&all, "a", true), "nothing");
        let loads = all.loads("a").unwrap();
        assert_eq!(says(&all, "a", true), "a is being loaded");
        drop(loads);
        all.is_not_due("b");
        drop(all.loads_then("c"));
        for name in ["a", "b", "c"] {
            assert_eq!(says(&all, name, false), "nothing");
        }
    }

    #[test]
    fn of_several_nobody_sees_one_before_all_are_there() {
        let all = AllComing::default();
        let sees = |name: &str, number| all.seen(|sees| sees(name, number));
        let mut coming = all.nobody_together(3);
        coming.add("a");
        coming.add("b");
        assert_eq!(says(&all, "a", true), "a is being loaded");
        // What was there before of that name, or has another, is seen.
        assert!(!sees("a", 4) && !sees("b", 5) && sees("a", 3) && sees("c", 6));
        // Nor is another that has its name since.
        coming.has_number("b", 5);
        assert!(!sees("b", 5) && sees("b", 6));
        drop(coming);
        assert!(sees("a", 4) && sees("b", 5));
        // One alone is as it is.
        let mut one = all.nobody();
        one.add("a");
        assert!(sees("a", 6));
    }

    /// Two load one of the same name: as long as one of them does, it is on the way.
    #[test]
    fn who_leaves_is_not_taken_for_another() {
        let all = AllComing::default();
        let (mut first, mut second) = (all.nobody(), all.nobody());
        first.add("a");
        second.add("a");
        drop(first);
        assert_eq!(says(&all, "a", true), "a is being loaded");
        drop(second);
        assert_eq!(says(&all, "a", true), "nothing");
    }
}
