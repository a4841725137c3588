// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The output file of an application.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where an output is: its whole path without links, and the file that was there, if there was one, when it was looked at.
/// What does not match that now is another file, without a look at the disk for each application that is loaded.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    file: Option<(u64, u64)>,
    /// The file has other names, too.
    linked: bool,
}

impl Target {
    /// None: it may be shared, or nothing is known of it.
    pub(crate) fn of(out: &str) -> Option<Target> {
        let out = Path::new(out);
        match std::fs::metadata(out) {
            Ok(m) if m.is_file() => Some(Target {
                path: out.canonicalize().ok()?,
                file: Some((m.dev(), m.ino())),
                linked: m.nlink() > 1,
            }),
            Ok(_) => None,
            Err(_) => Some(Target {
                path: out.parent()?.canonicalize().ok()?.join(out.file_name()?),
                file: None,
                linked: false,
            }),
        }
    }

    /// May this be the file of one that was looked at earlier?
    pub(crate) fn may_be(&self, earlier: &Target) -> bool {
        self.path == earlier.path || self.linked || self.file.is_some() && self.file == earlier.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_file_match_and_others_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        let target = |name: &str| Target::of(&at(name)).unwrap();
        let (new, other) = (target("new"), target("other"));
        assert!(target("new").may_be(&new) && !target("new").may_be(&other));
        std::os::unix::fs::symlink(folder.path(), at("link")).unwrap();
        assert!(target("link/new").may_be(&new));
        // It is there since.
        std::fs::write(at("new"), "").unwrap();
        assert!(target("new").may_be(&new) && target("link/new").may_be(&new));
        let there = target("new");
        std::fs::hard_link(at("new"), at("same")).unwrap();
        assert!(target("same").may_be(&there) && target("same").may_be(&new));
        std::os::unix::fs::symlink(at("new"), at("points")).unwrap();
        assert!(target("points").may_be(&there) && !target("other").may_be(&there));
        assert!(Target::of("/dev/null").is_none() && Target::of(&at("link")).is_none());
    }
}
