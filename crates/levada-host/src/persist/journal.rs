// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The start journal, from which the next host concludes which application has crashed this one.
//!
//! A line records that an application starts, before any of its code runs; another one that it has settled, after
//! it has run for some seconds; and a crash record (`crash_record.rs`) adds a last line. A host that ends normally
//! leaves no journal. Each line is appended with one write, so that a crash leaves whole lines; when all
//! applications have settled only the first line remains.
//!
//! Conclusions ([`Found`]):
//! - An application named in the last line is quarantined.
//! - Otherwise the applications that had started and not settled are suspects: one of them has crashed the host. A
//!   single suspect is quarantined. Of several, the next host starts a few at a time and waits until they have settled,
//!   so that each further crash leaves fewer suspects.
//! - If the machine went down, there is no suspect.
//! - If there is no suspect and the host crashes again soon after its start, all applications are started a few at a
//!   time, and settle in twice the time.

use crate::persist::crash_record;
use crate::persist::store::files::{StateFolder, remove_whole};
use crate::util::lock::lock;
use levada_files::{open_private, read_private};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// An application has settled after this time.
const SETTLE_TIME: Duration = Duration::from_secs(3);
/// Upper bound of that time, if a crash takes longer.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(120);
/// Crashes of hosts that have lived at most this number of seconds belong to one sequence.
const CRASH_SEQUENCE_S: u64 = 600;
/// Up to this number of suspects are started one at a time.
const SINGLE_START_SUSPECTS_MAX: usize = 8;

const FILE: &str = ".journal";
/// Maximum size of the journal in bytes; lines without meaning are removed before.
const JOURNAL_BYTES_MAX: u64 = 1 << 20;

/// The file that says why an application is quarantined.
pub(crate) fn quarantine_file(name: &str) -> String {
    format!("{name}.quarantined")
}

#[derive(Clone, Debug)]
pub struct Journal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: Arc<StateFolder>,
    file: File,
    settles: Duration,
    head: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Applications that have not settled.
    begin: BTreeMap<String, PendingStart>,
    /// Number of starts so far.
    count: u64,
    /// Time of the first start: the first line has been written.
    since: Option<u64>,
    /// A thread watches those that run.
    watched: bool,
    /// Applications to be released from quarantine, with files that could not be removed.
    held: BTreeSet<String>,
    closed: bool,
}

#[derive(Debug)]
struct PendingStart {
    /// Its place in the order of starts.
    number: u64,
    /// Since when it runs, if it does.
    runs: Option<Instant>,
}

/// The conclusions from the previous host's journal.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// The application that has crashed it, and how.
    pub guilty: Option<(String, String)>,
    /// Applications that may have crashed it, to be started with few others.
    pub suspects: Vec<String>,
}

/// The content of a journal.
#[derive(Debug, Default)]
struct Read {
    /// Number of unexplained crashes before this one, settling time in seconds, and time of the first start.
    unexplained: u64,
    settles: u64,
    since: u64,
    boot: String,
    /// Applications that had started and not settled, in order.
    begun: Vec<String>,
    /// The signal, or 0, and the application of the code that ran.
    last: Option<(i32, String)>,
}

fn read(text: &str) -> Option<Read> {
    let mut lines = text.lines().map(|l| l.split(' ').collect::<Vec<_>>());
    let head = lines.next()?;
    let ["host", unexplained, settles, since, boot] = head[..] else {
        return None;
    };
    let mut read = Read {
        unexplained: unexplained.parse().ok()?,
        settles: settles.parse().ok()?,
        since: since.parse().ok()?,
        boot: boot.to_string(),
        ..Read::default()
    };
    for line in lines {
        match line[..] {
            ["begins", name] => {
                read.begun.retain(|n| n != name);
                read.begun.push(name.to_string());
            }
            ["settled", name] => read.begun.retain(|n| n != name),
            [crash_record::WORD, signal, name] => {
                read.last = Some((signal.parse().ok()?, name.to_string()));
            }
            // An incomplete line: the disk was full.
            _ => {}
        }
    }
    Some(read)
}

/// Draws the conclusions. `kept` are the applications that the previous host had loaded; `boot` identifies the
/// machine's boot. Also returns the number of unexplained crashes and the settling time.
fn conclude(read: Option<Read>, kept: &[String], now: u64, boot: &str) -> (Found, u64, Duration) {
    let Some(read) = read else {
        return (Found::default(), 0, SETTLE_TIME);
    };
    let known = |name: &String| kept.contains(name);
    if let Some((signal, name)) = read.last.filter(|(_, name)| known(name)) {
        let how = match signal {
            0 => "exit() in its code has ended the last host".to_string(),
            n => format!(
                "signal {n} ({}) in its code has ended the last host",
                signal_name(n)
            ),
        };
        let guilty = Some((name, how));
        return (
            Found {
                guilty,
                ..Found::default()
            },
            0,
            SETTLE_TIME,
        );
    }
    if read.boot != boot {
        return (Found::default(), 0, SETTLE_TIME);
    }
    let lived = now.saturating_sub(read.since);
    let begun: Vec<String> = read.begun.into_iter().filter(known).collect();
    match &begun[..] {
        [] => {}
        [one] => {
            let how = "the last host has ended all at once when this had just begun".to_string();
            let guilty = Some((one.clone(), how));
            return (
                Found {
                    guilty,
                    ..Found::default()
                },
                0,
                SETTLE_TIME,
            );
        }
        _ => {
            let found = Found {
                suspects: begun,
                ..Found::default()
            };
            return (
                found,
                0,
                Duration::from_secs(read.settles).clamp(SETTLE_TIME, SETTLE_TIME_MAX),
            );
        }
    }
    match (lived < CRASH_SEQUENCE_S, read.unexplained) {
        (false, _) => (Found::default(), 1, SETTLE_TIME),
        (true, 0) => (Found::default(), 1, SETTLE_TIME),
        (true, n) => {
            let settles = Duration::from_secs(2 * lived).clamp(SETTLE_TIME, SETTLE_TIME_MAX);
            let suspects = kept.to_vec();
            (
                Found {
                    suspects,
                    ..Found::default()
                },
                n,
                settles,
            )
        }
    }
}

/// The text of a signal.
pub fn signal_name(signal: i32) -> String {
    // SAFETY: the text belongs to the library, and is valid for this thread until its next call.
    unsafe {
        let text = libc::strsignal(signal);
        if text.is_null() {
            String::new()
        } else {
            std::ffi::CStr::from_ptr(text)
                .to_string_lossy()
                .into_owned()
        }
    }
}

fn seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |d| d.as_secs())
}

/// The kernel's boot id; empty if unknown.
fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_string()
}

impl Journal {
    /// Reads the previous host's journal in this folder, and begins a new one.
    pub(crate) fn open(
        folder: &Arc<StateFolder>,
        kept: &[String],
    ) -> std::io::Result<(Journal, Found)> {
        let path = folder.path()?.join(FILE);
        let named = |e: std::io::Error| std::io::Error::new(e.kind(), format!("{FILE}: {e}"));
        // A journal has at most twice the maximum size.
        let text = match read_private(&path, 4 * JOURNAL_BYTES_MAX) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            text => text.map_err(named)?,
        };
        let read = read(&String::from_utf8_lossy(&text));
        let (found, unexplained, settles) = conclude(read, kept, seconds(), &boot());
        let file = open_private(&path, File::options().create(true).append(true));
        let file = file.map_err(named)?;
        let journal = Journal(Arc::new(Inner {
            folder: folder.clone(),
            file,
            settles,
            head: format!("host {unexplained} {} ", settles.as_secs()),
            state: Mutex::default(),
            changed: Condvar::new(),
        }));
        Ok((journal, found))
    }

    /// The conclusions have been stored elsewhere before.
    pub fn start(&self) -> std::io::Result<()> {
        self.0.file.set_len(0)
    }

    /// The file for the crash record.
    pub fn file(&self) -> std::io::Result<File> {
        self.0.file.try_clone()
    }

    /// Before code of this application runs.
    pub fn record_start(&self, name: &str) {
        let mut state = self.0.state();
        if state.closed {
            return;
        }
        // A failed write has no other consequence.
        if state.since.is_none() {
            let now = seconds();
            state.since = Some(now);
            self.0.write(&format!("{}{now} {}", self.0.head, boot()));
        }
        self.0.write(&format!("begins {name}"));
        state.count += 1;
        let begun = PendingStart {
            number: state.count,
            runs: None,
        };
        state.begin.insert(name.to_string(), begun);
    }

    /// It runs now.
    pub fn record_running(&self, name: &str) {
        let mut state = self.0.state();
        let Some(begun) = state.begin.get_mut(name) else {
            return;
        };
        begun.runs = Some(Instant::now());
        if !state.watched {
            let inner = self.0.clone();
            let watch = std::thread::Builder::new().name("levada/settle".to_string());
            state.watched = watch.spawn(move || inner.watch()).is_ok();
        }
    }

    /// It was not started.
    pub fn record_not_started(&self, name: &str) {
        let mut state = self.0.state();
        if state.begin.remove(name).is_some() {
            self.0.settled(&state, name);
        }
    }

    /// Waits until all that have started until now have settled; others may start meanwhile.
    pub fn await_settled(&self) {
        let state = self.0.state();
        let last = state.count;
        let waits = |s: &mut State| !s.closed && s.begin.values().any(|b| b.number <= last);
        drop(self.0.changed.wait_while(state, waits));
    }

    /// How many of `suspects` applications are started at a time.
    pub fn together(suspects: usize) -> usize {
        match suspects {
            0..=SINGLE_START_SUSPECTS_MAX => 1,
            n => n.isqrt() + 1,
        }
    }

    /// The host ends normally; the next one knows that unless this fails.
    pub fn close(&self) -> std::io::Result<()> {
        let mut state = self.0.state();
        state.closed = true;
        self.0.changed.notify_all();
        // A recorded crash must stay in the file.
        let removed = if crash_record::keep_silent() {
            Ok(())
        } else {
            // An empty journal is equivalent to none, also if the folder was moved and is not found by its path.
            let emptied = self.0.file.set_len(0);
            match self.0.remove(FILE) {
                Ok(()) => Ok(()),
                Err(_) => emptied,
            }
        };
        let held = std::mem::take(&mut state.held).into_iter();
        held.map(|name| self.0.release(&name))
            .fold(removed, std::io::Result::and)
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A quarantined application was loaded by request and has settled.
    fn release(&self, name: &str) -> std::io::Result<()> {
        self.remove(&quarantine_file(name))
    }

    fn remove(&self, file: &str) -> std::io::Result<()> {
        remove_whole(self.folder.path()?, file)
    }

    fn write(&self, line: &str) {
        let _ = (&self.file).write_all(format!("{line}\n").as_bytes());
    }

    /// The caller has removed it from the list.
    fn settled(&self, state: &State, name: &str) {
        self.changed.notify_all();
        let long = || {
            self.file
                .metadata()
                .is_ok_and(|m| m.len() > JOURNAL_BYTES_MAX)
        };
        if !state.begin.is_empty() && !long() {
            return self.write(&format!("settled {name}"));
        }
        // Removes lines without meaning. A crash between the two calls looks like one without any start.
        if self.file.set_len(0).is_ok() {
            let since = state.since.unwrap_or_default();
            let mut lines = format!("{}{since} {}", self.head, boot());
            state
                .begin
                .keys()
                .for_each(|name| lines += &format!("\nbegins {name}"));
            self.write(&lines);
        }
    }

    /// Runs until all have settled.
    fn watch(&self) {
        let mut state = self.state();
        loop {
            let first = state
                .begin
                .iter()
                .filter_map(|(name, begun)| Some((begun.runs?, name)));
            let Some((since, name)) = first.min() else {
                state.watched = false;
                return;
            };
            let left = (since + self.settles).saturating_duration_since(Instant::now());
            if left.is_zero() {
                let name = name.clone();
                state.begin.remove(&name);
                if self.release(&name).is_err() {
                    state.held.insert(name.clone());
                }
                self.settled(&state, &name);
                continue;
            }
            drop(state);
            std::thread::sleep(left);
            state = self.state();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn opened(folder: &Path) -> Arc<StateFolder> {
        Arc::new(StateFolder::open(folder).unwrap())
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|n| n.to_string()).collect()
    }

    fn found(text: &str, kept: &[&str]) -> (Found, u64, Duration) {
        conclude(read(text), &names(kept), 1010, "boot")
    }

    #[test]
    fn the_named_or_only_suspect_is_guilty() {
        let text = "host 0 3 1000 boot\nbegins a\nbegins b\nsettled a\ndied 6 a\n";
        let (said, unexplained, _) = found(text, &["a", "b"]);
        let (name, how) = said.guilty.unwrap();
        assert!(name == "a" && how.contains("signal 6 (Aborted)"), "{how}");
        assert!(unexplained == 0 && said.suspects.is_empty());
        // Unknown which one: one of those that had started.
        let (said, ..) = found(
            "host 0 3 1000 boot\nbegins a\nbegins b\nsettled a\ndied 11 ?\n",
            &["a", "b"],
        );
        assert_eq!(said.guilty.unwrap().0, "b");
        let (said, ..) = found(
            "host 0 3 1000 boot\nbegins a\nbegins b\nbegins gone\nbeg",
            &["a", "b"],
        );
        assert_eq!((said.guilty, said.suspects), (None, names(&["a", "b"])));
        // Settling takes as long as the crash took.
        let (.., settles) = found("host 0 20 1000 boot\nbegins a\nbegins b\n", &["a", "b"]);
        assert_eq!(settles, Duration::from_secs(20));
    }

    #[test]
    fn what_comes_again_soon_makes_all_suspect() {
        let text = |n| format!("host {n} 3 1000 boot\n");
        assert_eq!(found(&text(0), &["a"]), (Found::default(), 1, SETTLE_TIME));
        let (said, unexplained, settles) = found(&text(1), &["a", "b"]);
        assert_eq!(said.suspects, ["a", "b"]);
        assert_eq!((unexplained, settles), (1, Duration::from_secs(20)));
        // After a long time it is another sequence.
        let late = conclude(
            read(&text(1)),
            &names(&["a"]),
            1000 + CRASH_SEQUENCE_S,
            "boot",
        );
        assert_eq!(late, (Found::default(), 1, SETTLE_TIME));
        let other = conclude(
            read("host 0 3 1000 before\nbegins a\n"),
            &names(&["a"]),
            1010,
            "boot",
        );
        assert_eq!(other, (Found::default(), 0, SETTLE_TIME));
        assert_eq!(found("", &["a"]), (Found::default(), 0, SETTLE_TIME));
        assert_eq!(found("what", &["a"]), (Found::default(), 0, SETTLE_TIME));
    }

    #[test]
    fn settled_ones_are_forgotten_and_a_normal_end_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let kept = names(&["a", "b"]);
        let text = || std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let (journal, none) = Journal::open(&opened(folder.path()), &kept).unwrap();
        assert_eq!(none, Found::default());
        for name in ["a", "b"] {
            journal.record_start(name);
        }
        journal.record_running("a");
        journal.record_not_started("b");
        assert!(text().ends_with("begins a\nbegins b\nsettled b\n"));
        let (_, said) = Journal::open(&opened(folder.path()), &kept).unwrap();
        assert_eq!(said.guilty.unwrap().0, "a");
        std::fs::write(folder.path().join("a.quarantined"), "why").unwrap();
        journal.await_settled();
        assert!(!folder.path().join("a.quarantined").exists());
        assert_eq!(text().lines().count(), 1);
        journal.close().unwrap();
        journal.record_start("a");
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }

    /// Otherwise the next host would conclude that one of the started applications has crashed this one.
    #[test]
    fn a_normal_end_is_known_if_the_folder_was_moved_meanwhile() {
        let place = tempfile::tempdir().unwrap();
        let (folder, away) = (place.path().join("state"), place.path().join("away"));
        std::fs::create_dir(&folder).unwrap();
        let (journal, _) = Journal::open(&opened(&folder), &[]).unwrap();
        journal.record_start("a");
        std::fs::rename(&folder, &away).unwrap();
        journal.close().unwrap();
        std::fs::rename(&away, &folder).unwrap();
        let (_, found) = Journal::open(&opened(&folder), &names(&["a"])).unwrap();
        assert_eq!(found, Found::default());
    }

    /// However many others start meanwhile.
    #[test]
    fn started_ones_are_awaited_and_lines_stay_few() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(&opened(folder.path()), &[]).unwrap();
        journal.record_start("a");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| journal.await_settled());
            std::thread::sleep(Duration::from_millis(20));
            journal.record_start("b");
            assert!(!waits.is_finished());
            journal.record_not_started("a");
        });
        let file = folder.path().join(FILE);
        let mut most = 0;
        while std::fs::metadata(&file).unwrap().len() >= most {
            most = std::fs::metadata(&file).unwrap().len();
            assert!(most < 2 * JOURNAL_BYTES_MAX);
            for _ in 0..1000 {
                journal.record_start("c");
                journal.record_not_started("c");
            }
        }
        assert!(most > JOURNAL_BYTES_MAX / 2);
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(read(&text).unwrap().begun, ["b"]);
    }

    #[test]
    fn few_are_begun_together() {
        let all = [(1, 1), (8, 1), (51, 8), (500, 23)];
        assert!(all.iter().all(|(n, few)| Journal::together(*n) == *few));
    }
}
