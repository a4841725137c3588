// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much memory the process of an isolated application may claim, and whether it had all of that when it ended.

use crate::isolated::Isolated;
use crate::isolated::process::data_of;
use crate::persist::crash_record;
use std::path::Path;

/// What a host takes itself of one application after it is loaded, in bytes, as `VmData` and the mappings of such a process
/// tell: 32 MiB for the stacks of the first fibers, 8 MiB each, and 2 MiB and some 150 KiB, stack and heap, for each of a
/// dozen threads that answer and map.
const ITSELF: u64 = 64 << 20;
/// And for each worker: the stack and the heap of its relief.
const EACH_WORKER: u64 = 9 << 20;

/// What is said of an end then.
const FULL: &str = "; it had all but reached its limit of memory (--memory)";

impl Isolated {
    /// From now on its application may claim so much more.
    pub(crate) fn limit_memory(&self, more: u64) {
        let Some(has) = data_of(self.process) else {
            return;
        };
        let workers = self
            .leaving
            .host()
            .map_or(1, |h| h.machine.workers() as u64);
        let takes = ITSELF + EACH_WORKER * workers;
        let most = has.saturating_add(takes).saturating_add(more);
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        let mut known = self.known();
        if known.child.is_some() {
            let (process, data) = (self.process as i32, libc::RLIMIT_DATA);
            // SAFETY: it is waited for by its guard, which ends then.
            let done = unsafe { libc::prlimit(process, data, &limit, std::ptr::null_mut()) };
            known.most = (done == 0).then_some(most);
        }
    }

    /// How it has failed; and if its process, which is there still, has all that it may claim, that.
    pub(crate) fn with_memory(&self, how: String) -> String {
        let most = self.known().most;
        let full = most.is_some_and(|most| {
            let has = data_of(self.process);
            has.is_some_and(|has| crash_record::is_full(has, most))
        });
        if full { how + FULL } else { how }
    }
}

/// How it has failed; and if its process has said so when it ended, that it had all that it might claim.
pub(crate) fn with_last_words(how: String, file: &Path) -> String {
    let said = std::fs::read_to_string(file).unwrap_or_default();
    match said.lines().any(|line| line == crash_record::FULL) {
        true => how + FULL,
        false => how,
    }
}
