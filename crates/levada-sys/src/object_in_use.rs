// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Marks objects that this process has loaded as used: with a shared lock (`flock`), which the kernel releases when the
//! process ends, in whatever way. The cache of compiled networks removes no file with such a lock.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Device and inode.
type FileId = (u64, u64);

/// One descriptor for each object, however many networks are made of it.
static LOCKED: Mutex<Option<HashMap<FileId, Weak<File>>>> = Mutex::new(None);

/// Locks a file until the result is dropped. None: it cannot be opened, or the file system has no locks.
pub fn lock(path: &Path) -> Option<Arc<File>> {
    let file = File::open(path).ok()?;
    let meta = file.metadata().ok()?;
    let id = (meta.dev(), meta.ino());
    let mut locked = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    let locked = locked.get_or_insert_default();
    if let Some(known) = locked.get(&id).and_then(Weak::upgrade) {
        return Some(known);
    }
    // It waits only while the object is being removed, and loading it then fails.
    file.lock_shared().ok()?;
    let file = Arc::new(file);
    locked.retain(|_, file| file.strong_count() > 0);
    locked.insert(id, Arc::downgrade(&file));
    Some(file)
}
