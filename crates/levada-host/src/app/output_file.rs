// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The identity of the file that an application writes, as it was when the application was loaded.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The canonical path of an output file, and its device and inode if it existed. A mismatch with these proves that
/// another path is another file, without a system call for each loaded application.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    file: Option<(u64, u64)>,
    /// The file has several links.
    linked: bool,
}

impl OutputFile {
    /// None: the file may be shared, or nothing is known of it.
    pub(crate) fn resolve(out: &str) -> Option<OutputFile> {
        let out = Path::new(out);
        match std::fs::metadata(out) {
            Ok(m) if m.is_file() => Some(OutputFile {
                path: out.canonicalize().ok()?,
                file: Some((m.dev(), m.ino())),
                linked: m.nlink() > 1,
            }),
            Ok(_) => None,
            Err(_) => Some(OutputFile {
                path: out.parent()?.canonicalize().ok()?.join(out.file_name()?),
                file: None,
                linked: false,
            }),
        }
    }

    /// Whether this may be the file that was resolved earlier.
    pub(crate) fn may_be_same_as(&self, earlier: &OutputFile) -> bool {
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
        let target = |name: &str| OutputFile::resolve(&at(name)).unwrap();
        let (new, other) = (target("new"), target("other"));
        assert!(target("new").may_be_same_as(&new) && !target("new").may_be_same_as(&other));
        std::os::unix::fs::symlink(folder.path(), at("link")).unwrap();
        assert!(target("link/new").may_be_same_as(&new));
        // It exists now.
        std::fs::write(at("new"), "").unwrap();
        assert!(target("new").may_be_same_as(&new) && target("link/new").may_be_same_as(&new));
        let there = target("new");
        std::fs::hard_link(at("new"), at("same")).unwrap();
        assert!(target("same").may_be_same_as(&there) && target("same").may_be_same_as(&new));
        std::os::unix::fs::symlink(at("new"), at("points")).unwrap();
        assert!(target("points").may_be_same_as(&there) && !target("other").may_be_same_as(&there));
        assert!(
            OutputFile::resolve("/dev/null").is_none()
                && OutputFile::resolve(&at("link")).is_none()
        );
    }
}
