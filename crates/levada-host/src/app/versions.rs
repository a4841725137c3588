// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Of an application: the versions before it, of which it has something, and the one that is to take its place.

use crate::app::token_bucket::Left;
use crate::util::lock::lock;
use levada_sys::Network;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

#[derive(Default)]
pub(crate) struct Lineage {
    /// The code of those before it, which knows how to end what they have left and nobody wants.
    pub before: Mutex<Vec<Arc<Network>>>,
    /// What the one before it had counted when it took over, if it counts: it counts on from there.
    pub inherited: Mutex<Option<(String, u64)>>,
    /// What the one before it had left of its rate and of its share.
    pub left: Mutex<[Option<Left>; 2]>,
    /// What actors of it do not have of the version before it, in words.
    pub anew: OnceLock<Vec<String>>,
    /// Others have heard of it: of a new version not before the one before it has ended, or is about to for good.
    pub heard_of: AtomicBool,
    /// A new version waits for its moment: it runs now and then, even if it is paused.
    pub sought: AtomicBool,
    /// Its next version has the core now that it had to itself.
    pub core_passed: AtomicBool,
}

impl Lineage {
    /// What the old one leaves may be ended by its own code, and that of those before it, if those have left something still.
    pub fn keep_code(&self, old: &Lineage, code: Arc<Network>, left: bool) {
        let mut before = match left {
            true => lock(&old.before).clone(),
            false => Vec::new(),
        };
        before.push(code);
        *lock(&self.before) = before;
    }

    /// What is counted beyond what was inherited. If that is less, what counts has not come along, and began anew.
    pub fn beyond(&self, counted: u64) -> u64 {
        let mut inherited = lock(&self.inherited);
        if inherited.as_ref().is_some_and(|(_, from)| counted < *from) {
            *inherited = None;
        }
        counted - inherited.as_ref().map_or(0, |(_, from)| *from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_done_what_it_counts_beyond_what_it_has_inherited() {
        let of = Lineage::default();
        *lock(&of.inherited) = Some(("frames".to_string(), 6000));
        assert_eq!(of.beyond(6000), 0);
        assert_eq!(of.beyond(6010), 10);
        // It counts from its own beginning: so it does later on.
        assert_eq!(of.beyond(3), 3);
        assert_eq!(of.beyond(7000), 7000);
    }
}
