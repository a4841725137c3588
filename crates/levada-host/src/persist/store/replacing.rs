// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replacement in progress: the end of the old version does not remove the application from the state folder.

use crate::persist::store::StateStore;
use crate::persist::store::files::replacing_file;
use crate::protocol::LoadRequest;

impl StateStore {
    /// A new version is going to replace this application: until the value is dropped the end of the old one is not
    /// its end.
    pub fn start_replacing(&self, name: &str, next: &LoadRequest) -> Replaces<'_> {
        let _changing = self.lock_changes();
        self.owners().replacing.insert(name.to_string(), None);
        // For a host that is killed meanwhile; if this fails, partial outputs stay.
        let both = Vec::from_iter(self.read(name).ok().into_iter().chain([next.clone()]));
        if let Ok(text) = serde_json::to_vec(&both) {
            let _ = self.write(&replacing_file(name), Some(&text));
        }
        Replaces {
            memory: self,
            name: name.to_string(),
        }
    }
}

/// A replacement in progress.
#[derive(Debug)]
pub struct Replaces<'a> {
    memory: &'a StateStore,
    name: String,
}

impl Drop for Replaces<'_> {
    fn drop(&mut self) {
        let _changing = self.memory.lock_changes();
        let mut owners = self.memory.owners();
        let over = owners.replacing.remove(&self.name).flatten();
        let over = over.filter(|_| !owners.closing);
        drop(owners);
        let _ = self.memory.write(&replacing_file(&self.name), None);
        if let Some(number) = over {
            self.memory.forget_one(&self.name, number);
        }
    }
}
