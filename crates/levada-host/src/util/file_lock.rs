// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A lock file of one host, also while the host before it is ending.

use crate::util::at_fork::LockedFile;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// A host that has been killed has its locks as long as the system takes its memory away.
const DYING: Duration = Duration::from_secs(3);

/// Takes the lock of the file that is opened by `open`; none: another host has it. That may die: as long as it does not
/// answer that is waited for.
pub(crate) fn lock_of_another(
    path: &Path,
    open: impl Fn() -> std::io::Result<File>,
    mut answers: impl FnMut() -> bool,
) -> std::io::Result<Option<LockedFile>> {
    let until = Instant::now() + DYING;
    loop {
        match LockedFile::open(path, &open)? {
            None if Instant::now() < until && !answers() => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return Ok(done),
        }
    }
}
