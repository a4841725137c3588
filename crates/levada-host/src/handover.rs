// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handing over: what an application has open goes to its new version, between two elements.
//!
//! The natives of both do it (`files.h` of the compiler's library); the host says where: a folder that
//! only it can use, made when it is needed. Nothing is left in it when the new version has taken what is
//! there; what it has not taken is given back to where it belongs.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Names of natives' options.
pub const LEAVES: &str = "levada.handover";
pub const TAKES: &str = "levada.takeover";

/// A place for an application to leave things at, which is not there yet.
pub fn place() -> PathBuf {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("levada-handover-{}-{number}", std::process::id()))
}

/// A folder that asks for the input, or the output, or both.
pub struct Handover {
    folder: PathBuf,
}

impl Handover {
    /// Fails where anything is there already: it is nobody else's.
    pub fn ask(folder: &Path, input: bool, output: bool) -> io::Result<Handover> {
        std::fs::DirBuilder::new().mode(0o700).create(folder)?;
        let asked = Handover {
            folder: folder.to_path_buf(),
        };
        for (name, wanted) in [("in", input), ("out", output)] {
            if wanted {
                std::fs::write(folder.join(name), "")?;
            }
        }
        Ok(asked)
    }
}

impl Handover {
    /// The new version has ended. Where it had nothing to write, it has not taken the output: that is
    /// finished here, or dropped, as the application would have done.
    pub fn end(&self, keep: bool) {
        let left = |what: &str| {
            let path = self.folder.join(what);
            let bytes = std::fs::read(&path).unwrap_or_default();
            let _ = std::fs::remove_file(path);
            (bytes.get(..4)? == 1i32.to_ne_bytes()).then_some(bytes)
        };
        let close = |bytes: &[u8]| {
            if let Some(Ok(fd)) = bytes.get(4..8).map(<[u8; 4]>::try_from) {
                let fd = i32::from_ne_bytes(fd);
                if fd > 2 {
                    // SAFETY: the version before has left it, and nobody has taken it.
                    unsafe { libc::close(fd) };
                }
            }
        };
        if let Some(bytes) = left("in") {
            close(&bytes);
        }
        if let Some(bytes) = left("out") {
            close(&bytes);
            let length = |at: usize| {
                let n = bytes.get(at..at + 8)?.try_into().ok()?;
                usize::try_from(u64::from_ne_bytes(n)).ok()
            };
            let text = |at: usize, n: usize| {
                let text = bytes.get(at..at.checked_add(n)?)?;
                Some(PathBuf::from(std::ffi::OsStr::from_bytes(text)))
            };
            if let (Some(name), Some(temporary)) = (length(16), length(24))
                && temporary > 0
                && let (Some(to), Some(from)) = (text(32, name), text(32 + name, temporary))
            {
                let _ = match keep {
                    true => std::fs::rename(from, to),
                    false => std::fs::remove_file(from),
                };
            }
        }
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        self.end(false);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_asked_for_once_and_gone_afterwards() {
        let folder = place();
        assert_ne!(folder, place());
        let asked = Handover::ask(&folder, true, false).unwrap();
        assert!(folder.join("in").exists() && !folder.join("out").exists());
        assert!(Handover::ask(&folder, true, true).is_err());
        drop(asked);
        assert!(!folder.exists());
    }
}
