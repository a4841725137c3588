// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is kept of the applications that are loaded.

use super::*;

impl Memory {
    /// Keeps how an application of this name was loaded, which has this number now.
    #[cfg(test)]
    pub(super) fn keep(&self, name: &str, number: u64, request: &LoadRequest) -> io::Result<()> {
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
    pub(super) fn put_version(
        &self,
        name: &str,
        number: u64,
        request: &LoadRequest,
    ) -> io::Result<()> {
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
    pub(super) fn write_all(&self, all: &[(&str, u64, &LoadRequest)]) -> io::Result<()> {
        let named = all.iter().map(|(name, _, request)| named(name, request));
        let change = Change {
            keep: named.collect(),
            forget: Vec::new(),
        };
        let folder = self.folder.path()?;
        let before = change.before(folder);
        if let Err(e) = change.make(folder) {
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
    pub(super) fn take_back(&self, before: Vec<Before>) {
        for (file, was) in before {
            let there = self.folder.path();
            let there = there.and_then(|folder| read_private(&folder.join(&file), MAX_BYTES));
            if there.ok() != was {
                let _ = self.put(&file, was.as_deref());
            }
        }
        let _ = self.put(CHANGE, None);
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
        if !self.whose().ours.contains_key(name) {
            return Ok(());
        }
        let file = kept(name);
        match self.request_in(&file) {
            Ok(request) => {
                if request.paused == paused && !self.unsaved().contains_key(&file) {
                    return Ok(());
                }
                let request = LoadRequest { paused, ..request };
                self.put_request(&named(name, &request))
            }
            // What else is in the file stays unknown until it can be read, unless it is to be written whole.
            Err(e) => {
                let named = io::Error::new(e.kind(), format!("{file}: {e}"));
                Err(self.not_saved(&file, Unsaved::Paused(paused), named))
            }
        }
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

    /// How it was loaded; what cannot be read is said.
    pub fn read(&self, name: &str) -> Result<LoadRequest, String> {
        let request = self.request_in(&kept(name));
        request
            .map(|request| named(name, &request))
            .map_err(|e| e.to_string())
    }
}
