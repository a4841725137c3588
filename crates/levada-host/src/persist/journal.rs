// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a host writes down of itself while it lives, so that the one after it knows who has ended it.
//!
//! A line says that an application begins, before any code of it runs, and one that it has settled, when it
//! has run for some seconds; where code of one ends the process, a last line says so (`crash_record.rs`). A
//! host that ends well leaves no such file. Lines are appended, each by one call, so that a kill at any moment
//! leaves whole ones; when all have settled only the first is left.
//!
//! What is concluded from it ([`Found`]) is meant to find the guilty one in few ends, and surely:
//! - Who is named in a last line is held back.
//! - If nobody is, one of those that had begun and not settled did it. If that is one, it is held back; of
//!   several the next host begins few at a time, waits until they have settled, and goes on, so that each
//!   further end leaves fewer.
//! - A machine that went down meanwhile has ended the host, and none of these.
//! - If there are none, and that comes again soon, all are begun so, and settle in twice the time that it took.

use crate::persist::crash_record;
use crate::persist::store::files::{StateFolder, remove_whole};
use crate::util::lock::lock;
use levada_files::{open_private, read_private};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// So long an application has run before it has settled.
const SETTLES: Duration = Duration::from_secs(3);
/// And where who ends the host takes longer.
const AT_MOST: Duration = Duration::from_secs(120);
/// Unclean ends of hosts that have lived no longer than this are of one sequence.
const SOON: u64 = 600;
/// Of so few each is begun alone.
const FEW: usize = 8;

const FILE: &str = ".journal";
/// So many bytes of it are kept, though all lines that say something would have room in fewer.
const LONGEST: u64 = 1 << 20;

/// The file that says why an application is held back.
pub(crate) fn held(name: &str) -> String {
    format!("{name}.held")
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
    /// What has not settled.
    begin: BTreeMap<String, Begun>,
    /// How many have begun so far.
    count: u64,
    /// When the first of all began: the file has its first line.
    since: Option<u64>,
    /// A thread looks after those that run.
    watched: bool,
    /// Those that are held back no more, which could not be written.
    held: BTreeSet<String>,
    closed: bool,
}

#[derive(Debug)]
struct Begun {
    /// Which one of all that have begun it is.
    number: u64,
    /// Since when it runs, if it does.
    runs: Option<Instant>,
}

/// What the file of the host before says.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// Who has ended it, and how.
    pub guilty: Option<(String, String)>,
    /// Who may have, and is to begin with few others.
    pub suspects: Vec<String>,
}

/// A file of this kind, read.
#[derive(Debug, Default)]
struct Read {
    /// How many ends before this one told nothing, how many seconds a settling took, and when the host began
    /// with the first application.
    unexplained: u64,
    settles: u64,
    since: u64,
    boot: String,
    /// Who had begun and not settled, in this order.
    begun: Vec<String>,
    /// The signal, or 0, and whose code ran.
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
            // Half of one: there was no room for more.
            _ => {}
        }
    }
    Some(read)
}

/// Concludes; `kept` are those that the host before had loaded, and `boot` is how the machine calls the time since it
/// was started. Beside that how many ends have told nothing
/// up to now, and how long a settling takes.
fn conclude(read: Option<Read>, kept: &[String], now: u64, boot: &str) -> (Found, u64, Duration) {
    let Some(read) = read else {
        return (Found::default(), 0, SETTLES);
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
            SETTLES,
        );
    }
    if read.boot != boot {
        return (Found::default(), 0, SETTLES);
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
                SETTLES,
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
                Duration::from_secs(read.settles).clamp(SETTLES, AT_MOST),
            );
        }
    }
    match (lived < SOON, read.unexplained) {
        (false, _) => (Found::default(), 1, SETTLES),
        (true, 0) => (Found::default(), 1, SETTLES),
        (true, n) => {
            let settles = Duration::from_secs(2 * lived).clamp(SETTLES, AT_MOST);
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

/// A signal in words.
pub fn signal_name(signal: i32) -> String {
    // SAFETY: the text is the library's, and this thread's until it asks again.
    unsafe {
        let text = libc::strsignal(signal);
        match text.is_null() {
            true => String::new(),
            false => std::ffi::CStr::from_ptr(text)
                .to_string_lossy()
                .into_owned(),
        }
    }
}

fn seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |d| d.as_secs())
}

/// Another word each time that the machine is started; empty where it does not say.
fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_string()
}

impl Journal {
    /// Reads what the host before has left in this folder, and begins anew.
    pub(crate) fn open(
        folder: &Arc<StateFolder>,
        kept: &[String],
    ) -> std::io::Result<(Journal, Found)> {
        let path = folder.path()?.join(FILE);
        let named = |e: std::io::Error| std::io::Error::new(e.kind(), format!("{FILE}: {e}"));
        // A host that has begun much has written twice as much at the most.
        let text = match read_private(&path, 4 * LONGEST) {
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

    /// What was found is kept elsewhere by now.
    pub fn start(&self) -> std::io::Result<()> {
        self.0.file.set_len(0)
    }

    /// Where last words go.
    pub fn file(&self) -> std::io::Result<File> {
        self.0.file.try_clone()
    }

    /// Code of this application may run from now on.
    pub fn begins(&self, name: &str) {
        let mut state = self.0.state();
        if state.closed {
            return;
        }
        // Nothing else follows from a line that cannot be written.
        if state.since.is_none() {
            let now = seconds();
            state.since = Some(now);
            self.0.write(&format!("{}{now} {}", self.0.head, boot()));
        }
        self.0.write(&format!("begins {name}"));
        state.count += 1;
        let begun = Begun {
            number: state.count,
            runs: None,
        };
        state.begin.insert(name.to_string(), begun);
    }

    /// It runs.
    pub fn runs(&self, name: &str) {
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

    /// It does not, after all.
    pub fn does_not_run(&self, name: &str) {
        let mut state = self.0.state();
        if state.begin.remove(name).is_some() {
            self.0.settled(&state, name);
        }
    }

    /// Waits until all that have begun until now have settled; others may begin meanwhile, and always.
    pub fn await_settled(&self) {
        let state = self.0.state();
        let last = state.count;
        let waits = |s: &mut State| !s.closed && s.begin.values().any(|b| b.number <= last);
        drop(self.0.changed.wait_while(state, waits));
    }

    /// How many are begun together, of so many that may have ended the host.
    pub fn together(suspects: usize) -> usize {
        match suspects {
            0..=FEW => 1,
            n => n.isqrt() + 1,
        }
    }

    /// The host ends, and well: unless this fails, the next one knows that.
    pub fn close(&self) -> std::io::Result<()> {
        let mut state = self.0.state();
        state.closed = true;
        self.0.changed.notify_all();
        // Where an application's code has ended it, that is known by the file.
        let removed = match crash_record::keep_silent() {
            true => Ok(()),
            // An empty one says as much as none: also where its folder is away, and cannot be found by its path.
            false => {
                let emptied = self.0.file.set_len(0);
                match self.0.remove(FILE) {
                    Ok(()) => Ok(()),
                    Err(_) => emptied,
                }
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

    /// It was loaded though it was held back, and has not ended the host again.
    fn release(&self, name: &str) -> std::io::Result<()> {
        self.remove(&held(name))
    }

    fn remove(&self, file: &str) -> std::io::Result<()> {
        remove_whole(self.folder.path()?, file)
    }

    fn write(&self, line: &str) {
        let _ = (&self.file).write_all(format!("{line}\n").as_bytes());
    }

    /// The caller has taken it away.
    fn settled(&self, state: &State, name: &str) {
        self.changed.notify_all();
        let long = || self.file.metadata().is_ok_and(|m| m.len() > LONGEST);
        if !state.begin.is_empty() && !long() {
            return self.write(&format!("settled {name}"));
        }
        // Lines that say nothing any more need no room. A host that is killed between the two has begun with nothing.
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

    /// Until all that run have settled.
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
    fn who_is_named_or_alone_is_guilty() {
        let text = "host 0 3 1000 boot\nbegins a\nbegins b\nsettled a\ndied 6 a\n";
        let (said, unexplained, _) = found(text, &["a", "b"]);
        let (name, how) = said.guilty.unwrap();
        assert!(name == "a" && how.contains("signal 6 (Aborted)"), "{how}");
        assert!(unexplained == 0 && said.suspects.is_empty());
        // Nobody knows who: one that had begun.
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
        // As long as it took to settle it takes again.
        let (.., settles) = found("host 0 20 1000 boot\nbegins a\nbegins b\n", &["a", "b"]);
        assert_eq!(settles, Duration::from_secs(20));
    }

    #[test]
    fn what_comes_again_soon_makes_all_suspect() {
        let text = |n| format!("host {n} 3 1000 boot\n");
        assert_eq!(found(&text(0), &["a"]), (Found::default(), 1, SETTLES));
        let (said, unexplained, settles) = found(&text(1), &["a", "b"]);
        assert_eq!(said.suspects, ["a", "b"]);
        assert_eq!((unexplained, settles), (1, Duration::from_secs(20)));
        // After long it is another matter.
        let late = conclude(read(&text(1)), &names(&["a"]), 1000 + SOON, "boot");
        assert_eq!(late, (Found::default(), 1, SETTLES));
        let other = conclude(
            read("host 0 3 1000 before\nbegins a\n"),
            &names(&["a"]),
            1010,
            "boot",
        );
        assert_eq!(other, (Found::default(), 0, SETTLES));
        assert_eq!(found("", &["a"]), (Found::default(), 0, SETTLES));
        assert_eq!(found("what", &["a"]), (Found::default(), 0, SETTLES));
    }

    #[test]
    fn who_settles_is_forgotten_and_a_good_end_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let kept = names(&["a", "b"]);
        let text = || std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let (journal, none) = Journal::open(&opened(folder.path()), &kept).unwrap();
        assert_eq!(none, Found::default());
        for name in ["a", "b"] {
            journal.begins(name);
        }
        journal.runs("a");
        journal.does_not_run("b");
        assert!(text().ends_with("begins a\nbegins b\nsettled b\n"));
        let (_, said) = Journal::open(&opened(folder.path()), &kept).unwrap();
        assert_eq!(said.guilty.unwrap().0, "a");
        std::fs::write(folder.path().join("a.held"), "why").unwrap();
        journal.await_settled();
        assert!(!folder.path().join("a.held").exists());
        assert_eq!(text().lines().count(), 1);
        journal.close().unwrap();
        journal.begins("a");
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }

    /// The next host would take what had begun then for what has ended this one.
    #[test]
    fn a_good_end_is_known_where_the_folder_is_away_meanwhile() {
        let place = tempfile::tempdir().unwrap();
        let (folder, away) = (place.path().join("state"), place.path().join("away"));
        std::fs::create_dir(&folder).unwrap();
        let (journal, _) = Journal::open(&opened(&folder), &[]).unwrap();
        journal.begins("a");
        std::fs::rename(&folder, &away).unwrap();
        journal.close().unwrap();
        std::fs::rename(&away, &folder).unwrap();
        let (_, found) = Journal::open(&opened(&folder), &names(&["a"])).unwrap();
        assert_eq!(found, Found::default());
    }

    /// However many others begin meanwhile, and always.
    #[test]
    fn who_has_begun_is_waited_for_and_lines_stay_few() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(&opened(folder.path()), &[]).unwrap();
        journal.begins("a");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| journal.await_settled());
            std::thread::sleep(Duration::from_millis(20));
            journal.begins("b");
            assert!(!waits.is_finished());
            journal.does_not_run("a");
        });
        let file = folder.path().join(FILE);
        let mut most = 0;
        while std::fs::metadata(&file).unwrap().len() >= most {
            most = std::fs::metadata(&file).unwrap().len();
            assert!(most < 2 * LONGEST);
            for _ in 0..1000 {
                journal.begins("c");
                journal.does_not_run("c");
            }
        }
        assert!(most > LONGEST / 2);
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(read(&text).unwrap().begun, ["b"]);
    }

    #[test]
    fn few_are_begun_together() {
        let all = [(1, 1), (8, 1), (51, 8), (500, 23)];
        assert!(all.iter().all(|(n, few)| Journal::together(*n) == *few));
    }
}
