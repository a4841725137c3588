// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much memory the process of an isolated application may claim.

use super::Isolated;
use super::process::data_of;

/// What a host takes itself of one application after it is loaded, in bytes, as `VmData` and the mappings of such a process
/// tell: 32 MiB for the stacks of the first fibers, 8 MiB each, and 2 MiB and some 150 KiB, stack and heap, for each of a
/// dozen threads that answer and map.
const ITSELF: u64 = 64 << 20;
/// And for each worker: the stack and the heap of its relief.
const EACH_WORKER: u64 = 9 << 20;

impl Isolated {
    /// From now on its application may claim so much more.
    pub(super) fn limit_memory(&self, more: u64) {
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
        let known = self.known();
        if known.child.is_some() {
            let (process, data) = (self.process as i32, libc::RLIMIT_DATA);
            // SAFETY: it is waited for by its guard, which ends then.
            unsafe { libc::prlimit(process, data, &limit, std::ptr::null_mut()) };
        }
    }
}
