// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The guard process of an isolated application: the parent of the application's process, and subreaper of
//! everything that this forks, in whatever session. When the application's process has ended, the guard kills all
//! of these and then ends in the same way as that process. It needs no privileges.
//!
//! The guard passes SIGTERM on. On `END`, which the kernel also sends when the host has died, it kills the
//! application's process.

use libc::{c_int, pid_t};
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// The application's process is to be killed.
pub const END: c_int = libc::SIGUSR1;

/// Timeout for killing all: a process that forks faster than it is killed, or that cannot be killed, is left.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Forks this process, which has one thread: the parent becomes the guard, the child continues. The child's number is
/// written to standard input, which is a pipe from the host; the guard closes `socket`.
pub fn part(socket: RawFd) -> io::Result<()> {
    // SAFETY: there is one thread, and the calls have no other preconditions.
    unsafe {
        let mut before: libc::sigset_t = std::mem::zeroed();
        let all = all_signals();
        // Signals that arrive meanwhile stay pending.
        libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let guard = libc::getpid();
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // If the guard had died before the death signal was set, the child would never be ended.
                if libc::getppid() != guard {
                    libc::_exit(1);
                }
                no_input();
                Ok(())
            }
            child => {
                libc::close(socket);
                let number = child.to_ne_bytes();
                libc::write(0, number.as_ptr().cast(), number.len());
                no_input();
                libc::prctl(libc::PR_SET_NAME, c"levada/guard".as_ptr());
                let status = watch(child, &all);
                end_all(&all);
                end_as(status)
            }
        }
    }
}

fn all_signals() -> libc::sigset_t {
    // SAFETY: it is filled before it is used.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        all
    }
}

/// Closes the pipe to the host.
fn no_input() {
    // SAFETY: descriptors of this process only.
    unsafe {
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        libc::dup2(nothing, 0);
        libc::close(nothing);
    }
}

/// A child that has ended, and its status: 0 if none has, -1 if there is none.
fn reap() -> (pid_t, c_int) {
    let mut status = 0;
    // SAFETY: writes to a variable of this frame.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    (pid, status)
}

/// Waits for the child's end; returns its status.
fn watch(child: pid_t, all: &libc::sigset_t) -> c_int {
    loop {
        // SAFETY: the null pointer is not written to; the child has not been waited for.
        match unsafe { libc::sigwaitinfo(all, std::ptr::null_mut()) } {
            // It may be one of its descendants.
            libc::SIGCHLD => loop {
                match reap() {
                    (pid, status) if pid == child => return status,
                    (..=0, _) => break,
                    _ => {}
                }
            },
            libc::SIGTERM => drop(unsafe { libc::kill(child, libc::SIGTERM) }),
            END => drop(unsafe { libc::kill(child, libc::SIGKILL) }),
            _ => {}
        }
    }
}

/// Kills children until there are none; their children become children of this process.
fn end_all(all: &libc::sigset_t) {
    let until = Instant::now() + KILL_TIMEOUT;
    let soon = libc::timespec {
        tv_sec: 0,
        tv_nsec: 5_000_000,
    };
    while Instant::now() < until {
        let last = loop {
            match reap().0 {
                1.. => {}
                last => break last,
            }
        };
        if last < 0 {
            return;
        }
        for child in children() {
            // SAFETY: our own child, not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        // SAFETY: the null pointer is not written to.
        unsafe { libc::sigtimedwait(all, std::ptr::null_mut(), &soon) };
    }
}

/// As the kernel lists them, or else from the table of all processes.
fn children() -> Vec<pid_t> {
    let own = std::process::id();
    let told = std::fs::read_to_string(format!("/proc/self/task/{own}/children"));
    if let Ok(told) = told {
        return told
            .split_whitespace()
            .filter_map(|n| n.parse().ok())
            .collect();
    }
    let is_own = |pid: &pid_t| crate::util::process::parent(*pid) == Some(own);
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
    all.filter(is_own).collect()
}

/// Ends this process with the child's status, for the parent that waits for it.
fn end_as(status: c_int) -> ! {
    if libc::WIFSIGNALED(status) {
        end_by(libc::WTERMSIG(status))
    } else {
        // SAFETY: this process has nothing more to do.
        unsafe { libc::_exit(libc::WEXITSTATUS(status)) }
    }
}

/// Ends this process by the default action of this signal, without a core file.
pub fn end_by(signal: c_int) -> ! {
    // SAFETY: this process has nothing more to do.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut nothing: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut nothing);
        libc::raise(signal);
        libc::sigprocmask(libc::SIG_SETMASK, &nothing, std::ptr::null_mut());
        libc::_exit(128 + signal);
    }
}
