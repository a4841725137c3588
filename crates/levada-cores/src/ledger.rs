// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ledger of a shield: a file that says what was before, written line by line *before* anything is
//! changed, so that whoever finds it can make everything as it was. It lies where a boot clears it.
//!
//! A line is a word and its values, separated by tabs; a line without an end was never finished, and
//! what it would have recorded was not done.

use crate::machine::{Kernel, Machine};
use crate::set::CoreSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
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
        Ok(Record::parse(&fs::read_to_string(path)?))
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
}

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
        };
        // Unlike a new name by rename, this one replaces nothing.
        let made = ledger.add(begin).and_then(|()| fs::hard_link(&new, path));
        fs::remove_file(&new)?;
        made.map(|()| ledger)
    }

    /// One that is there already, to go on with.
    pub fn open(path: &Path) -> io::Result<Ledger> {
        Ok(Ledger {
            path: path.to_path_buf(),
            file: OpenOptions::new().append(true).open(path)?,
        })
    }

    pub fn add(&mut self, entries: &[Entry]) -> io::Result<()> {
        let text: String = entries.iter().map(Entry::line).collect();
        self.file.write_all(text.as_bytes())
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
    // SAFETY: has no preconditions.
    let me = unsafe { libc::geteuid() };
    if !found.is_dir() || found.uid() != me || found.mode() & 0o022 != 0 {
        let what = format!(
            "{} belongs to another, or others may write there",
            folder.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    Ok(())
}

/// Where the ledger of this user lies, and those of others that concern him.
pub fn places() -> Vec<PathBuf> {
    const ROOT: &str = "/run/levada/shield";
    // SAFETY: has no preconditions.
    let me = unsafe { libc::geteuid() };
    if me == 0 {
        return vec![ROOT.into()];
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|v| !v.is_empty());
    let own = match runtime {
        Some(folder) => PathBuf::from(folder).join("levada/shield"),
        None => format!("/tmp/levada-shield-{me}/shield").into(),
    };
    vec![own, ROOT.into()]
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
