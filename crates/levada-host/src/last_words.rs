// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a process leaves in a file when the code of an application ends it: by `abort`, by a fault that
//! nothing contains, or by `exit`. The kernel alone knows of `kill -9` and `_exit`: of these nothing is left.

use libc::{c_int, c_void, siginfo_t};
use std::ffi::{CStr, c_char};
use std::fs::File;
use std::os::fd::IntoRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the file is told: `died SIGNAL NAME`. By `exit` the signal is 0; where no application's code ran on the
/// thread, as on one that a native has started, the name is `?`.
pub const WORD: &str = "died";

/// And by another line, that the process had all but all of the memory that it may claim (`RLIMIT_DATA`).
pub const FULL: &str = "full";

/// Who has no more left than this may be refused what the smaller parts of it are asked for, such as a thread's stack.
const ALL_BUT: u64 = 4 << 20;

/// Of what may be claimed, is that all but all?
pub fn is_full(has: u64, most: u64) -> bool {
    has.saturating_add(ALL_BUT) >= most
}

const SIGNALS: [c_int; 6] = [
    libc::SIGABRT,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
];

struct Will {
    file: c_int,
    process: libc::pid_t,
    /// What was to happen before, of each of the signals.
    before: [libc::sigaction; SIGNALS.len()],
    /// It has been said, or there is nothing to say any more.
    said: AtomicBool,
}

// Signal handlers find it there.
static WILL: OnceLock<Will> = OnceLock::new();

/// From now on such an end is written to `file`, which was opened to append. To be called before there is a
/// runtime: it contains the faults that it can, and hands on the others.
pub fn leave_to(file: File) {
    // SAFETY: all zeros is an action; those of the process are changed before there are other threads, and the
    // handlers live as long as it.
    unsafe {
        let mut before: [libc::sigaction; SIGNALS.len()] = std::mem::zeroed();
        for (signal, old) in SIGNALS.iter().zip(&mut before) {
            libc::sigaction(*signal, std::ptr::null(), old);
        }
        let will = Will {
            file: file.into_raw_fd(),
            process: libc::getpid(),
            before,
            said: AtomicBool::new(false),
        };
        if WILL.set(will).is_err() {
            return;
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        for signal in SIGNALS {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
        libc::atexit(on_exit);
    }
}

/// The process ends on purpose: whatever happens from now on is not written.
pub fn keep_silent() {
    if let Some(will) = WILL.get() {
        will.said.store(true, Ordering::Relaxed);
    }
}

extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // What another process has sent has nothing to do with what runs here.
    // SAFETY: it is the system's, and there as long as the handler runs.
    let own = unsafe { (*info).si_code > 0 || (*info).si_pid() == libc::getpid() };
    say(signal, own);
    // As if we had never been here: what comes of an instruction comes again.
    // SAFETY: what is called may be called in a signal's handler.
    unsafe {
        let old = WILL.get().and_then(|will| {
            let at = SIGNALS.iter().position(|s| *s == signal)?;
            Some(&will.before[at])
        });
        libc::sigaction(
            signal,
            old.map_or(std::ptr::null(), |o| o),
            std::ptr::null_mut(),
        );
        // One that was sent does not; nor do some processors stop at a breakpoint again.
        if (*info).si_code <= 0 || signal == libc::SIGTRAP {
            libc::raise(signal);
        }
    }
}

extern "C" fn on_exit() {
    say(0, true);
}

/// In signal context.
fn say(signal: c_int, own: bool) {
    let Some(will) = WILL.get() else { return };
    // SAFETY: calls that may be made in a signal's handler; the name lives as long as its application, which
    // runs here.
    unsafe {
        // What a native has forked is not the host.
        if libc::getpid() != will.process || will.said.swap(true, Ordering::Relaxed) {
            return;
        }
        let name: *const c_char = levada_sys::ffi::lvd_app_name_here();
        let name = match name.is_null() || !own {
            true => c"?",
            false => CStr::from_ptr(name),
        };
        let mut line = Line::default();
        for part in [WORD.as_bytes(), b" "] {
            line.add(part);
        }
        if signal >= 10 {
            line.add(&[b'0' + (signal / 10) as u8]);
        }
        line.add(&[b'0' + (signal % 10) as u8, b' ']);
        line.add(name.to_bytes());
        line.add(b"\n");
        if has_all() {
            line.add(FULL.as_bytes());
            line.add(b"\n");
        }
        libc::write(will.file, line.text.as_ptr().cast(), line.used);
    }
}

/// In signal context: has this process all but all of the memory that it may claim?
fn has_all() -> bool {
    let mut text = [0u8; 256];
    // SAFETY: calls that may be made in a signal's handler; what is written to is this frame's.
    let (most, read, page) = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_DATA, &mut limit) != 0 {
            return false;
        }
        let file = libc::open(
            c"/proc/self/statm".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        );
        let read = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        (limit.rlim_cur, read, libc::sysconf(libc::_SC_PAGESIZE))
    };
    // In pages: all, resident, shared, code, libraries, and what is its own to write.
    let text = &text[..read.max(0) as usize];
    let pages = text.split(|b| *b == b' ').nth(5).unwrap_or_default();
    let pages = pages.iter().filter(|b| b.is_ascii_digit());
    let pages = pages.fold(0u64, |sum, b| {
        sum.wrapping_mul(10).wrapping_add(u64::from(b - b'0'))
    });
    most != libc::RLIM_INFINITY && is_full(pages.saturating_mul(page.max(0) as u64), most)
}

/// One that is made without the allocator, whose lock may be held.
struct Line {
    text: [u8; 128],
    used: usize,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            text: [0; 128],
            used: 0,
        }
    }
}

impl Line {
    fn add(&mut self, part: &[u8]) {
        for byte in part {
            if let Some(at) = self.text.get_mut(self.used) {
                *at = *byte;
                self.used += 1;
            }
        }
    }
}
