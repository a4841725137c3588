// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Unix socket of a host: its usual path, its permissions, inheritance from a service manager, and renewal.

mod folder_watch;
mod lock;

use crate::http::socket::folder_watch::FolderWatch;
use crate::http::socket::lock::Lock;
use crate::model::error::{Kind, Refusal};
use crate::util::at_fork::{keep_from_children, listens};
use crate::util::lock::lock as locked;
use levada_files::check_way_to;
use std::ffi::CString;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// `$XDG_RUNTIME_DIR/levada/host.sock`, or `/run/levada/host.sock` for root.
pub fn usual_path() -> Result<PathBuf, Refusal> {
    // SAFETY: has no preconditions.
    if unsafe { libc::geteuid() } == 0 {
        return Ok(PathBuf::from("/run/levada/host.sock"));
    }
    let dir = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match dir.filter(|d| d.is_absolute()) {
        Some(dir) => Ok(dir.join("levada/host.sock")),
        None => Err(Refusal::new(
            Kind::Wrong,
            "XDG_RUNTIME_DIR is not set, so there is no usual place for the host's socket",
        )
        .help("name one with --socket PATH")),
    }
}

/// A listening socket, which is removed at the end.
pub struct Socket {
    pub(crate) listener: UnixListener,
    place: Option<Place>,
}

/// The path of a socket that this host has created.
struct Place {
    path: PathBuf,
    /// The group that may use it, too.
    group: Option<u32>,
    bound: Mutex<Bound>,
}

struct Bound {
    /// Device and inode of the socket file.
    file: (u64, u64),
    /// Held until this host ends, however it ends.
    lock: Lock,
}

fn cannot(path: &Path, why: impl std::fmt::Display) -> Refusal {
    Refusal::new(Kind::Conflict, format!("{}: {why}", path.display()))
}

impl Socket {
    /// From now on forked children have neither this socket nor its connections.
    pub fn keep_from_children(&self) {
        keep_from_children(&self.listener);
    }

    /// A file in the folder of the socket, opened for appending.
    pub fn open_sibling(&self, name: &str) -> std::io::Result<std::fs::File> {
        let address = self.listener.local_addr()?;
        let path = address.as_pathname().map(|path| path.with_file_name(name));
        let path = path.ok_or(std::io::ErrorKind::NotFound)?;
        std::fs::File::options()
            .create(true)
            .append(true)
            .open(path)
    }

    /// Listens at `path`, for this user and optionally a group. The socket of a dead host is removed; that of a living
    /// one is not touched.
    pub fn bind(path: &Path, group: Option<&str>) -> Result<Socket, Refusal> {
        let group = group.map(group_number).transpose()?;
        // A relative name would lead elsewhere if an application changes the working directory.
        let path = &std::path::absolute(path).map_err(|e| cannot(path, e))?;
        let (listener, bound) = listen(path, group)?;
        let place = Place {
            path: path.clone(),
            group,
            bound: Mutex::new(bound),
        };
        Ok(Socket {
            listener,
            place: Some(place),
        })
    }

    /// Waits until the socket or its lock file has been removed, and listens there again. Fails if that is not
    /// possible, since no client would find this host then.
    pub(crate) async fn renewed(&self) -> Result<UnixListener, Refusal> {
        let Some(place) = &self.place else {
            return std::future::pending().await;
        };
        let Some(folder) = place.path.parent() else {
            return std::future::pending().await;
        };
        loop {
            // Before the check: later removals raise an event.
            let watch = FolderWatch::new(folder);
            if let Some(listener) = place.renew()? {
                return Ok(listener);
            }
            let changed = match &watch {
                Ok(watch) => watch.changed().await,
                // Without a watch nothing is known, as with a folder on another file system.
                Err(_) => std::future::pending().await,
            };
            if changed.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// The socket that systemd passes (LISTEN_FDS), if there is one.
    pub fn inherited() -> Result<Option<Socket>, Refusal> {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        if number("LISTEN_PID") != Some(std::process::id()) {
            return Ok(None);
        }
        match number("LISTEN_FDS") {
            None | Some(0) => return Ok(None),
            Some(1) => {}
            Some(n) => {
                let what = format!("{n} sockets are handed over (LISTEN_FDS), and one is wanted");
                return Err(Refusal::new(Kind::Wrong, what));
            }
        }
        // SAFETY: the process that set LISTEN_PID to ours has passed this descriptor, and it is taken once.
        unsafe { Socket::given(3, "LISTEN_FDS") }.map(Some)
    }

    /// The listening socket that the parent process has passed as descriptor `fd`; `by` names the mechanism.
    ///
    /// # Safety
    ///
    /// Nothing else in this process uses this descriptor.
    pub unsafe fn given(fd: RawFd, by: &str) -> Result<Socket, Refusal> {
        // SAFETY: reads a property of any descriptor.
        if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
            let what = format!("no socket is handed over ({by})");
            return Err(Refusal::new(Kind::Wrong, what));
        }
        // SAFETY: it exists, and belongs to the caller.
        let listener = unsafe { UnixListener::from_raw_fd(fd) };
        if let Err(e) = listener.local_addr() {
            let what = format!("the inherited descriptor ({by}) is not a Unix socket: {e}");
            return Err(Refusal::new(Kind::Wrong, what));
        }
        let has = |property| {
            let (mut value, mut size) = (0, size_of::<libc::c_int>() as libc::socklen_t);
            let (at, level) = (&raw mut value, libc::SOL_SOCKET);
            // SAFETY: `value` and `size` exist, and `size` is the size of `value`.
            let done = unsafe { libc::getsockopt(fd, level, property, at.cast(), &raw mut size) };
            (done == 0).then_some(value)
        };
        if has(libc::SO_TYPE) != Some(libc::SOCK_STREAM) || has(libc::SO_ACCEPTCONN) != Some(1) {
            let what = format!("the inherited descriptor ({by}) is not a listening stream socket");
            return Err(Refusal::new(Kind::Wrong, what)
                .help("in a systemd unit: ListenStream, and Accept=no"));
        }
        Ok(Socket {
            listener,
            place: None,
        })
    }

    /// Its path, if this host created it.
    pub fn path(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.path.as_path())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(place) = &self.place
            && there(&place.path) == Some(locked(&place.bound).file)
        {
            let _ = std::fs::remove_file(&place.path);
        }
    }
}

impl Place {
    /// Listens there again, if the socket or its lock file is gone.
    fn renew(&self) -> Result<Option<UnixListener>, Refusal> {
        let mut bound = locked(&self.bound);
        match there(&self.path) {
            Some(file) if file == bound.file => {
                if !bound.lock.is_there() {
                    bound.lock = Lock::of(&self.path)?;
                    bound.lock.serves();
                }
                return Ok(None);
            }
            Some(_) => return Err(cannot(&self.path, "something else is there now")),
            None => {}
        }
        if bound.lock.is_there() {
            let (listener, file) = bind(&self.path, self.group)?;
            bound.file = file;
            return Ok(Some(listener));
        }
        let (listener, rebound) = listen(&self.path, self.group)?;
        *bound = rebound;
        Ok(Some(listener))
    }
}

/// Device and inode of the file at this path.
fn there(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Listens there, if no other host does.
fn listen(path: &Path, group: Option<u32>) -> Result<(UnixListener, Bound), Refusal> {
    if let Some(folder) = path.parent() {
        let mode = if group.is_some() { 0o755 } else { 0o700 };
        // Only the last folder is created: if its parents do not exist, the name is wrong.
        match std::fs::DirBuilder::new().mode(mode).create(folder) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            made => {
                made.map_err(|e| cannot(folder, e).help("name another place with --socket PATH"))?
            }
        }
        // Another user that could replace the socket would receive the requests that are meant for this host.
        check_way_to(folder, group).map_err(|e| {
            cannot(path, e).help("name a socket in a folder of your own with --socket PATH")
        })?;
    }
    if let Some(group) = group {
        lets_in(path.parent(), group)?;
    }
    let mut lock = Lock::of(path)?;
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => {
            return Err(cannot(path, "there is something that is no socket")
                .help("name another place with --socket PATH"));
        }
        Ok(_) if listens(path) => {
            return Err(cannot(path, "something else listens there")
                .help("name another socket with --socket PATH"));
        }
        Ok(_) => std::fs::remove_file(path).map_err(|e| cannot(path, e))?,
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(cannot(path, e)),
    }
    let (listener, file) = bind(path, group)?;
    lock.serves();
    Ok((listener, Bound { file, lock }))
}

/// A socket for this user and the group only, and its device and inode.
fn bind(path: &Path, group: Option<u32>) -> Result<(UnixListener, (u64, u64)), Refusal> {
    // Reports a path that is too long.
    SocketAddr::from_pathname(path).map_err(|e| cannot(path, e))?;
    let failed = || cannot(path, std::io::Error::last_os_error());
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: has no preconditions.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return Err(failed());
    }
    // SAFETY: it is new, and ours.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // The socket file gets the mode of its descriptor, so that no other user can connect before its mode is set.
    // SAFETY: the descriptor is open.
    if unsafe { libc::fchmod(fd, 0o600) } != 0 {
        return Err(failed());
    }
    // SAFETY: all zeros are a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(path.as_os_str().as_bytes()) {
        *to = *from as libc::c_char;
    }
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address has the size that is passed, and its path is terminated.
    if unsafe { libc::bind(fd, (&raw const address).cast(), size) } != 0 {
        return Err(failed());
    }
    let file = there(path).ok_or_else(failed)?;
    if let Some(group) = group {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
        // SAFETY: the name is terminated.
        let given = unsafe {
            libc::chown(name.as_ptr(), u32::MAX, group) == 0
                && libc::chmod(name.as_ptr(), 0o660) == 0
        };
        if !given {
            let why = std::io::Error::last_os_error();
            let _ = std::fs::remove_file(path);
            return Err(cannot(path, format!("cannot be given to the group: {why}")));
        }
    }
    // SAFETY: the descriptor is open.
    if unsafe { libc::listen(socket.as_raw_fd(), libc::SOMAXCONN) } != 0 {
        let why = failed();
        let _ = std::fs::remove_file(path);
        return Err(why);
    }
    Ok((UnixListener::from(socket), file))
}

/// A socket for a group is useless if the group cannot enter its folder.
fn lets_in(folder: Option<&Path>, group: u32) -> Result<(), Refusal> {
    let folder = folder.filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let whole = folder.canonicalize().map_err(|e| cannot(folder, e))?;
    for one in whole.ancestors() {
        let there = std::fs::metadata(one).map_err(|e| cannot(one, e))?;
        let bit = if there.gid() == group { 0o010 } else { 0o001 };
        if there.mode() & bit == 0 {
            let why = format!(
                "the group cannot get in there (mode {:o})",
                there.mode() & 0o7777
            );
            return Err(cannot(one, why).help(
                "let it in with chmod, or name a socket in another folder with --socket PATH",
            ));
        }
    }
    Ok(())
}

/// A group by its name or number.
fn group_number(name: &str) -> Result<u32, Refusal> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let text = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let mut groups = text.lines().map(|l| l.split(':').collect::<Vec<_>>());
    let found = groups.find(|g| g.first() == Some(&name));
    found.and_then(|g| g.get(2)?.parse().ok()).ok_or_else(|| {
        Refusal::new(
            Kind::Wrong,
            format!("--group {name}: there is no such group"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_folder_of_a_socket_is_made_and_none_above_it() {
        let place = tempfile::tempdir().unwrap();
        let wrong = place.path().join("a/b/host.sock");
        let Err(refused) = Socket::bind(&wrong, None) else {
            panic!("there is no such folder");
        };
        assert!(refused.what.contains("a/b: No such file"), "{refused}");
        assert!(!place.path().join("a").exists());
        for _ in 0..2 {
            assert!(Socket::bind(&place.path().join("b/host.sock"), None).is_ok());
        }
    }

    #[test]
    fn a_group_that_cannot_get_there_is_told() {
        let place = tempfile::tempdir().unwrap();
        // SAFETY: has no preconditions.
        let group = unsafe { libc::getegid() }.to_string();
        let mode = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(place.path(), mode).unwrap();
        };
        let socket = place.path().join("a/host.sock");
        mode(0o700);
        let Err(refused) = Socket::bind(&socket, Some(&group)) else {
            panic!("the group cannot get there");
        };
        assert!(refused.what.contains("cannot get in"), "{refused}");
        mode(0o755);
        if lets_in(place.path().parent(), group.parse().unwrap()).is_ok() {
            assert!(Socket::bind(&socket, Some(&group)).is_ok());
        }
    }
}
