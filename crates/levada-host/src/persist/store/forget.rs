// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Removes applications from the state folder: on request, or when they have ended.

use crate::persist::store::StateStore;
use crate::persist::store::files::{BatchChange, CHANGE};
use std::io;
use std::sync::TryLockError;

impl StateStore {
    /// Forgets these applications together. What cannot be removed now is removed later, and the error is returned.
    pub fn forget_all(&self, all: &[(&str, u64)]) -> io::Result<()> {
        let _changing = self.lock_changes();
        // An ended one may have been forgotten already, although its file could not be removed.
        let is_ours =
            |(name, number): &&(&str, u64)| self.is_ours(name, *number) || self.is_to_go(name);
        let ours = all.iter().filter(is_ours);
        let names: Vec<String> = ours.map(|(name, _)| name.to_string()).collect();
        let change = BatchChange {
            keep: Vec::new(),
            forget: names.clone(),
        };
        // If the change cannot be written, they are forgotten one by one.
        let made = self.folder.path().and_then(|folder| change.make(folder));
        if made.is_err() {
            let _ = self.put(CHANGE, None);
        }
        let mut done = Ok(());
        for name in names {
            self.owners().ours.remove(&name);
            done = self.remove(&name).and(done);
        }
        done
    }

    /// Forgets this application, but no later one of its name.
    pub fn forget(&self, name: &str, number: u64) -> io::Result<()> {
        self.forget_all(&[(name, number)])
    }

    /// Forgets an application that has ended, before its end becomes visible: so none is seen to have ended and is
    /// restored all the same. One that is stopped because the host ends is kept.
    pub fn forget_ended(&self, name: &str, number: u64) {
        let _changing = self.lock_changes();
        self.record_ended(name, number);
    }

    /// The same without waiting for a change in progress, which takes as long as the disk; false: a change is in
    /// progress.
    pub fn try_forget_ended(&self, name: &str, number: u64) -> bool {
        let changing = self.change_lock.try_lock();
        if matches!(changing, Err(TryLockError::WouldBlock)) {
            return false;
        }
        self.record_ended(name, number);
        true
    }

    /// The caller holds the change lock.
    pub(super) fn record_ended(&self, name: &str, number: u64) {
        // A new version that has never taken over ends after the old one, if that has ended by itself.
        if !self.is_ours(name, number) {
            return;
        }
        let mut owners = self.owners();
        let closed = owners.closing;
        if let Some(over) = owners.replacing.get_mut(name) {
            *over = Some(number);
        } else if !closed {
            drop(owners);
            self.forget_one(name, number);
        }
    }

    /// The caller holds the change lock.
    pub(super) fn forget_one(&self, name: &str, number: u64) {
        if self.is_ours(name, number) {
            self.owners().ours.remove(name);
            // The failure has been reported, and is repeated later.
            let _ = self.remove(name);
        }
    }
}
