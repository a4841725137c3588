// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records the file-system dependencies of a compilation: files and folders that were read, paths that were looked
//! up (including those that do not exist), and links that were followed. While none of them changes, the result of
//! the compilation is valid.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The kind of a query about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Query {
    /// Whether there is a file or a folder.
    Kind,
    /// The content.
    Content,
    /// The canonical path.
    Place,
    /// Whether it is executable, and its identity.
    Program,
}

const QUERIES: [(Query, &str); 4] = [
    (Query::Kind, "kind"),
    (Query::Content, "content"),
    (Query::Place, "place"),
    (Query::Program, "program"),
];

/// Upper bound on the resolution of the file system's clock: a file that was written this shortly before it was read
/// may be written again with the same time.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
struct Dependencies {
    seen: BTreeMap<(Query, PathBuf), String>,
    unsure: bool,
}

thread_local! {
    static DEPENDENCIES: RefCell<Option<Dependencies>> = const { RefCell::new(None) };
}

/// Starts recording on this thread, until [`taken`].
pub fn begin() {
    DEPENDENCIES.set(Some(Dependencies::default()));
}

/// The recorded dependencies: query, path, and state. `None` if a later check would be unreliable, because a file was
/// written while it was read.
pub fn taken() -> Option<Vec<[String; 3]>> {
    let notes = DEPENDENCIES.take()?;
    if notes.unsure {
        return None;
    }
    let text = |((query, path), answer): ((Query, PathBuf), String)| {
        let name = QUERIES.iter().find(|a| a.0 == query)?.1;
        Some([name.to_string(), path.to_str()?.to_string(), answer])
    };
    notes.seen.into_iter().map(text).collect()
}

/// Whether all dependencies are unchanged.
pub fn holds(seen: &[[String; 3]]) -> bool {
    seen.iter().all(|[name, path, answer]| {
        let query = QUERIES.iter().find(|a| a.1 == name);
        query.is_some_and(|(query, _)| read_state(*query, Path::new(path)).0 == *answer)
    })
}

/// The current state, and whether it could change without a visible difference.
fn read_state(query: Query, path: &Path) -> (String, bool) {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        // It does not exist, or is not accessible.
        Err(e) => return (format!("no {:?}", e.kind()), false),
    };
    match query {
        Query::Kind if meta.is_file() => ("file".to_string(), false),
        Query::Kind if meta.is_dir() => ("folder".to_string(), false),
        Query::Kind => ("other".to_string(), false),
        Query::Place => match fs::canonicalize(path) {
            Ok(full) => {
                // As bytes, since names need not be UTF-8.
                let bytes = full.as_os_str().as_bytes();
                (bytes.escape_ascii().to_string(), false)
            }
            Err(e) => (format!("no {:?}", e.kind()), false),
        },
        Query::Content | Query::Program => {
            // ctime cannot be set by users, so another file with the same mtime is detected.
            let stamp = format!(
                "{} {} {} {} {}.{:09} {}.{:09}",
                meta.dev(),
                meta.ino(),
                meta.mode(),
                meta.len(),
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec()
            );
            let since = Duration::new(meta.ctime().max(0) as u64, meta.ctime_nsec() as u32);
            let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + since);
            (stamp, age.map_or(true, |age| age < CLOCK_RESOLUTION))
        }
    }
}

fn record(query: Query, path: &Path) -> Option<String> {
    DEPENDENCIES.with_borrow_mut(|notes| {
        let notes = notes.as_mut()?;
        let (answer, fresh) = read_state(query, path);
        notes.unsure |= fresh;
        let key = (query, path.to_path_buf());
        if let Some(before) = notes.seen.insert(key, answer.clone()) {
            notes.unsure |= before != answer;
        }
        Some(answer)
    })
}

/// Must be called before a file or folder is read.
pub fn content(path: &Path) {
    record(Query::Content, path);
}

pub fn is_file(path: &Path) -> bool {
    record(Query::Kind, path).map_or_else(|| path.is_file(), |is| is == "file")
}

pub fn is_dir(path: &Path) -> bool {
    record(Query::Kind, path).map_or_else(|| path.is_dir(), |is| is == "folder")
}

pub fn exists(path: &Path) -> bool {
    record(Query::Kind, path).map_or_else(|| path.exists(), |is| !is.starts_with("no "))
}

pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    record(Query::Place, path);
    path.canonicalize()
}

/// Records the programs that a command's name may refer to: all of this name in `$PATH`, since the first may be a
/// wrapper that calls the next. A script may call anything, so its result is unreliable.
pub fn program(word: &str) {
    if DEPENDENCIES.with_borrow(Option::is_none) {
        return;
    }
    let candidates: Vec<PathBuf> = if word.contains('/') {
        vec![PathBuf::from(word)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|f| f.join(word)).collect()
    };
    for file in candidates {
        record(Query::Program, &file);
        let is_script = || -> io::Result<bool> {
            let mut begin = [0; 4];
            io::Read::read_exact(&mut fs::File::open(&file)?, &mut begin)?;
            Ok(begin != *b"\x7fELF")
        };
        if file.is_file() && is_script().unwrap_or(true) {
            mark_unreliable();
        }
    }
}

/// The result depends on more than can be recorded.
pub fn mark_unreliable() {
    DEPENDENCIES.with_borrow_mut(|notes| {
        if let Some(notes) = notes {
            notes.unsure = true;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("levada-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Folder(path.canonicalize().unwrap())
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, text).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_changes_is_noticed() {
        let folder = Folder::new("seen");
        let (a, b) = (folder.write("a", "one"), folder.0.join("b"));
        std::os::unix::fs::symlink(&a, folder.0.join("link")).unwrap();
        std::thread::sleep(2 * CLOCK_RESOLUTION);
        begin();
        content(&a);
        assert!(!is_file(&b) && is_dir(&folder.0) && exists(&a));
        assert_eq!(canonicalize(&folder.0.join("link")).unwrap(), a);
        let seen = taken().unwrap();
        assert!(holds(&seen));
        // Same text, same size, and same mtime.
        let modified = fs::metadata(&a).unwrap().modified().unwrap();
        folder.write("a", "one");
        let file = fs::File::options().append(true).open(&a).unwrap();
        file.set_modified(modified).unwrap();
        assert!(!holds(&seen));
        let others: Vec<_> = seen.into_iter().filter(|s| s[0] != "content").collect();
        assert!(holds(&others));
        folder.write("b", "");
        assert!(!holds(&others));
        fs::remove_file(&b).unwrap();
        assert!(holds(&others));
        fs::remove_file(folder.0.join("link")).unwrap();
        assert!(!holds(&others));
    }

    #[test]
    fn what_is_written_meanwhile_is_not_relied_on() {
        let folder = Folder::new("unsure");
        let a = folder.write("a", "one");
        begin();
        content(&a);
        assert_eq!(taken(), None);
        begin();
        assert!(!is_file(&folder.0.join("b")));
        folder.write("b", "");
        assert!(is_file(&folder.0.join("b")));
        assert_eq!(taken(), None);
        let script = folder.write("cc", "#!/bin/sh\n");
        std::thread::sleep(2 * CLOCK_RESOLUTION);
        begin();
        program(script.to_str().unwrap());
        assert_eq!(taken(), None);
        assert_eq!(taken(), None);
    }
}
