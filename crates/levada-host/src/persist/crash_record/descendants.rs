// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes that this one has started, and those that these have started, with the application that started them.
//! A signal from one of them to this process is attributed like one that the application sends itself.
//!
//! Each process that the C library's `fork` makes enters itself into a table in shared memory, so that it is known also
//! when its parents have ended. A process made by `posix_spawn` or `system` is known by its parents, as long as it
//! exists. One made by `clone` or `vfork` is known as a descendant, without its application.

use super::{Line, NAME_BYTES, Name};
use libc::{c_int, pid_t};
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

const ENTRIES: usize = 1024;

/// Shared by all that are forked from here.
struct Table {
    /// How many entries were made: each new one takes the place of the oldest.
    made: AtomicU32,
    entries: [Entry; ENTRIES],
}

struct Entry {
    process: AtomicI32,
    /// When it began: numbers are used again.
    began: AtomicU64,
    name: Name,
}

/// A pointer to memory that is never given back.
static TABLE: OnceLock<&'static Table> = OnceLock::new();

/// The thread that has begun to start a process last, and for which application.
static STARTER: Starter = Starter {
    thread: AtomicUsize::new(0),
    name: Name::empty(),
    several: AtomicBool::new(false),
};

struct Starter {
    thread: AtomicUsize,
    name: Name,
    /// More than one application has started processes: one that is not in the table has no known application.
    several: AtomicBool,
}

/// From now on what is forked here enters itself.
pub(super) fn watch() {
    // SAFETY: nothing is there before; all zeros is a table.
    let table = unsafe {
        let shared = libc::mmap(
            std::ptr::null_mut(),
            size_of::<Table>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if shared == libc::MAP_FAILED {
            return;
        }
        &*shared.cast::<Table>()
    };
    if TABLE.set(table).is_ok() {
        // SAFETY: what it calls may be called in a child that was just forked.
        unsafe { libc::pthread_atfork(None, None, Some(enter_this)) };
    }
}

fn this_thread() -> usize {
    // SAFETY: has no preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// This thread is about to start a process for this application.
pub(super) fn begins(name: &[u8]) {
    let mut before = Line::default();
    if STARTER.name.add_to(&mut before) && before.bytes() != name {
        STARTER.several.store(true, Ordering::Relaxed);
    }
    STARTER.name.set(name);
    STARTER.thread.store(this_thread(), Ordering::Relaxed);
}

/// In a child that was just forked, which has the one thread that has forked it.
extern "C" fn enter_this() {
    // SAFETY: has no preconditions; the name lives as long as its application, which runs here.
    let (process, here) = unsafe { (libc::getpid(), levada_sys::ffi::lvd_current_app_name()) };
    if !here.is_null() {
        // SAFETY: as above.
        enter(process, unsafe { CStr::from_ptr(here) }.to_bytes());
    } else if STARTER.thread.load(Ordering::Relaxed) == this_thread() {
        let mut name = Line::default();
        STARTER.name.add_to(&mut name);
        enter(process, name.bytes());
    }
}

/// A process that the host has started for an application in a process of its own: no other application is blamed for
/// it.
pub fn started(process: u32) {
    enter(process as pid_t, &[]);
}

fn enter(process: pid_t, name: &[u8]) {
    let Some(table) = TABLE.get() else { return };
    let at = table.made.fetch_add(1, Ordering::Relaxed) as usize % ENTRIES;
    let entry = &table.entries[at];
    entry.process.store(0, Ordering::Relaxed);
    entry.name.set(&name[..name.len().min(NAME_BYTES - 1)]);
    let began = Stat::of(process).map_or(0, |stat| stat.began);
    entry.began.store(began, Ordering::Relaxed);
    entry.process.store(process, Ordering::Release);
}

/// Calls `found` with the entry of this process or of its nearest ancestor that has one; with nothing, if it descends
/// from this process without an entry. None: it does not descend from it. In signal context.
fn find<T>(process: pid_t, found: impl FnOnce(Option<&'static Entry>) -> T) -> Option<T> {
    let table = *TABLE.get()?;
    // SAFETY: has no preconditions.
    let own = unsafe { libc::getpid() };
    let mut process = process;
    // Deeper than that is a ring that has come of numbers which were used again while it was looked.
    for _ in 0..64 {
        let stat = Stat::of(process);
        let is_it = |entry: &&Entry| {
            let began = entry.began.load(Ordering::Relaxed);
            entry.process.load(Ordering::Acquire) == process
                && stat.as_ref().is_none_or(|stat| stat.began == began)
        };
        if let Some(entry) = table.entries.iter().find(is_it) {
            return Some(found(Some(entry)));
        }
        match stat {
            Some(stat) if stat.parent == own => return Some(found(None)),
            Some(stat) if stat.parent > 1 => process = stat.parent,
            _ => return None,
        }
    }
    None
}

/// Is it one of them? Of one that has ended, and been waited for, only what has entered itself is known.
pub(super) fn is_one(process: pid_t) -> bool {
    process > 0 && find(process, |_| ()).is_some()
}

/// Adds the name of the application that has started it, if that is known.
pub(super) fn add_name_to(line: &mut Line, process: pid_t) {
    find(process, |entry| match entry {
        Some(entry) => entry.name.add_to(line),
        None if STARTER.several.load(Ordering::Relaxed) => false,
        None => STARTER.name.add_to(line),
    });
}

/// Of what the system tells of a process: which has started it, and when it began. In signal context.
struct Stat {
    parent: pid_t,
    began: u64,
}

impl Stat {
    fn of(process: pid_t) -> Option<Stat> {
        let mut path = Line::default();
        path.add(b"/proc/");
        path.add_number(process as c_int);
        path.add(b"/stat\0");
        let mut text = [0u8; 1024];
        // SAFETY: the path ends with a zero, and as much is read as there is room.
        let read = unsafe {
            let file = libc::open(
                path.bytes().as_ptr().cast(),
                libc::O_RDONLY | libc::O_CLOEXEC,
            );
            if file < 0 {
                return None;
            }
            let read = libc::read(file, text.as_mut_ptr().cast(), text.len());
            libc::close(file);
            read
        };
        Stat::parse(&text[..usize::try_from(read).ok()?])
    }

    fn parse(line: &[u8]) -> Option<Stat> {
        // Its name is in brackets, and may have brackets and blanks in it.
        let behind = line.iter().rposition(|b| *b == b')')?;
        let fields = line[behind + 1..].split(|b| b.is_ascii_whitespace());
        let mut fields = fields.filter(|field| !field.is_empty());
        let parent = number(fields.nth(1)?)?;
        let began = number(fields.nth(17)?)?;
        Some(Stat {
            parent: pid_t::try_from(parent).ok()?,
            began,
        })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |sum, b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_and_the_beginning_are_read_as_they_are_written() {
        let line = b"7 (a) Z b) S 31 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 99 5 6\n";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.parent, stat.began), (31, 99));
        assert!(Stat::parse(b"7 (a) S").is_none());
        let own = Stat::of(std::process::id() as pid_t).unwrap();
        assert_eq!(own.parent as u32, std::os::unix::process::parent_id());
        assert!(own.began > 0);
    }

    #[test]
    fn what_was_started_here_is_known_and_named() {
        watch();
        let mut direct = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let process = direct.id() as pid_t;
        assert!(is_one(process) && !is_one(std::os::unix::process::parent_id() as pid_t));
        assert!(!is_one(1) && !is_one(0));
        let name = |process| {
            let mut line = Line::default();
            add_name_to(&mut line, process);
            String::from_utf8_lossy(line.bytes()).into_owned()
        };
        assert_eq!(name(process), "");
        begins(b"one");
        assert_eq!(name(process), "one");
        // Its application is not known then, unless it has an entry.
        begins(b"two");
        assert_eq!(name(process), "");
        enter(process, b"one");
        assert_eq!(name(process), "one");
        direct.kill().unwrap();
        direct.wait().unwrap();
        assert!(is_one(process));
        assert_eq!(name(process), "one");
    }
}
