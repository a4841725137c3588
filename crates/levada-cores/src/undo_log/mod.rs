// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The undo log of a user's shields (write-ahead log): each line describes the state *before* a
//! change and is written before the change is made, so that any process that finds the log can undo
//! it. The file is in a folder that is cleared at boot. All shields of a user share one log, since
//! a shield finds what an earlier one has set; see [`crate::undo_log::format`].

pub mod format;

use format::{Entry, LogState, ProcessId, ShieldRecord};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The log as seen by one shield.
#[derive(Debug)]
pub struct UndoLog {
    pub path: PathBuf,
    /// Of the shield. Another shield, with another tool, may have the number later.
    pub number: u32,
    pub tool: Option<ProcessId>,
    limit: u64,
}

/// Maximum size of a log; sufficient for some hundred thousand threads.
const LOG_MAX_BYTES: u64 = 32 << 20;

impl UndoLog {
    pub fn of(path: &Path, number: u32, tool: Option<ProcessId>) -> UndoLog {
        UndoLog {
            path: path.to_path_buf(),
            number,
            tool,
            limit: LOG_MAX_BYTES,
        }
    }

    /// The state of the shield; none if it has ended.
    pub fn own(&self) -> Option<ShieldRecord> {
        let record = LogState::read(&self.path).ok()?;
        record
            .shield(self.number)
            .filter(|s| s.tool == self.tool)
            .cloned()
    }

    pub fn add(&mut self, entries: &[Entry]) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let locked = LockedLog::open(&self.path)?;
        let text: String = entries.iter().map(|e| e.line(self.number)).collect();
        let tasks = entries.iter().any(|e| matches!(e, Entry::ThreadMove(_)));
        if tasks && fs::metadata(&self.path)?.len() + text.len() as u64 > self.limit {
            let what = format!("the undo log is full: {} MiB", self.limit >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        locked.append(&text)
    }

    #[cfg(test)]
    pub fn with_limit(mut self, limit: u64) -> UndoLog {
        self.limit = limit;
        self
    }
}

/// The log, locked against other processes. The lock is a file of its own, since others may read
/// the log and could hold a lock on it forever; each user of the log opens it separately, since a
/// forked process would share the lock of its parent.
#[derive(Debug)]
pub struct LockedLog {
    path: PathBuf,
    _lock: File,
}

impl LockedLog {
    /// Blocks until the lock is free.
    pub fn open(path: &Path) -> io::Result<LockedLog> {
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600);
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let lock = options.open(path.with_extension("lock"))?;
        // SAFETY: the descriptor is open.
        while unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) } != 0 {
            let e = io::Error::last_os_error();
            if e.kind() != io::ErrorKind::Interrupted {
                return Err(e);
            }
        }
        Ok(LockedLog {
            path: path.to_path_buf(),
            _lock: lock,
        })
    }

    /// The content of the log; none if there is no log.
    pub fn read(&self) -> io::Result<Option<LogState>> {
        match LogState::read(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Appends the first line of a shield; creates the log if needed.
    pub fn begin(&self, text: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        match options
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&self.path)
        {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        self.append(text)
    }

    /// Appends text in one write.
    pub fn append(&self, text: &str) -> io::Result<()> {
        let mut file = open_trusted(&self.path, true)?;
        // Separates the text from an incomplete last line.
        let end = file.metadata()?.len();
        let mut last = [b'\n'];
        if end > 0 {
            file.read_exact_at(&mut last, end - 1)?;
        }
        let begin = if last == [b'\n'] { "" } else { "\n" };
        file.write_all(format!("{begin}{text}").as_bytes())
    }

    /// Replaces the content; without shields the file is removed.
    pub fn replace(&self, record: &LogState) -> io::Result<()> {
        if record.shields.is_empty() {
            return fs::remove_file(&self.path);
        }
        let new = self.path.with_extension("new");
        let _ = fs::remove_file(&new);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&new)?;
        file.write_all(record.text().as_bytes())?;
        fs::rename(&new, &self.path)
    }
}

impl LogState {
    pub fn read(path: &Path) -> io::Result<LogState> {
        let mut text = String::new();
        open_trusted(path, false)?.read_to_string(&mut text)?;
        Ok(LogState::parse(&text))
    }
}

/// Creates a folder that only this user can write to; refuses a folder of another user.
fn private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    trust(folder, &found, found.is_dir() && found.uid() == me())
}

fn me() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::geteuid() }
}

/// Refuses files that others may have written: the log is executed with all privileges of this
/// user.
fn trust(path: &Path, found: &fs::Metadata, is_right: bool) -> io::Result<()> {
    if is_right && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    let what = format!(
        "{} belongs to another user, is a link, or is writable by others",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

/// Opens a log of this user or root, in a folder of this user or root.
fn open_trusted(path: &Path, write: bool) -> io::Result<File> {
    let ours = |found: &fs::Metadata| [0, me()].contains(&found.uid());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let found = fs::symlink_metadata(folder)?;
    trust(folder, &found, found.is_dir() && ours(&found))?;
    let opened = OpenOptions::new()
        .read(true)
        .append(write)
        // Opening a FIFO must not block.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    let file = match opened {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ELOOP | libc::EISDIR)) => {
            trust(path, &fs::symlink_metadata(path)?, false)?;
            return Err(e);
        }
        opened => opened?,
    };
    let found = file.metadata()?;
    trust(path, &found, found.is_file() && ours(&found))?;
    Ok(file)
}

const ROOT_LOG: &str = "/run/levada/shield";

/// The path of this user's log: in a folder that is private and cleared at boot.
pub fn own_log_path() -> io::Result<PathBuf> {
    if me() == 0 {
        return Ok(ROOT_LOG.into());
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|v| !v.is_empty());
    let usual = PathBuf::from(format!("/run/user/{}", me()));
    let folder = runtime
        .map(PathBuf::from)
        .or(Some(usual).filter(|f| f.is_dir()));
    let folder = folder.ok_or_else(|| {
        let what =
            "you have no runtime folder: set XDG_RUNTIME_DIR to a folder that only you write to";
        io::Error::new(io::ErrorKind::NotFound, what)
    })?;
    Ok(folder.join("levada/shield"))
}

/// The paths of the logs that concern this user: its own, and root's.
pub fn log_paths() -> Vec<PathBuf> {
    let mut log_paths: Vec<PathBuf> = own_log_path().into_iter().collect();
    if me() != 0 {
        log_paths.push(ROOT_LOG.into());
    }
    log_paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undo_log::format::tests::{some, task};

    fn begin(path: &Path, entries: &[Entry]) {
        let locked = LockedLog::open(path).unwrap();
        let text: String = entries.iter().map(|e| e.line(2)).collect();
        locked.begin(&text).unwrap();
    }

    #[test]
    fn entries_are_read_back_and_the_last_shield_removes_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/shield");
        assert!(LockedLog::open(&path).unwrap().read().unwrap().is_none());
        begin(&path, &some()[..6]);
        UndoLog::of(&path, 2, None).add(&some()[6..]).unwrap();
        let mut record = LogState::read(&path).unwrap();
        assert_eq!((record.tasks.len(), record.shields[0].evicted), (1, 7));
        record.tasks.clear();
        LockedLog::open(&path).unwrap().replace(&record).unwrap();
        let less = LogState::read(&path).unwrap();
        assert_eq!((less.tasks.len(), less.shields.len()), (0, 1));
        record.shields.clear();
        LockedLog::open(&path).unwrap().replace(&record).unwrap();
        let gone = UndoLog::of(&path, 2, None).add(&some()).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_incomplete_line_does_not_affect_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shield");
        begin(&path, &some()[..6]);
        let mut cut = fs::read_to_string(&path).unwrap();
        cut += "2\ttask\t20\t2";
        fs::write(&path, cut).unwrap();
        UndoLog::of(&path, 2, None).add(&[task()]).unwrap();
        assert_eq!(LogState::read(&path).unwrap().tasks.len(), 1);
    }

    #[test]
    fn the_lock_holds_across_replacement() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shield");
        begin(&path, &some());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let locked = LockedLog::open(&path).unwrap();
                        let mut record = locked.read().unwrap().unwrap();
                        record.shields[0].evicted += 1;
                        locked.replace(&record).unwrap();
                        drop(locked);
                        UndoLog::of(&path, 2, None).add(&[task()]).unwrap();
                    }
                });
            }
        });
        let record = LogState::read(&path).unwrap();
        assert_eq!((record.shields[0].evicted, record.tasks.len()), (407, 401));
    }

    #[test]
    fn files_that_others_may_have_written_are_not_read() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shield");
        fs::write(&path, "3\tshield\t3\t5\n").unwrap();
        let allow = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let refused = |path: &Path| LogState::read(path).unwrap_err().kind();
        allow(&path, 0o644);
        assert_eq!(LogState::read(&path).unwrap().shields[0].since, 5);
        allow(&path, 0o666);
        assert_eq!(refused(&path), io::ErrorKind::PermissionDenied);
        allow(&path, 0o644);
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(refused(&link), io::ErrorKind::PermissionDenied);
        allow(folder.path(), 0o777);
        assert_eq!(refused(&path), io::ErrorKind::PermissionDenied);
        allow(folder.path(), 0o700);
        if me() == 0 {
            std::os::unix::fs::chown(&path, Some(4711), None).unwrap();
            assert_eq!(refused(&path), io::ErrorKind::PermissionDenied);
        }
    }

    #[test]
    fn a_full_log_accepts_only_other_entries() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shield");
        begin(&path, &some()[..2]);
        let mut undo_log = UndoLog::of(&path, 2, None).with_limit(64);
        let full = undo_log.add(&[task(), task()]);
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        undo_log.add(&some()[12..]).unwrap();
        let record = LogState::read(&undo_log.path).unwrap();
        assert_eq!((record.tasks.len(), record.shields[0].evicted), (0, 7));
    }

    #[test]
    fn a_folder_that_others_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = LockedLog::open(&open.join("shield")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}
