// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the host before this one had loaded, and this one has not.

use super::*;

impl Memory {
    /// What the host before this one has kept is this application's now; false: somebody has had it forgotten.
    pub fn take_over(&self, name: &str, number: u64) -> bool {
        let _changing = self.changing();
        let mut whose = self.whose();
        let was = whose.left.remove(name).is_some();
        if was {
            whose.ours.insert(name.to_string(), number);
        }
        was
    }

    /// And is not, after all.
    pub fn give_back(&self, name: &str, number: u64) {
        let _changing = self.changing();
        if self.is_ours(name, number) {
            let why = self.held(name);
            let mut whose = self.whose();
            whose.ours.remove(name);
            whose.left.insert(name.to_string(), why);
        }
    }

    /// Why one that is left could not be loaded again.
    pub fn not_loaded(&self, name: &str, why: &str) {
        if let Some(known) = self.whose().left.get_mut(name) {
            *known = Some(why.to_string());
        }
    }

    /// What is kept of the host before this one, and was not loaded since.
    pub fn left(&self) -> Vec<String> {
        self.whose().left.keys().cloned().collect()
    }

    /// Those of them that cannot be loaded again or are held back, and why.
    pub fn left_out(&self) -> Vec<(String, String)> {
        let whose = self.whose();
        let out = whose.left.iter();
        out.filter_map(|(name, why)| Some((name.clone(), why.clone()?)))
            .collect()
    }

    pub fn is_left(&self, name: &str) -> bool {
        self.whose().left.contains_key(name)
    }

    /// Why it is not loaded, if that is known; none: it is none of these.
    pub fn why_left(&self, name: &str) -> Option<Option<String>> {
        self.whose().left.get(name).cloned()
    }

    /// Forgets one of these; false if there is none of this name. Where that cannot be written now, it is later.
    pub fn forget_left(&self, name: &str) -> io::Result<bool> {
        let changing = self.changing();
        let was = self.whose().left.remove(name).is_some();
        if was {
            let folder = self.folder.path();
            let halves = folder.map_or(Vec::new(), |folder| output_of(folder, name));
            let removed = self.remove(name);
            // The folder of an output may be one that answers slowly.
            drop(changing);
            partial_outputs::remove_all_soon(halves);
            removed?;
        }
        Ok(was)
    }
}
