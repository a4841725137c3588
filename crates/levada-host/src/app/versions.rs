// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Relations of an application to its previous versions and to its next one.

use crate::app::token_bucket::Credit;
use crate::util::lock::lock;
use levada_sys::Network;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

#[derive(Default)]
pub(crate) struct Versions {
    /// The code of previous versions, which finalizes persistent data that no later version has claimed.
    pub previous_code: Mutex<Vec<Arc<Network>>>,
    /// The count of the previous version at the transfer; this version continues from there.
    pub inherited_count: Mutex<Option<(String, u64)>>,
    /// The remaining credits of the previous version's rate and quota.
    pub inherited_credits: Mutex<[Option<Credit>; 2]>,
    /// State that actors could not take over from the previous version, as text.
    pub state_reset: OnceLock<Vec<String>>,
    /// Its load has been announced by an event. A new version is announced when the previous one has ended, or will
    /// certainly end.
    pub announced: AtomicBool,
    /// A transfer to a new version is being tried: the application runs now and then, even if it is paused.
    pub upgrade_pending: AtomicBool,
    /// Its reserved core has been passed to its next version.
    pub core_passed: AtomicBool,
}

impl Versions {
    /// Keeps the code of the old version, and of earlier ones if they have left unclaimed persistent data (`left`).
    pub fn keep_code(&self, old: &Versions, code: Arc<Network>, left: bool) {
        let mut before = if left {
            lock(&old.previous_code).clone()
        } else {
            Vec::new()
        };
        before.push(code);
        *lock(&self.previous_code) = before;
    }

    /// The count without the inherited part. If it is less than that, the counter was not transferred and has
    /// restarted.
    pub fn own_count(&self, counted: u64) -> u64 {
        let mut inherited = lock(&self.inherited_count);
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
        let of = Versions::default();
        *lock(&of.inherited_count) = Some(("frames".to_string(), 6000));
        assert_eq!(of.own_count(6000), 0);
        assert_eq!(of.own_count(6010), 10);
        // It counts from zero, and continues so.
        assert_eq!(of.own_count(3), 3);
        assert_eq!(of.own_count(7000), 7000);
    }
}
