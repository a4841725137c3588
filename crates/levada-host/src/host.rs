// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host: a runtime, and a table of the applications on it.
//!
//! All calls may come from any thread. What takes long (waiting for an end) is done without the table
//! in hand, so that applications do not wait for one another's control. The table is changed by who
//! loads and unloads, and by the thread that watches (`watch.rs`), which hears of every end.

use crate::events::{Events, What};
use crate::graph::{first_guess, links, place_beside};
use crate::measured;
use crate::watch::{self, Note};
use levada_map::{Graph, Machine};
use levada_sys::{App, AppOptions, Counters, Fault, Network, Runtime, RuntimeOptions, Status};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// How a host is set up.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions {
    pub runtime: RuntimeOptions,
    /// Move actors when what was measured asks for it.
    pub balance: bool,
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions {
            runtime: RuntimeOptions::default(),
            balance: true,
        }
    }
}

/// Which sort of thing was wrong with what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It says something that cannot be.
    Wrong,
    /// There is no such application, actor, worker.
    Unknown,
    /// Not in the state that things are in.
    Conflict,
    /// There is not enough of something.
    Limit,
}

/// Why something was not done, and what to do about it.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub kind: Kind,
    pub what: String,
    pub help: Option<String>,
}

impl Refusal {
    pub fn new(kind: Kind, what: impl Into<String>) -> Refusal {
        Refusal {
            kind,
            what: what.into(),
            help: None,
        }
    }

    pub fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Refusal {}

/// An application to be loaded.
#[derive(Clone, Debug)]
pub struct Load {
    /// By which the host knows it.
    pub name: String,
    /// The name of its network.
    pub class: String,
    pub network: Arc<Network>,
    /// The compiled network's file: what is measured is kept beside it.
    pub object: Option<PathBuf>,
    /// What natives can ask for.
    pub options: Vec<(String, String)>,
    pub priority: i32,
}

/// An application of the host, as long as anybody has it.
pub struct Hosted {
    pub number: u64,
    pub name: String,
    pub class: String,
    pub priority: i32,
    pub app: App,
    /// What it claims: state and channels.
    pub bytes: u64,
    pub loaded: SystemTime,
    pub(crate) object: Option<PathBuf>,
    /// It was placed by what an earlier run has measured.
    pub(crate) known: bool,
    pub(crate) moves: AtomicUsize,
    /// What it does in a second, as measured last.
    pub(crate) rate: Mutex<Option<Graph>>,
    started: OnceLock<Instant>,
}

impl Hosted {
    /// How often one of its actors was moved by the mapper.
    pub fn moves(&self) -> usize {
        self.moves.load(Ordering::Relaxed)
    }

    pub(crate) fn seconds(&self) -> f64 {
        let started = self.started.get();
        started.map_or(0.0, |at| at.elapsed().as_secs_f64())
    }
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not started yet.
    Loaded,
    Running,
    Paused,
    /// Its sources have ended; what is in flight comes out.
    Draining,
    Ended,
    Failed,
}

/// How an application ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Stopped,
    Deadlock(String),
    Fault(Fault),
    Failed(String),
}

impl Outcome {
    fn of(app: &App, status: Status) -> Outcome {
        match status {
            Status::OK => Outcome::Done,
            Status::STOPPED => Outcome::Stopped,
            Status::DEADLOCK => Outcome::Deadlock(app.why()),
            status => match app.fault() {
                Some(fault) => Outcome::Fault(fault),
                None => Outcome::Failed(format!("{} ({})", status.text(), status.name())),
            },
        }
    }

    /// In one sentence.
    pub fn text(&self) -> String {
        match self {
            Outcome::Done => "done".to_string(),
            Outcome::Stopped => "stopped".to_string(),
            Outcome::Deadlock(why) => format!("deadlock: {}", why.trim_end()),
            Outcome::Fault(f) => {
                let action = match f.action.as_str() {
                    "" => String::new(),
                    action if action.starts_with("the ") => format!("{action} of "),
                    action => format!("action {action} of "),
                };
                let place = match f.file.as_str() {
                    "" => String::new(),
                    file => format!(" ({file}:{})", f.line),
                };
                match f.actor.as_str() {
                    "" => f.message.clone(),
                    actor => format!("{}, in {action}actor {actor}{place}", f.message),
                }
            }
            Outcome::Failed(why) => why.clone(),
        }
    }

    pub fn is_good(&self) -> bool {
        matches!(self, Outcome::Done | Outcome::Stopped)
    }
}

/// What is left of an application that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub outcome: Outcome,
    pub seconds: f64,
    pub counters: Counters,
    pub progress: Option<(String, u64)>,
    pub moves: usize,
}

/// An application as the host's table has it.
#[derive(Clone)]
pub struct Seen {
    pub number: u64,
    pub name: String,
    pub class: String,
    pub priority: i32,
    pub bytes: u64,
    pub loaded: SystemTime,
    pub state: State,
    /// Until it has ended.
    pub hosted: Option<Arc<Hosted>>,
    /// From then on.
    pub ended: Option<Arc<Ended>>,
}

/// So many that have ended are remembered.
const REMEMBERED: usize = 256;
/// Longer names would fit nowhere.
const LONGEST_NAME: usize = 64;

#[derive(Default)]
pub(crate) struct Table {
    pub apps: BTreeMap<u64, Seen>,
    last: u64,
}

impl Table {
    fn find(&self, name: &str) -> Option<&Seen> {
        // The newest of that name: those before it have ended.
        self.apps.values().rev().find(|a| a.name == name)
    }
}

pub(crate) struct Shared {
    pub runtime: Runtime,
    pub machine: Machine,
    pub balance: bool,
    pub events: Events,
    table: Mutex<Table>,
    changed: Condvar,
    notes: Sender<Note>,
}

impl Shared {
    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, note: Note) {
        // Nobody listens any more: the host is going.
        let _ = self.notes.send(note);
    }

    /// The application with this number has ended, or is about to say so.
    pub fn ended(&self, number: u64) {
        let hosted = self
            .table()
            .apps
            .get(&number)
            .and_then(|a| a.hosted.clone());
        let Some(hosted) = hosted else {
            return;
        };
        let app = &hosted.app;
        let outcome = Outcome::of(app, app.wait(None));
        let counters = app.counters().unwrap_or_default();
        if outcome == Outcome::Done
            && let Some(object) = &hosted.object
        {
            let ended: Vec<u32> = counters.actors.iter().map(|a| a.worker).collect();
            let all = crate::graph_between(app.network(), &Counters::default(), &counters);
            measured::save(object, &all.without_traffic(&self.machine, &ended));
        }
        let ended = Ended {
            seconds: hosted.seconds(),
            counters,
            progress: app.progress(),
            moves: hosted.moves(),
            outcome,
        };
        let (event, text) = match ended.outcome.is_good() {
            true => (What::Ended, ended.outcome.text()),
            false => (What::Failed, ended.outcome.text()),
        };
        {
            let mut table = self.table();
            if let Some(seen) = table.apps.get_mut(&number) {
                seen.state = match event {
                    What::Failed => State::Failed,
                    _ => State::Ended,
                };
                seen.hosted = None;
                seen.ended = Some(Arc::new(ended));
            }
            let over = table.apps.values().filter(|a| a.ended.is_some()).count();
            if over > REMEMBERED {
                let oldest = table.apps.values().find(|a| a.ended.is_some());
                let oldest = oldest.map(|a| a.number);
                oldest.and_then(|n| table.apps.remove(&n));
            }
        }
        self.events.tell(event, &hosted.name, text);
        self.changed.notify_all();
    }
}

/// Applications in one process.
pub struct Host {
    shared: Arc<Shared>,
    watch: Option<JoinHandle<()>>,
}

impl Host {
    pub fn new(options: &HostOptions) -> Result<Host, Refusal> {
        let runtime = Runtime::new(&options.runtime).map_err(|e| {
            let what = format!("the runtime cannot start: {e}");
            Refusal::new(Kind::Limit, what).help("run levada doctor")
        })?;
        let machine = Machine::new(runtime.workers() as usize);
        let (notes, heard) = mpsc::channel();
        let shared = Arc::new(Shared {
            runtime,
            balance: options.balance && machine.workers() > 1,
            machine,
            events: Events::default(),
            table: Mutex::default(),
            changed: Condvar::new(),
            notes,
        });
        let watched = shared.clone();
        let watch = std::thread::Builder::new()
            .name("levada/watch".to_string())
            .spawn(move || watch::watch(&watched, &heard))
            .map_err(|e| Refusal::new(Kind::Limit, format!("a thread cannot be started: {e}")))?;
        Ok(Host {
            shared,
            watch: Some(watch),
        })
    }

    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    pub fn events(&self) -> &Events {
        &self.shared.events
    }

    /// Loads an application, beside the others and without touching them. Nothing of it runs before
    /// [`Host::start`].
    pub fn load(&self, load: Load) -> Result<Arc<Hosted>, Refusal> {
        let Load {
            name,
            class,
            network,
            object,
            options,
            priority,
        } = load;
        let shared = &self.shared;
        let known = object
            .as_deref()
            .and_then(|object| measured::load(object, network.actors(), links(&network, |_| 0.0)));
        let graph = match &known {
            Some(known) => known.clone(),
            None => first_guess(&network),
        };
        let placement = place_beside(&graph, &shared.machine, &self.loads());
        let options = AppOptions {
            name: Some(name.clone()),
            placement: Some(placement),
            options,
            priority,
            ..AppOptions::default()
        };
        let refused = |e: levada_sys::Error| {
            Refusal::new(Kind::Limit, format!("{class} cannot be loaded: {e}"))
        };
        let bytes = App::size(&shared.runtime, &network, &options).map_err(refused)?;
        let app = App::load(&shared.runtime, &network, &options).map_err(refused)?;
        let mut table = shared.table();
        if let Some(other) = table.find(&name)
            && other.ended.is_none()
        {
            let what = format!("an application {name} is loaded already");
            return Err(Refusal::new(Kind::Conflict, what)
                .help("give this one another name with --name, or unload that one"));
        }
        // What is left of an earlier one of this name is forgotten.
        table.apps.retain(|_, a| a.name != name);
        let number = table.last + 1;
        table.last = number;
        let notes = shared.notes.clone();
        let ends = app.on_end(move || drop(notes.send(Note::Ended(number))));
        ends.map_err(|e| Refusal::new(Kind::Limit, format!("{class} cannot be loaded: {e}")))?;
        let hosted = Arc::new(Hosted {
            number,
            name,
            class,
            priority,
            app,
            bytes,
            loaded: SystemTime::now(),
            object,
            known: known.is_some(),
            moves: AtomicUsize::new(0),
            rate: Mutex::new(None),
            started: OnceLock::new(),
        });
        let seen = Seen {
            number,
            name: hosted.name.clone(),
            class: hosted.class.clone(),
            priority,
            bytes,
            loaded: hosted.loaded,
            state: State::Loaded,
            hosted: Some(hosted.clone()),
            ended: None,
        };
        table.apps.insert(number, seen);
        drop(table);
        let counts = format!("{} as {}", hosted.class, hosted.name);
        shared.events.tell(What::Loaded, &hosted.name, counts);
        Ok(hosted)
    }

    /// The bytes that it would claim: state and channels. The errors of [`Host::load`].
    pub fn size(&self, load: &Load) -> Result<u64, Refusal> {
        let size = App::size(&self.shared.runtime, &load.network, &AppOptions::default());
        size.map_err(|e| Refusal::new(Kind::Limit, format!("{} cannot be loaded: {e}", load.class)))
    }

    /// How busy each worker is with what is loaded.
    fn loads(&self) -> Vec<f64> {
        let mut loads = vec![0.0; self.shared.machine.workers()];
        let all: Vec<Arc<Hosted>> = {
            let table = self.shared.table();
            table
                .apps
                .values()
                .filter_map(|a| a.hosted.clone())
                .collect()
        };
        for hosted in all {
            let rate = hosted.rate.lock().unwrap_or_else(PoisonError::into_inner);
            let Ok(counters) = hosted.app.counters() else {
                continue;
            };
            for (i, actor) in counters.actors.iter().enumerate() {
                // What was loaded a moment ago has not been measured: it will want something.
                let busy = rate.as_ref().and_then(|r| r.busy.get(i).copied());
                if let Some(load) = loads.get_mut(actor.worker as usize) {
                    *load += busy.unwrap_or(1e6);
                }
            }
        }
        loads
    }

    pub fn start(&self, hosted: &Hosted) -> Result<(), Refusal> {
        let _ = hosted.started.set(Instant::now());
        // In this order: it may have ended before we are back.
        self.set_state(hosted.number, State::Running);
        if let Err(e) = hosted.app.start() {
            self.set_state(hosted.number, State::Loaded);
            let what = format!("{} cannot be started: {e}", hosted.class);
            return Err(Refusal::new(Kind::Conflict, what));
        }
        self.shared.note(Note::Changed);
        Ok(())
    }

    fn set_state(&self, number: u64, state: State) {
        if let Some(seen) = self.shared.table().apps.get_mut(&number)
            && seen.ended.is_none()
        {
            seen.state = state;
        }
    }

    /// All that are loaded, and those that have ended and have not been unloaded.
    pub fn list(&self) -> Vec<Seen> {
        self.shared.table().apps.values().cloned().collect()
    }

    pub fn find(&self, name: &str) -> Result<Seen, Refusal> {
        let table = self.shared.table();
        table.find(name).cloned().ok_or_else(|| {
            let what = format!("no application {name} is loaded");
            let mut names: Vec<&str> = table.apps.values().map(|a| a.name.as_str()).collect();
            names.truncate(12);
            Refusal::new(Kind::Unknown, what).help(match names.is_empty() {
                true => "none is".to_string(),
                false => format!("there are {}", names.join(", ")),
            })
        })
    }

    /// The application of this name, if it has not ended.
    pub fn live(&self, name: &str) -> Result<Arc<Hosted>, Refusal> {
        let seen = self.find(name)?;
        seen.hosted
            .ok_or_else(|| Refusal::new(Kind::Conflict, format!("{name} has ended")))
    }

    /// No actor of it runs when this returns; nothing in its channels is lost.
    pub fn pause(&self, name: &str) -> Result<(), Refusal> {
        let hosted = self.live(name)?;
        self.say(hosted.app.pause(), name, "paused")?;
        self.set_state(hosted.number, State::Paused);
        self.shared.events.tell(What::Paused, name, "");
        Ok(())
    }

    pub fn resume(&self, name: &str) -> Result<(), Refusal> {
        let hosted = self.live(name)?;
        self.say(hosted.app.resume(), name, "resumed")?;
        self.set_state(hosted.number, State::Running);
        self.shared.events.tell(What::Resumed, name, "");
        self.shared.note(Note::Changed);
        Ok(())
    }

    fn say(
        &self,
        done: Result<(), levada_sys::Error>,
        name: &str,
        what: &str,
    ) -> Result<(), Refusal> {
        done.map_err(|e| Refusal::new(Kind::Conflict, format!("{name} cannot be {what}: {e}")))
    }

    /// Puts an actor on a worker. The mapper may move it again when that is worth it.
    pub fn move_actor(&self, name: &str, actor: &str, worker: u32) -> Result<(), Refusal> {
        let hosted = self.live(name)?;
        let workers = self.shared.machine.workers();
        if worker as usize >= workers {
            let what = format!("there is no worker {worker}");
            let help = format!("workers are numbered from 0 to {}", workers - 1);
            return Err(Refusal::new(Kind::Unknown, what).help(help));
        }
        let names = hosted.app.network().actor_names();
        let Some(index) = names.iter().position(|n| n == actor) else {
            let what = format!("{name} has no actor {actor}");
            let help = format!("see levada show {name}");
            return Err(Refusal::new(Kind::Unknown, what).help(help));
        };
        let from = hosted.app.counters().map_or(0, |c| c.actors[index].worker);
        self.say(hosted.app.move_actor(index as u32, worker), actor, "moved")?;
        if from != worker {
            self.shared.events.moved(name, actor, from, worker);
        }
        self.shared.note(Note::Changed);
        Ok(())
    }

    /// Ends all applications now; what their natives hold open is finished then.
    pub fn stop(&self) {
        for seen in self.list() {
            if let Some(hosted) = &seen.hosted {
                let _ = hosted.app.stop();
            }
        }
    }

    /// Takes an application away: at once, or when its sources have ended and what is in flight has
    /// come out. If that lasts longer than `within`, it goes on draining, and this says so.
    pub fn unload(&self, name: &str, now: bool, within: Duration) -> Result<Ended, Refusal> {
        let seen = self.find(name)?;
        if let Some(hosted) = &seen.hosted {
            match (now, seen.state) {
                (true, _) | (false, State::Loaded) => drop(hosted.app.stop()),
                (false, state) => {
                    let drained = hosted.app.drain();
                    match drained.map_err(|e| e.status) {
                        Err(Status::UNKNOWN) => {
                            let what = format!("{name} has no source that could be ended");
                            return Err(Refusal::new(Kind::Conflict, what)
                                .help("stop it at once with --now"));
                        }
                        // Ended meanwhile: all the better.
                        Err(_) => {}
                        Ok(()) => {
                            if state != State::Draining {
                                self.set_state(hosted.number, State::Draining);
                                self.shared.events.tell(What::Draining, name, "");
                            }
                            if state == State::Paused {
                                let _ = hosted.app.resume();
                            }
                        }
                    }
                }
            }
        }
        drop(seen.hosted);
        let until = Instant::now() + within.min(Duration::from_secs(1 << 20));
        let mut table = self.shared.table();
        loop {
            match table.apps.get(&seen.number) {
                None => {
                    let what = format!("{name} has been unloaded by somebody else");
                    return Err(Refusal::new(Kind::Unknown, what));
                }
                Some(Seen {
                    ended: Some(ended), ..
                }) => {
                    let ended = ended.as_ref().clone();
                    table.apps.remove(&seen.number);
                    drop(table);
                    self.shared.events.tell(What::Unloaded, name, "");
                    return Ok(ended);
                }
                Some(running) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        let why = running.hosted.as_ref().map(|h| h.app.why());
                        let why = why.unwrap_or_default();
                        let what = format!("{name} is draining still: {}", why.trim_end());
                        return Err(Refusal::new(Kind::Conflict, what)
                            .help("wait for it to end, or stop it at once with --now"));
                    }
                    table = match self.shared.changed.wait_timeout(table, left) {
                        Ok((table, _)) => table,
                        Err(poisoned) => poisoned.into_inner().0,
                    };
                }
            }
        }
    }
}

/// The names that users give stand in paths, in commands and in tables.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let good = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let starts = name
        .chars()
        .next()
        .is_some_and(|c| c.is_alphanumeric() || c == '_');
    match starts && name.chars().all(good) && name.len() <= LONGEST_NAME {
        true => Ok(()),
        false => Err(Refusal::new(
            Kind::Wrong,
            format!("{name:?} is no name for an application"),
        )
        .help(format!(
            "use at most {LONGEST_NAME} letters, digits, dots, dashes and underscores"
        ))),
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
        self.shared.note(Note::Quit);
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
    }
}
