// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The child process of an isolated application: how it is started with its guard, the folder of its socket, how
//! its end is awaited and described, and its memory size.

use crate::isolated::guard;
use crate::util::at_fork::{ISOLATED as FOLDER, OwnFile, isolated_folders};
use crate::util::launch_env::{as_started, temporary};
use crate::util::process::has_ended;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How a child host is started: the command `levada`, and options of `levada host`.
#[derive(Clone, Debug)]
pub struct LaunchConfig {
    pub command: PathBuf,
    pub options: Vec<OsString>,
    /// Time that the child waits for a firing when it is told to end, as its options say.
    pub timeout: Duration,
}

/// The folder of a child's socket, which only its user can enter, and which is locked while this host lives.
pub(crate) struct SocketDir {
    folder: PathBuf,
    _lock: OwnFile,
}

/// The file in that folder for the crash record.
pub const LAST_WORDS: &str = "last-words";

impl SocketDir {
    pub(crate) fn new() -> io::Result<SocketDir> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number}", isolated_folders());
        let folder = temporary().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let lock = File::open(&folder)?;
        // Where files cannot be locked, a host in another container may remove it as that of a dead host.
        let _ = lock.lock();
        Ok(SocketDir {
            folder,
            _lock: OwnFile::new(lock),
        })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("sock")
    }

    pub(crate) fn crash_record_path(&self) -> PathBuf {
        self.folder.join(LAST_WORDS)
    }
}

impl Drop for SocketDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Removes the folders of hosts that were killed.
pub fn tidy() {
    tidy_in(temporary());
}

fn tidy_in(temporary: &Path) {
    let entries = std::fs::read_dir(temporary).into_iter().flatten();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let of = name.to_str().and_then(|n| n.strip_prefix(FOLDER));
        let of = of.and_then(|rest| rest.split_once('-')?.0.parse::<i32>().ok());
        let Some(pid) = of.filter(|pid| *pid > 0) else {
            continue;
        };
        // The number of a process in another container means nothing here; but that process holds the lock.
        let locked = || File::open(entry.path()).is_ok_and(|f| f.try_lock().is_err());
        if has_ended(pid) && !locked() {
            // The folder of another user stays.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Starts a child host in this folder that listens on `listener`: its guard and the guarded process. Both end with the
/// calling thread.
pub(crate) fn start(
    starts: &LaunchConfig,
    folder: &Path,
    listener: &UnixListener,
) -> io::Result<(Child, u32)> {
    let (mut number, says) = io::pipe()?;
    let socket = listener.as_raw_fd();
    let ours = std::process::id();
    let mut command = Command::new(&starts.command);
    as_started(&mut command);
    command
        .arg("host")
        // So that relative paths in its code start at the request's folder.
        .current_dir(folder)
        .args(&starts.options)
        .arg(format!("--listener={socket}"))
        .env_remove("LEVADA_HOST")
        // The guard writes the number of the application's process to this pipe.
        .stdin(says)
        // Ctrl-C at the terminal is for this host, which passes it on.
        .process_group(0);
    let prepare = move || {
        // The host has raised its limit of open files; the child gets the inherited one.
        crate::util::fd_limit::restore_inherited();
        // SAFETY: system calls that are allowed between fork and exec; none has a precondition.
        let done = unsafe {
            libc::signal(guard::END, libc::SIG_DFL);
            libc::prctl(libc::PR_SET_PDEATHSIG, guard::END) == 0
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::fcntl(socket, libc::F_SETFD, 0) == 0
        };
        if !done {
            return Err(io::Error::last_os_error());
        }
        // If this host had died before the death signal was set, the child would never be ended. SAFETY: has no
        // preconditions.
        match unsafe { libc::getppid() } == ours as i32 {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    };
    // SAFETY: `prepare` makes only calls that are allowed there.
    let child = unsafe { command.pre_exec(prepare) }.spawn()?;
    // Our end is closed, so that the pipe ends if the child ends without writing.
    drop(command);
    crate::persist::crash_record::started(child.id());
    let mut process = [0; 4];
    let process = match number.read_exact(&mut process) {
        Ok(()) => u32::from_ne_bytes(process),
        Err(_) => child.id(),
    };
    Ok((child, process))
}

/// Waits until the process has ended, at most `timeout`, without reaping it.
pub(crate) fn await_end(process: u32, timeout: Option<Duration>) {
    let until = timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let how = if until.is_some() { libc::WNOHANG } else { 0 } | libc::WEXITED | libc::WNOWAIT;
        // SAFETY: writes to a variable that may be all zeros.
        let (done, ended) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let done = libc::waitid(libc::P_PID, process, &mut info, how);
            (done, info.si_pid() != 0)
        };
        if done == 0 && !ended && until.is_some_and(|until| Instant::now() < until) {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        }
        if done == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return;
        }
    }
}

/// The end of a process as text.
pub(crate) fn exit_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its process has exited with status {code}"),
        (None, Some(signal)) => {
            let name = crate::persist::journal::signal_name(signal);
            format!("its process was ended by signal {signal} ({name})")
        }
        (None, None) => "its process has ended".to_string(),
    }
}

/// Size of its private data in bytes; none: unknown.
pub(crate) fn data_bytes(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmData:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_hosts_are_removed_and_locked_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let make = |name: String| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let gone = make(format!("{FOLDER}{dead}-0"));
        let held = make(format!("{FOLDER}{dead}-1"));
        let lock = File::open(&held).unwrap();
        lock.lock().unwrap();
        let living = make(format!("{FOLDER}{}-0", std::process::id()));
        tidy_in(folder.path());
        assert!(!gone.exists() && held.exists() && living.exists());
        drop(lock);
        tidy_in(folder.path());
        assert!(!held.exists() && living.exists());
    }
}
