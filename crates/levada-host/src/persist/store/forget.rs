// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Forgetting applications.

use super::*;

impl Memory {
    /// Forgets these applications together; what cannot be forgotten now is later, and that is told.
    pub fn forget_all(&self, all: &[(&str, u64)]) -> io::Result<()> {
        let _changing = self.changing();
        // What has ended may be forgotten already, where that could not be written.
        let is_ours =
            |(name, number): &&(&str, u64)| self.is_ours(name, *number) || self.is_to_go(name);
        let ours = all.iter().filter(is_ours);
        let names: Vec<String> = ours.map(|(name, _)| name.to_string()).collect();
        let change = Change {
            keep: Vec::new(),
            forget: names.clone(),
        };
        // Where that cannot be written they are forgotten one by one.
        let made = self.folder.path().and_then(|folder| change.make(folder));
        if made.is_err() {
            let _ = self.put(CHANGE, None);
        }
        let mut done = Ok(());
        for name in names {
            self.whose().ours.remove(&name);
            done = self.remove(&name).and(done);
        }
        done
    }

    /// Forgets this application, and no later one of its name.
    pub fn forget(&self, name: &str, number: u64) -> io::Result<()> {
        self.forget_all(&[(name, number)])
    }

    /// This application has come to its end, of which nobody has heard yet: so nobody sees one that has ended, and is
    /// loaded by the next host all the same. What is stopped since the host ends is kept.
    pub fn over(&self, name: &str, number: u64) {
        let _changing = self.changing();
        self.is_over(name, number);
    }

    /// The same, where nobody changes something, which takes as long as the disk; false: somebody does.
    pub fn over_if_free(&self, name: &str, number: u64) -> bool {
        let changing = self.changes.try_lock();
        if matches!(changing, Err(TryLockError::WouldBlock)) {
            return false;
        }
        self.is_over(name, number);
        true
    }

    /// By who is changing something.
    pub(super) fn is_over(&self, name: &str, number: u64) {
        // A new version that has never taken over ends after the old one, when that has ended by itself.
        if !self.is_ours(name, number) {
            return;
        }
        let mut whose = self.whose();
        let closed = whose.closed;
        if let Some(over) = whose.replaced.get_mut(name) {
            *over = Some(number);
        } else if !closed {
            drop(whose);
            self.forget_one(name, number);
        }
    }

    /// By who is changing something.
    pub(super) fn forget_one(&self, name: &str, number: u64) {
        if self.is_ours(name, number) {
            self.whose().ours.remove(name);
            // It has been told, and is done later.
            let _ = self.remove(name);
        }
    }
}
