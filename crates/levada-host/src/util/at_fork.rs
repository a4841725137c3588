// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a child that the code of an application forks has of its host: nothing that matters to others. It may live
//! longer than the host: a copy of the socket or of a lock would keep the next host from starting and clients of the
//! dead one waiting; a copy of a pipe would keep the reader waiting. An `exec` closes all of them (`O_CLOEXEC`).
//!
//! Closed in the child are
//! - what was open before the first application was loaded: locks, the journal, leases, descriptors for waiting;
//! - connections of this host's socket, and to those of its isolated applications, which are known by their addresses;
//! - what is noted by `lvd_close_on_fork`: all that the runtime opens, the inputs and outputs of networks, and the
//!   files of the host that are opened later ([`OwnFile`]).
//!
//! Natives and C programs close what they open themselves. Where code forks without the C library (`clone`) nothing is
//! closed: the kernel is asked which process listens at a socket, and a lock's file has the process that has locked it.

use crate::util::process::{began, has_ended, peer};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

/// The address of the socket that this host listens at: those of its connections are the same. Empty: it has no path.
static ADDRESS: OnceLock<Vec<u8>> = OnceLock::new();

/// How the folders in which the sockets of isolated applications lie are called, before the number of their host.
pub(crate) const ISOLATED: &str = "levada-isolated-";

/// The same with the number of this host.
pub(crate) fn isolated_folders() -> String {
    format!("{ISOLATED}{}-", std::process::id())
}

/// In the path of such a socket.
static ISOLATED_PART: OnceLock<Vec<u8>> = OnceLock::new();

/// What was open before there was an application: the number, and what it was then.
static FIRST: OnceLock<Vec<(RawFd, Identity)>> = OnceLock::new();

/// From now on what is forked here has none of these connections, nor any other descriptor of the host.
pub fn keep_from_children(listener: &UnixListener) {
    let address = listener.local_addr().ok();
    let path = address.as_ref().and_then(|address| address.as_pathname());
    let path = path.map(|path| path.as_os_str().as_bytes().to_vec());
    let _ = ISOLATED_PART.set(format!("/{}", isolated_folders()).into_bytes());
    if ADDRESS.set(path.unwrap_or_default()).is_ok() {
        // SAFETY: what it calls may be called in a child that was just forked.
        unsafe { libc::pthread_atfork(None, None, Some(close_all)) };
    }
}

/// No application has been loaded: what this process has opened until now is this host's.
pub(crate) fn all_is_own() {
    let mut all = Vec::new();
    for_each_descriptor(|fd| {
        // What was given to this process when it was started is for applications, too.
        // SAFETY: has no preconditions.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        let made_here = flags >= 0 && flags & libc::FD_CLOEXEC != 0 && fd > libc::STDERR_FILENO;
        all.extend(Identity::of(fd).filter(|_| made_here).map(|is| (fd, is)));
    });
    let _ = FIRST.set(all);
}

/// Of a file: its device, its number there, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(u64, u64, u32);

impl Identity {
    fn of(fd: RawFd) -> Option<Identity> {
        // SAFETY: all zeros are one, and it is this frame's.
        unsafe {
            let mut is: libc::stat = std::mem::zeroed();
            (libc::fstat(fd, &mut is) == 0).then_some(Identity(is.st_dev, is.st_ino, is.st_mode))
        }
    }
}

/// In the child, where only this thread is: system calls alone.
extern "C" fn close_all() {
    // SAFETY: what is noted is the host's, and this process a copy of it.
    unsafe { levada_sys::ffi::lvd_os_close_in_child() };
    for (fd, identity) in FIRST.get().into_iter().flatten() {
        // It may have been closed, and its number be another's.
        if Identity::of(*fd) == Some(*identity) {
            // SAFETY: as above.
            unsafe { libc::close(*fd) };
        }
    }
    let Some(address) = ADDRESS.get() else { return };
    let isolated = ISOLATED_PART.get().map_or(&[][..], Vec::as_slice);
    // Closed behind the listing: what is removed from a folder while it is read may hide what follows.
    let mut found = [0; 256];
    loop {
        let mut count = 0;
        for_each_descriptor(|fd| {
            if count < found.len() && is_own_socket(fd, address, isolated) {
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
    // SAFETY: the entries are as the kernel writes them (`linux_dirent64`): 8 bytes, 8 bytes, the length of the entry
    // in two, a byte, and the name, which ends with a zero.
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

/// Is this a socket at that address, or a connection to one with `isolated` in its address?
fn is_own_socket(fd: RawFd, address: &[u8], isolated: &[u8]) -> bool {
    let mut path = [0; PATH];
    let mut is_so = |ask, so: &dyn Fn(&[u8]) -> bool| {
        path_of(fd, ask, &mut path).is_some_and(|length| so(&path[..length]))
    };
    let is_isolated = |peer: &[u8]| {
        !isolated.is_empty() && peer.windows(isolated.len()).any(|part| part == isolated)
    };
    is_so(libc::getsockname, &|own| !own.is_empty() && own == address)
        || is_so(libc::getpeername, &is_isolated)
}

/// The longest path of a socket.
const PATH: usize = 108;

type AskName = unsafe extern "C" fn(RawFd, *mut libc::sockaddr, *mut libc::socklen_t) -> i32;

/// The length of the path of a socket of this machine, its own or its peer's; none: it is none.
fn path_of(fd: RawFd, ask: AskName, path: &mut [u8; PATH]) -> Option<usize> {
    // SAFETY: all zeros is an address, and it is as large as is said.
    let (done, address, length) = unsafe {
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        let done = ask(fd, (&raw mut address).cast(), &raw mut length);
        (done, address, length as usize)
    };
    let head = std::mem::offset_of!(libc::sockaddr_un, sun_path);
    if done != 0 || i32::from(address.sun_family) != libc::AF_UNIX {
        return None;
    }
    let given = address.sun_path.iter().take(length.saturating_sub(head));
    let bytes = given.map(|c| *c as u8).take_while(|c| *c != 0);
    let mut count = 0;
    for (to, from) in path.iter_mut().zip(bytes) {
        *to = from;
        count += 1;
    }
    Some(count)
}

/// A file that no child has; it is closed when this goes.
#[derive(Debug)]
pub(crate) struct OwnFile(File);

impl OwnFile {
    pub(crate) fn new(file: File) -> OwnFile {
        // SAFETY: has no preconditions.
        unsafe { levada_sys::ffi::lvd_close_on_fork(file.as_raw_fd(), true) };
        OwnFile(file)
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // Before the number may be another file's.
        // SAFETY: as above.
        unsafe { levada_sys::ffi::lvd_close_on_fork(self.0.as_raw_fd(), false) };
    }
}

/// Held while a lock is taken: the record lock that protects it against other processes does not exclude threads.
static TAKING: Mutex<()> = Mutex::new(());

/// A locked file that contains the process that has locked it. The lock belongs to the open file (`F_OFD_SETLK`), so it
/// is kept whatever else opens and closes the file. Of the children, one made by `clone` directly has it, too, and may
/// live longer: when the process in the file has ended, the file is replaced by a new one.
#[derive(Debug)]
pub(crate) struct LockedFile(OwnFile);

impl LockedFile {
    /// Opens the file at `path` by `open`, which makes it if there is none, and locks it. None: it is locked.
    pub(crate) fn open(
        path: &Path,
        mut open: impl FnMut() -> io::Result<File>,
    ) -> io::Result<Option<LockedFile>> {
        let _taking = crate::util::lock::lock(&TAKING);
        loop {
            let file = OwnFile::new(open()?);
            // Protects the lock, its owner and the name of the file while they are read and changed. A record lock is
            // enough for this moment.
            set_lock(&file.0, libc::F_SETLKW, TAKES)?;
            if !is_at(&file.0, path) {
                continue;
            }
            if try_lock(&file.0)? {
                Owner::this().write(&file.0)?;
                set_lock(&file.0, libc::F_SETLK, Part(libc::F_UNLCK, TAKES.1))?;
                return Ok(Some(LockedFile(file)));
            }
            if !Owner::read(&file.0).is_some_and(|owner| owner.has_ended()) {
                return Ok(None);
            }
            // A copy of the descriptor has outlived it. Other processes that wait here open the new file.
            std::fs::remove_file(path)?;
        }
    }

    pub(crate) fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.0.0.metadata()
    }
}

/// A byte of a file that is locked, and how.
#[derive(Clone, Copy)]
struct Part(libc::c_int, libc::off_t);

/// The lock itself, and what is locked while that is taken.
const HELD: Part = Part(libc::F_WRLCK, 0);
const TAKES: Part = Part(libc::F_WRLCK, 1 << 40);

fn set_lock(file: &File, command: libc::c_int, part: Part) -> io::Result<()> {
    loop {
        // SAFETY: all zeros is a lock, and the descriptor is there.
        let done = unsafe {
            let mut lock: libc::flock = std::mem::zeroed();
            lock.l_type = part.0 as libc::c_short;
            lock.l_start = part.1;
            lock.l_len = 1;
            libc::fcntl(file.as_raw_fd(), command, &lock)
        };
        let why = io::Error::last_os_error();
        match done {
            0 => return Ok(()),
            _ if why.kind() == io::ErrorKind::Interrupted => {}
            _ => return Err(why),
        }
    }
}

fn try_lock(file: &File) -> io::Result<bool> {
    match set_lock(file, libc::F_OFD_SETLK, HELD) {
        Ok(()) => Ok(true),
        Err(why) if matches!(why.raw_os_error(), Some(libc::EACCES | libc::EAGAIN)) => Ok(false),
        Err(why) => Err(why),
    }
}

/// Is it still what has this name?
fn is_at(file: &File, path: &Path) -> bool {
    let there = std::fs::symlink_metadata(path);
    let same = |m: std::fs::Metadata| there.is_ok_and(|t| (t.dev(), t.ino()) == (m.dev(), m.ino()));
    file.metadata().is_ok_and(same)
}

/// The process that has locked a file, as it is written there: its number, when it began, and the namespace of the
/// number.
#[derive(Debug, PartialEq, Eq)]
struct Owner(i32, u64, u64);

impl Owner {
    fn this() -> Owner {
        let process = std::process::id() as i32;
        Owner(process, began(process).unwrap_or(0), namespace())
    }

    fn write(&self, file: &File) -> io::Result<()> {
        let text = format!("{} {} {}\n", self.0, self.1, self.2);
        file.set_len(0)?;
        file.write_all_at(text.as_bytes(), 0)
    }

    /// By the descriptor that there is: where another one of the file is closed, locks of records go.
    fn read(file: &File) -> Option<Owner> {
        let mut text = [0; 100];
        let length = file.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        let mut words = text.split_ascii_whitespace();
        let process = words.next()?.parse().ok()?;
        let mut number = || words.next().and_then(|word| word.parse().ok());
        Some(Owner(process, number()?, number()?))
    }

    /// Of another namespace that is not known.
    fn has_ended(&self) -> bool {
        let other = || began(self.0).is_some_and(|began| began != self.1);
        self.0 > 0 && self.2 == namespace() && (has_ended(self.0) || other())
    }
}

/// Which numbers processes have for this one.
fn namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino())
}

/// Does a process that lives listen at this socket? One that has forked children, and ended, does not, though they have
/// it.
pub fn listens(path: &Path) -> bool {
    UnixStream::connect(path).is_ok_and(|stream| lives_behind(&stream))
}

/// Is the process that has called `listen` at the other end alive? It may have ended, where a child has its socket
/// still. A process of another namespace has no number here, and counts as alive.
pub fn lives_behind(stream: &impl AsRawFd) -> bool {
    peer(stream).is_none_or(|process| !has_ended(process as i32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_locked_file_is_locked_once_and_free_again_then() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open = || {
            LockedFile::open(&path, || {
                let mut options = File::options();
                options.create(true).truncate(false).read(true).write(true);
                options.open(&path)
            })
        };
        let first = open().unwrap().unwrap();
        assert!(open().unwrap().is_none());
        // Another descriptor of the file that is closed does not unlock it.
        drop(File::open(&path).unwrap());
        assert!(open().unwrap().is_none());
        drop(first);
        assert!(open().unwrap().is_some());
    }

    /// A copy of the descriptor keeps the lock when its process has ended.
    #[test]
    fn the_lock_of_a_process_that_has_ended_gives_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let create = || {
            let mut options = File::options();
            options.create(true).truncate(false).read(true).write(true);
            options.open(&path)
        };
        let mut copy = create().unwrap();
        assert!(try_lock(&copy).unwrap());
        let mut child = Command::new("true").spawn().unwrap();
        let Owner(_, _, namespace) = Owner::this();
        let ended = Owner(
            child.id() as i32,
            began(child.id() as i32).unwrap(),
            namespace,
        );
        child.wait().unwrap();
        for (owner, is_free) in [
            (Owner::this(), false),
            (Owner(ended.0, ended.1, namespace + 1), false),
            // Its number is another's by now.
            (Owner(Owner::this().0, 0, namespace), true),
            (ended, true),
        ] {
            owner.write(&copy).unwrap();
            assert_eq!(Owner::read(&copy), Some(Owner(owner.0, owner.1, owner.2)));
            let taken = LockedFile::open(&path, create).unwrap();
            assert_eq!(taken.is_some(), is_free, "{owner:?}");
            if let Some(lock) = taken {
                assert!(is_at(&lock.0.0, &path));
                assert!(LockedFile::open(&path, create).unwrap().is_none());
                drop(lock);
                copy = create().unwrap();
                assert!(try_lock(&copy).unwrap());
            }
        }
    }

    #[test]
    fn what_was_open_at_first_is_known_until_its_number_is_anothers() {
        let folder = tempfile::tempdir().unwrap();
        let first = File::create(folder.path().join("a")).unwrap();
        let known = Identity::of(first.as_raw_fd()).unwrap();
        assert_eq!(Identity::of(first.as_raw_fd()), Some(known));
        let second = File::create(folder.path().join("b")).unwrap();
        assert_ne!(Identity::of(second.as_raw_fd()), Some(known));
    }

    #[test]
    fn connections_are_known_by_their_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        let own = path.as_os_str().as_bytes();
        let is_own = |fd, address| is_own_socket(fd, address, b"");
        assert!(is_own(listener.as_raw_fd(), own) && is_own(server.as_raw_fd(), own));
        assert!(!is_own(client.as_raw_fd(), own) && !is_own(listener.as_raw_fd(), b"/other"));
        // Of an isolated application it has the other end.
        let is_isolated = |fd| is_own_socket(fd, b"/other", b"/a.s");
        assert!(is_isolated(client.as_raw_fd()) && !is_isolated(listener.as_raw_fd()));
        let file = File::open(folder.path()).unwrap();
        assert!(!is_isolated(file.as_raw_fd()) && !is_own(file.as_raw_fd(), b""));
        assert!(lives_behind(&client) && listens(&path));
        let mut all = Vec::new();
        for_each_descriptor(|fd| all.push(fd));
        for fd in [listener.as_raw_fd(), server.as_raw_fd()] {
            assert!(all.contains(&fd), "{all:?}");
        }
    }
}
