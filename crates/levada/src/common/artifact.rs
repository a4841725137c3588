// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that commands produce: where one may be written, and how.
//!
//! A file that Levada did not produce is never replaced. Each produced file therefore ends with a seal: a text with
//! a comment that holds a hash of everything before it, an object or a program with the hash alone
//! (`levada_cal::compile::seal`). A file that was changed later has no valid seal. An empty file may be replaced;
//! devices and pipes are written to without a seal.
//!
//! A file appears under its name only when it is complete. If no file had the name, it is renamed with
//! RENAME_NOREPLACE, so that a file created meanwhile is not replaced.

use crate::common::output::{self, Failure, failure, failure_with};
use levada_cal::compile;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The kind of a file, which determines the form of its seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    C,
    Dot,
    Svg,
    Toml,
    /// A manual page.
    Roff,
    /// A shared object or a program.
    Object,
}

impl Kind {
    /// The delimiters of a comment of one line.
    fn comment(self) -> (&'static str, &'static str) {
        match self {
            Kind::C => ("/* ", " */"),
            Kind::Dot => ("// ", ""),
            Kind::Svg => ("<!-- ", " -->"),
            Kind::Toml => ("# ", ""),
            Kind::Roff | Kind::Object => (".\\\" ", ""),
        }
    }

    /// The line that a text with this hash ends with.
    fn seal(self, hash: &[u8; 32]) -> String {
        let (open, close) = self.comment();
        let hash: String = hash[..8].iter().map(|b| format!("{b:02x}")).collect();
        format!("{open}Made by Levada: {hash}{close}\n")
    }

    /// Whether Levada made this file. If its end does not look so, it is not read further, however large it is.
    fn made(self, mut file: &File) -> io::Result<bool> {
        if self == Kind::Object {
            return compile::has_seal(file);
        }
        let seal_bytes = self.seal(&[0; 32]).len() as u64;
        let size = file.metadata()?.len();
        let Some(text_bytes) = size.checked_sub(seal_bytes) else {
            return Ok(false);
        };
        let mut last = String::new();
        file.seek(SeekFrom::Start(text_bytes))?;
        match file.take(seal_bytes).read_to_string(&mut last) {
            Err(e) if e.kind() == ErrorKind::InvalidData => return Ok(false),
            read => read?,
        };
        let (open, close) = self.comment();
        if !(last.starts_with(&format!("{open}Made by Levada: "))
            && last.ends_with(&format!("{close}\n")))
        {
            return Ok(false);
        }
        file.seek(SeekFrom::Start(0))?;
        let hash = compile::hash_of(file.take(text_bytes))?;
        Ok(last == self.seal(&hash))
    }
}

/// What exists at a path.
enum Existing {
    Nothing,
    /// A file that may be replaced.
    Replaceable,
    /// A device or a pipe.
    Special,
}

fn existing(path: &Path, kind: Kind) -> Result<Existing, Failure> {
    let cannot = |e: io::Error| Failure::new(format!("cannot write {}: {e}", path.display()));
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == ErrorKind::NotFound && path.is_symlink() => {
            return failure_with(
                format!("{} is a link that leads nowhere", path.display()),
                "name the file that is to be written",
            );
        }
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Existing::Nothing),
        Err(e) => return Err(cannot(e)),
    };
    if meta.is_dir() {
        return failure(format!("cannot write {}: it is a folder", path.display()));
    }
    if !meta.is_file() {
        return Ok(Existing::Special);
    }
    let made = || kind.made(&File::open(path)?);
    if meta.len() == 0 || made().map_err(cannot)? {
        return Ok(Existing::Replaceable);
    }
    Err(not_ours(path))
}

fn not_ours(path: &Path) -> Failure {
    let what = "was not made by Levada, or was changed since; it is not replaced";
    Failure::new(format!("{} {what}", path.display())).help("remove it, or name another file")
}

/// Checks whether a file may be written there, before any work is done for it.
pub fn check(path: &Path, kind: Kind) -> Result<(), Failure> {
    if output::is_standard(path) {
        Ok(())
    } else {
        existing(path, kind).map(drop)
    }
}

/// Writes a text with its seal. To standard output (`-`), devices and pipes it is written without a seal.
pub fn write(path: &Path, text: &[u8], kind: Kind) -> Result<(), Failure> {
    if output::is_standard(path) {
        return output::line(String::from_utf8_lossy(text).trim_end());
    }
    let there = existing(path, kind)?;
    if matches!(there, Existing::Special) {
        return output::write_file(path, text);
    }
    let mut sealed = text.to_vec();
    if !sealed.is_empty() && !sealed.ends_with(b"\n") {
        sealed.push(b'\n');
    }
    let seal = kind.seal(&Sha256::digest(&sealed).into());
    sealed.extend_from_slice(seal.as_bytes());
    write_atomically(path, &there, |mut file, _| file.write_all(&sealed))
}

/// Copies a sealed object with its permissions.
pub fn copy_object(from: &Path, to: &Path) -> Result<(), Failure> {
    let there = existing(to, Kind::Object)?;
    write_atomically(to, &there, |_, partial| fs::copy(from, partial).map(drop))
}

/// Seals a file that was just written and renames it; both paths are on one file system.
pub fn move_object(from: &Path, to: &Path) -> Result<(), Failure> {
    let there = existing(to, Kind::Object)?;
    let moved = compile::seal(from).and_then(|()| rename(from, &output::followed(to), &there));
    moved.map_err(|e| cannot_write(to, &e))
}

/// Writes a temporary file in the same folder and renames it to `path`.
fn write_atomically(
    path: &Path,
    there: &Existing,
    fill: impl FnOnce(File, &Path) -> io::Result<()>,
) -> Result<(), Failure> {
    let to = output::followed(path);
    let written = output::partial(&to).and_then(|(file, partial)| {
        let done = fill(file, &partial).and_then(|()| rename(&partial, &to, there));
        done.inspect_err(|_| drop(fs::remove_file(&partial)))
    });
    written.map_err(|e| cannot_write(path, &e))
}

fn cannot_write(path: &Path, e: &io::Error) -> Failure {
    match e.kind() {
        // The file was created after the check.
        ErrorKind::AlreadyExists => not_ours(path),
        _ => Failure::new(format!("cannot write {}: {e}", path.display())),
    }
}

fn rename(from: &Path, to: &Path, there: &Existing) -> io::Result<()> {
    if matches!(there, Existing::Nothing) {
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // Not every file system supports RENAME_NOREPLACE.
            Err(Errno::NOSYS | Errno::INVAL) => {}
            done => return Ok(done?),
        }
    }
    fs::rename(from, to)
}

/// A private temporary folder next to `path`; removed on drop.
pub struct ScratchFolder(pub PathBuf);

impl ScratchFolder {
    pub fn next_to(path: &Path) -> io::Result<ScratchFolder> {
        let mut n = 0;
        loop {
            let folder = output::partial_name(path, n).with_extension("d");
            match DirBuilder::new().create(&folder) {
                Ok(()) => return Ok(ScratchFolder(folder)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists && n < output::NAMES_TRIED_MAX => {
                    n += 1
                }
                Err(e) => return Err(e),
            }
        }
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_was_changed_has_no_seal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        for kind in [Kind::C, Kind::Dot, Kind::Svg, Kind::Toml, Kind::Roff] {
            let made = |text: &[u8]| {
                fs::write(&path, text).unwrap();
                kind.made(&File::open(&path).unwrap()).unwrap()
            };
            let mut text = b"one\ntwo\n".to_vec();
            assert!(!made(&text) && !made(b"") && !made(b"\n"));
            let seal = kind.seal(&Sha256::digest(&text).into());
            text.extend(seal.into_bytes());
            assert!(made(&text), "{kind:?}");
            for at in 0..text.len() {
                let mut other = text.clone();
                other[at] ^= 1;
                assert!(!made(&other), "{kind:?} {at}");
                other[at] = 0xff;
                assert!(!made(&other), "{kind:?} {at}");
            }
            text.extend(b"three\n");
            assert!(!made(&text), "{kind:?}");
        }
    }

    /// However large it is, what decides is read, and no more: all of this would take the memory of the machine.
    #[test]
    fn a_large_file_is_looked_at_and_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let large = File::create(&path).unwrap();
        if large.set_len(200 << 30).is_err() {
            return; // this file system has no such files
        }
        for kind in [Kind::C, Kind::Svg, Kind::Object] {
            assert!(!kind.made(&File::open(&path).unwrap()).unwrap(), "{kind:?}");
            assert!(check(&path, kind).is_err());
        }
        (&large).write_all(b"\x7fELF").unwrap();
        assert!(!Kind::Object.made(&File::open(&path).unwrap()).unwrap());
    }
}
