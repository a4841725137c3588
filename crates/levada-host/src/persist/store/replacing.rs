// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An application that is being replaced.

use super::*;

impl Memory {
    /// A new version is to take the place of this application: as long as this is there the end of the old one is not the
    /// end of it.
    pub fn replaces(&self, name: &str, next: &LoadRequest) -> Replaces<'_> {
        let _changing = self.changing();
        self.whose().replaced.insert(name.to_string(), None);
        // For a host that is killed meanwhile; without it what is half written stays.
        let both = Vec::from_iter(self.read(name).ok().into_iter().chain([next.clone()]));
        if let Ok(text) = serde_json::to_vec(&both) {
            let _ = self.write(&replacing(name), Some(&text));
        }
        Replaces {
            memory: self,
            name: name.to_string(),
        }
    }
}

/// While it is there, an application of this name is being replaced.
#[derive(Debug)]
pub struct Replaces<'a> {
    memory: &'a Memory,
    name: String,
}

impl Drop for Replaces<'_> {
    fn drop(&mut self) {
        let _changing = self.memory.changing();
        let mut whose = self.memory.whose();
        let over = whose.replaced.remove(&self.name).flatten();
        let over = over.filter(|_| !whose.closed);
        drop(whose);
        let _ = self.memory.write(&replacing(&self.name), None);
        if let Some(number) = over {
            self.memory.forget_one(&self.name, number);
        }
    }
}
