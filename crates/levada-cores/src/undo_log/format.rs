// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Content of an undo log: the current shields of one user, and the state before them. Masks and
//! files that several shields narrow have one common history, since a shield finds what an earlier
//! one has set. The *original mask* of a thread is the one before any shield; its granted mask is
//! the original one without the cores of all shields.
//!
//! Each line has the number of a shield, a keyword and values, separated by tabs. An incomplete
//! last line is ignored: the change that it announces was not made.

use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use std::path::{Path, PathBuf};

/// A process, identified uniquely by its id and start time (ticks since boot).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessId {
    pub pid: i32,
    pub start: u64,
}

/// A change of a thread's affinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMove {
    pub pid: i32,
    pub tid: i32,
    pub start: u64,
    /// The original mask.
    pub old: CoreSet,
    pub new: CoreSet,
}

/// A kernel file that was written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFile {
    pub path: PathBuf,
    /// The content before all shields.
    pub old: String,
    pub new: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Cores of the shield, and its start in ticks since boot. Discards earlier entries of this
    /// number.
    Shield(CoreSet, u64),
    Tool(ProcessId),
    Guard(ProcessId),
    /// The name of the method that holds the shield.
    Method(String),
    /// The single target core, if one was requested.
    Lightest(u32),
    /// The program on the shielded cores.
    Critical(ProcessId),
    /// The cgroup that the program came from.
    Home(PathBuf),
    /// The cgroup that was created for the program.
    Inside(PathBuf),
    /// The cgroup of all other processes, common to all shields.
    Outside(PathBuf),
    ThreadMove(ThreadMove),
    KernelFile(KernelFile),
    /// The autogroup of a session: its id, old and new nice value.
    Session(i32, i32, i32),
    /// Number of threads that came onto the cores later and were moved away.
    Evicted(u64),
}

impl Entry {
    fn values(&self) -> String {
        let path = |p: &Path| p.display().to_string();
        let process = |w: &ProcessId| format!("{}\t{}", w.pid, w.start);
        match self {
            Entry::Shield(cores, since) => format!("shield\t{cores}\t{since}"),
            Entry::Tool(w) => format!("tool\t{}", process(w)),
            Entry::Guard(w) => format!("guard\t{}", process(w)),
            Entry::Method(name) => format!("rung\t{name}"),
            Entry::Lightest(core) => format!("lightest\t{core}"),
            Entry::Critical(w) => format!("critical\t{}", process(w)),
            Entry::Home(p) => format!("home\t{}", path(p)),
            Entry::Inside(p) => format!("inside\t{}", path(p)),
            Entry::Outside(p) => format!("outside\t{}", path(p)),
            Entry::ThreadMove(t) => format!(
                "task\t{}\t{}\t{}\t{}\t{}",
                t.pid, t.tid, t.start, t.old, t.new
            ),
            Entry::KernelFile(k) => format!("knob\t{}\t{}\t{}", path(&k.path), k.old, k.new),
            Entry::Session(id, old, new) => format!("session\t{id}\t{old}\t{new}"),
            Entry::Evicted(n) => format!("evicted\t{n}"),
        }
    }

    /// The line in the log.
    pub fn line(&self, shield: u32) -> String {
        format!("{shield}\t{}\n", self.values())
    }

    fn parse(line: &str) -> Option<(u32, Entry)> {
        let mut parts = line.split('\t');
        let mut next = || parts.next();
        let process = |pid: &str, start: &str| {
            Some(ProcessId {
                pid: pid.parse().ok()?,
                start: start.parse().ok()?,
            })
        };
        let shield = next()?.parse().ok()?;
        let entry = match next()? {
            "shield" => Entry::Shield(next()?.parse().ok()?, next()?.parse().ok()?),
            "tool" => Entry::Tool(process(next()?, next()?)?),
            "guard" => Entry::Guard(process(next()?, next()?)?),
            "rung" => Entry::Method(next()?.to_string()),
            "lightest" => Entry::Lightest(next()?.parse().ok()?),
            "critical" => Entry::Critical(process(next()?, next()?)?),
            "home" => Entry::Home(next()?.into()),
            "inside" => Entry::Inside(next()?.into()),
            "outside" => Entry::Outside(next()?.into()),
            "task" => Entry::ThreadMove(ThreadMove {
                pid: next()?.parse().ok()?,
                tid: next()?.parse().ok()?,
                start: next()?.parse().ok()?,
                old: next()?.parse().ok()?,
                new: next()?.parse().ok()?,
            }),
            "knob" => Entry::KernelFile(KernelFile {
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
        };
        Some((shield, entry))
    }
}

/// The state of one shield.
#[derive(Clone, Debug, Default)]
pub struct ShieldRecord {
    /// The number of its first core.
    pub number: u32,
    pub cores: CoreSet,
    pub since: u64,
    pub tool: Option<ProcessId>,
    pub guard: Option<ProcessId>,
    /// Empty while the shield is being raised.
    pub method: String,
    pub lightest: Option<u32>,
    pub critical: Vec<ProcessId>,
    pub home: Option<PathBuf>,
    pub inside: Option<PathBuf>,
    pub session: Option<(i32, i32, i32)>,
    pub evicted: u64,
}

impl ShieldRecord {
    /// The process that maintains this shield: its tool, or else its guard.
    pub fn holder<K: Kernel>(&self, machine: &Machine<K>) -> Option<ProcessId> {
        let lives = |w: &ProcessId| machine.lives(w.pid, w.start);
        self.tool.filter(lives).or(self.guard.filter(lives))
    }

    pub fn entries(&self) -> Vec<Entry> {
        let mut all = vec![Entry::Shield(self.cores.clone(), self.since)];
        all.extend(self.tool.map(Entry::Tool));
        all.extend(self.guard.map(Entry::Guard));
        all.extend(
            Some(self.method.clone())
                .filter(|r| !r.is_empty())
                .map(Entry::Method),
        );
        all.extend(self.lightest.map(Entry::Lightest));
        all.extend(self.critical.iter().copied().map(Entry::Critical));
        all.extend(self.home.clone().map(Entry::Home));
        all.extend(self.inside.clone().map(Entry::Inside));
        all.extend(
            self.session
                .map(|(id, old, new)| Entry::Session(id, old, new)),
        );
        all.push(Entry::Evicted(self.evicted));
        all
    }
}

/// The content of an undo log.
#[derive(Clone, Debug, Default)]
pub struct LogState {
    pub shields: Vec<ShieldRecord>,
    pub outside: Option<PathBuf>,
    /// Shield number and change, in chronological order.
    pub tasks: Vec<(u32, ThreadMove)>,
    pub kernel_files: Vec<(u32, KernelFile)>,
}

impl LogState {
    pub fn parse(text: &str) -> LogState {
        let mut record = LogState::default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (number, entry) in whole.lines().filter_map(Entry::parse) {
            record.apply(number, entry);
        }
        record
    }

    fn apply(&mut self, number: u32, entry: Entry) {
        let held = match entry {
            Entry::ThreadMove(task) => return self.tasks.push((number, task)),
            Entry::KernelFile(kernel_file) => return self.kernel_files.push((number, kernel_file)),
            Entry::Outside(path) => return self.outside = Some(path),
            Entry::Shield(cores, since) => {
                self.shields.retain(|s| s.number != number);
                return self.shields.push(ShieldRecord {
                    number,
                    cores,
                    since,
                    ..ShieldRecord::default()
                });
            }
            entry => (self.shields.iter_mut().find(|s| s.number == number), entry),
        };
        let (Some(held), entry) = held else { return };
        match entry {
            Entry::Tool(process) => held.tool = Some(process),
            Entry::Guard(process) => held.guard = Some(process),
            Entry::Method(name) => held.method = name,
            Entry::Lightest(core) => held.lightest = Some(core),
            Entry::Critical(process) => held.critical.push(process),
            Entry::Home(path) => held.home = Some(path),
            Entry::Inside(path) => held.inside = Some(path),
            Entry::Session(id, old, new) => held.session = Some((id, old, new)),
            Entry::Evicted(n) => held.evicted = n,
            Entry::Shield(..) | Entry::Outside(_) | Entry::ThreadMove(_) | Entry::KernelFile(_) => {
            }
        }
    }

    pub fn text(&self) -> String {
        let shields = self.shields.iter();
        let mut text: String = shields
            .flat_map(|held| held.entries().into_iter().map(|e| e.line(held.number)))
            .collect();
        let number = self.shields.first().map_or(0, |held| held.number);
        let outside = self.outside.clone().map(|p| Entry::Outside(p).line(number));
        text.extend(outside);
        text.extend(
            self.kernel_files
                .iter()
                .map(|(n, k)| Entry::KernelFile(k.clone()).line(*n)),
        );
        text.extend(
            self.tasks
                .iter()
                .map(|(n, t)| Entry::ThreadMove(t.clone()).line(*n)),
        );
        text
    }

    pub fn shield(&self, number: u32) -> Option<&ShieldRecord> {
        self.shields.iter().find(|s| s.number == number)
    }

    /// All shields except this one.
    pub fn others(&self, number: u32) -> impl Iterator<Item = &ShieldRecord> {
        self.shields.iter().filter(move |s| s.number != number)
    }

    /// The cores of all shields except this one.
    pub fn cores_of_others(&self, number: u32) -> CoreSet {
        self.others(number)
            .fold(CoreSet::default(), |all, held| all.or(&held.cores))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    fn set(text: &str) -> CoreSet {
        text.parse().unwrap()
    }

    pub fn task() -> Entry {
        Entry::ThreadMove(ThreadMove {
            pid: 20,
            tid: 21,
            start: 5,
            old: set("0-3"),
            new: set("0-1"),
        })
    }

    pub fn some() -> Vec<Entry> {
        let process = |pid, start| ProcessId { pid, start };
        vec![
            Entry::Shield(set("2-3"), 4711),
            Entry::Tool(process(10, 100)),
            Entry::Guard(process(11, 101)),
            Entry::Method("affinity".into()),
            Entry::Critical(process(12, 102)),
            Entry::Home("/user".into()),
            Entry::Inside("/in".into()),
            Entry::Outside("/out".into()),
            task(),
            Entry::KernelFile(KernelFile {
                path: "/proc/irq/3/smp_affinity_list".into(),
                old: "0-3".into(),
                new: "0-1".into(),
            }),
            Entry::Session(9, 0, -20),
            Entry::Lightest(1),
            Entry::Evicted(7),
        ]
    }

    #[test]
    fn entries_are_read_back() {
        let text: String = some().iter().map(|e| e.line(2)).collect();
        let record = LogState::parse(&text);
        let held = record.shield(2).unwrap();
        assert_eq!((&held.cores, held.since), (&set("2-3"), 4711));
        assert_eq!(held.tool.map(|t| (t.pid, t.start)), Some((10, 100)));
        assert_eq!(held.guard.map(|g| g.pid), Some(11));
        assert_eq!((held.critical.len(), held.lightest), (1, Some(1)));
        assert_eq!(record.tasks[0].1.new, set("0-1"));
        assert_eq!(record.kernel_files[0].1.old, "0-3");
        assert_eq!(held.session, Some((9, 0, -20)));
        assert_eq!((held.method.as_str(), held.evicted), ("affinity", 7));
        assert_eq!(held.home, Some("/user".into()));
        assert_eq!(
            (&held.inside, &record.outside),
            (&Some("/in".into()), &Some("/out".into()))
        );
        // Writing and parsing again gives the same state.
        let again = LogState::parse(&record.text());
        assert_eq!(format!("{again:?}"), format!("{record:?}"));
    }

    #[test]
    fn an_incomplete_line_is_ignored() {
        let text: String = some().iter().map(|e| e.line(2)).collect();
        for length in 0..text.len() {
            let record = LogState::parse(&text[..length]);
            let lines = text[..length].matches('\n').count();
            assert_eq!(record.tasks.len(), usize::from(lines > 8), "{length}");
            assert_eq!(
                record.kernel_files.len(),
                usize::from(lines > 9),
                "{length}"
            );
        }
        let rubbish = LogState::parse("1\ttask\t1\t2\nrubbish\n\t\t\n7\ttool\t1\t1\n");
        assert!(rubbish.tasks.is_empty() && rubbish.shields.is_empty());
    }

    #[test]
    fn a_reused_number_starts_empty() {
        let mut text: String = some().iter().map(|e| e.line(2)).collect();
        text += &Entry::Shield(set("3"), 9).line(3);
        text += &Entry::Shield(set("2"), 8).line(2);
        let record = LogState::parse(&text);
        assert_eq!(record.shields.len(), 2);
        assert_eq!(record.shield(2).unwrap().tool, None);
        assert_eq!(record.cores_of_others(2), set("3"));
    }
}
