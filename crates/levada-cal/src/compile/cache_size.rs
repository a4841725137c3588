// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bounds the size of the cache: after each compilation the least recently used networks are removed until the rest is
//! within the limit.
//!
//! A network is removed with everything that belongs to it: the files of one name. What is used is never removed: a
//! process that has loaded a network holds a shared lock on its object ([`super::is_kept`] takes it while it checks
//! the object, `levada_sys::Network` until the network is dropped), and what was used within [`RECENT`] stays, so that
//! a process can load what it has just found. The locks are those of `flock`: the kernel releases them when a process
//! is killed.

use super::cache::is_hash;
use levada_text::parse_bytes;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The environment variable that sets the limit.
pub const SIZE_VARIABLE: &str = "LEVADA_CACHE_SIZE";

/// The limit if none is set.
const DEFAULT_BYTES: u64 = 512 << 20;

/// What was used within this time is not removed.
const RECENT: Duration = Duration::from_secs(600);

/// A scratch folder is created and locked within this time.
const LOCKED_WITHIN: Duration = Duration::from_secs(60);

/// The limit in bytes; the error says what is wrong with [`SIZE_VARIABLE`].
pub fn size_limit() -> Result<u64, String> {
    match std::env::var(SIZE_VARIABLE) {
        Ok(text) if !text.trim().is_empty() => parse_bytes(text.trim()).ok_or_else(|| {
            format!("{SIZE_VARIABLE}={text} is not a number of bytes, such as 800M or 2G")
        }),
        _ => Ok(DEFAULT_BYTES),
    }
}

/// The files of one name: an object with what was measured of it, an entry, or an object of one C file.
struct Group {
    used: SystemTime,
    bytes: u64,
    files: Vec<PathBuf>,
}

/// The files of the cache by their name.
fn groups(cache: &Path) -> BTreeMap<String, Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        // Temporary files of killed processes, such as HASH.measured-123, are of the group, too.
        let name = name.to_str().and_then(|name| name.split('.').next());
        let (Some(name), Ok(meta)) = (name.filter(|name| is_hash(name)), entry.metadata()) else {
            continue;
        };
        let (Ok(used), true) = (meta.modified(), meta.is_file()) else {
            continue;
        };
        let group = groups.entry(name.to_string()).or_insert_with(|| Group {
            used,
            bytes: 0,
            files: Vec::new(),
        });
        const BLOCK_BYTES: u64 = 512;
        group.bytes += meta.len().max(meta.blocks() * BLOCK_BYTES);
        group.used = group.used.max(used);
        group.files.push(path);
    }
    groups
}

/// The size of all files of the cache, in bytes.
pub fn size(cache: &Path) -> u64 {
    groups(cache).values().map(|group| group.bytes).sum()
}

/// Removes the least recently used networks that are beyond the limit, and what killed processes have left.
pub fn prune(cache: &Path, limit: u64) {
    // One process does it at a time.
    let Ok(folder) = File::open(cache) else {
        return;
    };
    if folder.try_lock().is_err() {
        return;
    }
    remove_abandoned(cache);
    let mut groups: Vec<Group> = groups(cache).into_values().collect();
    let mut total: u64 = groups.iter().map(|group| group.bytes).sum();
    groups.sort_by_key(|group| group.used);
    for group in groups {
        if total <= limit || is_recent(group.used, RECENT) {
            return;
        }
        if remove(&group) {
            total -= group.bytes;
        }
    }
}

fn is_recent(time: SystemTime, within: Duration) -> bool {
    time.elapsed().map_or(true, |age| age < within)
}

/// Removes a group unless it is used. The object goes first: without it the rest is not used.
fn remove(group: &Group) -> bool {
    let is_object = |path: &&PathBuf| path.extension().is_some_and(|e| e == "so");
    // Held until its file is removed.
    let mut lock = None;
    if let Some(object) = group.files.iter().find(is_object) {
        let Ok(file) = File::open(object) else {
            return false;
        };
        if file.try_lock().is_err() {
            return false;
        }
        // It may have been used since the folder was read.
        let used = file.metadata().and_then(|meta| meta.modified());
        if used.is_ok_and(|used| is_recent(used, RECENT)) || fs::remove_file(object).is_err() {
            return false;
        }
        lock = Some(file);
    }
    for file in group.files.iter().filter(|file| !is_object(file)) {
        let _ = fs::remove_file(file);
    }
    drop(lock);
    true
}

/// Removes the scratch folders and files of processes that were killed. A folder is locked while it is used; the
/// number of its process says nothing, since containers that share a cache do not share these numbers.
fn remove_abandoned(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_scratch = name.to_str().is_some_and(|name| {
            let number = name.strip_prefix("tmp-").and_then(|n| n.split('-').next());
            number.is_some_and(|n| n.parse::<u32>().is_ok())
        });
        let changed = entry.metadata().and_then(|meta| meta.modified());
        if !is_scratch || !changed.is_ok_and(|at| !is_recent(at, LOCKED_WITHIN)) {
            continue;
        }
        let path = entry.path();
        if File::open(&path).is_ok_and(|folder| folder.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
    }
}
