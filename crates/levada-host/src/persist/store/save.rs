// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Saves applications in the state folder: the request by which each was loaded, and its flags: paused, unloading,
//! quarantined.

use crate::persist::journal::quarantine_file;
use crate::persist::store::StateStore;
use crate::persist::store::files::{
    BatchChange, CHANGE, MAX_BYTES, PreviousContent, named, request_file, unloading_file,
};
use crate::persist::store::write::Unsaved;
use crate::protocol::LoadRequest;
use levada_files::read_private;
use std::io::{self, ErrorKind};

impl StateStore {
    /// Stores the request by which an application was loaded. `number` is that of the running instance.
    #[cfg(test)]
    pub(super) fn keep(&self, name: &str, number: u64, request: &LoadRequest) -> io::Result<()> {
        self.save_all(&[(name, number, request)])
    }

    /// Stores the request of a new version, which runs in place of the old one. A failed write is repeated later.
    pub fn save_version(&self, name: &str, number: u64, request: &LoadRequest) -> io::Result<()> {
        let _changing = self.lock_changes();
        let _ = self.put(&unloading_file(name), None);
        self.put_version(name, number, request)
    }

    /// Replaces the stored request, and ends a quarantine. The caller holds the change lock.
    pub(super) fn put_version(
        &self,
        name: &str,
        number: u64,
        request: &LoadRequest,
    ) -> io::Result<()> {
        {
            let mut owners = self.owners();
            owners.ours.insert(name.to_string(), number);
            owners.unrestored.remove(name);
        }
        self.put_request(&named(name, request))?;
        self.put(&quarantine_file(name), None)
    }

    /// Stores the requests of applications that were loaded together: the next host has all of them, or none.
    pub fn save_all(&self, all: &[(&str, u64, &LoadRequest)]) -> io::Result<()> {
        let _changing = self.lock_changes();
        // Marks of an earlier application of the name do not apply to this one.
        for (name, ..) in all {
            let _ = self.put(&unloading_file(name), None);
        }
        self.write_all(all)
    }

    /// Stores the request of a new version that continues under the number of the old one, unless the application was
    /// removed from the state folder or another one has its name. `is_paused` is called under the change lock.
    pub fn save_next(
        &self,
        name: &str,
        number: u64,
        request: &LoadRequest,
        is_paused: impl FnOnce() -> bool,
    ) -> io::Result<()> {
        let _changing = self.lock_changes();
        if !self.is_ours(name, number) {
            return Ok(());
        }
        let request = LoadRequest {
            paused: is_paused(),
            ..request.clone()
        };
        self.put_version(name, number, &request)
    }

    /// Writes the requests of all applications as one atomic change. The caller holds the change lock.
    pub(super) fn write_all(&self, all: &[(&str, u64, &LoadRequest)]) -> io::Result<()> {
        let named = all.iter().map(|(name, _, request)| named(name, request));
        let change = BatchChange {
            keep: named.collect(),
            forget: Vec::new(),
        };
        let folder = self.folder.path()?;
        let before = change.before(folder);
        if let Err(e) = change.make(folder) {
            self.take_back(before);
            return Err(e);
        }
        for (name, ..) in all {
            self.unsaved().remove(&request_file(name));
            let _ = self.put(&quarantine_file(name), None);
        }
        let mut owners = self.owners();
        for (name, number, _) in all {
            owners.ours.insert(name.to_string(), *number);
            owners.unrestored.remove(*name);
        }
        Ok(())
    }

    /// Undoes a change that could not be made: files of an earlier host are restored. The caller holds the change
    /// lock.
    pub(super) fn take_back(&self, before: Vec<PreviousContent>) {
        for (file, was) in before {
            let there = self.folder.path();
            let there = there.and_then(|folder| read_private(&folder.join(&file), MAX_BYTES));
            if there.ok() != was {
                let _ = self.put(&file, was.as_deref());
            }
        }
        let _ = self.put(CHANGE, None);
    }

    /// Stores whether the application is paused, for the next host; none: unchanged. `is_paused` is called under the
    /// change lock, so that of several concurrent pauses and resumes the last one sees the final state.
    pub fn set_paused(
        &self,
        name: &str,
        is_paused: impl FnOnce() -> Option<bool>,
    ) -> io::Result<()> {
        let _changing = self.lock_changes();
        let Some(paused) = is_paused() else {
            return Ok(());
        };
        // One that has just ended is not stored any more.
        if !self.owners().ours.contains_key(name) {
            return Ok(());
        }
        let file = request_file(name);
        match self.request_in(&file) {
            Ok(request) => {
                if request.paused == paused && !self.unsaved().contains_key(&file) {
                    return Ok(());
                }
                let request = LoadRequest { paused, ..request };
                self.put_request(&named(name, &request))
            }
            // The rest of the file is unknown until it can be read.
            Err(e) => {
                let named = io::Error::new(e.kind(), format!("{file}: {e}"));
                Err(self.not_saved(&file, Unsaved::Paused(paused), named))
            }
        }
    }

    /// Marks that the application is being unloaded: no later host loads it, even if this host crashes before the
    /// unload is complete. The unload continues even if the mark cannot be written.
    pub fn mark_unloading(&self, name: &str, number: u64) -> io::Result<()> {
        let _changing = self.lock_changes();
        if self.is_ours(name, number) {
            self.put(&unloading_file(name), Some(b""))
        } else {
            Ok(())
        }
    }

    /// Removes the mark of [`StateStore::mark_unloading`].
    pub fn clear_unloading(&self, name: &str, number: u64) {
        let _changing = self.lock_changes();
        if self.is_ours(name, number) {
            let _ = self.put(&unloading_file(name), None);
        }
    }

    /// Why it is quarantined, if it is.
    pub fn quarantine_reason(&self, name: &str) -> Option<String> {
        match self.get(&quarantine_file(name)) {
            Ok(why) => Some(String::from_utf8_lossy(&why).into_owned()),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => Some(format!("the reason cannot be read: {e}")),
        }
    }

    /// Releases an application from quarantine. For an application of this host that happens when it has settled
    /// (`journal.rs`).
    pub fn release_quarantine(&self, name: &str) -> io::Result<()> {
        let _changing = self.lock_changes();
        self.put(&quarantine_file(name), None)
    }

    /// The request by which the application was loaded; an error says why the file cannot be read.
    pub fn read(&self, name: &str) -> Result<LoadRequest, String> {
        let request = self.request_in(&request_file(name));
        request
            .map(|request| named(name, &request))
            .map_err(|e| e.to_string())
    }
}
