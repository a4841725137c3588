// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The limit of open files: the host raises its own, and restores the inherited one for processes that it starts.

use std::sync::OnceLock;

static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// Raises the soft limit of this process to its hard limit.
pub fn raise_to_max() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a variable of this frame, and a limit of this process.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 || BEFORE.set(limit).is_err() {
            return;
        }
        limit.rlim_cur = limit.rlim_max;
        // If it is refused, the present limit stays.
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// Restores the inherited limit of this process, which is about to execute another program; may be called between fork
/// and exec.
pub fn restore_inherited() {
    if let Some(limit) = BEFORE.get() {
        // SAFETY: a limit of this process.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) };
    }
}

/// Sets the inherited limit for a child that has just been started.
pub fn inherited(process: u32) {
    if let Some(limit) = BEFORE.get() {
        // SAFETY: the process has not been reaped.
        unsafe {
            libc::prlimit(
                process as libc::pid_t,
                libc::RLIMIT_NOFILE,
                limit,
                std::ptr::null_mut(),
            )
        };
    }
}
