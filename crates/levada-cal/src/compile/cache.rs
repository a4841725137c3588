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
use std::time::{Duration, SystemTime};

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

/// Whether an object that [`compile`] returned is still in the cache, unchanged.
pub fn is_kept(object: &Path) -> bool {
    let is = is_sound(object);
    if is {
        touch(object);
    }
    is
}

/// Maximum size of a compiled network.
const OBJECT_BYTES_MAX: u64 = 4 << 30;

/// Whether the file exists, belongs to this user only, and is undamaged.
pub fn is_sound(kept: &Path) -> bool {
    let file = open_private(kept, fs::File::options().read(true));
    file.and_then(|file| has_seal(&file)).unwrap_or(false)
}

pub fn touch(path: &Path) {
    // The time of the last use orders the cache. Errors in setting it are ignored.
    if let Ok(f) = fs::File::options().append(true).open(path) {
        let _ = f.set_modified(SystemTime::now());
    }
}

/// Whether Levada created this file. The user may have named a folder with other files.
fn is_ours(path: &Path) -> bool {
    let text = |part: Option<&'_ std::ffi::OsStr>| part.and_then(|p| p.to_str()).map(str::to_owned);
    let stem = text(path.file_stem()).unwrap_or_default();
    let is_hash = stem.len() >= 40 && stem.bytes().all(|b| b.is_ascii_hexdigit());
    match text(path.extension()).as_deref() {
        Some("so" | "o" | "measured" | "prepared" | "undeclared") => is_hash,
        Some("c") => stem.starts_with("refused-"),
        _ => false,
    }
}

/// Maximum size of the cache; recently used files are never removed.
const CACHE_BYTES: u64 = 512 << 20;
const RECENT: Duration = Duration::from_secs(600);

pub fn prune(cache: &Path) {
    remove_abandoned(cache);
    let Ok(entries) = fs::read_dir(cache) else {
        return;
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter(|e| is_ours(&e.path()))
        .filter_map(|e| {
            let meta = e.metadata().ok()?;
            Some((meta.modified().ok()?, meta.len(), e.path()))
        })
        .collect();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    files.sort();
    for (used, size, path) in files {
        let recent = used.elapsed().map_or(true, |age| age < RECENT);
        if total <= CACHE_BYTES || recent {
            return;
        }
        if fs::remove_file(&path).is_ok() {
            total -= size;
        }
    }
}

/// Removes the scratch folders of processes that were killed.
fn remove_abandoned(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let of = name.to_str().and_then(|n| n.strip_prefix("tmp-"));
        let process = of.and_then(|n| n.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|p| !Path::new(&format!("/proc/{p}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A folder for one compilation, in the cache so that renames stay on one file system.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(cache: &Path) -> Result<Scratch, CompileError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = cache.join(format!("tmp-{}-{n}", std::process::id()));
        // Left by a process with the same id that was killed.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).map_err(|why| CompileError::Cache {
            path: cache.to_path_buf(),
            why,
        })?;
        Ok(Scratch(dir))
    }

    pub fn keep(&self) -> PathBuf {
        let kept = self.0.with_file_name("tmp-refused");
        let _ = fs::remove_dir_all(&kept);
        match fs::rename(&self.0, &kept) {
            Ok(()) => kept,
            Err(_) => self.0.clone(),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
