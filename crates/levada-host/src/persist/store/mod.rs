// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state folder: what a host has loaded, for the host after it.
//!
//! Each application has a file, which is written before the application starts and removed when it has ended. Files
//! change atomically and are synced before the application starts. Applications that are loaded together are stored
//! together or not at all. One host uses a folder at a time.
//!
//! - `.version` has the number of the format; a folder of another format is refused.
//! - `NAME.json` says how the application was loaded.
//! - `NAME.quarantined` says why it is quarantined: it has crashed its host (`journal.rs` finds out), and is loaded
//!   again
//!   only by request.
//! - `NAME.unloading` says that it is being unloaded, which may take long: the next host forgets it.
//!
//! A write that fails (disk full, read-only) is reported to the request that caused it, and repeated with a later
//! change or when the host ends.

pub(crate) mod files;
mod forget;
mod not_restored;
mod replacing;
mod save;
#[cfg(test)]
mod tests;
mod version;
mod write;

use crate::model::error::{Kind, Refusal};
use crate::persist::journal::{Journal, quarantine_file};
use crate::persist::store::files::{
    StateFolder, finish, forget_gone, forget_replacing, tidy, write_whole,
};
use crate::persist::store::write::Unsaved;
use crate::util::at_fork::LockedFile;
use crate::util::file_lock::lock_when_released;
use crate::util::lock::lock;
use levada_files::{make_private_folder, open_private};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// The state folder of a host.
#[derive(Debug)]
pub struct StateStore {
    folder: Arc<StateFolder>,
    /// Held during a change of owners and files, until both agree: as long as the disk takes. Taken before `owners`.
    change_lock: Mutex<()>,
    /// Held only briefly: queries do not wait for the disk.
    owners: Mutex<Owners>,
    /// Failed writes by file. Changed under the change lock.
    unsaved: Mutex<BTreeMap<String, Unsaved>>,
    journal: Journal,
    /// Applications that may have crashed the previous host; they are started a few at a time.
    suspects: Vec<String>,
    /// Applications that were being unloaded when the previous host ended.
    unloaded: Vec<String>,
    /// Files that no host has written.
    foreign: Vec<String>,
    /// Held until this host ends, however it ends.
    _lock: LockedFile,
}

/// The owners of the files.
#[derive(Debug, Default)]
struct Owners {
    /// Of this host: the number of the application. Names are reused, numbers are not.
    ours: BTreeMap<String, u64>,
    /// Of the previous host: why the application is not loaded, if known.
    unrestored: BTreeMap<String, Option<String>>,
    /// Applications that are being replaced, and the number of the version that has ended meanwhile.
    replacing: BTreeMap<String, Option<u64>>,
    /// The host is ending: applications that are stopped now stay stored.
    closing: bool,
}

/// What a host restores of the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restore {
    Nothing,
    /// All except quarantined applications.
    Safe,
    All,
}

/// `$XDG_STATE_HOME/levada/host`, `~/.local/state/levada/host`, or `/var/lib/levada/host` for root; none if there is
/// no such folder.
pub fn usual_folder() -> Option<PathBuf> {
    // SAFETY: has no preconditions.
    if unsafe { libc::geteuid() } == 0 {
        return Some(PathBuf::from("/var/lib/levada/host"));
    }
    let folder = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|p| p.is_absolute())
    };
    folder("XDG_STATE_HOME")
        .or_else(|| folder("HOME").map(|h| h.join(".local/state")))
        .map(|s| s.join("levada/host"))
}

impl StateStore {
    pub fn open(folder: &Path) -> Result<StateStore, Refusal> {
        let cannot = |why: &dyn std::fmt::Display| {
            let what = format!("{}: {why}", folder.display());
            Refusal::new(Kind::Conflict, what).help("name another folder with --state DIR")
        };
        version::check(folder).map_err(|e| {
            cannot(&e).help("remove it and load its applications again, or name another folder with --state DIR")
        })?;
        make_private_folder(folder).map_err(|e| cannot(&e))?;
        let path = folder.join(".lock");
        let open = || {
            let mut options = File::options();
            let options = options.create(true).truncate(false).read(true).write(true);
            let file = open_private(&path, options);
            file.map_err(|e| io::Error::new(e.kind(), format!(".lock: {e}")))
        };
        let locked = lock_when_released(&path, open, || false).map_err(|e| cannot(&e))?;
        let file =
            locked.ok_or_else(|| cannot(&"another host remembers there what it has loaded"))?;
        version::mark(folder).map_err(|e| cannot(&e))?;
        let opened = StateFolder::open(folder).map_err(|e| cannot(&e))?;
        let opened = Arc::new(opened);
        finish(folder).map_err(|e| cannot(&e))?;
        forget_replacing(folder);
        let gone = forget_gone(folder);
        let (kept, foreign) = tidy(folder);
        // An application that was being unloaded may have crashed that host as well.
        let all = [&kept[..], &gone].concat();
        let (journal, mut found) = Journal::open(&opened, &all).map_err(|e| cannot(&e))?;
        found.suspects.retain(|name| !gone.contains(name));
        found.guilty = found.guilty.filter(|(name, _)| !gone.contains(name));
        let memory = StateStore {
            folder: opened,
            change_lock: Mutex::default(),
            owners: Mutex::default(),
            unsaved: Mutex::default(),
            journal,
            suspects: found.suspects,
            unloaded: gone,
            foreign,
            _lock: file,
        };
        if let Some((name, why)) = found.guilty {
            let held = write_whole(folder, &quarantine_file(&name), why.as_bytes());
            held.map_err(|e| cannot(&e))?;
        }
        memory.journal.start().map_err(|e| cannot(&e))?;
        let left = kept.into_iter().map(|name| {
            let why = memory.quarantine_reason(&name);
            (name, why)
        });
        memory.owners().unrestored = left.collect();
        Ok(memory)
    }

    /// The start journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Suspects of the previous host's crash.
    pub fn suspects(&self) -> &[String] {
        &self.suspects
    }

    /// Applications that were being unloaded when the previous host ended: forgotten, and not restored.
    pub fn unloaded(&self) -> &[String] {
        &self.unloaded
    }

    /// Files that no host has written; they are not touched.
    pub fn foreign(&self) -> &[String] {
        &self.foreign
    }

    fn owners(&self) -> MutexGuard<'_, Owners> {
        lock(&self.owners)
    }

    /// Changes are made one at a time.
    fn lock_changes(&self) -> MutexGuard<'_, ()> {
        lock(&self.change_lock)
    }

    fn is_ours(&self, name: &str, number: u64) -> bool {
        self.owners().ours.get(name) == Some(&number)
    }

    fn unsaved(&self) -> MutexGuard<'_, BTreeMap<String, Unsaved>> {
        lock(&self.unsaved)
    }

    /// The host ends normally: from now on the next one may restore everything. Failed writes are repeated; the error
    /// names the files that are not up to date.
    pub fn close(&self) -> Result<(), Refusal> {
        let changing = self.lock_changes();
        self.owners().closing = true;
        let saved = self.save_rest();
        let files: Vec<String> = self.unsaved().keys().cloned().collect();
        drop(changing);
        let journal = self.journal.close();
        let folder = self.folder.display();
        let refusal = |what: String| {
            let help = "the next host may load what was unloaded, or miss a change; check it with levada list";
            Err(Refusal::new(Kind::NotSaved, what).help(help))
        };
        match (saved, journal) {
            (Err(e), _) => refusal(format!(
                "{folder}: not saved as it is: {}: {e}",
                files.join(", ")
            )),
            (_, Err(e)) => refusal(format!(
                "{folder}: not saved that this host ended well: {e}"
            )),
            (Ok(()), Ok(())) => Ok(()),
        }
    }
}
