// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ledger of a shield: a file that says what was before, written line by line *before* anything is
//! changed, so that whoever finds it can make everything as it was. It lies where a boot clears it.
//!
//! A line is a word and its values, separated by tabs; a line without an end was never finished, and
//! what it would have recorded was not done.

use crate::machine::{Kernel, Machine};
use crate::set::CoreSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A process, for all time: its id, and when it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Who {
    pub pid: i32,
    pub start: u64,
}

/// A thread that was given other cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub pid: i32,
    pub tid: i32,
    pub start: u64,
    pub old: CoreSet,
    pub new: CoreSet,
}

/// A file of the kernel that was written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    pub path: PathBuf,
    pub old: String,
    pub new: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The cores of the shield, and ticks since boot when it began.
    Shield(CoreSet, u64),
    Tool(Who),
    Guard(Who),
    /// How the shield holds; see [`crate::shield::Rung`].
    Rung(String),
    /// The program alone on its cores.
    Critical(Who),
    /// The group that it belongs to otherwise.
    Home(PathBuf),
    /// Groups that were made: of the program, of all others.
    Inside(PathBuf),
    Outside(PathBuf),
    Task(Task),
    Knob(Knob),
    /// The weight of a session: its id, its old nice value, its new one.
    Session(i32, i32, i32),
    /// How many came onto the cores and were moved away again.
    Evicted(u64),
}

impl Entry {
    fn line(&self) -> String {
        let path = |p: &Path| p.display().to_string();
        match self {
            Entry::Shield(cores, since) => format!("shield\t{cores}\t{since}\n"),
            Entry::Tool(w) => format!("tool\t{}\t{}\n", w.pid, w.start),
            Entry::Guard(w) => format!("guard\t{}\t{}\n", w.pid, w.start),
            Entry::Rung(name) => format!("rung\t{name}\n"),
            Entry::Critical(w) => format!("critical\t{}\t{}\n", w.pid, w.start),
            Entry::Home(p) => format!("home\t{}\n", path(p)),
            Entry::Inside(p) => format!("inside\t{}\n", path(p)),
            Entry::Outside(p) => format!("outside\t{}\n", path(p)),
            Entry::Task(t) => format!(
                "task\t{}\t{}\t{}\t{}\t{}\n",
                t.pid, t.tid, t.start, t.old, t.new
            ),
            Entry::Knob(k) => format!("knob\t{}\t{}\t{}\n", path(&k.path), k.old, k.new),
            Entry::Session(id, old, new) => format!("session\t{id}\t{old}\t{new}\n"),
            Entry::Evicted(n) => format!("evicted\t{n}\n"),
        }
    }

    fn parse(line: &str) -> Option<Entry> {
        let mut parts = line.split('\t');
        let mut next = || parts.next();
        let who = |pid: &str, start: &str| {
            Some(Who {
                pid: pid.parse().ok()?,
                start: start.parse().ok()?,
            })
        };
        Some(match next()? {
            "shield" => Entry::Shield(next()?.parse().ok()?, next()?.parse().ok()?),
            "tool" => Entry::Tool(who(next()?, next()?)?),
            "guard" => Entry::Guard(who(next()?, next()?)?),
            "rung" => Entry::Rung(next()?.to_string()),
            "critical" => Entry::Critical(who(next()?, next()?)?),
            "home" => Entry::Home(next()?.into()),
            "inside" => Entry::Inside(next()?.into()),
            "outside" => Entry::Outside(next()?.into()),
            "task" => Entry::Task(Task {
                pid: next()?.parse().ok()?,
                tid: next()?.parse().ok()?,
                start: next()?.parse().ok()?,
                old: next()?.parse().ok()?,
                new: next()?.parse().ok()?,
            }),
            "knob" => Entry::Knob(Knob {
                path: next()?.into(),
                old: next()?.to_string(),
                new: next()?.to_string(),
            }),
            "session" => Entry::Session(
                next()?.parse().ok()?,
                next()?.parse().ok()?,
                next()?.parse().ok()?,
            ),
            "evicted" => Entry::Evicted(next()?.parse().ok()?),
            _ => return None,
        })
    }
}

/// What a ledger says.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub cores: CoreSet,
    pub since: u64,
    pub tool: Option<Who>,
    pub guard: Option<Who>,
    pub rung: String,
    pub critical: Vec<Who>,
    pub home: Option<PathBuf>,
    pub inside: Option<PathBuf>,
    pub outside: Option<PathBuf>,
    pub tasks: Vec<Task>,
    pub knobs: Vec<Knob>,
    pub session: Option<(i32, i32, i32)>,
    pub evicted: u64,
}

impl Record {
    pub fn parse(text: &str) -> Record {
        let mut record = Record::default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for entry in whole.lines().filter_map(Entry::parse) {
            match entry {
                Entry::Shield(cores, since) => (record.cores, record.since) = (cores, since),
                Entry::Tool(who) => record.tool = Some(who),
                Entry::Guard(who) => record.guard = Some(who),
                Entry::Rung(name) => record.rung = name,
                Entry::Critical(who) => record.critical.push(who),
                Entry::Home(path) => record.home = Some(path),
                Entry::Inside(path) => record.inside = Some(path),
                Entry::Outside(path) => record.outside = Some(path),
                Entry::Task(task) => record.tasks.push(task),
                Entry::Knob(knob) => record.knobs.push(knob),
                Entry::Session(id, old, new) => record.session = Some((id, old, new)),
                Entry::Evicted(n) => record.evicted = n,
            }
        }
        record
    }

    pub fn read(path: &Path) -> io::Result<Record> {
        Record::of(&mut open_trusted(path)?)
    }

    /// What a file says that [`open_trusted`] has opened.
    pub fn of(file: &mut File) -> io::Result<Record> {
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(Record::parse(&text))
    }

    /// Whether somebody still sees to this shield.
    pub fn is_held<K: Kernel>(&self, machine: &Machine<K>) -> bool {
        let lives = |w: &Option<Who>| w.is_some_and(|w| machine.lives(w.pid, w.start));
        lives(&self.tool) || lives(&self.guard)
    }
}

/// The ledger while it is written.
#[derive(Debug)]
pub struct Ledger {
    pub path: PathBuf,
    file: File,
    limit: u64,
}

/// As large as a ledger becomes: some hundred thousand threads.
const LIMIT: u64 = 32 << 20;

impl Ledger {
    /// A new one that begins so; there must be none. It has its name only when the beginning is in it, so
    /// nobody takes it for one that is left over.
    pub fn create(path: &Path, begin: &[Entry]) -> io::Result<Ledger> {
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let new = path.with_extension(format!("new-{}", std::process::id()));
        let _ = fs::remove_file(&new);
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o644)
            .open(&new)?;
        let mut ledger = Ledger {
            path: path.to_path_buf(),
            file,
            limit: LIMIT,
        };
        // Unlike a new name by rename, this one replaces nothing.
        let made = ledger.add(begin).and_then(|()| fs::hard_link(&new, path));
        fs::remove_file(&new)?;
        made.map(|()| ledger)
    }

    /// One that is there already, to go on with.
    #[cfg(test)]
    pub fn open(path: &Path) -> io::Result<Ledger> {
        Ok(Ledger {
            path: path.to_path_buf(),
            file: OpenOptions::new().append(true).open(path)?,
            limit: LIMIT,
        })
    }

    pub fn add(&mut self, entries: &[Entry]) -> io::Result<()> {
        let text: String = entries.iter().map(Entry::line).collect();
        let tasks = entries.iter().any(|e| matches!(e, Entry::Task(_)));
        if tasks && self.file.metadata()?.len() + text.len() as u64 > self.limit {
            let what = format!("the record is full: {} MiB", self.limit >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        self.file.write_all(text.as_bytes())
    }

    #[cfg(test)]
    pub fn with_limit(mut self, limit: u64) -> Ledger {
        self.limit = limit;
        self
    }

    pub fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }
}

/// A folder that only this user writes to. One that is somebody else's is refused.
fn private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    trust(folder, &found, found.is_dir() && found.uid() == me())
}

fn me() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::geteuid() }
}

/// What a ledger says is done, with all the rights that this user has: so nobody else may have written it.
fn trust(path: &Path, found: &fs::Metadata, is_right: bool) -> io::Result<()> {
    if is_right && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    let what = format!(
        "{} belongs to another, is a link, or others may write there",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

/// A ledger, to be read: of this user or root, in a folder of this user or root.
pub fn open_trusted(path: &Path) -> io::Result<File> {
    let ours = |found: &fs::Metadata| [0, me()].contains(&found.uid());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let found = fs::symlink_metadata(folder)?;
    trust(folder, &found, found.is_dir() && ours(&found))?;
    let opened = OpenOptions::new()
        .read(true)
        // A pipe that lies there must not hold us up.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    let file = match opened {
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => {
            trust(path, &fs::symlink_metadata(path)?, false)?;
            return Err(e);
        }
        opened => opened?,
    };
    let found = file.metadata()?;
    trust(path, &found, found.is_file() && ours(&found))?;
    Ok(file)
}

const ROOT: &str = "/run/levada/shield";

/// Where the ledger of this user lies: in a folder that is his alone and that a boot clears.
pub fn own_place() -> io::Result<PathBuf> {
    if me() == 0 {
        return Ok(ROOT.into());
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|v| !v.is_empty());
    let usual = PathBuf::from(format!("/run/user/{}", me()));
    let folder = runtime
        .map(PathBuf::from)
        .or(Some(usual).filter(|f| f.is_dir()));
    let folder = folder.ok_or_else(|| {
        let what =
            "you have no runtime folder: set XDG_RUNTIME_DIR to a folder that only you write to";
        io::Error::new(io::ErrorKind::NotFound, what)
    })?;
    Ok(folder.join("levada/shield"))
}

/// Where the ledgers may lie that concern this user: his own, and root's.
pub fn places() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = own_place().into_iter().collect();
    if me() != 0 {
        places.push(ROOT.into());
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CoreSet {
        text.parse().unwrap()
    }

    fn some() -> Vec<Entry> {
        let who = |pid, start| Who { pid, start };
        vec![
            Entry::Shield(set("2-3"), 4711),
            Entry::Tool(who(10, 100)),
            Entry::Guard(who(11, 101)),
            Entry::Rung("affinity".into()),
            Entry::Critical(who(12, 102)),
            Entry::Home("/user".into()),
            Entry::Inside("/in".into()),
            Entry::Outside("/out".into()),
            Entry::Task(Task {
                pid: 20,
                tid: 21,
                start: 5,
                old: set("0-3"),
                new: set("0-1"),
            }),
            Entry::Knob(Knob {
                path: "/proc/irq/3/smp_affinity_list".into(),
                old: "0-3".into(),
                new: "0-1".into(),
            }),
            Entry::Session(9, 0, -20),
            Entry::Evicted(7),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/shield");
        let (first, second) = (&some()[..6], &some()[6..]);
        Ledger::create(&path, first).unwrap();
        Ledger::open(&path).unwrap().add(second).unwrap();
        let again = Ledger::create(&path, first).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        let record = Record::read(&path).unwrap();
        assert_eq!((record.cores, record.since), (set("2-3"), 4711));
        assert_eq!(
            record.tool,
            Some(Who {
                pid: 10,
                start: 100
            })
        );
        assert_eq!(record.guard.map(|g| g.pid), Some(11));
        assert_eq!(record.critical.len(), 1);
        assert_eq!(record.tasks[0].new, set("0-1"));
        assert_eq!(record.knobs[0].old, "0-3");
        assert_eq!(record.session, Some((9, 0, -20)));
        assert_eq!((record.rung.as_str(), record.evicted), ("affinity", 7));
        assert_eq!(record.home, Some("/user".into()));
    }

    #[test]
    fn a_line_that_was_cut_was_never_written() {
        let text: String = some().iter().map(Entry::line).collect();
        for length in 0..text.len() {
            let record = Record::parse(&text[..length]);
            let lines = text[..length].matches('\n').count();
            assert_eq!(record.tasks.len(), usize::from(lines > 8), "{length}");
            assert_eq!(record.knobs.len(), usize::from(lines > 9), "{length}");
        }
        assert!(
            Record::parse("task\t1\t2\nrubbish\n\t\t\n")
                .tasks
                .is_empty()
        );
    }

    #[test]
    fn what_others_may_have_written_is_not_read() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shield");
        fs::write(&path, "shield\t3\t5\n").unwrap();
        let allow = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let refused = |path: &Path| Record::read(path).unwrap_err().kind();
        allow(&path, 0o644);
        assert_eq!(Record::read(&path).unwrap().since, 5);
        allow(&path, 0o666);
        assert_eq!(refused(&path), io::ErrorKind::PermissionDenied);
        allow(&path, 0o644);
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(refused(&link), io::ErrorKind::PermissionDenied);
        allow(folder.path(), 0o777);
        assert_eq!(refused(&path), io::ErrorKind::PermissionDenied);
        allow(folder.path(), 0o700);
        if me() == 0 {
            std::os::unix::fs::chown(&path, Some(4711), None).unwrap();
            assert_eq!(refused(&path), io::ErrorKind::PermissionDenied);
        }
    }

    #[test]
    fn a_record_that_is_full_says_so_and_takes_what_is_no_thread() {
        let folder = tempfile::tempdir().unwrap();
        let made = Ledger::create(&folder.path().join("shield"), &some()[..2]).unwrap();
        let mut ledger = made.with_limit(64);
        let full = ledger.add(&[some()[8].clone(), some()[8].clone()]);
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        ledger.add(&some()[11..]).unwrap();
        let record = Record::read(&ledger.path).unwrap();
        assert_eq!((record.tasks.len(), record.evicted), (0, 7));
    }

    #[test]
    fn a_folder_that_others_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Ledger::create(&open.join("shield"), &[]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}
