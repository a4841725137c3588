// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lock beside a socket (`SOCKET.lock`): one host a socket. It is the kernel's, and goes with its host, whatever ends that;
//! the file stays, for the next one. Only who is refused, and has made it for a socket that it never served, takes it
//! away.

use crate::http::socket::cannot;
use crate::model::error::Refusal;
use crate::util::at_fork::LockedFile;
use crate::util::file_lock::lock_of_another;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Asks once whether a host lives at this socket, and looks for the answer each time: one that dies may still take
/// connections, and nobody reads from these.
fn answers(path: &Path) -> impl FnMut() -> bool {
    let ask = || -> std::io::Result<UnixStream> {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(Duration::from_millis(100)))?;
        stream.write_all(b"GET /host HTTP/1.1\r\nhost: levada\r\n\r\n")?;
        Ok(stream)
    };
    let asked = ask();
    move || (asked.as_ref()).is_ok_and(|mut s| s.read(&mut [0]).is_ok_and(|bytes| bytes > 0))
}

const FOREIGN: &str = "somebody else has put something there";

/// Held as long as this is there.
pub(crate) struct Lock {
    file: LockedFile,
    path: PathBuf,
    /// There was none before, and nothing has been served by it.
    of_nothing: bool,
}

impl Lock {
    /// That of this socket; of a host that is dying it is waited for.
    pub fn of(socket: &Path) -> Result<Lock, Refusal> {
        let mut path = socket.as_os_str().to_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        loop {
            let new = Cell::new(false);
            let open = || {
                let (file, made) = open(&path)?;
                new.set(made || new.get());
                let whose = file.metadata()?;
                // SAFETY: has no preconditions.
                match whose.is_file() && whose.uid() == unsafe { libc::geteuid() } {
                    true => Ok(file),
                    false => Err(std::io::Error::other(FOREIGN)),
                }
            };
            let locked = lock_of_another(&path, open, answers(socket));
            let locked = locked.map_err(|e| {
                cannot(&path, e).help("name a socket in another folder with --socket PATH")
            })?;
            let Some(file) = locked else {
                return Err(cannot(socket, "another host lives there")
                    .help("use that one, end it, or name another socket with --socket PATH"));
            };
            let (made, whose) = (new.get(), file.metadata());
            let whose = whose.map_err(|e| cannot(&path, e))?;
            // Somebody may have taken it away since it was opened: then it locks nobody out.
            let there = std::fs::symlink_metadata(&path);
            if there.is_ok_and(|t| (t.dev(), t.ino()) == (whose.dev(), whose.ino())) {
                return Ok(Lock {
                    file,
                    path,
                    of_nothing: made,
                });
            }
        }
    }

    /// Whether its file is there still: else it locks nobody out.
    pub fn is_there(&self) -> bool {
        let same = || -> std::io::Result<bool> {
            let own = self.file.metadata()?;
            let there = std::fs::symlink_metadata(&self.path)?;
            Ok((own.dev(), own.ino()) == (there.dev(), there.ino()))
        };
        same().unwrap_or(false)
    }

    /// From now on there is a socket of it.
    pub fn serves(&mut self) {
        self.of_nothing = false;
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Held still: who waits for it sees then that it is away.
        if self.of_nothing {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The file, and whether it was made by this.
fn open(path: &Path) -> std::io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    match options.clone().create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            let there = options.create(true).truncate(false).open(path);
            there.map(|file| (file, false))
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::socket::Socket;
    use std::os::unix::net::UnixListener;

    /// Killed a moment ago, a host has its lock for a while, and its socket does not answer.
    #[test]
    fn who_dies_is_waited_for_and_who_answers_is_not() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("host.sock");
        let first = Socket::bind(&path, None).unwrap();
        let dies = std::thread::spawn(move || {
            // The next one asks, and is not answered.
            let asks = first.listener.accept();
            drop(first);
            asks
        });
        let second = Socket::bind(&path, None).unwrap();
        dies.join().unwrap().unwrap();
        let lives = std::thread::spawn(move || {
            let (mut asks, _) = second.listener.accept().unwrap();
            asks.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            second
        });
        assert!(Socket::bind(&path, None).is_err());
        drop(lives.join());
    }

    #[test]
    fn a_lock_whose_host_answers_is_tried_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        let open = || {
            File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
        };
        let held = lock_of_another(&path, open, || true).unwrap().unwrap();
        let asked = Cell::new(0);
        let answers = || {
            asked.set(asked.get() + 1);
            true
        };
        assert!(lock_of_another(&path, open, answers).unwrap().is_none());
        assert_eq!(asked.get(), 1);
        drop(held);
    }

    #[test]
    fn the_lock_is_the_sockets_own_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let first = Socket::bind(&at("host.sock"), None).unwrap();
        let second = Socket::bind(&at("host.dev"), None).unwrap();
        let Err(taken) = Socket::bind(&at("host.sock"), None) else {
            panic!("two hosts on a socket");
        };
        assert!(taken.what.contains("another host"), "{taken}");
        drop((first, second));
        std::fs::write(at("precious"), "text").unwrap();
        for name in ["x.lock", "x.sock.lock"] {
            std::os::unix::fs::symlink(at("precious"), at(name)).unwrap();
        }
        assert!(Socket::bind(&at("x.sock"), None).is_err());
        assert_eq!(std::fs::read_to_string(at("precious")).unwrap(), "text");
        let mode = std::fs::metadata(at("host.sock.lock")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    /// What listens there, or is no socket, was there before.
    #[test]
    fn who_never_served_a_socket_leaves_no_lock() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let _other = UnixListener::bind(at("other.sock")).unwrap();
        std::fs::write(at("text.sock"), "text").unwrap();
        for (name, why) in [
            ("other.sock", "something else listens there"),
            ("text.sock", "there is something that is no socket"),
        ] {
            let refused = Socket::bind(&at(name), None).err().unwrap();
            assert!(refused.what.contains(why), "{refused}");
            assert!(!at(&format!("{name}.lock")).exists());
        }
        // One that was there stays, and so does that of a host that lives.
        std::fs::write(at("text.sock.lock"), "").unwrap();
        assert!(Socket::bind(&at("text.sock"), None).is_err());
        assert!(at("text.sock.lock").exists());
        let lives = Socket::bind(&at("host.sock"), None).unwrap();
        let second = Socket::bind(&at("host.sock"), None).err().unwrap();
        assert!(second.what.contains("another host lives"), "{second}");
        assert!(at("host.sock.lock").exists());
        drop(lives);
    }

    /// Who has opened a lock that is taken away meanwhile has another one in the end, which is there.
    #[test]
    fn who_waits_for_a_lock_that_goes_away_makes_another() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("host.sock");
        let refused = Lock::of(&socket).unwrap();
        let waits = std::thread::spawn({
            let socket = socket.clone();
            move || Lock::of(&socket)
        });
        std::thread::sleep(Duration::from_millis(50));
        drop(refused);
        let has = waits.join().unwrap().unwrap();
        let there = std::fs::metadata(&has.path).unwrap();
        assert_eq!(there.ino(), has.file.metadata().unwrap().ino());
    }
}
