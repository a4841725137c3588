// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The run directory of units. For each unit: a lock that its daemon holds while it lives, a socket, a log, and a
//! file with the process id of the machine, which is needed after the daemon was killed.

use crate::common::output::{Failure, failure, failure_with};
use levada_files::{create_private, make_private_folder, open_private, read_private};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum size of a note, which holds a process id and its start time.
const NOTE_MAX_BYTES: u64 = 4096;

pub struct RunDir {
    dir: PathBuf,
}

/// The lock of a name: while it is held, no other daemon has the name.
pub struct UnitLock(File);

impl RunDir {
    pub fn new(given: Option<&Path>) -> Result<RunDir, Failure> {
        let dir = match given {
            Some(dir) => dir.to_path_buf(),
            // SAFETY: has no preconditions.
            None if unsafe { libc::geteuid() } == 0 => PathBuf::from("/run/levada/units"),
            None => match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
                Some(dir) if dir.is_absolute() => dir.join("levada/units"),
                _ => {
                    return failure_with(
                        "XDG_RUNTIME_DIR is not set, so there is no usual place for units",
                        "name one with --dir DIR",
                    );
                }
            },
        };
        Ok(RunDir { dir })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn make(&self) -> Result<(), Failure> {
        // The folder must be private: a user with the right to replace a socket would receive what is meant for a
        // unit.
        make_private_folder(&self.dir)
            .map_err(|e| Failure::new(format!("{}: {e}", self.dir.display())))
    }

    fn file(&self, name: &str, end: &str) -> PathBuf {
        self.dir.join(format!("{name}.{end}"))
    }

    pub fn socket(&self, name: &str) -> PathBuf {
        self.file(name, "sock")
    }

    pub fn log(&self, name: &str) -> PathBuf {
        self.file(name, "log")
    }

    fn lock(&self, name: &str) -> PathBuf {
        self.file(name, "lock")
    }

    fn note(&self, name: &str) -> PathBuf {
        self.file(name, "machine")
    }

    /// The names in use, sorted.
    pub fn names(&self) -> Result<Vec<String>, Failure> {
        let entries = match fs::read_dir(&self.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return failure(format!("cannot read {}: {e}", self.dir.display())),
            Ok(entries) => entries,
        };
        let mut names: Vec<String> = entries
            .filter_map(|e| Some(e.ok()?.file_name().to_str()?.strip_suffix(".lock")?.into()))
            .collect();
        names.sort();
        Ok(names)
    }

    pub fn has(&self, name: &str) -> bool {
        self.lock(name).exists()
    }

    /// Takes the lock of a name; `None` if a daemon holds it.
    pub fn hold(&self, name: &str) -> Result<Option<UnitLock>, Failure> {
        let path = self.lock(name);
        let cannot = |e| Failure::new(format!("cannot lock {}: {e}", path.display()));
        loop {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).write(true);
            let file = open_private(&path, &mut options).map_err(cannot)?;
            // SAFETY: the descriptor is open.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
                let e = io::Error::last_os_error();
                return match e.kind() {
                    io::ErrorKind::WouldBlock => Ok(None),
                    _ => Err(cannot(e)),
                };
            }
            // Otherwise its last holder has just removed the file.
            let ours = file.metadata().map_err(cannot)?.ino();
            if fs::metadata(&path).is_ok_and(|m| m.ino() == ours) {
                return Ok(Some(UnitLock(file)));
            }
        }
    }

    /// Removes the files of a name, except for the log. The lock is removed last.
    pub fn give_back(&self, name: &str, held: UnitLock) {
        let _ = fs::remove_file(self.socket(name));
        let _ = fs::remove_file(self.note(name));
        let _ = fs::remove_file(self.lock(name));
        drop(held.0);
    }

    /// Notes the machine's process, for the case that its daemon is killed.
    pub fn note_machine(&self, name: &str, process: i32) -> io::Result<()> {
        let began = began(process).unwrap_or_default();
        let mut file = create_private(&self.note(name))?;
        writeln!(file, "{process} {began}")
    }

    /// Ends the machine of a daemon that was killed, if it is still the same process.
    pub fn end_machine(&self, name: &str) {
        let Ok(text) = read_private(&self.note(name), NOTE_MAX_BYTES) else {
            return;
        };
        let text = String::from_utf8_lossy(&text);
        let Some((process, then)) = text.trim().split_once(' ') else {
            return;
        };
        let Ok(process) = process.parse::<i32>() else {
            return;
        };
        // SAFETY: no pointers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) } as i32;
        if fd < 0 {
            return;
        }
        // SAFETY: the descriptor is ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // The process with this id has existed at least since the descriptor was opened.
        if process > 1 && began(process).is_some_and(|now| now == then) {
            // SAFETY: the descriptor is open, and no pointer is given.
            unsafe {
                libc::syscall(
                    libc::SYS_pidfd_send_signal,
                    fd.as_raw_fd(),
                    libc::SIGKILL,
                    std::ptr::null::<libc::siginfo_t>(),
                    0,
                )
            };
        }
    }
}

/// The start time of a process, in the kernel's units.
fn began(process: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(levada_cores::Stat::parse(&stat)?.start.to_string())
}
