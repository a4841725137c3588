// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lock file of a socket (`SOCKET.lock`): one host per socket. It is a kernel lock, which ends with its host.
//! The file stays for the next host; it is removed only by a host that created it and is then refused.

use crate::http::socket::cannot;
use crate::model::error::Refusal;
use crate::util::at_fork::LockedFile;
use crate::util::file_lock::lock_when_released;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Sends one request to the host at this socket, and looks for a response at each call: a dying host may still accept
/// connections, but does not read from them.
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

const FOREIGN: &str = "another process has created a file there";

/// Held while this value exists.
pub(crate) struct Lock {
    file: LockedFile,
    path: PathBuf,
    /// The lock file was created by this host, and the host has not served yet.
    of_nothing: bool,
}

impl Lock {
    /// Takes the lock of this socket; waits for a host that is dying.
    pub fn of(socket: &Path) -> Result<Lock, Refusal> {
        let mut path = socket.as_os_str().to_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        loop {
            let new = Cell::new(false);
            let open = || {
                let (file, made) = open(&path)?;
                new.set(made || new.get());
                let metadata = file.metadata()?;
                // SAFETY: has no preconditions.
                match metadata.is_file() && metadata.uid() == unsafe { libc::geteuid() } {
                    true => Ok(file),
                    false => Err(std::io::Error::other(FOREIGN)),
                }
            };
            let locked = lock_when_released(&path, open, answers(socket));
            let locked = locked.map_err(|e| {
                cannot(&path, e).help("name a socket in another folder with --socket PATH")
            })?;
            let Some(file) = locked else {
                return Err(cannot(socket, "another host is running there")
                    .help("use that one, end it, or name another socket with --socket PATH"));
            };
            let (made, metadata) = (new.get(), file.metadata());
            let metadata = metadata.map_err(|e| cannot(&path, e))?;
            // The file may have been removed since it was opened; then it locks nothing.
            let there = std::fs::symlink_metadata(&path);
            if there.is_ok_and(|t| (t.dev(), t.ino()) == (metadata.dev(), metadata.ino())) {
                return Ok(Lock {
                    file,
                    path,
                    of_nothing: made,
                });
            }
        }
    }

    /// Whether the lock file still exists; a removed one locks nothing.
    pub fn is_there(&self) -> bool {
        let same = || -> std::io::Result<bool> {
            let own = self.file.metadata()?;
            let there = std::fs::symlink_metadata(&self.path)?;
            Ok((own.dev(), own.ino()) == (there.dev(), there.ino()))
        };
        same().unwrap_or(false)
    }

    /// From now on the socket exists.
    pub fn serves(&mut self) {
        self.of_nothing = false;
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while locked: a waiting host then sees that the file is gone.
        if self.of_nothing {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The file, and whether this call created it.
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

    /// A host that was killed a moment ago holds its lock for a while, and its socket does not answer.
    #[test]
    fn a_dying_host_is_waited_for_and_a_living_one_is_not() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("host.sock");
        let first = Socket::bind(&path, None).unwrap();
        let dies = std::thread::spawn(move || {
            // The next host asks and gets no response.
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
    fn the_lock_of_a_living_host_is_tried_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        let open = || {
            File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
        };
        let held = lock_when_released(&path, open, || true).unwrap().unwrap();
        let asked = Cell::new(0);
        let answers = || {
            asked.set(asked.get() + 1);
            true
        };
        assert!(lock_when_released(&path, open, answers).unwrap().is_none());
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

    /// A listening socket, or a file that is no socket, existed before.
    #[test]
    fn a_host_that_never_served_leaves_no_lock() {
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
        // An existing lock file stays, and so does that of a living host.
        std::fs::write(at("text.sock.lock"), "").unwrap();
        assert!(Socket::bind(&at("text.sock"), None).is_err());
        assert!(at("text.sock.lock").exists());
        let lives = Socket::bind(&at("host.sock"), None).unwrap();
        let second = Socket::bind(&at("host.sock"), None).err().unwrap();
        assert!(second.what.contains("another host is running"), "{second}");
        assert!(at("host.sock.lock").exists());
        drop(lives);
    }

    /// A host that has opened a lock file which is removed meanwhile gets the new one in the end.
    #[test]
    fn a_removed_lock_file_is_created_again() {
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
