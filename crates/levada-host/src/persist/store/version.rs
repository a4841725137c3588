// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The format of a state folder: the number in its file `.version`. A folder of another format is refused before
//! anything in it is changed.

use crate::persist::store::files::{CHANGE, write_whole};
use levada_files::read_private;
use std::io::{Error, ErrorKind};
use std::path::Path;

const FILE: &str = ".version";
/// The format of this version. Folders of Levada 0.1 have no such file.
const FORMAT: &str = "2";
const FILE_BYTES_MAX: u64 = 64;

/// Whether a host has stored applications in the folder.
fn is_used(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        let suffixes = [".json", ".held", ".going", ".replacing"];
        file == CHANGE || file == ".journal" || suffixes.iter().any(|s| file.ends_with(s))
    })
}

/// Refuses a folder of another format.
pub(super) fn check(folder: &Path) -> std::io::Result<()> {
    // Listed first: a host that starts meanwhile writes the version before everything else.
    let used = is_used(folder);
    let of = |version: &str| Err(Error::other(format!("it is a state folder of {version}")));
    match read_private(&folder.join(FILE), FILE_BYTES_MAX) {
        Ok(text) if text.trim_ascii() == FORMAT.as_bytes() => Ok(()),
        Ok(_) => of("another version of Levada"),
        Err(e) if e.kind() == ErrorKind::NotFound && used => of("Levada 0.1"),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::new(e.kind(), format!("{FILE}: {e}"))),
    }
}

/// Writes the format into a new folder. The caller has the folder's lock.
pub(super) fn mark(folder: &Path) -> std::io::Result<()> {
    if folder.join(FILE).exists() {
        return Ok(());
    }
    write_whole(folder, FILE, format!("{FORMAT}\n").as_bytes())
}
