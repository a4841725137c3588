// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cache of compiled objects. The name of a file is the hash of all its inputs, and the file ends with the hash
//! of its content.

use super::CompileError;
use levada_files::{make_private_folder, open_private};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The folder of the cache: `$LEVADA_CACHE`, else `$XDG_CACHE_HOME/levada`, else `~/.cache/levada`, else a folder of
/// this user among the temporary files.
pub fn cache_dir() -> PathBuf {
    let folder = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|p| p.is_absolute())
    };
    folder("LEVADA_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|p| p.join("levada")))
        .or_else(|| folder("HOME").map(|p| p.join(".cache/levada")))
        .unwrap_or_else(|| std::env::temp_dir().join(format!("levada-{}", user())))
}

fn user() -> u32 {
    fs::metadata("/proc/self").map_or(0, |m| m.uid())
}

/// Makes the folder private: its objects are loaded into this process, so no other user may be able to write it.
pub fn make_private(cache: &Path) -> Result<(), CompileError> {
    let refuse = |why: io::Error| CompileError::Cache {
        path: cache.to_path_buf(),
        why,
    };
    make_private_folder(cache).map_err(refuse)
}

/// Removes everything from the cache; returns the number of bytes.
pub fn clean_cache(dir: &Path) -> io::Result<u64> {
    let mut freed = 0;
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(e),
    };
    for e in entries {
        let e = e?;
        let meta = e.metadata()?;
        if meta.is_dir() {
            if e.file_name().to_string_lossy().starts_with("tmp-") {
                fs::remove_dir_all(e.path())?;
            }
        } else if is_ours(&e.path()) {
            freed += meta.len();
            fs::remove_file(e.path())?;
        }
    }
    Ok(freed)
}

/// Moves a file into the cache and appends the hash of its content. No fsync is needed, since the hash detects a file
/// that a system crash has truncated.
pub fn keep(made: &Path, kept: &Path) -> Result<(), CompileError> {
    let sealed = seal(made).and_then(|()| fs::rename(made, kept));
    sealed.map_err(|why| CompileError::File {
        path: kept.to_path_buf(),
        why,
    })
}

/// Appends the hash of its content to a file.
pub fn seal(made: &Path) -> io::Result<()> {
    let hash = hash_of(fs::File::open(made)?)?;
    fs::File::options()
        .append(true)
        .open(made)?
        .write_all(&hash)
}

/// The hash of all that can be read, of which a part is in memory at a time.
pub fn hash_of(mut content: impl Read) -> io::Result<[u8; SEAL_BYTES]> {
    let mut hash = Sha256::new();
    let mut part = vec![0; 1 << 16];
    loop {
        match content.read(&mut part) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(bytes) => hash.update(&part[..bytes]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The size of a seal, a SHA-256 hash.
pub const SEAL_BYTES: usize = 32;

/// The first bytes of shared objects and programs of this system.
const OBJECT_BEGINS: &[u8] = b"\x7fELF";

/// Is this an object that ends with the hash of all before it? What is none, or is larger than all that are made, is
/// not read further.
pub fn has_seal(mut file: &fs::File) -> io::Result<bool> {
    let size = file.metadata()?.len();
    let content_bytes = size.saturating_sub(SEAL_BYTES as u64);
    let least = OBJECT_BEGINS.len() as u64;
    if content_bytes < least || size > OBJECT_BYTES_MAX {
        return Ok(false);
    }
    let mut begins = [0; OBJECT_BEGINS.len()];
    file.read_exact(&mut begins)?;
    if begins != OBJECT_BEGINS {
        return Ok(false);
    }
    let hash = hash_of((&begins[..]).chain(file.take(content_bytes - least)))?;
    let mut kept = [0; SEAL_BYTES];
    file.read_exact(&mut kept)?;
    Ok(kept == hash)
}

/// Whether an object that [`compile`] returned is still in the cache, unchanged. It is then marked as used now, and is
/// not removed for some minutes.
///
/// [`compile`]: super::compile
pub fn is_kept(object: &Path) -> bool {
    let Ok(file) = open_private(object, fs::File::options().read(true)) else {
        return false;
    };
    // Against its removal meanwhile; some file systems have no locks.
    let _ = file.lock_shared();
    let is = has_seal(&file).unwrap_or(false);
    let _ = file.set_modified(SystemTime::now());
    // It may have been removed before it was locked.
    is && file.metadata().is_ok_and(|meta| meta.nlink() > 0)
}

/// Maximum size of a compiled network.
const OBJECT_BYTES_MAX: u64 = 4 << 30;

/// Whether Levada created this file. The user may have named a folder with other files.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    is_hash(name.split('.').next().unwrap_or_default())
        || name.starts_with("refused-") && name.ends_with(".c")
}

/// Whether this is the name that the cache gives a file: a part of a hash.
pub fn is_hash(name: &str) -> bool {
    name.len() >= 40 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A folder for one compilation, in the cache so that renames stay on one file system. It is locked while it exists.
pub struct Scratch {
    pub path: PathBuf,
    _lock: fs::File,
}

impl Scratch {
    pub fn new(cache: &Path) -> Result<Scratch, CompileError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let create = || loop {
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = cache.join(format!("tmp-{}-{n}", std::process::id()));
            match fs::create_dir(&path) {
                // Of a process with the same number, which was killed or is in another container.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
                Ok(()) => {
                    let lock = fs::File::open(&path)?;
                    let _ = lock.lock();
                    return Ok(Scratch { path, _lock: lock });
                }
            }
        };
        create().map_err(|why| CompileError::Cache {
            path: cache.to_path_buf(),
            why,
        })
    }

    pub fn keep(&self) -> PathBuf {
        let kept = self.path.with_file_name("tmp-refused");
        let _ = fs::remove_dir_all(&kept);
        match fs::rename(&self.path, &kept) {
            Ok(()) => kept,
            Err(_) => self.path.clone(),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
