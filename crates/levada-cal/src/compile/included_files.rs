// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files that the C compiler reads for the natives: the natives themselves, and all headers that it finds on its
//! search path. They are known only after a compilation (`-MD`), so they cannot be part of the name of the object.
//! Their list is appended to the object instead, which is used only while they are unchanged, and while no new file
//! precedes one of them on the search path.

use super::Compiler;
use super::cache::SEAL_BYTES;
use crate::{fs_deps, includes};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The environment variables that change what the C compilers do.
pub const ENVIRONMENT: [&str; 9] = [
    "CC",
    "CXX",
    "PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
];

/// The folder for headers of the machine that compilers search without being told, before that of the system.
const LOCAL_HEADERS: &str = "/usr/local/include";

/// Upper bound on the error of the times of files: a file that is changed less than this before a compilation begins
/// may have the time of its beginning.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(50);

#[derive(Debug, Default, Deserialize, Serialize)]
pub struct IncludedFiles {
    /// The hash of each file's content.
    found: BTreeMap<PathBuf, String>,
    /// Paths that the compiler has tried, or would have tried, and that do not exist.
    absent: BTreeSet<PathBuf>,
}

impl IncludedFiles {
    /// Reads the rules that the compiler has written. None: it has written no rule, or a file was changed since the
    /// compilation began.
    pub fn read(rules: &[PathBuf], cc: &Compiler, begun: SystemTime) -> Option<IncludedFiles> {
        let here = std::env::current_dir().ok()?;
        let folders = search_folders(cc, &here);
        let mut files = IncludedFiles::default();
        for rule in rules {
            let scratch = rule.parent()?;
            let text = fs::read_to_string(rule).ok()?;
            let all = prerequisites(&text).into_iter().map(|p| here.join(p));
            for path in all.filter(|p| !p.starts_with(scratch)) {
                files.add(&path, &folders, begun)?;
            }
        }
        Some(files)
    }

    fn add(&mut self, path: &Path, folders: &[PathBuf], begun: SystemTime) -> Option<()> {
        if self.found.contains_key(path) {
            return Some(());
        }
        fs_deps::content(path);
        let meta = fs::metadata(path).ok()?;
        let changed = Duration::new(meta.ctime().max(0) as u64, meta.ctime_nsec() as u32);
        if SystemTime::UNIX_EPOCH + changed + CLOCK_RESOLUTION > begun {
            return None;
        }
        let content = fs::read(path).ok()?;
        for name in includes::names(&String::from_utf8_lossy(&content)) {
            let own = path.parent().map(Path::to_path_buf);
            let tried = own.iter().chain(folders).map(|folder| folder.join(name));
            self.absent.extend(tried.filter(|p| !fs_deps::exists(p)));
        }
        self.found.insert(path.to_path_buf(), hash(&content));
        Some(())
    }

    /// Appends the list to an object that is not sealed yet.
    pub fn append_to(&self, object: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.extend((text.len() as u64).to_le_bytes());
        fs::File::options()
            .append(true)
            .open(object)?
            .write_all(&text)
    }

    /// The list of a sealed object, if it has one.
    fn of(object: &Path) -> Option<IncludedFiles> {
        let mut file = fs::File::open(object).ok()?;
        let mut bytes = [0; size_of::<u64>()];
        let end = file.metadata().ok()?.len().checked_sub(SEAL_BYTES as u64)?;
        let end = end.checked_sub(bytes.len() as u64)?;
        file.seek(io::SeekFrom::Start(end)).ok()?;
        file.read_exact(&mut bytes).ok()?;
        let begin = end.checked_sub(u64::from_le_bytes(bytes))?;
        file.seek(io::SeekFrom::Start(begin)).ok()?;
        serde_json::from_reader(file.take(end - begin)).ok()
    }

    /// Whether all files are as they were when this object was compiled.
    pub fn are_unchanged(object: &Path) -> bool {
        let Some(files) = IncludedFiles::of(object) else {
            return false;
        };
        let is_same = |(path, known): (&PathBuf, &String)| {
            fs_deps::content(path);
            fs::read(path).is_ok_and(|content| hash(&content) == *known)
        };
        files.found.iter().all(is_same) && !files.absent.iter().any(|path| fs_deps::exists(path))
    }
}

fn hash(content: &[u8]) -> String {
    super::compiler::hex(Sha256::new_with_prefix(content))
}

/// The folders that the compiler searches before those of the system.
fn search_folders(cc: &Compiler, here: &Path) -> Vec<PathBuf> {
    const OPTIONS: [&str; 4] = ["-I", "-iquote", "-isystem", "-idirafter"];
    let mut folders = vec![PathBuf::from(LOCAL_HEADERS)];
    let cxx = std::env::var("CXX").unwrap_or_default();
    let mut words = cc.words().chain(cxx.split_whitespace());
    while let Some(word) = words.next() {
        let Some(folder) = OPTIONS.iter().find_map(|o| word.strip_prefix(o)) else {
            continue;
        };
        let folder = if folder.is_empty() {
            words.next().unwrap_or(".")
        } else {
            folder
        };
        folders.push(here.join(folder));
    }
    for variable in ["CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"] {
        let paths = std::env::var_os(variable).unwrap_or_default();
        // An empty path is the current folder.
        folders.extend(std::env::split_paths(&paths).map(|p| here.join(p)));
    }
    folders
}

/// The prerequisites of all rules of a makefile, as a compiler writes them.
fn prerequisites(text: &str) -> Vec<String> {
    let (mut all, mut word) = (Vec::new(), String::new());
    let mut end = |word: &mut String| {
        let whole = std::mem::take(word);
        if !whole.is_empty() && !whole.ends_with(':') {
            all.push(whole);
        }
    };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => {
                chars.next();
                end(&mut word);
            }
            ('\\', Some(' ' | '#' | ':')) | ('$', Some('$')) => word.extend(chars.next()),
            (c, _) if c.is_whitespace() => end(&mut word),
            (c, _) => word.push(c),
        }
    }
    end(&mut word);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_compilers_are_read() {
        let text = "0.o: /a/x.c /usr/include/stdio.h \\\n  /a/with\\ space.h \\\n /a/cash$$.h\n\n/a/y\\#.h:\n";
        let all = [
            "/a/x.c",
            "/usr/include/stdio.h",
            "/a/with space.h",
            "/a/cash$.h",
        ];
        assert_eq!(prerequisites(text), all);
        assert_eq!(prerequisites(""), [""; 0]);
        assert_eq!(prerequisites("0.o:"), [""; 0]);
    }
}
