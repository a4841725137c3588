// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes by number: whether one has ended or is stopped, and the peer of a socket.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether there is no such process, or only a zombie. A process of another user is alive.
pub fn has_ended(process: i32) -> bool {
    // SAFETY: signal 0 only asks whether the process exists.
    let there = unsafe { libc::kill(process, 0) } == 0;
    if !there {
        return std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    }
    stat(process).is_some_and(|stat| stat.is_left_only())
}

/// Whether it is stopped, by a signal or a debugger.
pub fn is_stopped(process: u32) -> bool {
    stat(process as i32).is_some_and(|stat| matches!(stat.state, 'T' | 't'))
}

/// The process that listens at this socket, if that can be found out without blocking: a stopped host accepts only a
/// few connections.
pub(crate) fn listener_of(socket: &Path) -> Option<u32> {
    let path = socket.as_os_str().as_bytes();
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    if path.len() >= address.sun_path.len() {
        return None;
    }
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = *from as libc::c_char;
    }
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: has no preconditions.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return None;
    }
    // SAFETY: it is new, and owned by this value only.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address has the size that is passed, and its path is terminated.
    if unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), size) } != 0 {
        return None;
    }
    peer(&fd)
}

/// The process at the other end.
pub fn peer(socket: &impl AsRawFd) -> Option<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the buffer has that size.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    (done == 0 && peer.pid > 0).then_some(peer.pid as u32)
}

/// The parent process, or the one that has adopted it.
pub fn parent(process: i32) -> Option<u32> {
    stat(process).map(|stat| stat.parent)
}

/// The start time of a process, in clock ticks since boot.
pub(crate) fn began(process: i32) -> Option<u64> {
    stat(process).map(|stat| stat.began)
}

/// Fields of `/proc/PID/stat`.
struct Stat {
    state: char,
    parent: u32,
    threads: u64,
    began: u64,
}

fn stat(process: i32) -> Option<Stat> {
    Stat::parse(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

impl Stat {
    fn parse(line: &str) -> Option<Stat> {
        // The name is in parentheses, and may contain parentheses and blanks.
        let (_, behind) = line.rsplit_once(')')?;
        let mut fields = behind.split_ascii_whitespace();
        Some(Stat {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            threads: fields.nth(15)?.parse().ok()?,
            began: fields.nth(1)?.parse().ok()?,
        })
    }

    /// Whether it is a zombie, with all of its threads.
    fn is_left_only(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_has_ended_and_a_stopped_process_has_not() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let number = child.id() as i32;
        assert!(!has_ended(number) && !has_ended(std::process::id() as i32));
        assert!(!is_stopped(child.id()));
        // SAFETY: a child of ours that has not been reaped.
        assert_eq!(unsafe { libc::kill(number, libc::SIGSTOP) }, 0);
        let start = std::time::Instant::now();
        while !is_stopped(child.id()) {
            assert!(start.elapsed().as_secs() < 300, "it runs");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        let start = std::time::Instant::now();
        while !has_ended(number) {
            assert!(start.elapsed().as_secs() < 300, "it is a zombie");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
        assert!(has_ended(number) && !is_stopped(number as u32));
    }

    #[test]
    fn a_process_with_a_living_thread_is_alive() {
        let line = |state: &str, threads: u32| {
            format!("7 (a) Z b) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 99\n")
        };
        for (state, threads, left) in [("S", 1, false), ("Z", 2, false), ("Z", 1, true)] {
            let stat = Stat::parse(&line(state, threads)).unwrap();
            assert_eq!((stat.is_left_only(), stat.parent), (left, 1), "{state}");
        }
        assert!(Stat::parse("7 (a").is_none());
    }
}
