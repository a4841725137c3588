// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host: a runtime, and a table of the applications on it.
//!
//! All calls may come from any thread. What takes long (waiting for an end) is done without the table
//! in hand, so that applications do not wait for one another's control. The table is changed by who
//! loads and unloads, and by the thread that watches (`watch.rs`), which hears of every end.

use crate::events::{Events, What};
use crate::graph::{first_guess, links, place_beside};
use crate::keep::{self, Limits};
use crate::mapping;
use crate::measured::{self, Measured};
use crate::watch::{self, Note};
use levada_map::{Graph, Machine};
use levada_sys::{App, AppOptions, Counters, Fault, Network, Runtime, RuntimeOptions, Status};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
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
    /// Workers that actors must stay on; empty where none must.
    pub pins: Vec<Option<u32>>,
    pub limits: Limits,
    /// Load it even where that breaks a promise.
    pub anyway: bool,
    /// It has a core that nothing else is on.
    pub exclusive: bool,
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
    pub(crate) pins: Vec<Option<u32>>,
    /// The worker whose core it has to itself.
    pub exclusive: Option<u32>,
    /// What an earlier run has measured, by which it was placed.
    pub(crate) known: Option<Measured>,
    /// Whose end it waits for, to go on from there.
    pub(crate) after: Option<u64>,
    /// The code of those before it, which knows how to end what they have left and nobody wants.
    pub(crate) before: Mutex<Vec<Arc<Network>>>,
    /// What its natives were given.
    pub(crate) options: Vec<(String, String)>,
    pub limits: Limits,
    /// Its limits hold it, as if it were paused.
    pub(crate) held: Mutex<bool>,
    /// Its sources have been ended, whatever else is done to it.
    pub(crate) drains: AtomicBool,
    /// Units a second lately, where it is promised some.
    pub(crate) pace: Mutex<Option<f64>>,
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

    /// What its natives were told.
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Units a second lately, of what is promised a rate.
    pub fn pace(&self) -> Option<f64> {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who waits for whom, in words.
    pub fn why(&self) -> String {
        // Who pauses it has that in hand as long as a firing lasts: nobody who only asks waits for it.
        match self.held.try_lock() {
            Ok(held) if *held => format!("{} waits until its limits let it go on\n", self.name),
            _ => self.app.why(),
        }
    }

    /// Takes what pausing and resuming it need in hand.
    pub(crate) fn in_hand(&self, until: Instant) -> Result<MutexGuard<'_, bool>, Refusal> {
        loop {
            match self.held.try_lock() {
                Ok(held) => return Ok(held),
                Err(TryLockError::Poisoned(held)) => return Ok(held.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => {
                    let what =
                        format!("somebody else pauses {}, and waits for a firing", self.name);
                    return Err(
                        Refusal::new(Kind::Conflict, what).help("try again, or wait longer")
                    );
                }
            }
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        let started = self.started.get();
        started.map_or(0.0, |at| at.elapsed().as_secs_f64())
    }
}

#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not started yet.
    #[default]
    Loaded,
    Running,
    Paused,
    /// Its sources have ended; what is in flight comes out.
    Draining,
    /// Nothing of it begins any more; a last firing lasts, or its natives finish their files.
    Ending,
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
    pub number: u64,
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
    /// Who has ended, in that order.
    over: VecDeque<u64>,
    last: u64,
}

impl Seen {
    /// As it is told: what the runtime knows already counts, whether or not the table has heard of it.
    fn told(&self) -> Seen {
        let ending = self.hosted.as_ref().is_some_and(|h| h.app.is_ending());
        Seen {
            state: if ending { State::Ending } else { self.state },
            ..self.clone()
        }
    }
}

impl Table {
    fn find(&self, name: &str) -> Option<&Seen> {
        // The newest of that name: those before it have ended.
        self.apps.values().rev().find(|a| a.name == name)
    }

    /// Of too many that have ended those are forgotten that ended first.
    fn end(&mut self, ended: Ended, state: State) {
        let number = ended.number;
        let Some(seen) = self.apps.get_mut(&number) else {
            return;
        };
        seen.state = state;
        seen.hosted = None;
        seen.ended = Some(Arc::new(ended));
        self.over.push_back(number);
        let apps = &mut self.apps;
        self.over.retain(|n| apps.contains_key(n));
        while self.over.len() > REMEMBERED {
            self.over.pop_front().and_then(|n| apps.remove(&n));
        }
    }
}

pub(crate) struct Shared {
    pub runtime: Runtime,
    pub machine: Machine,
    pub balance: bool,
    pub events: Arc<Events>,
    table: Mutex<Table>,
    pub changed: Condvar,
    notes: Sender<Note>,
}

impl Shared {
    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn state(&self, number: u64) -> Option<State> {
        self.table().apps.get(&number).map(|a| a.state)
    }

    pub fn notes(&self) -> Sender<Note> {
        self.notes.clone()
    }

    fn note(&self, note: Note) {
        // Nobody listens any more: the host is going.
        let _ = self.notes.send(note);
    }

    /// The application with this number is about to have ended; false: it has not yet.
    pub fn ended(&self, number: u64) -> bool {
        let hosted = self
            .table()
            .apps
            .get(&number)
            .and_then(|a| a.hosted.clone());
        let Some(hosted) = hosted else {
            return true;
        };
        let app = &hosted.app;
        app.wait(Some(Duration::from_millis(1)));
        if !app.has_ended() {
            return false;
        }
        let outcome = Outcome::of(app, app.wait(None));
        let counters = app.counters().unwrap_or_default();
        if outcome == Outcome::Done
            && let Some(object) = &hosted.object
        {
            let ended: Vec<u32> = counters.actors.iter().map(|a| a.worker).collect();
            let all = crate::graph_between(app.network(), &Counters::default(), &counters);
            measured::save(
                object,
                &Measured {
                    graph: all.without_traffic(&self.machine, &ended),
                    done: crate::weights::counted(&hosted),
                },
            );
        }
        let ended = Ended {
            number,
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
        let state = match event {
            What::Failed => State::Failed,
            _ => State::Ended,
        };
        // Somebody may still have it in hand, and who is told of the end may want the core.
        if let Some(worker) = hosted.exclusive {
            let _ = self.runtime.give_core(worker);
        }
        self.table().end(ended, state);
        self.events.tell(event, &hosted.name, text);
        self.changed.notify_all();
        true
    }
}

/// Somebody else was faster.
fn no_core(name: &str) -> Refusal {
    let what = format!("there is no core for {name} alone any more");
    Refusal::new(Kind::Conflict, what).help("try again")
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
        let machine = crate::cores::machine(&runtime);
        let (notes, heard) = mpsc::channel();
        let shared = Arc::new(Shared {
            runtime,
            balance: options.balance && machine.workers() > 1,
            machine,
            events: Arc::default(),
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

    /// The cores that its workers run on.
    pub fn machine(&self) -> &Machine {
        &self.shared.machine
    }

    /// Nothing runs on the core of `worker` any more when this returns, until [`Host::come_back`].
    pub fn leave_core(&self, worker: u32) -> Result<(), Refusal> {
        self.shared.runtime.take_core(worker).map_err(|_| {
            let what = "it is an application's already, or somebody's, or the last one";
            Refusal::new(Kind::Conflict, what).help("see levada map")
        })?;
        self.shared.note(Note::Changed);
        Ok(())
    }

    pub fn come_back(&self, worker: u32) {
        let _ = self.shared.runtime.give_core(worker);
        self.shared.note(Note::Changed);
    }

    pub fn events(&self) -> &Arc<Events> {
        &self.shared.events
    }

    /// Loads an application, beside the others and without touching them. Nothing of it runs before
    /// [`Host::start`].
    pub fn load(&self, load: Load) -> Result<Arc<Hosted>, Refusal> {
        self.load_in_place_of(load, None)
    }

    /// The same; of its name there may be one, which it is to replace.
    pub(crate) fn load_in_place_of(
        &self,
        load: Load,
        old: Option<&Hosted>,
    ) -> Result<Arc<Hosted>, Refusal> {
        let Load {
            name,
            class,
            network,
            object,
            options,
            priority,
            pins,
            limits,
            anyway,
            exclusive,
        } = load;
        let shared = &self.shared;
        let known = object
            .as_deref()
            .and_then(|object| measured::load(object, network.actors(), links(&network, |_| 0.0)));
        let mut graph = match &known {
            Some(known) => known.graph.clone(),
            None => first_guess(&network),
        };
        graph.pins = pins.clone();
        let exclusive = match exclusive {
            true => Some(self.core_for(&name, &pins)?),
            false => None,
        };
        let placement = match exclusive {
            Some(worker) => vec![worker; network.actors()],
            None => self.place(graph)?,
        };
        if !anyway && exclusive.is_none() {
            mapping::admit(
                shared,
                &name,
                &network,
                known.as_ref(),
                &pins,
                priority,
                limits,
                old,
            )?;
        }
        let given = options;
        let options = AppOptions {
            name: Some(name.clone()),
            placement: Some(placement),
            options: given.clone(),
            priority,
            ..AppOptions::default()
        };
        let refused = |e: levada_sys::Error| {
            Refusal::new(Kind::Limit, format!("{class} cannot be loaded: {e}"))
        };
        let bytes = App::size(&shared.runtime, &network, &options).map_err(refused)?;
        let app = App::load(&shared.runtime, &network, &options).map_err(refused)?;
        if let Some(worker) = exclusive {
            app.take_core(worker).map_err(|_| no_core(&name))?;
            shared.note(Note::Changed);
        }
        let mut table = shared.table();
        if let Some(other) = table.find(&name)
            && other.ended.is_none()
            && old.is_none_or(|old| old.number != other.number)
        {
            let what = format!("an application {name} is loaded already");
            return Err(Refusal::new(Kind::Conflict, what)
                .help("give this one another name with --name, or unload that one"));
        }
        // What is left of an earlier one of this name is forgotten, but for the one that is replaced: it may
        // have ended a moment ago.
        let replaced = old.map(|old| old.number);
        table
            .apps
            .retain(|n, a| a.name != name || a.ended.is_none() || Some(*n) == replaced);
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
            pins,
            exclusive,
            known,
            after: old.map(|old| old.number),
            options: given,
            before: Mutex::default(),
            limits,
            held: Mutex::new(false),
            drains: AtomicBool::new(false),
            pace: Mutex::new(None),
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

    /// Where the actors of a new one begin: on cores that are for all.
    fn place(&self, mut graph: Graph) -> Result<Vec<u32>, Refusal> {
        let (machine, open) = (&self.shared.machine, self.shared.runtime.open());
        let inside = |core: u32| open.iter().position(|&c| c == core).map(|c| c as u32);
        for pin in &mut graph.pins {
            if let Some(core) = pin.filter(|&core| inside(core).is_none()) {
                let what =
                    format!("worker {core}, which an actor is pinned to, is not for all now");
                return Err(Refusal::new(Kind::Conflict, what).help("see levada map"));
            }
            *pin = pin.and_then(inside);
        }
        let loads = self.loads();
        let loads: Vec<f64> = open.iter().map(|&c| loads[c as usize]).collect();
        let found = place_beside(&graph, &machine.part(&open), &loads);
        Ok(found.into_iter().map(|c| open[c as usize]).collect())
    }

    /// The core that is cheapest to empty, for one that is to have it alone. One is left to all.
    fn core_for(&self, name: &str, pins: &[Option<u32>]) -> Result<u32, Refusal> {
        if pins.iter().any(Option::is_some) {
            let what =
                format!("{name} is to have a core to itself, and has actors that are pinned");
            return Err(Refusal::new(Kind::Wrong, what).help("leave out the pins, or --exclusive"));
        }
        let (open, loads) = (self.shared.runtime.open(), self.loads());
        let cheapest = open
            .iter()
            .min_by(|a, b| loads[**a as usize].total_cmp(&loads[**b as usize]));
        match cheapest {
            Some(&worker) if open.len() > 1 => Ok(worker),
            _ => {
                let all = self.shared.machine.workers();
                let what = format!(
                    "there is no core for {name} alone: of {all} workers {} is for all",
                    open.len()
                );
                Err(Refusal::new(Kind::Limit, what).help("unload what has one to itself"))
            }
        }
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

    pub fn start(&self, hosted: &Arc<Hosted>) -> Result<(), Refusal> {
        let _ = hosted.started.set(Instant::now());
        // In this order: it may have ended before we are back.
        self.set_state(hosted.number, State::Running);
        if let Err(e) = hosted.app.start() {
            self.set_state(hosted.number, State::Loaded);
            let what = format!("{} cannot be started: {e}", hosted.class);
            return Err(Refusal::new(Kind::Conflict, what));
        }
        self.shared.note(Note::Changed);
        if hosted.limits.any() {
            let (shared, hosted) = (Arc::downgrade(&self.shared), Arc::downgrade(hosted));
            let keeper = std::thread::Builder::new().name("levada/keep".to_string());
            let kept = keeper.spawn(move || keep::keep(&shared, &hosted));
            kept.map_err(|e| {
                Refusal::new(Kind::Limit, format!("a thread cannot be started: {e}"))
            })?;
        }
        Ok(())
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether that is new.
    pub(crate) fn set_state(&self, number: u64, state: State) -> bool {
        match self.shared.table().apps.get_mut(&number) {
            Some(seen) if seen.ended.is_none() => {
                std::mem::replace(&mut seen.state, state) != state
            }
            _ => false,
        }
    }

    /// All that are loaded, and those that have ended and have not been unloaded.
    pub fn list(&self) -> Vec<Seen> {
        self.shared.table().apps.values().map(Seen::told).collect()
    }

    pub fn find(&self, name: &str) -> Result<Seen, Refusal> {
        let table = self.shared.table();
        table.find(name).map(Seen::told).ok_or_else(|| {
            let what = format!("no application {name} is loaded");
            let mut names: Vec<&str> = table.apps.values().map(|a| a.name.as_str()).collect();
            names.truncate(12);
            Refusal::new(Kind::Unknown, what).help(match names.is_empty() {
                true => "none is".to_string(),
                false => format!("there are {}", names.join(", ")),
            })
        })
    }

    /// A number for an application of this name that somebody else holds; what has ended under it is
    /// forgotten here.
    pub fn claim(&self, name: &str) -> u64 {
        let mut table = self.shared.table();
        table
            .apps
            .retain(|_, a| a.name != name || a.ended.is_none());
        table.last += 1;
        table.last
    }

    /// Whether the application with this number has not ended.
    pub fn lives(&self, number: u64) -> bool {
        let table = self.shared.table();
        table.apps.get(&number).is_some_and(|a| a.ended.is_none())
    }

    /// The application of this name, if it has not ended.
    pub fn live(&self, name: &str) -> Result<Arc<Hosted>, Refusal> {
        let seen = self.find(name)?;
        seen.hosted
            .ok_or_else(|| Refusal::new(Kind::Conflict, format!("{name} has ended")))
    }

    /// No actor of it runs when this returns; nothing in its channels is lost. A firing that lasts
    /// longer than `within` is told as an error, and is the last: it is paused all the same.
    pub fn pause(&self, name: &str, within: Duration) -> Result<(), Refusal> {
        let until = deadline(within);
        let hosted = self.live(name)?;
        let mut held = hosted.in_hand(until)?;
        // What is loaded and does not run yet has nothing to pause; the runtime says so.
        let begun = hosted.app.pause(Duration::ZERO);
        if !matches!(&begun, Err(e) if e.status == Status::TIME) {
            self.say(begun, name, "paused")?;
        }
        // Before it is waited for: who asks meanwhile is told what is so.
        if self.set_state(hosted.number, State::Paused) {
            self.shared.events.tell(What::Paused, name, "");
        }
        *held = false;
        let left = until.saturating_duration_since(Instant::now());
        match hosted.app.pause(left) {
            Err(e) if e.status == Status::TIME => {
                let what =
                    format!("{name} is paused, but a firing of it has not ended within {within:?}");
                Err(Refusal::new(Kind::Conflict, what).help(
                    "nothing more of it begins; end what does not end with unload, or with levada host --time-limit",
                ))
            }
            // It has ended meanwhile.
            Err(e) if e.status == Status::STATE => Ok(()),
            done => self.say(done, name, "paused"),
        }
    }

    pub fn resume(&self, name: &str, within: Duration) -> Result<(), Refusal> {
        let hosted = self.live(name)?;
        // It may have been loaded paused.
        if self.shared.state(hosted.number) == Some(State::Loaded) {
            if hosted.after.is_some_and(|old| self.lives(old)) {
                let what = format!("{name} begins when the one before it has ended");
                return Err(Refusal::new(Kind::Conflict, what));
            }
            self.start(&hosted)?;
            self.shared.events.tell(What::Resumed, name, "");
            return Ok(());
        }
        let mut held = hosted.in_hand(deadline(within))?;
        self.say(hosted.app.resume(), name, "resumed")?;
        *held = false;
        // What drains goes on to drain.
        self.set_state(
            hosted.number,
            match hosted.drains.load(Ordering::Relaxed) {
                true => State::Draining,
                false => State::Running,
            },
        );
        drop(held);
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
        self.stop_until(|| None);
    }

    /// The same, but those that have not ended after `within`, as a firing of theirs or on a worker of
    /// theirs lasts, are not waited for any longer: their names.
    pub fn stop_within(&self, within: Duration) -> Vec<String> {
        let until = deadline(within);
        let lasting = self.stop_until(|| Some(until.saturating_duration_since(Instant::now())));
        // The files of all others are finished as soon as who watches them has seen that they have ended.
        let until = deadline(FINISHING);
        let finishing = |a: &Seen| a.hosted.is_some() && !lasting.contains(&a.name);
        while !lasting.is_empty() && Instant::now() < until && self.list().iter().any(finishing) {
            std::thread::sleep(Duration::from_millis(5));
        }
        lasting
    }

    fn stop_until(&self, left: impl Fn() -> Option<Duration>) -> Vec<String> {
        let all = self.list();
        let all = || all.iter().filter_map(|a| Some((a, a.hosted.as_ref()?)));
        // All are told first: none runs on while another is waited for.
        for (_, hosted) in all() {
            let _ = hosted.app.stop_within(Some(Duration::ZERO));
        }
        let lasting = |hosted: &Hosted| {
            let done = hosted.app.stop_within(left());
            done.is_err_and(|e| e.status == Status::TIME)
        };
        all()
            .filter(|(_, hosted)| lasting(hosted))
            .map(|(seen, _)| seen.name.clone())
            .collect()
    }

    /// Takes an application away: at once, or when its sources have ended and what is in flight has
    /// come out. If that lasts longer than `within`, it goes on, and this says so.
    pub fn unload(&self, name: &str, now: bool, within: Duration) -> Result<Ended, Refusal> {
        let until = deadline(within);
        let seen = self.find(name)?;
        if let Some(hosted) = &seen.hosted {
            match (now, seen.state) {
                (true, _) | (false, State::Loaded) => {
                    drop(hosted.app.stop_within(Some(Duration::ZERO)));
                }
                (false, _) => self.drain(hosted, until)?,
            }
        }
        drop(seen.hosted);
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
                        let hosted = running.hosted.clone();
                        // What is asked of the application is asked without the table in hand.
                        drop(table);
                        return Err(unfinished(name, hosted.as_deref(), within));
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

/// So long files may take to be finished once their application has ended, where the host does not wait
/// for all.
const FINISHING: Duration = Duration::from_secs(2);

/// A limit that nobody lives to see is one all the same.
pub(crate) fn deadline(within: Duration) -> Instant {
    Instant::now() + within.min(Duration::from_secs(1 << 20))
}

/// What an unload has waited for in vain.
fn unfinished(name: &str, hosted: Option<&Hosted>, within: Duration) -> Refusal {
    let ending = hosted.is_some_and(|h| h.app.is_ending());
    let (what, help) = match ending {
        true => (
            format!(
                "{name} is ending still after {within:?}: a firing of it, or a file that it writes, takes so long"
            ),
            "nothing more of it begins; unload it again when it has ended",
        ),
        false => {
            let why = hosted.map(Hosted::why).unwrap_or_default();
            (
                format!(
                    "{name} is draining still after {within:?}: {}",
                    why.trim_end()
                ),
                "wait for it to end, or stop it at once with --now",
            )
        }
    };
    Refusal::new(Kind::Conflict, what).help(help)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Who runs for long and ends last is not the one that is forgotten.
    #[test]
    fn who_ended_first_is_forgotten_first() {
        let mut table = Table::default();
        let many = REMEMBERED as u64 + 3;
        for number in 1..=many {
            let seen = Seen {
                number,
                name: number.to_string(),
                class: String::new(),
                priority: 0,
                bytes: 0,
                loaded: SystemTime::now(),
                state: State::Running,
                hosted: None,
                ended: None,
            };
            table.apps.insert(number, seen);
        }
        for number in (2..=many).chain([1]) {
            let ended = Ended {
                number,
                outcome: Outcome::Done,
                seconds: 0.0,
                counters: Counters::default(),
                progress: None,
                moves: 0,
            };
            table.end(ended, State::Ended);
        }
        assert_eq!(table.apps.len(), REMEMBERED);
        assert!(table.apps.contains_key(&1) && !table.apps.contains_key(&2));
    }
}
