// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory limit of an isolated application's process, and whether the process had reached it when it ended.

use crate::isolated::Isolated;
use crate::isolated::process::data_bytes;
use crate::persist::crash_record;
use std::path::Path;

/// Memory that the child's host itself needs after the load, in bytes, by `VmData` and the mappings of such a process:
/// 32 MiB for the stacks of the first fibers, 8 MiB each, and about 2.15 MiB of stack and heap for each of a dozen
/// threads that answer and map.
const HOST_BYTES: u64 = 64 << 20;
/// And for each worker: stack and heap of its backup worker.
const WORKER_BYTES: u64 = 9 << 20;

/// Note in the outcome.
const FULL: &str = "; it had all but reached its limit of memory (--memory)";

impl Isolated {
    /// From now on the process may allocate `more` bytes for the application.
    pub(crate) fn limit_memory(&self, more: u64) {
        let Some(has) = data_bytes(self.process) else {
            return;
        };
        let workers = self
            .exclusion
            .host()
            .map_or(1, |h| h.machine.workers() as u64);
        let takes = HOST_BYTES + WORKER_BYTES * workers;
        let most = has.saturating_add(takes).saturating_add(more);
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        let mut known = self.record();
        if known.child.is_some() {
            let (process, data) = (self.process as i32, libc::RLIMIT_DATA);
            // SAFETY: the guard, which waits for the process, still exists.
            let done = unsafe { libc::prlimit(process, data, &limit, std::ptr::null_mut()) };
            known.memory_limit_bytes = (done == 0).then_some(most);
        }
    }

    /// The outcome, with a note if the process, which still exists, has reached its limit.
    pub(crate) fn with_memory_note(&self, how: String) -> String {
        let most = self.record().memory_limit_bytes;
        let full = most.is_some_and(|most| {
            let has = data_bytes(self.process);
            has.is_some_and(|has| crash_record::is_full(has, most))
        });
        if full { how + FULL } else { how }
    }
}

/// The outcome, with a note if the crash record says that the process had reached its limit.
pub(crate) fn with_crash_record(how: String, file: &Path) -> String {
    let said = std::fs::read_to_string(file).unwrap_or_default();
    if said.lines().any(|line| line == crash_record::FULL) {
        how + FULL
    } else {
        how
    }
}
