// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing files of the state folder. A write that fails is kept, and is repeated with a later change.

use super::*;

impl Memory {
    /// Writes a file, or takes it away. What cannot be done is kept, and is done with a later change. By who is changing
    /// something.
    pub(super) fn put(&self, file: &str, text: Option<&[u8]>) -> io::Result<()> {
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

    pub(super) fn write(&self, file: &str, text: Option<&[u8]>) -> io::Result<()> {
        match text {
            Some(text) => write_whole(&self.folder, file, text),
            None => remove_whole(&self.folder, file),
        }
    }

    /// Once for all that follows until it can be written again: where whoever looks after the host looks first.
    pub(super) fn tell_unsaved(&self, e: &io::Error) {
        let folder = self.folder.display().to_string();
        let _ = writeln!(
            io::stderr().lock(),
            "{}: the state cannot be written: {e} (it is tried again with each change, and when this host ends)",
            escaped_line(&folder)
        );
    }

    /// What could not be written before. By who is changing something.
    pub(super) fn save_rest(&self) -> io::Result<()> {
        let all = self.unsaved().clone();
        for (file, text) in all {
            self.write(&file, text.as_deref())?;
            self.unsaved().remove(&file);
        }
        Ok(())
    }

    /// What a file holds, or is to hold.
    pub(super) fn get(&self, file: &str) -> io::Result<Vec<u8>> {
        match self.unsaved().get(file) {
            Some(Some(text)) => Ok(text.clone()),
            Some(None) => Err(ErrorKind::NotFound.into()),
            None => read_private(&self.folder.join(file), MAX_BYTES),
        }
    }

    /// Whether it is forgotten, and its file is there still.
    pub(super) fn is_to_go(&self, name: &str) -> bool {
        let is_ours = self.whose().ours.contains_key(name);
        !is_ours && matches!(self.unsaved().get(&kept(name)), Some(None))
    }

    pub(super) fn put_request(&self, request: &LoadRequest) -> io::Result<()> {
        let name = request.name.as_deref().unwrap_or_default();
        self.put(&kept(name), Some(&serde_json::to_vec_pretty(request)?))
    }

    /// All of its files. By who is changing something.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let all = all_of(name).map(|file| self.put(&file, None));
        all.into_iter().collect()
    }
}
