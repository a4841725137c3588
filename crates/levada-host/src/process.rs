// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is known of a process by its number alone.

/// Is there no such process? One of another user lives, too, and so does one that nobody has waited for.
pub fn has_ended(process: i32) -> bool {
    // SAFETY: signal 0 is none: it asks whether there is such a process.
    let there = unsafe { libc::kill(process, 0) } == 0;
    !there && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}
