// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Takes a lock file, also while the process that held it before is ending.

use crate::util::at_fork::LockedFile;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// A host that has been killed keeps its locks while the kernel frees its memory.
const DYING_TIMEOUT: Duration = Duration::from_secs(3);

/// Locks the file that `open` opens; none: another host holds the lock. While that host does not answer, it may be
/// dying, and is waited for.
pub(crate) fn lock_when_released(
    path: &Path,
    open: impl Fn() -> std::io::Result<File>,
    mut answers: impl FnMut() -> bool,
) -> std::io::Result<Option<LockedFile>> {
    let until = Instant::now() + DYING_TIMEOUT;
    loop {
        match LockedFile::open(path, &open)? {
            None if Instant::now() < until && !answers() => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return Ok(done),
        }
    }
}
