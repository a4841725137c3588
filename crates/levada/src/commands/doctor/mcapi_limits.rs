// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits of this machine that affect the transports of MCAPI: shared memory, and POSIX message queues.

use super::finding::{Finding, State, ok, problem};

/// Approximate space for one endpoint: the largest message, all its slots, and its channel.
const ENDPOINT_BYTES: u64 = 5 << 20;
/// With less free space some programs will fail.
const FREE_BYTES_MIN: u64 = 64 << 20;

/// Checks the file system with the files of domains.
pub fn shared_memory() -> Finding {
    use std::os::unix::fs::MetadataExt;
    let what = "/dev/shm";
    let (Ok(meta), Some((size, free))) = (std::fs::metadata(what), room(c"/dev/shm")) else {
        return problem(
            State::Missing,
            what,
            "not there",
            "MCAPI keeps its domains there: mount -t tmpfs -o mode=1777 tmpfs /dev/shm",
        );
    };
    // SAFETY: the name is terminated.
    let writable = unsafe { libc::access(c"/dev/shm".as_ptr(), libc::W_OK | libc::X_OK) == 0 };
    shared_memory_found(writable, meta.mode(), size, free)
}

/// The size and the free space of a file system, in bytes.
fn room(path: &std::ffi::CStr) -> Option<(u64, u64)> {
    // SAFETY: zeros are a valid value; the call fills it in.
    unsafe {
        let mut fs: libc::statvfs = std::mem::zeroed();
        let good = libc::statvfs(path.as_ptr(), &mut fs) == 0;
        #[allow(clippy::unnecessary_cast)] // 32 bits wide on some machines
        let unit = fs.f_frsize as u64;
        #[allow(clippy::unnecessary_cast)]
        good.then(|| (fs.f_blocks as u64 * unit, fs.f_bavail as u64 * unit))
    }
}

fn shared_memory_found(writable: bool, mode: u32, size: u64, free: u64) -> Finding {
    let what = "/dev/shm";
    let mib = |bytes: u64| bytes >> 20;
    if !writable {
        return problem(
            State::Missing,
            what,
            format!("not writable (mode {:o})", mode & 0o7777),
            "MCAPI keeps its domains there: chmod 1777 /dev/shm",
        );
    }
    let found = format!("{} of {} MiB free", mib(free), mib(size));
    // Other users could remove our files, but not read them.
    if mode & 0o002 != 0 && mode & 0o1000 == 0 {
        return problem(
            State::Advice,
            what,
            format!("{found}, but mode {:o}", mode & 0o7777),
            "any user can remove files of other users there: chmod 1777 /dev/shm",
        );
    }
    match free {
        0..FREE_BYTES_MIN => problem(
            State::Advice,
            what,
            format!(
                "{found}: about {} busy MCAPI endpoints",
                free / ENDPOINT_BYTES
            ),
            "for more: mount -o remount,size=1G /dev/shm, or --shm-size=1g where a container starts",
        ),
        _ => ok(what, found),
    }
}

/// The limits of POSIX message queues.
#[derive(Debug, Clone, Copy)]
struct Queues {
    messages: u64,
    size: u64,
    queues: u64,
    /// Bytes in all queues of a user; `None`: unlimited.
    bytes: Option<u64>,
}

/// Checks the limits of the other transport.
pub fn message_queues() -> Finding {
    let read = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/sys/fs/mqueue/{name}")).ok()?;
        text.trim().parse().ok()
    };
    let limits = (read("msg_max"), read("msgsize_max"), read("queues_max"));
    let (Some(messages), Some(size), Some(queues)) = limits else {
        return problem(
            State::Advice,
            "message queues",
            "not offered",
            "MCAPI over POSIX message queues (LEVADA_MCAPI_TRANSPORT=pmq) does not work here; over \
             shared memory, the default, it does",
        );
    };
    // SAFETY: the call fills it in.
    let bytes = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        match libc::getrlimit(libc::RLIMIT_MSGQUEUE, &mut limit) {
            0 if limit.rlim_cur != libc::RLIM_INFINITY => Some(limit.rlim_cur),
            _ => None,
        }
    };
    message_queues_found(Queues {
        messages,
        size,
        queues,
        bytes,
    })
}

/// The bytes that a queue counts towards the limit: its messages, 48 bytes per message and 80 per priority (Linux 3.5
/// and later).
fn cost(messages: u64, size: u64) -> u64 {
    messages * (size + 48) + messages.min(32768) * 80
}

fn message_queues_found(q: Queues) -> Finding {
    const QUEUES_WANTED: u64 = 64;
    let at_once = match q.bytes {
        None => q.queues,
        Some(bytes) => q.queues.min(bytes / cost(q.messages, q.size).max(1)),
    };
    let found = format!(
        "{} messages of {} bytes a queue, {at_once} such queues",
        q.messages, q.size
    );
    let mut raise = Vec::new();
    if q.messages < QUEUES_WANTED {
        raise.push(format!("sysctl fs.mqueue.msg_max={QUEUES_WANTED}"));
    }
    if q.size < 65536 + 64 {
        raise.push(format!("sysctl fs.mqueue.msgsize_max={}", 65536 + 64));
    }
    if q.queues < QUEUES_WANTED {
        raise.push("sysctl fs.mqueue.queues_max=256".to_string());
    }
    if q.bytes.is_some() && at_once < QUEUES_WANTED {
        raise.push("ulimit -q unlimited (limits.conf: msgqueue)".to_string());
    }
    if raise.is_empty() {
        ok("message queues", found)
    } else {
        problem(
            State::Advice,
            "message queues",
            found,
            format!(
                "for MCAPI over message queues (pmq) as over shared memory: {}",
                raise.join(", ")
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_that_is_small_or_closed_is_named() {
        assert_eq!(
            shared_memory_found(true, 0o1777, 1 << 34, 1 << 33).state,
            State::Ok
        );
        let small = shared_memory_found(true, 0o1777, 64 << 20, 60 << 20);
        assert_eq!(small.state, State::Advice);
        assert!(small.found.contains("12 busy MCAPI endpoints"), "{small:?}");
        assert!(small.help.unwrap().contains("--shm-size"));
        assert_eq!(
            shared_memory_found(false, 0o755, 1 << 34, 1 << 33).state,
            State::Missing
        );
        let open = shared_memory_found(true, 0o777, 1 << 34, 1 << 33);
        assert!(open.help.unwrap().contains("chmod 1777"));
    }

    #[test]
    fn message_queues_say_which_limit_to_raise() {
        let usual = Queues {
            messages: 10,
            size: 8192,
            queues: 256,
            bytes: Some(819_200),
        };
        let found = message_queues_found(usual);
        assert_eq!(found.state, State::Advice);
        assert!(found.found.contains("9 such queues"), "{found:?}");
        let help = found.help.unwrap();
        for limit in ["msg_max=64", "msgsize_max=65600", "ulimit -q"] {
            assert!(help.contains(limit), "{help}");
        }
        let raised = Queues {
            messages: 64,
            size: 65600,
            bytes: None,
            ..usual
        };
        assert_eq!(message_queues_found(raised).state, State::Ok);
    }
}
