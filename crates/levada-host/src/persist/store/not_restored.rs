// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Applications of the previous host that this one has not loaded, and why.

use crate::persist::partial_outputs;
use crate::persist::store::StateStore;
use crate::persist::store::files::output_of;
use std::io;

impl StateStore {
    /// The stored application of the previous host is this one's now; false: it was forgotten meanwhile.
    pub fn claim_restored(&self, name: &str, number: u64) -> bool {
        let _changing = self.lock_changes();
        let mut owners = self.owners();
        let was = owners.unrestored.remove(name).is_some();
        if was {
            owners.ours.insert(name.to_string(), number);
        }
        was
    }

    /// Undoes that.
    pub fn return_unrestored(&self, name: &str, number: u64) {
        let _changing = self.lock_changes();
        if self.is_ours(name, number) {
            let why = self.quarantine_reason(name);
            let mut owners = self.owners();
            owners.ours.remove(name);
            owners.unrestored.insert(name.to_string(), why);
        }
    }

    /// Records why one of them could not be loaded.
    pub fn set_unrestored_reason(&self, name: &str, why: &str) {
        if let Some(known) = self.owners().unrestored.get_mut(name) {
            *known = Some(why.to_string());
        }
    }

    /// The stored applications of the previous host that this one has not loaded.
    pub fn unrestored(&self) -> Vec<String> {
        self.owners().unrestored.keys().cloned().collect()
    }

    /// Those of them that are quarantined or cannot be loaded, and why.
    pub fn unrestored_reasons(&self) -> Vec<(String, String)> {
        let owners = self.owners();
        let out = owners.unrestored.iter();
        out.filter_map(|(name, why)| Some((name.clone(), why.clone()?)))
            .collect()
    }

    pub fn is_unrestored(&self, name: &str) -> bool {
        self.owners().unrestored.contains_key(name)
    }

    /// The reason, if one is known; none: it is none of these.
    pub fn unrestored_reason(&self, name: &str) -> Option<Option<String>> {
        self.owners().unrestored.get(name).cloned()
    }

    /// Forgets one of these; false if there is none of this name. A file that cannot be removed now is removed later.
    pub fn forget_unrestored(&self, name: &str) -> io::Result<bool> {
        let changing = self.lock_changes();
        let was = self.owners().unrestored.remove(name).is_some();
        if was {
            let folder = self.folder.path();
            let halves = folder.map_or(Vec::new(), |folder| output_of(folder, name));
            let removed = self.remove(name);
            // The folder of an output may answer slowly.
            drop(changing);
            partial_outputs::remove_all_soon(halves);
            removed?;
        }
        Ok(was)
    }
}
