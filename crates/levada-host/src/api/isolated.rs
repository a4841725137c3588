// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Isolated applications: each has a process of its own, for code that is not trusted. That process is
//! a host with this one application, a child of ours: what is asked of the application is asked there,
//! in the words of this same interface, and there is no other protocol. What ends that process, in
//! whatever way, ends the one application; when we end, killed or not, the kernel ends it. Between that
//! process and us is its guard (`guard.rs`), which ends what it has forked.
//!
//! One thread for each stands by: it starts the process (which the kernel ends with the thread that has
//! started it), follows its events, and remembers how it went.

use super::beside::{Others, Telling};
use super::guard;
use super::leaving::Leaving;
use super::prepare::Prepared;
use super::taken::Taken;
use super::types::{
    Application, Details, Failed, LoadRequest, MoveRequest, ReplaceRequest, Unloaded, Why, Worker,
};
use crate::client::{Client, encoded};
use crate::events::{Events, What};
use crate::host::Host;
use crate::hosted::State;
use crate::refusal::{Kind, Refusal};
use crate::table::Shared;
use hyper::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// So long it may take to say how its application is; what it said last is told instead.
const ANSWERS: Duration = Duration::from_millis(500);
/// So long it may take to do what takes no time, and to end when its application has.
const SOON: Duration = Duration::from_secs(2);
/// Of what is to end at once, so long the last firing may take, and so long its process may take to answer.
const AT_ONCE: Duration = Duration::from_millis(500);
const AT_ONCE_ANSWERS: Duration = Duration::from_millis(800);
/// So long a guard may take to end all that there is to be ended.
const GUARDED: Duration = Duration::from_secs(3);
/// So many are asked at a time how they are.
const AT_A_TIME: usize = 64;
/// So much longer than its application may take it has for an answer.
const GRACE: Duration = Duration::from_secs(5);
/// Of those that have ended so many are remembered.
const REMEMBERED: usize = 256;

/// What starts a host of one application: the command `levada`, and options of `levada host`.
#[derive(Clone, Debug)]
pub struct Starts {
    pub command: PathBuf,
    pub options: Vec<OsString>,
    /// Told to end, it waits so long for a firing that does not end, as its options say.
    pub within: Duration,
}

/// All that there are.
pub struct AllIsolated {
    all: Mutex<BTreeMap<u64, Arc<Isolated>>>,
    pub(super) taken: Taken,
    /// Others that compute on the same cores.
    pub(super) others: Others,
    /// Of this host.
    of: Weak<Shared>,
}

/// One of them.
#[derive(Debug)]
pub struct Isolated {
    pub name: String,
    /// As the applications of this host are numbered.
    pub number: u64,
    pub process: u32,
    pub(super) client: Client,
    /// Which cores it has been told to leave.
    pub(super) leaving: Leaving,
    /// Who computes beside it, as it has been told.
    pub(super) telling: Telling,
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Debug)]
pub(super) struct Known {
    /// The guard of its process. None: it has ended, and somebody has seen how.
    child: Option<Child>,
    /// What it said last of its application.
    last: Details,
    /// And of its workers.
    pub(super) workers: Vec<Worker>,
    /// What its natives are given.
    options: Vec<(String, String)>,
    /// Others have heard of it.
    told: bool,
    /// It is about to begin.
    begins: bool,
    /// Somebody has it taken away, whether or not it has begun.
    goes: bool,
    /// A new version is to take its place: its end may not be the end of it.
    replaced: bool,
    /// How that has ended.
    over: Option<String>,
}

fn limit(what: impl std::fmt::Display) -> Failed {
    Refusal::new(Kind::Limit, what.to_string()).into()
}

// ---- the process -------------------------------------------------------------------------------

/// The socket of a host, in a folder that only its user can enter.
struct Place {
    folder: PathBuf,
}

const FOLDER: &str = "levada-isolated-";

impl Place {
    fn new() -> io::Result<Place> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("{FOLDER}{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Place { folder })
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("sock")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Takes away what hosts have left that were killed.
pub fn tidy() {
    let entries = std::fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let of = name.to_str().and_then(|n| n.strip_prefix(FOLDER));
        let of = of.and_then(|rest| rest.split_once('-')?.0.parse::<i32>().ok());
        let Some(pid) = of.filter(|pid| *pid > 0) else {
            continue;
        };
        // SAFETY: signal 0 is none: it asks whether there is such a process.
        let gone = unsafe { libc::kill(pid, 0) } != 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
        if gone {
            // What is another user's stays.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Starts a host that listens on `listener`, and ends with the thread that calls this: its guard, and the
/// process that the guard guards.
fn start(starts: &Starts, listener: &UnixListener) -> io::Result<(Child, u32)> {
    let (mut number, says) = io::pipe()?;
    let socket = listener.as_raw_fd();
    let ours = std::process::id();
    let mut command = Command::new(&starts.command);
    command
        .arg("host")
        .args(&starts.options)
        .arg(format!("--listener={socket}"))
        .env_remove("LEVADA_HOST")
        // Where it says which process is the application's.
        .stdin(says)
        // What is typed at this host's terminal is for this host, which passes it on.
        .process_group(0);
    let prepare = move || {
        // It takes as many files as it may for itself; what it starts has these.
        crate::files::have_as_before();
        // SAFETY: system calls that may be made between fork and exec; none has a precondition.
        let done = unsafe {
            libc::signal(guard::END, libc::SIG_DFL);
            libc::prctl(libc::PR_SET_PDEATHSIG, guard::END) == 0
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::fcntl(socket, libc::F_SETFD, 0) == 0
        };
        if !done {
            return Err(io::Error::last_os_error());
        }
        // Whoever has ended before it could be asked for ends nobody.
        // SAFETY: has no preconditions.
        match unsafe { libc::getppid() } == ours as i32 {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    };
    // SAFETY: what it calls may be called there.
    let child = unsafe { command.pre_exec(prepare) }.spawn()?;
    // Ours is closed: if it ends without a word, so is theirs.
    drop(command);
    let mut process = [0; 4];
    let process = match number.read_exact(&mut process) {
        Ok(()) => u32::from_ne_bytes(process),
        Err(_) => child.id(),
    };
    Ok((child, process))
}

/// Waits until it has ended, and leaves it to be waited for; with `within` no longer than that.
fn await_end(process: u32, within: Option<Duration>) {
    let until = within.map(|within| Instant::now() + within);
    loop {
        let how = if until.is_some() { libc::WNOHANG } else { 0 } | libc::WEXITED | libc::WNOWAIT;
        // SAFETY: it writes into what is given, which may be all zeros.
        let (done, ended) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let done = libc::waitid(libc::P_PID, process, &mut info, how);
            (done, info.si_pid() != 0)
        };
        if done == 0 && !ended && until.is_some_and(|until| Instant::now() < until) {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        }
        if done == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return;
        }
    }
}

/// How a process ended, in words.
fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its process has exited with status {code}"),
        (None, Some(signal)) => {
            let name = crate::journal::signal_name(signal);
            format!("its process was ended by signal {signal} ({name})")
        }
        (None, None) => "its process has ended".to_string(),
    }
}

/// Bytes of its own that it has now; none: the system does not say.
fn data_of(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmData:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

// ---- one ---------------------------------------------------------------------------------------

/// What is understood of an event.
#[derive(Deserialize)]
struct Told {
    number: u64,
    event: What,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    actor: Option<String>,
    #[serde(default)]
    from: Option<u32>,
    #[serde(default)]
    to: Option<u32>,
}

impl Isolated {
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self, rest: &str) -> String {
        format!("/applications/{}{rest}", encoded(&self.name))
    }

    /// Loads the application, paused, and limits what its process may claim. `beside` is what others take of each
    /// worker's core.
    pub fn load(
        self: &Arc<Self>,
        request: &LoadRequest,
        beside: Vec<f64>,
        within: Duration,
        events: &Events,
    ) -> Result<(), Failed> {
        // It begins on cores that are for all.
        let left = self.leave(SOON).recv_timeout(within);
        let left = left.unwrap_or_else(|_| Err(format!("{} does not answer", self.name)));
        left.map_err(|who| Refusal::new(Kind::Conflict, who))?;
        let inner = LoadRequest {
            name: Some(self.name.clone()),
            isolate: false,
            paused: true,
            beside,
            ..request.clone()
        };
        let client = self.client.clone().within(within + GRACE);
        let loaded = client.call(Method::POST, "/applications", &json!(inner));
        let loaded: Details = loaded.map_err(|failed| self.explained(failed))?;
        let network = self.seen(loaded).application.network;
        if let Some(more) = request.memory {
            self.limit_memory(more);
        }
        self.known().told = true;
        let detail = format!("{network} as {} in process {}", self.name, self.process);
        events.tell(What::Loaded, &self.name, detail);
        Ok(())
    }

    /// From now on its process may claim so much more.
    fn limit_memory(&self, more: u64) {
        let Some(has) = data_of(self.process) else {
            return;
        };
        let most = has.saturating_add(more);
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        let known = self.known();
        if known.child.is_some() {
            let (process, data) = (self.process as i32, libc::RLIMIT_DATA);
            // SAFETY: it is waited for by its guard, which ends then.
            unsafe { libc::prlimit(process, data, &limit, std::ptr::null_mut()) };
        }
    }

    /// It is loaded, and shall run. On a busy machine that takes no time of its own, but waits for its turn as the load
    /// did: a process that has not ended is not given up sooner than that.
    pub fn start(&self, within: Duration) -> Result<(), Failed> {
        self.known().begins = true;
        self.change("resume", within).map(drop)
    }

    pub fn option(&self, name: &str) -> Option<String> {
        let known = self.known();
        let found = known.options.iter().find(|o| o.0 == name);
        found.map(|o| o.1.clone())
    }

    /// As this host tells it; and it is what was said last.
    fn seen(&self, mut details: Details) -> Details {
        details.application.number = self.number;
        details.application.isolated = Some(self.process);
        let mut known = self.known();
        if known.over.is_none() {
            known.last = details.clone();
        }
        details
    }

    /// Who does not answer since its process has ended is told to have ended.
    pub(super) fn explained(&self, failed: Failed) -> Failed {
        if failed.kind.is_some() {
            return failed;
        }
        match self.until_over(GUARDED + SOON) {
            Some(how) => {
                Refusal::new(Kind::Conflict, format!("{} has ended: {how}", self.name)).into()
            }
            None => failed,
        }
    }

    /// How it has ended, if it does before `within` is over.
    fn until_over(&self, within: Duration) -> Option<String> {
        let known = self.known();
        let waits = |k: &mut Known| k.over.is_none();
        let (known, _) = self
            .changed
            .wait_timeout_while(known, within, waits)
            .unwrap_or_else(PoisonError::into_inner);
        known.over.clone()
    }

    pub fn lives(&self) -> bool {
        self.known().over.is_none()
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.known().told
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        rest: &str,
        body: &Value,
        within: Duration,
    ) -> Result<T, Failed> {
        if !self.lives() {
            return Err(Refusal::new(Kind::Conflict, format!("{} has ended", self.name)).into());
        }
        let client = self.client.clone().within(within + GRACE);
        let answer = client.call(method, &self.address(rest), body);
        answer.map_err(|failed| self.explained(failed))
    }

    /// How it is; if it does not say so soon, how it was.
    pub fn details(&self) -> Details {
        if self.lives() {
            let client = self.client.clone().within(ANSWERS);
            match client.get::<Details>(&self.address("")) {
                Ok(details) => return self.seen(details),
                Err(failed) if failed.kind.is_none() => drop(self.until_over(ANSWERS)),
                Err(_) => {}
            }
        }
        self.known().last.clone()
    }

    /// Pauses it, or lets it go on: what stands behind its name in the address.
    pub fn change(&self, what: &str, within: Duration) -> Result<Application, Failed> {
        let rest = format!("/{what}?within={}", within.as_secs_f64());
        let changed: Application = self.ask(Method::POST, &rest, &Value::Null, within)?;
        let mut details = self.details();
        details.application.state = changed.state;
        Ok(details.application)
    }

    pub fn move_actor(&self, request: &MoveRequest) -> Result<Application, Failed> {
        let _: Application = self.ask(Method::POST, "/move", &json!(request), SOON)?;
        Ok(self.details().application)
    }

    pub fn replace(
        &self,
        load: &LoadRequest,
        prepared: &Prepared,
        within: Duration,
    ) -> Result<Details, Failed> {
        let request = ReplaceRequest {
            load: LoadRequest {
                name: None,
                isolate: false,
                ..load.clone()
            },
            within: Some(within.as_secs_f64()),
        };
        self.known().replaced = true;
        let asked = self.ask(Method::POST, "/replace", &json!(request), within);
        let done = asked.map(|details: Details| {
            self.known().options.clone_from(&prepared.options);
            self.seen(details)
        });
        self.known().replaced = false;
        self.changed.notify_all();
        done
    }

    pub fn why(&self) -> Result<Why, Failed> {
        let how = self.known().over.clone();
        match how {
            Some(how) => Ok(Why {
                application: self.name.clone(),
                text: format!("{} has ended: {how}\n", self.name),
            }),
            None => self.ask(Method::GET, "/why", &Value::Null, SOON),
        }
    }

    /// Whether somebody has it taken away at once. Who loads it meanwhile fails then.
    pub(super) fn goes(&self) -> bool {
        self.known().goes
    }

    /// Takes it away. With `now`, whatever it does then, its process ends.
    fn unload(&self, now: bool, within: Duration) -> Result<Unloaded, Failed> {
        // Before it ends by that.
        self.known().goes |= now;
        if self.lives() {
            let (within, answers) = match now {
                true => (within.min(AT_ONCE), AT_ONCE_ANSWERS),
                false => (within, within + GRACE),
            };
            let rest = format!("?now={now}&within={}", within.as_secs_f64());
            let client = self.client.clone().within(answers);
            let done = client.call(Method::DELETE, &self.address(&rest), &Value::Null);
            // A process that does not answer has no right to be waited for where it is to end at once.
            let done: Result<Unloaded, Failed> = match now {
                true => done,
                false => done.map_err(|failed| self.explained(failed)),
            };
            match done {
                // Its end is told before it is away.
                Ok(unloaded) => {
                    self.until_over(SOON);
                    self.kill();
                    return Ok(unloaded);
                }
                Err(failed) if self.lives() && !now => return Err(failed),
                Err(_) => {}
            }
            self.kill();
            if self.until_over(GUARDED).is_none() {
                self.kill_guard();
                self.until_over(SOON);
            }
        }
        let known = self.known();
        let last = &known.last.application;
        Ok(Unloaded {
            name: self.name.clone(),
            outcome: known.over.clone().unwrap_or_default(),
            seconds: last.seconds,
            firings: last.firings,
            progress: last.progress.clone(),
        })
    }

    /// Ends its process, and what that has forked.
    fn kill(&self) {
        self.tell_guard(guard::END);
    }

    /// Where the guard does not do that: its process ends with it.
    fn kill_guard(&self) {
        self.tell_guard(libc::SIGKILL);
    }

    fn tell_guard(&self, signal: i32) {
        if let Some(child) = &self.known().child {
            // It may have been stopped with its process.
            for signal in [libc::SIGCONT, signal] {
                // SAFETY: it is ours, and is waited for only under the lock.
                unsafe { libc::kill(child.id() as i32, signal) };
            }
        }
    }

    /// Tells its host to end, as a terminal does.
    fn stop(&self) {
        self.tell_guard(libc::SIGTERM);
    }

    /// Something has happened there; an end is given back, to be looked into.
    fn hear(&self, told: Told, events: &Events) -> Option<(What, String)> {
        match told.event {
            What::Ended | What::Failed => return Some((told.event, told.detail)),
            What::Loaded | What::Unloaded => {}
            // It was loaded paused.
            What::Resumed if std::mem::take(&mut self.known().begins) => {}
            What::Moved => {
                let (from, to) = (told.from.unwrap_or(0), told.to.unwrap_or(0));
                events.moved(&self.name, &told.actor.unwrap_or_default(), from, to);
            }
            other => events.tell(other, &self.name, told.detail),
        }
        None
    }

    /// Waits for a new version to be in its place, where one is to be.
    fn until_replaced(&self) {
        let replaced = self.changed.wait_while(self.known(), |k| k.replaced);
        drop(replaced);
    }

    /// Follows what happens there, until it has ended or nothing is heard any more; whether it has said how it ended.
    fn follow(&self, events: &Events) -> bool {
        let mut since = 0;
        loop {
            let mut end = None;
            let address = format!("/events?follow=true&since={since}");
            let _ = self.client.lines(&address, |line| {
                // Where some were missed, there is nothing to be told of them.
                if let Ok(told) = serde_json::from_str::<Told>(line) {
                    since = told.number;
                    end = self.hear(told, events);
                }
                end.is_none()
            });
            let Some((event, how)) = end else {
                return false;
            };
            // Between the old one's end and the new one's beginning there is a moment.
            self.until_replaced();
            let client = self.client.clone().within(SOON);
            if let Ok(details) = client.get::<Details>(&self.address("")) {
                let state = self.seen(details).application.state;
                if !matches!(state, State::Ended | State::Failed | State::Ending) {
                    continue; // a new version is in its place
                }
            }
            self.ended(event, how, events);
            return true;
        }
    }

    /// The first who says how it ended is believed.
    fn ended(&self, event: What, how: String, events: &Events) {
        let mut known = self.known();
        if known.over.is_some() {
            return;
        }
        // What was never loaded has not ended.
        if let Some(host) = self.leaving.host().filter(|_| known.told) {
            host.is_over(&self.name, self.number);
        }
        let application = &mut known.last.application;
        application.state = match event {
            What::Failed => State::Failed,
            _ => State::Ended,
        };
        application.outcome = Some(how.clone());
        known.over = Some(how.clone());
        let told = known.told;
        drop(known);
        if told {
            events.tell(event, &self.name, how);
        }
        self.changed.notify_all();
    }
}

/// The life of one, from its start to its end. `known` is what is known before.
fn stand_by(
    starts: &Starts,
    of: Weak<Shared>,
    mut known: Known,
    events: &Events,
    begun: &Sender<io::Result<Arc<Isolated>>>,
) {
    let place = Place::new();
    let bound = place.and_then(|place| {
        let listener = UnixListener::bind(place.socket())?;
        let child = start(starts, &listener)?;
        Ok((place, child))
    });
    let (place, (child, process)) = match bound {
        Ok(bound) => bound,
        Err(e) => return drop(begun.send(Err(e))),
    };
    let guard = child.id();
    known.child = Some(child);
    let application = &mut known.last.application;
    let client = Client::new(&place.socket()).of_application(&application.name);
    application.isolated = Some(process);
    let isolated = Arc::new(Isolated {
        name: application.name.clone(),
        number: application.number,
        process,
        client,
        leaving: Leaving::new(of.clone()),
        telling: Telling::default(),
        known: Mutex::new(known),
        changed: Condvar::new(),
    });
    let _ = begun.send(Ok(isolated.clone()));
    if !isolated.follow(events) {
        // Somebody may have told it to end: it stops then, and is seen to have ended by that.
        await_end(guard, Some(starts.within + SOON));
    }
    // What has nothing to run, or tells nothing any more and stays, ends.
    isolated.kill();
    await_end(guard, Some(GUARDED));
    isolated.kill_guard();
    await_end(guard, None);
    let mut known = isolated.known();
    let status = known.child.take().and_then(|mut child| child.wait().ok());
    drop(known);
    let how = status.map_or_else(|| "its process has ended".to_string(), in_words);
    isolated.ended(What::Failed, how, events);
    // The others have one less beside them.
    if let Some(shared) = of.upgrade()
        && let Some(beside) = shared.beside()
    {
        beside.tell();
    }
}

// ---- all ---------------------------------------------------------------------------------------

impl AllIsolated {
    /// Those of a host, which they keep off the cores that are not for all there.
    pub fn of(host: &Host) -> Arc<AllIsolated> {
        let all = Arc::new(AllIsolated {
            all: Mutex::default(),
            taken: Taken::default(),
            others: Others::default(),
            of: Arc::downgrade(&host.shared),
        });
        let _ = host.shared.beside.set(all.clone());
        all
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Isolated>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn list(&self) -> Vec<Arc<Isolated>> {
        self.all().values().cloned().collect()
    }

    /// How all are. Many are asked at a time: those that do not answer hold up the answer once, not each.
    pub fn details(&self) -> Vec<Details> {
        let all = self.of_each(Isolated::details).into_iter();
        all.map(|(_, details)| details).collect()
    }

    pub(super) fn of_each<T: Send>(&self, ask: fn(&Isolated) -> T) -> Vec<(Arc<Isolated>, T)> {
        let all = self.list();
        let some = |some: &[Arc<Isolated>]| -> Vec<(Arc<Isolated>, T)> {
            std::thread::scope(|scope| {
                let asked = some.iter().map(|i| (i, scope.spawn(move || ask(i))));
                let asked: Vec<_> = asked.collect();
                let said = asked.into_iter();
                said.filter_map(|(i, a)| Some((i.clone(), a.join().ok()?)))
                    .collect()
            })
        };
        match all.as_slice() {
            [one] => vec![(one.clone(), ask(one))],
            all => all.chunks(AT_A_TIME).flat_map(some).collect(),
        }
    }

    /// The newest of that name: those before it have ended.
    pub fn find(&self, name: &str) -> Option<Arc<Isolated>> {
        self.all().values().rev().find(|i| i.name == name).cloned()
    }

    pub fn live(&self, name: &str) -> Option<Arc<Isolated>> {
        self.find(name).filter(|i| i.lives())
    }

    /// Whether the one with this number has not ended.
    pub fn lives(&self, number: u64) -> bool {
        self.all().get(&number).is_some_and(|i| i.lives())
    }

    /// What is left of an earlier one of this name is forgotten.
    pub fn forget(&self, name: &str) {
        self.all().retain(|_, i| i.name != name || i.lives());
    }

    /// Starts the process for one; nothing is loaded in it yet.
    pub fn begin(
        &self,
        name: &str,
        number: u64,
        prepared: &Prepared,
        starts: Starts,
        events: Arc<Events>,
    ) -> Result<Arc<Isolated>, Failed> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let known = Known {
            child: None,
            last: Details {
                application: Application {
                    name: name.to_string(),
                    number,
                    network: prepared.network.clone(),
                    loaded: now.map_or(0.0, |d| d.as_secs_f64()),
                    ..Application::default()
                },
                ..Details::default()
            },
            workers: Vec::new(),
            options: prepared.options.clone(),
            told: false,
            begins: false,
            goes: false,
            replaced: false,
            over: None,
        };
        let (sender, receiver) = mpsc::channel();
        let of = self.of.clone();
        std::thread::Builder::new()
            .name("levada/isolated".to_string())
            .spawn(move || stand_by(&starts, of, known, &events, &sender))
            .map_err(|e| limit(format!("a thread cannot be started: {e}")))?;
        let begun = receiver.recv().unwrap_or_else(|e| Err(io::Error::other(e)));
        let begun =
            begun.map_err(|e| limit(format!("{name} cannot have a process of its own: {e}")))?;
        let mut all = self.all();
        all.insert(number, begun.clone());
        let over = all.values().filter(|i| !i.lives()).map(|i| i.number);
        let over: Vec<u64> = over.collect();
        for number in over.iter().rev().skip(REMEMBERED) {
            all.remove(number);
        }
        Ok(begun)
    }

    /// Of one that is not loaded after all nothing is left. Whoever has it taken away meanwhile sees to that.
    pub fn take_back(&self, isolated: &Isolated) {
        isolated.kill();
        if !isolated.goes() {
            self.all().remove(&isolated.number);
        }
    }

    /// Takes one away, at once or when what is in flight has come out.
    pub fn unload(
        &self,
        isolated: &Isolated,
        now: bool,
        within: Duration,
        events: &Events,
    ) -> Result<Unloaded, Failed> {
        let unloaded = isolated.unload(now, within)?;
        match self.all().remove(&isolated.number) {
            Some(_) => events.tell(What::Unloaded, &isolated.name, ""),
            None => {
                let what = format!("{} has been unloaded by somebody else", isolated.name);
                return Err(Refusal::new(Kind::Unknown, what).into());
            }
        }
        Ok(unloaded)
    }

    /// Stops all; the names of those that have not ended within that time, which end all the same.
    pub fn stop_within(&self, within: Duration) -> Vec<String> {
        let all: Vec<Arc<Isolated>> = self.list();
        all.iter().for_each(|i| i.stop());
        // They have the same limit, and say themselves what lasts.
        let until = Instant::now() + within.min(Duration::from_secs(1 << 20)) + SOON;
        let lasts = |i: &&Arc<Isolated>| {
            let left = until.saturating_duration_since(Instant::now());
            i.until_over(left).is_none()
        };
        let lasting: Vec<String> = all.iter().filter(lasts).map(|i| i.name.clone()).collect();
        all.iter().for_each(|i| i.kill());
        lasting
    }
}
