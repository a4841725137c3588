// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The process of an isolated application: how it is started, with its guard, and where it listens; how its end is waited
//! for, and told in words; and what it has claimed.

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

/// What starts a host of one application: the command `levada`, and options of `levada host`.
#[derive(Clone, Debug)]
pub struct Starts {
    pub command: PathBuf,
    pub options: Vec<OsString>,
    /// Told to end, it waits so long for a firing that does not end, as its options say.
    pub within: Duration,
}

/// The socket of a host, in a folder that only its user can enter, and that is locked as long as this host lives.
pub(crate) struct Place {
    folder: PathBuf,
    _lock: OwnFile,
}

/// The file beside its socket in which its process leaves how its code has ended it.
pub const LAST_WORDS: &str = "last-words";

impl Place {
    pub(crate) fn new() -> io::Result<Place> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number}", isolated_folders());
        let folder = temporary().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let lock = File::open(&folder)?;
        // Where files cannot be locked a host in another container may still take it for a dead one's.
        let _ = lock.lock();
        Ok(Place {
            folder,
            _lock: OwnFile::new(lock),
        })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("sock")
    }

    pub(crate) fn last_words(&self) -> PathBuf {
        self.folder.join(LAST_WORDS)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Takes away what hosts have left that were killed.
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
        // One of another container has a number of its own there; but it holds the lock.
        let locked = || File::open(entry.path()).is_ok_and(|f| f.try_lock().is_err());
        if has_ended(pid) && !locked() {
            // What is another user's stays.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Starts a host in this folder that listens on `listener`, and ends with the thread that calls this: its guard, and
/// the process that the guard guards.
pub(crate) fn start(
    starts: &Starts,
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
        // What its code opens is found from there, as the paths of its load are.
        .current_dir(folder)
        .args(&starts.options)
        .arg(format!("--listener={socket}"))
        .env_remove("LEVADA_HOST")
        // Where it says which process is the application's.
        .stdin(says)
        // What is typed at this host's terminal is for this host, which passes it on.
        .process_group(0);
    let prepare = move || {
        // It takes as many files as it may for itself; what it starts has these.
        crate::util::fd_limit::have_as_before();
        // SAFETY: system calls that may be made between fork and exec; none has a precondition.
        let done = unsafe {
            libc::signal(guard::END, libc::SIG_DFL);
            libc::prctl(libc::PR_SET_PDEATHSIG, guard::END) == 0
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::fcntl(socket, libc::F_SETFD, 0) == 0
        };
        if !done {
            return Err(io::Error::last_os_error());
        }
        // Whoever has ended before it could be asked for ends nobody.
        // SAFETY: has no preconditions.
        match unsafe { libc::getppid() } == ours as i32 {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    };
    // SAFETY: what it calls may be called there.
    let child = unsafe { command.pre_exec(prepare) }.spawn()?;
    // Ours is closed: if it ends without a word, so is theirs.
    drop(command);
    crate::persist::crash_record::started(child.id());
    let mut process = [0; 4];
    let process = match number.read_exact(&mut process) {
        Ok(()) => u32::from_ne_bytes(process),
        Err(_) => child.id(),
    };
    Ok((child, process))
}

/// Waits until it has ended, and leaves it to be waited for; with `within` no longer than that.
pub(crate) fn await_end(process: u32, within: Option<Duration>) {
    let until = within.map(|within| Instant::now() + within);
    loop {
        let how = if until.is_some() { libc::WNOHANG } else { 0 } | libc::WEXITED | libc::WNOWAIT;
        // SAFETY: it writes into what is given, which may be all zeros.
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

/// How a process ended, in words.
pub(crate) fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its process has exited with status {code}"),
        (None, Some(signal)) => {
            let name = crate::persist::journal::signal_name(signal);
            format!("its process was ended by signal {signal} ({name})")
        }
        (None, None) => "its process has ended".to_string(),
    }
}

/// Bytes of its own that it has now; none: the system does not say.
pub(crate) fn data_of(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmData:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dead_have_left_goes_and_what_somebody_holds_stays() {
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
