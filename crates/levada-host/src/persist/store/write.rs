// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes and reads single files of the state folder. A write that fails is kept in memory (`unsaved`), and is repeated
//! with a later change.

use crate::persist::store::StateStore;
use crate::persist::store::files::{MAX_BYTES, all_of, remove_whole, request_file, write_whole};
use crate::protocol::LoadRequest;
use levada_files::read_private;
use levada_text::escaped_line;
use std::io::{self, ErrorKind, Write};

/// A failed write, to be repeated.
#[derive(Clone, Debug)]
pub(super) enum Unsaved {
    /// The file is to have this content.
    Text(Vec<u8>),
    Removed,
    /// The file contains a request that could not be read; its flag `paused` is to be set so.
    Paused(bool),
}

impl StateStore {
    /// Writes or removes a file. A failure is recorded and repeated with a later change. The caller holds the change
    /// lock.
    pub(super) fn put(&self, file: &str, text: Option<&[u8]>) -> io::Result<()> {
        match self.write(file, text) {
            Ok(()) => self.saved(file),
            Err(e) => {
                let what = text.map_or(Unsaved::Removed, |text| Unsaved::Text(text.to_vec()));
                return Err(self.not_saved(file, what, e));
            }
        }
        Ok(())
    }

    /// This file has been written; failed writes of other files are repeated. The caller holds the change lock.
    fn saved(&self, file: &str) {
        let mut unsaved = self.unsaved();
        unsaved.remove(file);
        let others = !unsaved.is_empty();
        drop(unsaved);
        if others {
            let _ = self.save_rest();
        }
    }

    /// Records a failed write, to be repeated later; returns its error. The caller holds the change lock.
    pub(super) fn not_saved(&self, file: &str, what: Unsaved, why: io::Error) -> io::Error {
        let mut unsaved = self.unsaved();
        if unsaved.is_empty() {
            self.tell_unsaved(&why);
        }
        unsaved.insert(file.to_string(), what);
        why
    }

    pub(super) fn write(&self, file: &str, text: Option<&[u8]>) -> io::Result<()> {
        let folder = self.folder.path()?;
        match text {
            Some(text) => write_whole(folder, file, text),
            None => remove_whole(folder, file),
        }
    }

    /// Reports a failed write on standard error, where an administrator looks first; once until writing succeeds again.
    pub(super) fn tell_unsaved(&self, e: &io::Error) {
        let folder = self.folder.display().to_string();
        let _ = writeln!(
            io::stderr().lock(),
            "{}: the state cannot be written: {e} (it is tried again with each change, and when this host ends)",
            escaped_line(&folder)
        );
    }

    /// Repeats failed writes, as far as they succeed now; returns the first error. The caller holds the change lock.
    pub(super) fn save_rest(&self) -> io::Result<()> {
        let all = self.unsaved().clone();
        let mut done = Ok(());
        for (file, what) in all {
            let saved = match what {
                Unsaved::Text(text) => self.write(&file, Some(&text)),
                Unsaved::Removed => self.write(&file, None),
                Unsaved::Paused(_) => self.request_in(&file).and_then(|request| {
                    self.write(&file, Some(&serde_json::to_vec_pretty(&request)?))
                }),
            };
            match saved {
                Ok(()) => drop(self.unsaved().remove(&file)),
                Err(e) => done = done.and(Err(e)),
            }
        }
        done
    }

    /// The intended content of a file.
    pub(super) fn get(&self, file: &str) -> io::Result<Vec<u8>> {
        match self.unsaved().get(file) {
            Some(Unsaved::Text(text)) => return Ok(text.clone()),
            Some(Unsaved::Removed) => return Err(ErrorKind::NotFound.into()),
            Some(Unsaved::Paused(_)) | None => {}
        }
        read_private(&self.folder.path()?.join(file), MAX_BYTES)
    }

    /// The request that a file holds, or is to hold.
    pub(super) fn request_in(&self, file: &str) -> io::Result<LoadRequest> {
        let mut request: LoadRequest = serde_json::from_slice(&self.get(file)?)?;
        if let Some(Unsaved::Paused(paused)) = self.unsaved().get(file) {
            request.paused = *paused;
        }
        Ok(request)
    }

    /// Whether the application was removed from the state folder, although its file still exists.
    pub(super) fn is_to_go(&self, name: &str) -> bool {
        let is_ours = self.owners().ours.contains_key(name);
        !is_ours
            && matches!(
                self.unsaved().get(&request_file(name)),
                Some(Unsaved::Removed)
            )
    }

    pub(super) fn put_request(&self, request: &LoadRequest) -> io::Result<()> {
        let name = request.name.as_deref().unwrap_or_default();
        self.put(
            &request_file(name),
            Some(&serde_json::to_vec_pretty(request)?),
        )
    }

    /// Removes all files of the application. The caller holds the change lock.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let all = all_of(name).map(|file| self.put(&file, None));
        all.into_iter().collect()
    }
}
