// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a child that the code of an application forks has of its host: nothing. It may live for longer than the host, and what
//! it had of the socket and the locks would keep the next host from starting, and clients of the dead one waiting. What
//! another program takes the place of closes them anyway (`O_CLOEXEC`).
//!
//! Where code forks without the C library (`clone`) nothing is closed. So the locks are such that no child has them (record
//! locks, `fcntl`), and who listens at a socket is asked of the kernel.

use crate::util::process::{has_ended, peer};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock};

/// The address of the socket that this host listens at: those of its connections are the same.
static ADDRESS: OnceLock<Vec<u8>> = OnceLock::new();

/// Other descriptors that a child is not to have: of locks on folders, one for each isolated application; 0: none.
static OTHERS: [AtomicI32; 4096] = [const { AtomicI32::new(0) }; 4096];

/// From now on what is forked here has none of these connections.
pub fn keep_from_children(listener: &UnixListener) {
    let address = listener.local_addr().ok();
    let path = address.as_ref().and_then(|address| address.as_pathname());
    let Some(path) = path else {
        return;
    };
    if ADDRESS.set(path.as_os_str().as_bytes().to_vec()).is_ok() {
        // SAFETY: what it calls may be called in a child that was just forked.
        unsafe { libc::pthread_atfork(None, None, Some(close_all)) };
    }
}

/// In the child, where only this thread is: system calls alone.
extern "C" fn close_all() {
    for other in &OTHERS {
        let fd = other.load(Ordering::Relaxed);
        if fd > 0 {
            // SAFETY: it is the host's, whose copy this is.
            unsafe { libc::close(fd) };
        }
    }
    let Some(address) = ADDRESS.get() else { return };
    // Closed behind the listing: what is removed from a folder while it is read may hide what follows.
    let mut found = [0; 256];
    loop {
        let mut count = 0;
        for_each_descriptor(|fd| {
            if count < found.len() && is_at(fd, address) {
                found[count] = fd;
                count += 1;
            }
        });
        for fd in &found[..count] {
            // SAFETY: as above.
            unsafe { libc::close(*fd) };
        }
        if count < found.len() {
            return;
        }
    }
}

fn for_each_descriptor(mut call: impl FnMut(RawFd)) {
    // Aligned as the entries are.
    let mut entries = [0u64; 512];
    // SAFETY: the entries are as the kernel writes them (`linux_dirent64`): 8 bytes, 8 bytes, the length of the entry in
    // two, a byte, and the name, which ends with a zero.
    unsafe {
        let folder = libc::open(
            c"/proc/self/fd".as_ptr(),
            libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC,
        );
        loop {
            let size = size_of_val(&entries);
            let at: *mut u8 = entries.as_mut_ptr().cast();
            let read = libc::syscall(libc::SYS_getdents64, folder, at, size);
            if read <= 0 {
                break;
            }
            let mut offset = 0;
            while offset < read as usize {
                let entry = at.add(offset);
                let length = entry.add(16).cast::<u16>().read_unaligned();
                let (mut name, mut number, mut digits) = (entry.add(19), 0, 0);
                while (*name).is_ascii_digit() {
                    number = number * 10 + RawFd::from(*name - b'0');
                    digits += 1;
                    name = name.add(1);
                }
                if digits > 0 && number != folder {
                    call(number);
                }
                offset += usize::from(length);
            }
        }
        libc::close(folder);
    }
}

/// Is this a socket at that address?
fn is_at(fd: RawFd, address: &[u8]) -> bool {
    // SAFETY: all zeros is an address, and it is as large as is said.
    let (done, own, length) = unsafe {
        let mut own: libc::sockaddr_un = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        let done = libc::getsockname(fd, (&raw mut own).cast(), &raw mut length);
        (done, own, length as usize)
    };
    let head = std::mem::offset_of!(libc::sockaddr_un, sun_path);
    if done != 0 || i32::from(own.sun_family) != libc::AF_UNIX || length <= head {
        return false;
    }
    let path = own.sun_path.iter().take(length - head).map(|c| *c as u8);
    path.take_while(|c| *c != 0).eq(address.iter().copied())
}

/// A file that no child has; it is closed when this goes.
#[derive(Debug)]
pub(crate) struct OwnFile {
    file: Option<File>,
    place: Option<usize>,
}

impl OwnFile {
    pub(crate) fn new(file: File) -> OwnFile {
        let fd = file.as_raw_fd();
        let free = |other: &AtomicI32| {
            let free = other.compare_exchange(0, fd, Ordering::Relaxed, Ordering::Relaxed);
            free.is_ok()
        };
        OwnFile {
            file: Some(file),
            place: OTHERS.iter().position(free),
        }
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // Before the number may be another file's.
        if let Some(place) = self.place {
            OTHERS[place].store(0, Ordering::Relaxed);
        }
        drop(self.file.take());
    }
}

/// Files that this process has locked: a record lock keeps out other processes alone, and is lost when any descriptor of
/// its file is closed.
static LOCKED: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// A locked file. The lock goes with this process, and no child has it, however that was made.
#[derive(Debug)]
pub(crate) struct LockedFile {
    pub(crate) file: File,
    key: (u64, u64),
}

impl LockedFile {
    /// Opens the file by `open`, and locks it if nobody has; none: somebody has.
    pub(crate) fn open(
        path: &Path,
        open: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<Option<LockedFile>> {
        // Held meanwhile: a file that is locked here is never opened a second time.
        let mut locked = crate::util::lock::lock(&LOCKED);
        let key = |m: std::fs::Metadata| (m.dev(), m.ino());
        if std::fs::metadata(path).is_ok_and(|m| locked.contains(&key(m))) {
            return Ok(None);
        }
        let file = open()?;
        let key = key(file.metadata()?);
        // SAFETY: all zeros is a lock of the whole file, and the descriptor is there.
        let done = unsafe {
            let mut lock: libc::flock = std::mem::zeroed();
            lock.l_type = libc::F_WRLCK as libc::c_short;
            libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &lock)
        };
        if done == 0 {
            locked.insert(key);
            return Ok(Some(LockedFile { file, key }));
        }
        let why = io::Error::last_os_error();
        match why.raw_os_error() {
            Some(libc::EACCES | libc::EAGAIN) => Ok(None),
            _ => Err(why),
        }
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Who finds it free here waits for the kernel's lock, and that goes a moment later.
        crate::util::lock::lock(&LOCKED).remove(&self.key);
    }
}

/// Does a process that lives listen at this socket? One that has forked children, and ended, does not, though they have it.
pub fn listens(path: &Path) -> bool {
    UnixStream::connect(path).is_ok_and(|stream| lives_behind(&stream))
}

/// Is the process that has called `listen` at the other end alive? It may have ended, where a child has its socket still. A
/// process of another namespace has no number here, and counts as alive.
pub fn lives_behind(stream: &impl AsRawFd) -> bool {
    peer(stream).is_none_or(|process| !has_ended(process as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_file_is_locked_once_and_free_again_then() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open = || {
            LockedFile::open(&path, || {
                let mut options = File::options();
                options.create(true).truncate(false).write(true).open(&path)
            })
        };
        let first = open().unwrap().unwrap();
        assert!(open().unwrap().is_none());
        drop(first);
        assert!(open().unwrap().is_some());
    }

    #[test]
    fn connections_are_known_by_their_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        let own = path.as_os_str().as_bytes();
        assert!(is_at(listener.as_raw_fd(), own) && is_at(server.as_raw_fd(), own));
        assert!(!is_at(client.as_raw_fd(), own) && !is_at(listener.as_raw_fd(), b"/other"));
        assert!(lives_behind(&client) && listens(&path));
        let mut all = Vec::new();
        for_each_descriptor(|fd| all.push(fd));
        for fd in [listener.as_raw_fd(), server.as_raw_fd()] {
            assert!(all.contains(&fd), "{all:?}");
        }
    }
}
