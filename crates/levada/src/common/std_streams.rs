// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Standard streams that were closed when the process began. Their descriptors are occupied at once, so that no
//! other file gets one of these numbers. The descriptors that occupy them fail on use, so that reading or writing
//! reports an error: the Rust library would open /dev/null there, and treats EBADF as an empty stream. (Same method
//! as gnulib's stdopen.)

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

/// One bit for each standard stream.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Runs before the initialisation of the standard library, and so before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static FIRST: extern "C" fn() = {
    extern "C" fn take() {
        for stream in 0..=2 {
            // SAFETY: system calls only; no other code runs yet, and this is the lowest free descriptor.
            unsafe {
                if libc::fcntl(stream, libc::F_GETFD) >= 0 {
                    continue;
                }
                CLOSED.fetch_or(1 << stream, Ordering::Relaxed);
                if stream == libc::STDOUT_FILENO
                    && libc::open(c"/dev/full".as_ptr(), libc::O_WRONLY) == stream
                {
                    continue;
                }
                let how = match stream {
                    libc::STDIN_FILENO => libc::O_WRONLY,
                    libc::STDOUT_FILENO => libc::O_RDONLY,
                    _ => libc::O_RDWR, // errors of standard error are not reported
                };
                libc::open(c"/dev/null".as_ptr(), how);
            }
        }
    }
    take
};

fn was_closed(stream: i32) -> bool {
    CLOSED.load(Ordering::Relaxed) & 1 << stream != 0
}

/// Converts an error in writing to standard output to the error that is reported.
pub fn not_written(why: io::Error) -> io::Error {
    if was_closed(libc::STDOUT_FILENO) {
        io::Error::other("it is closed")
    } else {
        why
    }
}

/// The standard input; an error if it was closed.
pub fn input() -> io::Result<io::Stdin> {
    if was_closed(libc::STDIN_FILENO) {
        Err(io::Error::other("it is closed"))
    } else {
        Ok(io::stdin())
    }
}
