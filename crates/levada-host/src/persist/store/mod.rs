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

use crate::model::error::{Kind, Refusal};
use crate::persist::journal::{Journal, held};
use crate::persist::partial_outputs;
use crate::persist::store::files::{
    Before, CHANGE, Change, MAX_BYTES, all_of, finish, forget_gone, forget_replacing, going, kept,
    named, output_of, remove_whole, replacing, tidy, write_whole,
};
use crate::protocol::LoadRequest;
use crate::util::at_fork::LockedFile;
use crate::util::file_lock::lock_of_another;
use crate::util::lock::lock;
use levada_files::{make_private_folder, open_private, read_private};
use levada_sys::escape::escaped_line;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// The folder of these files.
#[derive(Debug)]
pub struct Memory {
    folder: PathBuf,
    /// Held by who changes whose the files are, or the files, until both say the same: as long as the disk takes. It is
    /// taken before `whose`.
    changes: Mutex<()>,
    /// Held for a moment only: who asks waits for no disk.
    whose: Mutex<Whose>,
    /// What the folder is to hold and does not, since it could not be written: by file, what is to be in it, or that it is
    /// not to be there. Changed by who is changing something.
    unsaved: Mutex<BTreeMap<String, Option<Vec<u8>>>>,
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
            let file = open_private(&path, options.create(true).truncate(false).write(true));
            file.map_err(|e| io::Error::new(e.kind(), format!(".lock: {e}")))
        };
        let locked = lock_of_another(&path, open, || false).map_err(|e| cannot(&e))?;
        let file =
            locked.ok_or_else(|| cannot(&"another host remembers there what it has loaded"))?;
        finish(folder).map_err(|e| cannot(&e))?;
        forget_replacing(folder);
        let gone = forget_gone(folder);
        let (kept, foreign) = tidy(folder);
        // Those that have gone may have ended that host as well as any.
        let all = [&kept[..], &gone].concat();
        let (journal, mut found) = Journal::open(folder, &all).map_err(|e| cannot(&e))?;
        found.suspects.retain(|name| !gone.contains(name));
        found.guilty = found.guilty.filter(|(name, _)| !gone.contains(name));
        let memory = Memory {
            folder: folder.to_path_buf(),
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

    fn unsaved(&self) -> MutexGuard<'_, BTreeMap<String, Option<Vec<u8>>>> {
        lock(&self.unsaved)
    }

    /// Writes a file, or takes it away. What cannot be done is kept, and is done with a later change. By who is changing
    /// something.
    fn put(&self, file: &str, text: Option<&[u8]>) -> io::Result<()> {
        let done = self.write(file, text);
        let mut unsaved = self.unsaved();
        match &done {
            Ok(()) => drop(unsaved.remove(file)),
            Err(e) => {
                if unsaved.is_empty() {
                    self.tell_unsaved(e);
                }
                unsaved.insert(file.to_string(), text.map(<[u8]>::to_vec));
            }
        }
        let others = done.is_ok() && !unsaved.is_empty();
        drop(unsaved);
        if others {
            let _ = self.save_rest();
        }
        done
    }

    fn write(&self, file: &str, text: Option<&[u8]>) -> io::Result<()> {
        match text {
            Some(text) => write_whole(&self.folder, file, text),
            None => remove_whole(&self.folder, file),
        }
    }

    /// Once for all that follows until it can be written again: where whoever looks after the host looks first.
    fn tell_unsaved(&self, e: &io::Error) {
        let folder = self.folder.display().to_string();
        let _ = writeln!(
            io::stderr().lock(),
            "{}: the state cannot be written: {e} (it is tried again with each change, and when this host ends)",
            escaped_line(&folder)
        );
    }

    /// What could not be written before. By who is changing something.
    fn save_rest(&self) -> io::Result<()> {
        let all = self.unsaved().clone();
        for (file, text) in all {
            self.write(&file, text.as_deref())?;
            self.unsaved().remove(&file);
        }
        Ok(())
    }

    /// What a file holds, or is to hold.
    fn get(&self, file: &str) -> io::Result<Vec<u8>> {
        match self.unsaved().get(file) {
            Some(Some(text)) => Ok(text.clone()),
            Some(None) => Err(ErrorKind::NotFound.into()),
            None => read_private(&self.folder.join(file), MAX_BYTES),
        }
    }

    /// Whether it is forgotten, and its file is there still.
    fn is_to_go(&self, name: &str) -> bool {
        let is_ours = self.whose().ours.contains_key(name);
        !is_ours && matches!(self.unsaved().get(&kept(name)), Some(None))
    }

    fn put_request(&self, request: &LoadRequest) -> io::Result<()> {
        let name = request.name.as_deref().unwrap_or_default();
        self.put(&kept(name), Some(&serde_json::to_vec_pretty(request)?))
    }

    /// Why it is held back, if it is.
    pub fn held(&self, name: &str) -> Option<String> {
        match self.get(&held(name)) {
            Ok(why) => Some(String::from_utf8_lossy(&why).into_owned()),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => Some(format!("the reason cannot be read: {e}")),
        }
    }

    /// It is not held back any more. One whose code runs in the host is when it has settled.
    pub fn release(&self, name: &str) -> io::Result<()> {
        let _changing = self.changing();
        self.put(&held(name), None)
    }

    /// All of its files. By who is changing something.
    fn remove(&self, name: &str) -> io::Result<()> {
        let all = all_of(name).map(|file| self.put(&file, None));
        all.into_iter().collect()
    }

    /// It has been told to go, so no host loads it again, whatever ends this one. It goes also where that cannot be
    /// written.
    pub fn goes(&self, name: &str, number: u64) -> io::Result<()> {
        let _changing = self.changing();
        match self.is_ours(name, number) {
            true => self.put(&going(name), Some(b"")),
            false => Ok(()),
        }
    }

    /// And does not, after all.
    pub fn stays(&self, name: &str, number: u64) {
        let _changing = self.changing();
        if self.is_ours(name, number) {
            let _ = self.put(&going(name), None);
        }
    }

    /// Keeps how an application of this name was loaded, which has this number now.
    #[cfg(test)]
    fn keep(&self, name: &str, number: u64, request: &LoadRequest) -> io::Result<()> {
        self.keep_all(&[(name, number, request)])
    }

    /// Keeps how a new version of an application was loaded, which runs in the place of the old one. Where that cannot be
    /// written now, it is later.
    pub fn keep_version(&self, name: &str, number: u64, request: &LoadRequest) -> io::Result<()> {
        let _changing = self.changing();
        let _ = self.put(&going(name), None);
        self.put_version(name, number, request)
    }

    /// By who is changing something.
    fn put_version(&self, name: &str, number: u64, request: &LoadRequest) -> io::Result<()> {
        {
            let mut whose = self.whose();
            whose.ours.insert(name.to_string(), number);
            whose.left.remove(name);
        }
        self.put_request(&named(name, request))?;
        self.put(&held(name), None)
    }

    /// Keeps how several were loaded: of all of them that is known to the next host, or of none.
    pub fn keep_all(&self, all: &[(&str, u64, &LoadRequest)]) -> io::Result<()> {
        let _changing = self.changing();
        // What was said of an earlier one of the name is not said of this one.
        for (name, ..) in all {
            let _ = self.put(&going(name), None);
        }
        self.write_all(all)
    }

    /// Keeps how the new version of an application was loaded, which goes on under the number of the old one, unless that is
    /// forgotten already, or another has its name. Whether it is paused is looked at when nobody else writes that down.
    pub fn keep_next(
        &self,
        name: &str,
        number: u64,
        request: &LoadRequest,
        is_paused: impl FnOnce() -> bool,
    ) -> io::Result<()> {
        let _changing = self.changing();
        if !self.is_ours(name, number) {
            return Ok(());
        }
        let request = LoadRequest {
            paused: is_paused(),
            ..request.clone()
        };
        self.put_version(name, number, &request)
    }

    /// By who is changing something.
    fn write_all(&self, all: &[(&str, u64, &LoadRequest)]) -> io::Result<()> {
        let named = all.iter().map(|(name, _, request)| named(name, request));
        let change = Change {
            keep: named.collect(),
            forget: Vec::new(),
        };
        let before = change.before(&self.folder);
        if let Err(e) = change.make(&self.folder) {
            self.take_back(before);
            return Err(e);
        }
        for (name, ..) in all {
            self.unsaved().remove(&kept(name));
            let _ = self.put(&held(name), None);
        }
        let mut whose = self.whose();
        for (name, number, _) in all {
            whose.ours.insert(name.to_string(), *number);
            whose.left.remove(*name);
        }
        Ok(())
    }

    /// Of what a change was to keep nothing is left, where it could not be made: what an earlier host has kept of the same
    /// names is there as it was. By who is changing something.
    fn take_back(&self, before: Vec<Before>) {
        for (file, was) in before {
            if read_private(&self.folder.join(&file), MAX_BYTES).ok() != was {
                let _ = self.put(&file, was.as_deref());
            }
        }
        let _ = self.put(CHANGE, None);
    }

    /// Forgets these applications together; what cannot be forgotten now is later, and that is told.
    pub fn forget_all(&self, all: &[(&str, u64)]) -> io::Result<()> {
        let _changing = self.changing();
        // What has ended may be forgotten already, where that could not be written.
        let is_ours =
            |(name, number): &&(&str, u64)| self.is_ours(name, *number) || self.is_to_go(name);
        let ours = all.iter().filter(is_ours);
        let names: Vec<String> = ours.map(|(name, _)| name.to_string()).collect();
        let change = Change {
            keep: Vec::new(),
            forget: names.clone(),
        };
        // Where that cannot be written they are forgotten one by one.
        if change.make(&self.folder).is_err() {
            let _ = self.put(CHANGE, None);
        }
        let mut done = Ok(());
        for name in names {
            self.whose().ours.remove(&name);
            done = self.remove(&name).and(done);
        }
        done
    }

    /// Whether the application of this name is paused, for the host that loads it again; none: as it was. It is looked at
    /// when nobody else writes that down: of several who pause it and let it go on, the last one sees what is so.
    pub fn set_paused(
        &self,
        name: &str,
        is_paused: impl FnOnce() -> Option<bool>,
    ) -> io::Result<()> {
        let _changing = self.changing();
        let Some(paused) = is_paused() else {
            return Ok(());
        };
        // One that has just ended is not kept any more.
        match self.read(name) {
            Ok(request) if self.whose().ours.contains_key(name) && request.paused != paused => {
                self.put_request(&LoadRequest { paused, ..request })
            }
            _ => Ok(()),
        }
    }

    /// What the host before this one has kept is this application's now; false: somebody has had it forgotten.
    pub fn take_over(&self, name: &str, number: u64) -> bool {
        let _changing = self.changing();
        let mut whose = self.whose();
        let was = whose.left.remove(name).is_some();
        if was {
            whose.ours.insert(name.to_string(), number);
        }
        was
    }

    /// And is not, after all.
    pub fn give_back(&self, name: &str, number: u64) {
        let _changing = self.changing();
        if self.is_ours(name, number) {
            let why = self.held(name);
            let mut whose = self.whose();
            whose.ours.remove(name);
            whose.left.insert(name.to_string(), why);
        }
    }

    /// Why one that is left could not be loaded again.
    pub fn not_loaded(&self, name: &str, why: &str) {
        if let Some(known) = self.whose().left.get_mut(name) {
            *known = Some(why.to_string());
        }
    }

    /// Forgets this application, and no later one of its name.
    pub fn forget(&self, name: &str, number: u64) -> io::Result<()> {
        self.forget_all(&[(name, number)])
    }

    /// This application has come to its end, of which nobody has heard yet: so nobody sees one that has ended, and is
    /// loaded by the next host all the same. What is stopped since the host ends is kept.
    pub fn over(&self, name: &str, number: u64) {
        let _changing = self.changing();
        self.is_over(name, number);
    }

    /// The same, where nobody changes something, which takes as long as the disk; false: somebody does.
    pub fn over_if_free(&self, name: &str, number: u64) -> bool {
        let changing = self.changes.try_lock();
        if matches!(changing, Err(TryLockError::WouldBlock)) {
            return false;
        }
        self.is_over(name, number);
        true
    }

    /// By who is changing something.
    fn is_over(&self, name: &str, number: u64) {
        // A new version that has never taken over ends after the old one, when that has ended by itself.
        if !self.is_ours(name, number) {
            return;
        }
        let mut whose = self.whose();
        let closed = whose.closed;
        if let Some(over) = whose.replaced.get_mut(name) {
            *over = Some(number);
        } else if !closed {
            drop(whose);
            self.forget_one(name, number);
        }
    }

    /// A new version is to take the place of this application: as long as this is there the end of the old one is not the
    /// end of it.
    pub fn replaces(&self, name: &str, next: &LoadRequest) -> Replaces<'_> {
        let _changing = self.changing();
        self.whose().replaced.insert(name.to_string(), None);
        // For a host that is killed meanwhile; without it what is half written stays.
        let both = Vec::from_iter(self.read(name).ok().into_iter().chain([next.clone()]));
        if let Ok(text) = serde_json::to_vec(&both) {
            let _ = self.write(&replacing(name), Some(&text));
        }
        Replaces {
            memory: self,
            name: name.to_string(),
        }
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

    /// By who is changing something.
    fn forget_one(&self, name: &str, number: u64) {
        if self.is_ours(name, number) {
            self.whose().ours.remove(name);
            // It has been told, and is done later.
            let _ = self.remove(name);
        }
    }

    /// What is kept of the host before this one, and was not loaded since.
    pub fn left(&self) -> Vec<String> {
        self.whose().left.keys().cloned().collect()
    }

    /// Those of them that cannot be loaded again or are held back, and why.
    pub fn left_out(&self) -> Vec<(String, String)> {
        let whose = self.whose();
        let out = whose.left.iter();
        out.filter_map(|(name, why)| Some((name.clone(), why.clone()?)))
            .collect()
    }

    pub fn is_left(&self, name: &str) -> bool {
        self.whose().left.contains_key(name)
    }

    /// Why it is not loaded, if that is known; none: it is none of these.
    pub fn why_left(&self, name: &str) -> Option<Option<String>> {
        self.whose().left.get(name).cloned()
    }

    /// Forgets one of these; false if there is none of this name. Where that cannot be written now, it is later.
    pub fn forget_left(&self, name: &str) -> io::Result<bool> {
        let changing = self.changing();
        let was = self.whose().left.remove(name).is_some();
        if was {
            let halves = output_of(&self.folder, name);
            let removed = self.remove(name);
            // The folder of an output may be one that answers slowly.
            drop(changing);
            partial_outputs::remove_all_soon(halves);
            removed?;
        }
        Ok(was)
    }

    /// How it was loaded; what cannot be read is said.
    pub fn read(&self, name: &str) -> Result<LoadRequest, String> {
        let text = self.get(&kept(name)).map_err(|e| e.to_string())?;
        let mut request: LoadRequest = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
        request.name = Some(name.to_string());
        Ok(request)
    }
}

/// While it is there, an application of this name is being replaced.
#[derive(Debug)]
pub struct Replaces<'a> {
    memory: &'a Memory,
    name: String,
}

impl Drop for Replaces<'_> {
    fn drop(&mut self) {
        let _changing = self.memory.changing();
        let mut whose = self.memory.whose();
        let over = whose.replaced.remove(&self.name).flatten();
        let over = over.filter(|_| !whose.closed);
        drop(whose);
        let _ = self.memory.write(&replacing(&self.name), None);
        if let Some(number) = over {
            self.memory.forget_one(&self.name, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::store::files::write_request;

    impl Memory {
        fn file(&self, name: &str) -> PathBuf {
            self.folder.join(kept(name))
        }
    }

    fn request() -> LoadRequest {
        LoadRequest {
            network: "x.xdf".to_string(),
            directory: "/tmp".into(),
            priority: -3,
            ..LoadRequest::default()
        }
    }

    /// It says late what has come of it: meanwhile it may have been paused, be going, or be another's name.
    #[test]
    fn a_new_version_is_kept_as_it_is_in_the_place_of_its_own_old_one_alone() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path()).unwrap();
        let next = LoadRequest {
            network: "y.xdf".to_string(),
            ..request()
        };
        let kept = || {
            let kept = memory.read("one").unwrap();
            (kept.network, kept.paused)
        };
        memory.keep("one", 1, &request()).unwrap();
        memory.goes("one", 1).unwrap();
        memory.keep_next("one", 1, &next, || true).unwrap();
        assert_eq!(kept(), ("y.xdf".to_string(), true));
        assert!(folder.path().join(going("one")).exists());
        memory.keep("one", 2, &request()).unwrap();
        memory.keep_next("one", 1, &next, || true).unwrap();
        assert_eq!(kept(), ("x.xdf".to_string(), false));
        memory.forget("one", 2).unwrap();
        memory.keep_next("one", 2, &next, || true).unwrap();
        assert!(memory.read("one").is_err());
    }

    #[test]
    fn what_is_kept_is_found_again_and_damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let memory = Memory::open(&path).unwrap();
        assert!(memory.left().is_empty());
        memory.keep("one", 1, &request()).unwrap();
        memory.keep("two", 2, &request()).unwrap();
        memory.forget("two", 2).unwrap();
        std::fs::write(memory.file("bad"), "{").unwrap();
        std::fs::write(path.join(".half.new"), "{").unwrap();
        let other = Memory::open(&path).unwrap_err();
        assert!(other.what.contains("another host"), "{other}");
        drop(memory);
        let memory = Memory::open(&path).unwrap();
        assert_eq!(memory.left(), ["bad", "one"]);
        assert!(memory.read("bad").is_err());
        let one = memory.read("one").unwrap();
        assert_eq!((one.name.as_deref(), one.priority), (Some("one"), -3));
        assert!(!path.join(".half.new").exists());
        assert!(Memory::open(&memory.file("bad")).is_err());
        assert!(memory.forget_left("bad").unwrap() && !memory.forget_left("bad").unwrap());
    }

    /// A disk that is full, for one: here a file cannot be begun, since a folder lies there.
    #[test]
    fn what_cannot_be_kept_leaves_what_was_kept_before() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path()).unwrap();
        memory.keep("a", 1, &request()).unwrap();
        memory.keep("c", 2, &request()).unwrap();
        drop(memory);
        let memory = Memory::open(folder.path()).unwrap();
        std::fs::create_dir(folder.path().join(".c.json.new")).unwrap();
        let other = LoadRequest {
            priority: 7,
            ..request()
        };
        assert!(memory.keep("c", 1, &other).is_err());
        let all = [("a", 2, &other), ("b", 3, &other), ("c", 4, &other)];
        assert!(memory.keep_all(&all).is_err());
        assert_eq!(memory.left(), ["a", "c"]);
        for name in memory.left() {
            assert_eq!(memory.read(&name).unwrap().priority, -3);
        }
        assert!(!memory.file("b").exists() && !folder.path().join(CHANGE).exists());
    }

    /// As on a disk that is full, or may only be read: here a folder lies where a file is to be written or removed.
    #[test]
    fn what_cannot_be_saved_is_told_and_saved_later() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let other = LoadRequest {
            priority: 7,
            ..request()
        };
        let memory = Memory::open(folder.path()).unwrap();
        memory.keep("paused", 1, &request()).unwrap();
        memory.keep("gone", 2, &request()).unwrap();
        memory.keep("new", 3, &request()).unwrap();
        let in_the_way = [".paused.json.new", ".new.json.new", "gone.json"];
        std::fs::remove_file(at("gone.json")).unwrap();
        for name in in_the_way {
            std::fs::create_dir(at(name)).unwrap();
        }
        assert!(memory.set_paused("paused", || Some(true)).is_err());
        assert!(memory.keep_version("new", 4, &other).is_err());
        assert!(memory.forget("gone", 2).is_err());
        // Also who hears of its end before it is asked.
        assert!(memory.forget("gone", 2).is_err());
        // Here it is known.
        assert!(memory.read("paused").unwrap().paused && memory.read("gone").is_err());
        assert_eq!(memory.read("new").unwrap().priority, 7);
        let still = memory.close().unwrap_err();
        assert_eq!(still.kind, Kind::NotSaved);
        assert!(still.what.contains("gone.json"), "{still}");
        for name in in_the_way {
            std::fs::remove_dir(at(name)).unwrap();
        }
        // What the host before had written is there again, and goes when this host ends.
        write_request(folder.path(), &named("gone", &request())).unwrap();
        memory.close().unwrap();
        drop(memory);
        let memory = Memory::open(folder.path()).unwrap();
        assert_eq!(memory.left(), ["new", "paused"]);
        assert!(memory.read("paused").unwrap().paused);
        assert_eq!(memory.read("new").unwrap().priority, 7);
    }

    #[test]
    fn what_could_not_be_saved_is_saved_with_a_later_change() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path()).unwrap();
        memory.keep("a", 1, &request()).unwrap();
        memory.keep("b", 2, &request()).unwrap();
        let in_the_way = folder.path().join(".a.json.new");
        std::fs::create_dir(&in_the_way).unwrap();
        assert!(memory.set_paused("a", || Some(true)).is_err());
        std::fs::remove_dir(&in_the_way).unwrap();
        memory.set_paused("b", || Some(true)).unwrap();
        let text = std::fs::read_to_string(memory.file("a")).unwrap();
        assert!(text.contains("\"paused\": true"), "{text}");
        // And what has ended meanwhile is not written again.
        std::fs::create_dir(&in_the_way).unwrap();
        assert!(memory.set_paused("a", || Some(false)).is_err());
        memory.forget("a", 1).unwrap();
        std::fs::remove_dir(&in_the_way).unwrap();
        memory.close().unwrap();
        drop(memory);
        assert_eq!(Memory::open(folder.path()).unwrap().left(), ["b"]);
    }

    #[test]
    fn a_folder_or_file_that_others_can_change_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        drop(Memory::open(&state).unwrap());
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap()
        };
        set(&state, 0o770);
        let refused = Memory::open(&state).unwrap_err();
        assert!(refused.what.contains("others can write there"), "{refused}");
        set(&state, 0o700);
        set(folder.path(), 0o777);
        let refused = Memory::open(&state).unwrap_err();
        assert!(
            refused.what.contains("other users can replace"),
            "{refused}"
        );
        set(folder.path(), 0o700);
        let memory = Memory::open(&state).unwrap();
        for name in ["good", "open", "link", "pipe", "large"] {
            memory.keep(name, 1, &request()).unwrap();
        }
        drop(memory);
        set(&state.join("open.json"), 0o666);
        std::fs::remove_file(state.join("link.json")).unwrap();
        std::os::unix::fs::symlink("good.json", state.join("link.json")).unwrap();
        std::fs::remove_file(state.join("pipe.json")).unwrap();
        let pipe = std::ffi::CString::new(state.join("pipe.json").to_str().unwrap()).unwrap();
        // SAFETY: a terminated path.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let large = File::options().write(true).open(state.join("large.json"));
        large.unwrap().set_len(MAX_BYTES + 1).unwrap();
        std::fs::write(state.join("\x1b[31m.json"), "{}").unwrap();
        let memory = Memory::open(&state).unwrap();
        assert_eq!(memory.left(), ["good", "large", "link", "open", "pipe"]);
        assert_eq!(memory.foreign(), ["\x1b[31m.json"]);
        for (name, why) in [
            ("open", "others can write there"),
            ("link", "a link"),
            ("pipe", "no regular file"),
            ("large", "larger than"),
        ] {
            let said = memory.read(name).unwrap_err();
            assert!(said.contains(why), "{name}: {said}");
        }
        assert!(memory.read("good").is_ok());
        drop(memory);
        for name in [".journal", ".lock", ".change"] {
            let _ = std::fs::remove_file(state.join(name));
            std::os::unix::fs::symlink("good.json", state.join(name)).unwrap();
            let refused = Memory::open(&state).unwrap_err();
            assert!(refused.what.contains(name), "{refused}");
            assert!(refused.what.contains("a link"), "{refused}");
            std::fs::remove_file(state.join(name)).unwrap();
        }
    }

    #[test]
    fn who_has_ended_its_host_is_held_back_until_it_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let again = || Memory::open(folder.path()).unwrap();
        let memory = again();
        memory.keep("a", 1, &request()).unwrap();
        memory.keep("b", 2, &request()).unwrap();
        memory.journal().begins("b");
        drop(memory);
        let is_held = |memory: &Memory| {
            let out = memory.left_out();
            assert!(out.len() == 1 && out[0].0 == "b", "{out:?}");
            assert!(out[0].1.contains("just begun"), "{out:?}");
        };
        is_held(&again());
        // As long as nobody loads it.
        let memory = again();
        is_held(&memory);
        assert!(memory.take_over("b", 3));
        memory.give_back("b", 3);
        is_held(&memory);
        assert!(memory.take_over("b", 4));
        memory.release("b").unwrap();
        drop(memory);
        let memory = again();
        assert!(memory.left_out().is_empty() && memory.left() == ["a", "b"]);
        memory.not_loaded("a", "no file");
        assert_eq!(
            memory.left_out(),
            [("a".to_string(), "no file".to_string())]
        );
    }

    /// A host may be killed between any two of its calls: what was loaded together is there then, or nothing
    /// of it.
    #[test]
    fn several_are_kept_and_forgotten_together() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..20).map(|n| format!("a{n:02}")).collect();
        let memory = Memory::open(folder.path()).unwrap();
        let request = request();
        let all: Vec<_> = names.iter().map(|n| (n.as_str(), 1, &request)).collect();
        memory.keep_all(&all).unwrap();
        let numbered: Vec<_> = names.iter().map(|n| (n.as_str(), 1)).collect();
        memory.forget_all(&numbered[..19]).unwrap();
        drop(memory);
        assert_eq!(Memory::open(folder.path()).unwrap().left(), ["a19"]);
        // In the midst of either.
        for (kept, then) in [(true, &names[..]), (false, &names[..10])] {
            let others: Vec<String> = names[10..].to_vec();
            let change = Change {
                keep: all[10..]
                    .iter()
                    .filter(|_| kept)
                    .map(|a| named(a.0, a.2))
                    .collect(),
                forget: others.into_iter().filter(|_| !kept).collect(),
            };
            for name in &names[..10] {
                write_request(folder.path(), &named(name, &request)).unwrap();
            }
            let text = serde_json::to_vec(&change).unwrap();
            write_whole(folder.path(), CHANGE, &text).unwrap();
            assert_eq!(Memory::open(folder.path()).unwrap().left(), then);
            assert!(!folder.path().join(CHANGE).exists());
        }
        // What is damaged is told, and stays.
        std::fs::write(folder.path().join(CHANGE), "{").unwrap();
        let damaged = Memory::open(folder.path()).unwrap_err();
        assert!(damaged.what.contains(CHANGE), "{damaged}");
        std::fs::remove_file(folder.path().join(CHANGE)).unwrap();
        assert_eq!(Memory::open(folder.path()).unwrap().left().len(), 10);
    }

    /// Who has ended may be forgotten late: not the one that has its name since.
    #[test]
    fn a_later_one_of_the_name_is_not_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path()).unwrap();
        memory.keep("a", 1, &request()).unwrap();
        memory.keep("a", 2, &request()).unwrap();
        memory.forget("a", 1).unwrap();
        memory.over("a", 1);
        assert!(memory.read("a").is_ok());
        memory.over("a", 2);
        assert!(memory.read("a").is_err());
    }

    /// Between the end of an old version and the beginning of the new one there is always one that is remembered.
    #[test]
    fn who_is_replaced_is_remembered_all_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path()).unwrap();
        memory.keep("a", 1, &request()).unwrap();
        let replaces = memory.replaces("a", &request());
        memory.over("a", 1);
        assert!(memory.read("a").is_ok());
        memory.keep("a", 2, &request()).unwrap();
        drop(replaces);
        assert!(memory.read("a").is_ok());
        // It ends, and no new version comes.
        let replaces = memory.replaces("a", &request());
        memory.over("a", 2);
        assert!(memory.read("a").is_ok());
        drop(replaces);
        assert!(memory.read("a").is_err());
        // Nor has the new version, which is taken back, taken over.
        memory.keep("a", 2, &request()).unwrap();
        let replaces = memory.replaces("a", &request());
        memory.over("a", 2);
        memory.over("a", 3);
        drop(replaces);
        assert!(memory.read("a").is_err());
        // Both have ended.
        memory.keep("a", 3, &request()).unwrap();
        let replaces = memory.replaces("a", &request());
        memory.over("a", 3);
        memory.keep("a", 4, &request()).unwrap();
        memory.over("a", 4);
        drop(replaces);
        assert!(memory.read("a").is_err());
    }

    /// Neither version has completed what it writes, when their host is killed.
    #[test]
    fn what_a_killed_replacement_has_half_written_goes() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let writes = |name: &str| LoadRequest {
            output: Some(folder.path().join(name).display().to_string()),
            ..request()
        };
        let half = |name: &str| folder.path().join(format!("{name}.part-{}-0", dead.id()));
        let memory = Memory::open(&state).unwrap();
        memory.keep("a", 1, &writes("old")).unwrap();
        drop(memory.replaces("a", &writes("new")));
        assert!(!state.join("a.replacing").exists());
        std::mem::forget(memory.replaces("a", &writes("new")));
        drop(memory);
        for name in ["old", "new", "other"] {
            std::fs::write(half(name), "").unwrap();
        }
        let memory = Memory::open(&state).unwrap();
        let start = std::time::Instant::now();
        while half("old").exists() || half("new").exists() {
            assert!(start.elapsed().as_secs() < 300, "they are there still");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(half("other").exists() && !state.join("a.replacing").exists());
        assert_eq!(memory.left(), ["a"]);
    }

    /// What a host stops when it ends itself is not over.
    #[test]
    fn what_is_stopped_since_the_host_ends_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path()).unwrap();
        memory.keep("a", 1, &request()).unwrap();
        memory.keep("b", 2, &request()).unwrap();
        let replaces = memory.replaces("b", &request());
        memory.close().unwrap();
        memory.over("a", 1);
        memory.over("b", 2);
        drop(replaces);
        drop(memory);
        assert_eq!(Memory::open(folder.path()).unwrap().left(), ["a", "b"]);
    }

    #[test]
    fn a_pause_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path()).unwrap();
        memory.keep("a", 1, &request()).unwrap();
        memory.set_paused("a", || Some(true)).unwrap();
        memory.set_paused("a", || None).unwrap();
        memory.set_paused("nobody", || Some(true)).unwrap();
        let kept = memory.read("a").unwrap();
        assert_eq!((kept.paused, kept.priority), (true, -3));
        memory.set_paused("a", || Some(false)).unwrap();
        assert!(!memory.read("a").unwrap().paused);
        assert!(memory.read("nobody").is_err());
    }

    #[test]
    fn who_was_told_to_go_is_forgotten_by_the_next_host() {
        let folder = tempfile::tempdir().unwrap();
        let again = || Memory::open(folder.path()).unwrap();
        let memory = again();
        for (number, name) in ["goes", "stays", "other", "anew", "went"]
            .iter()
            .enumerate()
        {
            memory.keep(name, number as u64, &request()).unwrap();
            memory.goes(name, number as u64).unwrap();
        }
        memory.stays("stays", 1);
        // Nobody is mistaken for an earlier one of his name.
        memory.stays("other", 9);
        memory.keep("anew", 10, &request()).unwrap();
        memory.goes("anew", 3).unwrap();
        memory.forget("went", 4).unwrap();
        // It may be one that goes who has ended the host.
        memory.journal().begins("goes");
        memory.journal().begins("stays");
        // What it has written until then goes with it.
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let half = folder.path().join(format!("out.part-{}-0", dead.id()));
        std::fs::write(&half, "").unwrap();
        let mut writes = request();
        writes.output = Some(folder.path().join("out").display().to_string());
        memory.keep("writes", 11, &writes).unwrap();
        memory.goes("writes", 11).unwrap();
        drop(memory);
        let memory = again();
        let start = std::time::Instant::now();
        while half.exists() {
            assert!(start.elapsed().as_secs() < 300, "it is there still");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(memory.gone(), ["goes", "other", "writes"]);
        assert!(memory.suspects() == ["stays"] && memory.left_out().is_empty());
        assert_eq!(memory.left(), ["anew", "stays"]);
        drop(memory);
        assert!(again().gone().is_empty());
    }

    /// While some ask what is kept, others keep: nothing half written is taken for what a dead host left.
    #[test]
    fn who_asks_disturbs_nobody_who_keeps() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200).for_each(|_| drop(memory.left())));
            for n in 0..40 {
                memory.keep("a", n, &request()).unwrap();
            }
        });
        // A restored one that did not start is left as it was.
        drop(memory);
        let memory = Memory::open(folder.path()).unwrap();
        assert!(memory.take_over("a", 7) && !memory.take_over("b", 8));
        assert!(memory.left().is_empty());
        memory.give_back("a", 7);
        memory.forget("a", 7).unwrap();
        assert!(memory.left() == ["a"] && memory.read("a").is_ok());
    }

    /// A disk may take its time.
    #[test]
    fn who_asks_waits_for_nobody_who_writes() {
        let folder = tempfile::tempdir().unwrap();
        drop(Memory::open(folder.path()).map(|m| m.keep("left", 1, &request()).unwrap()));
        let memory = Memory::open(folder.path()).unwrap();
        let writes = memory.changing();
        let (left, out) = (memory.left(), memory.left_out());
        memory.not_loaded("left", "no reason");
        let why = memory.why_left("left").flatten();
        assert!(!memory.over_if_free("a", 2));
        drop(writes);
        assert!(left == ["left"] && out.is_empty());
        assert_eq!(why.as_deref(), Some("no reason"));
        memory.keep("a", 2, &request()).unwrap();
        assert!(memory.over_if_free("a", 2) && memory.read("a").is_err());
    }
}
