// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An isolated application's process has a guard, its parent: what that process has forked, whoever its parent
//! is then and in whatever session, becomes the guard's child when its own parent has gone. When the
//! application's process has ended, for whatever reason, the guard ends all of these, and then itself in the same
//! way as the application's process has. It asks for no privileges.
//!
//! Told by SIGTERM, it passes that on. Told by `END`, or by the kernel with the same signal when its host has gone, it
//! kills the application's process.

use libc::{c_int, pid_t};
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// The application's process is to end at once.
pub const END: c_int = libc::SIGUSR1;

/// So long it is tried to end all: who forks faster than he is killed, or cannot be killed, is left then.
const LONGEST: Duration = Duration::from_secs(2);

/// Parts this process, which has one thread, in two: the parent is the guard from here on, the child goes on. The
/// number of the child is written to the standard input, which is a pipe of who has started this process;
/// the guard listens to no `socket`.
pub fn part(socket: RawFd) -> io::Result<()> {
    // SAFETY: there is one thread, and what is called has no other preconditions.
    unsafe {
        let mut before: libc::sigset_t = std::mem::zeroed();
        let all = all_signals();
        // Whatever comes meanwhile is waited for later.
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
                // A guard that has gone before that could be asked for ends nobody.
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

/// Nothing more is read from there, nor written.
fn no_input() {
    // SAFETY: descriptors of this process alone.
    unsafe {
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        libc::dup2(nothing, 0);
        libc::close(nothing);
    }
}

/// A child that has ended, and how, if there is one: 0 if none has, -1 if there is none any more.
fn reap() -> (pid_t, c_int) {
    let mut status = 0;
    // SAFETY: it is this frame's.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    (pid, status)
}

/// Until the child has ended; how it has.
fn watch(child: pid_t, all: &libc::sigset_t) -> c_int {
    loop {
        // SAFETY: nothing is written where that is null; the child has not been waited for.
        match unsafe { libc::sigwaitinfo(all, std::ptr::null_mut()) } {
            // It may be one of those that it has left behind.
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

/// Kills children until there are none: theirs become ours then.
fn end_all(all: &libc::sigset_t) {
    let until = Instant::now() + LONGEST;
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
            // SAFETY: our own, not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        // SAFETY: nothing is written where that is null.
        unsafe { libc::sigtimedwait(all, std::ptr::null_mut(), &soon) };
    }
}

/// As the system tells them, or else from the table of all processes.
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

/// Whoever waits for this process sees what it would have seen of the child.
fn end_as(status: c_int) -> ! {
    match libc::WIFSIGNALED(status) {
        true => end_by(libc::WTERMSIG(status)),
        // SAFETY: this process has nothing more to do.
        false => unsafe { libc::_exit(libc::WEXITSTATUS(status)) },
    }
}

/// Ends this process as this signal does where nobody has another use for it, and leaves no core file.
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
