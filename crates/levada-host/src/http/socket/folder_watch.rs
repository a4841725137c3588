// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Watches the folder of the socket for removed names (inotify): a program that cleans temporary folders may remove
//! the socket, and then no client finds the host.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub struct FolderWatch(AsyncFd<OwnedFd>);

impl FolderWatch {
    pub fn new(folder: &Path) -> io::Result<FolderWatch> {
        let path = CString::new(folder.as_os_str().as_bytes())?;
        // SAFETY: has no preconditions.
        let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is new, and ours.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let goes = libc::IN_DELETE
            | libc::IN_MOVED_FROM
            | libc::IN_MOVED_TO
            | libc::IN_DELETE_SELF
            | libc::IN_MOVE_SELF
            | libc::IN_ONLYDIR;
        // SAFETY: the descriptor is open, and the path is terminated.
        if unsafe { libc::inotify_add_watch(fd.as_raw_fd(), path.as_ptr(), goes) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it stays open for as long as it is owned.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Ok(FolderWatch(fd.map_err(|e| e.into_parts().1)?))
    }

    /// Waits until a name in the folder was removed or replaced.
    pub async fn changed(&self) -> io::Result<()> {
        let mut ready = self.0.readable().await?;
        let mut events = [0_u8; 4096];
        // The events themselves are not needed: the folder is examined.
        loop {
            let fd = self.0.get_ref().as_raw_fd();
            // SAFETY: the descriptor is open, and the buffer has that size.
            let read = unsafe { libc::read(fd, events.as_mut_ptr().cast(), events.len()) };
            if read <= 0 {
                ready.clear_ready();
                return Ok(());
            }
        }
    }
}
