// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a host remembers of what was loaded, for the one that comes after it: a file for each
//! application, written before it starts and taken away when it has ended. A host that is killed at any
//! moment leaves what ran then; a file appears and goes as a whole, and is on the disk before its
//! application starts. Several that are loaded together are remembered together or not at all. One folder is
//! one host's.
//!
//! An application that has ended its host is *held back*: a second file says why, and as long as that is there
//! it is not loaded again unless somebody asks for it. Who that is, `journal.rs` finds out.
//!
//! One that has been told to go may take long for it, or never end. A second file of another kind says so, and
//! the next host forgets it instead of loading it again. How these files change, `files` knows.
//!
//! What cannot be written (the disk is full, or may only be read) is not forgotten here: who asked for the change is told
//! so, and it is written with a later change, or when the host ends.

pub(crate) mod files;
mod forget;
mod keep;
mod not_restored;
mod replacing;
#[cfg(test)]
mod tests;
mod unsaved;

use crate::model::error::{Kind, Refusal};
use crate::persist::journal::{Journal, held};
use crate::persist::partial_outputs;
use crate::persist::store::files::{
    Before, CHANGE, Change, MAX_BYTES, StateFolder, all_of, finish, forget_gone, forget_replacing,
    going, kept, named, output_of, remove_whole, replacing, tidy, write_whole,
};
use crate::protocol::LoadRequest;
use crate::util::at_fork::LockedFile;
use crate::util::file_lock::lock_of_another;
use crate::util::lock::lock;
use levada_files::{make_private_folder, open_private, read_private};
use levada_text::escaped_line;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use unsaved::Unsaved;

/// The folder of these files.
#[derive(Debug)]
pub struct Memory {
    folder: Arc<StateFolder>,
    /// Held by who changes whose the files are, or the files, until both say the same: as long as the disk takes. It is
    /// taken before `whose`.
    changes: Mutex<()>,
    /// Held for a moment only: who asks waits for no disk.
    whose: Mutex<Whose>,
    /// What the folder is to hold and does not, since it could not be written: by file. Changed only while `changes` is held.
    unsaved: Mutex<BTreeMap<String, Unsaved>>,
    journal: Journal,
    /// Who may have ended the host before this one: few of them are begun together.
    suspects: Vec<String>,
    /// Who had been told to go when that ended.
    gone: Vec<String>,
    /// Files there that no host has made.
    foreign: Vec<String>,
    /// Held as long as this host lives, whatever ends it.
    _lock: LockedFile,
}

/// Whose the files are.
#[derive(Debug, Default)]
struct Whose {
    /// Of this host: the number of the application that has each. Names come again, numbers do not.
    ours: BTreeMap<String, u64>,
    /// Of the host before it: and why it is not loaded, where that has been found.
    left: BTreeMap<String, Option<String>>,
    /// Who is being replaced; the number that has ended meanwhile.
    replaced: BTreeMap<String, Option<u64>>,
    /// The host ends: nothing is over any more.
    closed: bool,
}

/// What a host loads of what the one before it had loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restore {
    Nothing,
    /// All but what is held back.
    Good,
    All,
}

/// `$XDG_STATE_HOME/levada/host`, `~/.local/state/levada/host`, or `/var/lib/levada/host` for root; none
/// where none of these can be.
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

impl Memory {
    pub fn open(folder: &Path) -> Result<Memory, Refusal> {
        let cannot = |why: &dyn std::fmt::Display| {
            let what = format!("{}: {why}", folder.display());
            Refusal::new(Kind::Conflict, what).help("name another folder with --state DIR")
        };
        make_private_folder(folder).map_err(|e| cannot(&e))?;
        let path = folder.join(".lock");
        let open = || {
            let mut options = File::options();
            let options = options.create(true).truncate(false).read(true).write(true);
            let file = open_private(&path, options);
            file.map_err(|e| io::Error::new(e.kind(), format!(".lock: {e}")))
        };
        let locked = lock_of_another(&path, open, || false).map_err(|e| cannot(&e))?;
        let file =
            locked.ok_or_else(|| cannot(&"another host remembers there what it has loaded"))?;
        let opened = StateFolder::open(folder).map_err(|e| cannot(&e))?;
        let opened = Arc::new(opened);
        finish(folder).map_err(|e| cannot(&e))?;
        forget_replacing(folder);
        let gone = forget_gone(folder);
        let (kept, foreign) = tidy(folder);
        // Those that have gone may have ended that host as well as any.
        let all = [&kept[..], &gone].concat();
        let (journal, mut found) = Journal::open(&opened, &all).map_err(|e| cannot(&e))?;
        found.suspects.retain(|name| !gone.contains(name));
        found.guilty = found.guilty.filter(|(name, _)| !gone.contains(name));
        let memory = Memory {
            folder: opened,
            changes: Mutex::default(),
            whose: Mutex::default(),
            unsaved: Mutex::default(),
            journal,
            suspects: found.suspects,
            gone,
            foreign,
            _lock: file,
        };
        if let Some((name, why)) = found.guilty {
            let held = write_whole(folder, &held(&name), why.as_bytes());
            held.map_err(|e| cannot(&e))?;
        }
        memory.journal.start().map_err(|e| cannot(&e))?;
        let left = kept.into_iter().map(|name| {
            let why = memory.held(&name);
            (name, why)
        });
        memory.whose().left = left.collect();
        Ok(memory)
    }

    /// What begins and what has settled.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Who may have ended the host before this one, if that is not known better.
    pub fn suspects(&self) -> &[String] {
        &self.suspects
    }

    /// Who was on its way out when the host before this one ended: forgotten, and not loaded again.
    pub fn gone(&self) -> &[String] {
        &self.gone
    }

    /// Files in the folder that no host has made: they are left alone.
    pub fn foreign(&self) -> &[String] {
        &self.foreign
    }

    fn whose(&self) -> MutexGuard<'_, Whose> {
        lock(&self.whose)
    }

    /// One changes something at a time.
    fn changing(&self) -> MutexGuard<'_, ()> {
        lock(&self.changes)
    }

    fn is_ours(&self, name: &str, number: u64) -> bool {
        self.whose().ours.get(name) == Some(&number)
    }

    fn unsaved(&self) -> MutexGuard<'_, BTreeMap<String, Unsaved>> {
        lock(&self.unsaved)
    }

    /// The host ends, and well: whatever happens from now on, the next one may load all again. What could not be written
    /// before is tried once more; the error says what the folder does not hold.
    pub fn close(&self) -> Result<(), Refusal> {
        let changing = self.changing();
        self.whose().closed = true;
        let saved = self.save_rest();
        let files: Vec<String> = self.unsaved().keys().cloned().collect();
        drop(changing);
        let journal = self.journal.close();
        let folder = self.folder.display();
        let refusal = |what: String| {
            let help = "the next host may load what was unloaded, or not know what was changed; levada list shows it then";
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
