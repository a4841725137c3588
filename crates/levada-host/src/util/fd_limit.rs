// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many files may be open. Each application has some of its own, so a host takes as many as it may have
//! (the hard limit). What it starts has as many as the host was started with: there are programs that close
//! all that could be open, or that wait with `select`, which knows of 1024.

use std::sync::OnceLock;

static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// From now on this process may open as many as the system lets it.
pub fn allow_all() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: it is this frame's, and of this process.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 || BEFORE.set(limit).is_err() {
            return;
        }
        limit.rlim_cur = limit.rlim_max;
        // Where it is refused all goes on with what there is.
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// The same for this process, which is about to be another program; may be called between fork and exec.
pub fn have_as_before() {
    if let Some(limit) = BEFORE.get() {
        // SAFETY: of this process.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) };
    }
}

/// A child that has just been started may open as many as we might.
pub fn as_before(process: u32) {
    if let Some(limit) = BEFORE.get() {
        // SAFETY: the process has not been waited for.
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
