// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads a network as an application and starts it, without disturbing the others.

use crate::admission::candidate::LoadCandidate;
use crate::admission::check;
use crate::app::control_state::ControlState;
use crate::app::output_file::OutputFile;
use crate::app::placement::ActorPlacement;
use crate::app::profile::Profile;
use crate::app::recent::RecentStats;
use crate::app::versions::Versions;
use crate::app::{AppEntry, HostedApp};
use crate::context::message::MonitorMessage;
use crate::cores::reserve::ReservedCore;
use crate::host::Host;
use crate::limits::enforce;
use crate::mapping::graph::first_guess;
use crate::model::admission_report::{Admission, no_units_text};
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::EventKind;
use crate::model::limits::Limits;
use levada_sys::{App, AppOptions, Network, Status};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Instant, SystemTime};

/// An application to be loaded.
#[derive(Clone, Debug)]
pub struct Load {
    /// Its name in the host.
    pub name: String,
    /// The class name of its network.
    pub network_class: String,
    pub network: Arc<Network>,
    /// The file of the compiled network; its profile is stored next to it.
    pub object: Option<PathBuf>,
    /// Options of its natives.
    pub options: Vec<(String, String)>,
    pub priority: i32,
    /// The worker that each actor is pinned to; empty if none is pinned.
    pub pins: Vec<Option<u32>>,
    /// Initial workers of its actors, if chosen already; they may be moved later.
    pub initial_workers: Option<Vec<u32>>,
    /// Fraction of each worker's core that other programs use; empty: unknown.
    pub load_by_others: Vec<f64>,
    pub limits: Limits,
    /// Its channels keep their capacity.
    pub fixed_buffers: bool,
    /// Maximum of bytes for state and channels, up to which channels may grow; `None`: 64 MiB more than at load.
    pub memory: Option<u64>,
    /// Whether it contains a native that can report progress; without, no rate can be reserved.
    pub can_count: bool,
    /// Load it even if that breaks a reserved rate.
    pub force: bool,
    /// Give it a core that no other application uses.
    pub exclusive: bool,
    /// That core, if it is already reserved.
    pub reserved_core: Option<Arc<ReservedCore>>,
}

/// "x claims 3 bytes ..."
pub(crate) fn claims(name: &str, bytes: u64) -> String {
    format!("{name} claims {bytes} bytes for its state and its channels")
}

impl Load {
    /// The help for too much memory; that of a C program does not depend on channels.
    pub(crate) fn smaller_help(&self, other: &str) -> String {
        if self.network.is_program() {
            other.to_string()
        } else {
            format!("smaller channels (bufferSize) take less, or {other}")
        }
    }

    /// The core of the version that it replaces, if it is to have one.
    fn inherited_core(&self, old: Option<&HostedApp>) -> Option<u32> {
        old.and_then(|old| old.exclusive).filter(|_| self.exclusive)
    }

    /// The candidate for the admission check.
    pub(crate) fn candidate<'a>(
        &'a self,
        known: Option<&'a Profile>,
        old: Option<&'a HostedApp>,
    ) -> LoadCandidate<'a> {
        LoadCandidate {
            name: &self.name,
            network: &self.network,
            profile: known,
            pins: &self.pins,
            priority: self.priority,
            limits: self.limits,
            can_count: self.can_count,
            force: self.force,
            exclusive: self.exclusive_worker(old),
            old,
        }
    }

    /// The worker with the core that is reserved for it.
    pub(crate) fn exclusive_worker(&self, old: Option<&HostedApp>) -> Option<u32> {
        let emptied = self.reserved_core.as_ref().map(|core| core.worker);
        self.inherited_core(old).or(emptied)
    }
}

impl Host {
    /// Loads an application without disturbing the others. Nothing of it runs before [`Host::start`].
    pub fn load(&self, mut load: Load) -> Result<Arc<HostedApp>, Refusal> {
        if load.exclusive && load.reserved_core.is_none() {
            load.reserved_core = Some(self.reserve_core_for(&load, None)?);
        }
        let admission = self.admit(&[&load], None)?.pop().flatten();
        self.load_admitted(load, None, admission)
    }

    /// Reserves a core for an exclusive application, which may take some time: done before the caller takes locks.
    /// Refuses first what the admission check refuses.
    pub(crate) fn reserve_core_for(
        &self,
        load: &Load,
        old: Option<&HostedApp>,
    ) -> Result<Arc<ReservedCore>, Refusal> {
        let name = match load.name.as_str() {
            "" => &load.network_class,
            name => name,
        };
        if load.pins.iter().any(Option::is_some) {
            let what = format!("{name} cannot have pinned actors and an exclusive core");
            return Err(Refusal::new(Kind::Wrong, what).help("leave out the pins, or --exclusive"));
        }
        let cores = self.shared.cheapest_to_vacate(name)?;
        let known = self.known(load);
        let new = LoadCandidate {
            name,
            exclusive: cores.first().copied(),
            ..load.candidate(known.as_ref(), old)
        };
        check::admit(&self.shared, &[new])?;
        Ok(Arc::new(self.shared.reserve_one(name, &cores)?))
    }

    /// The result of the admission check of each; refused if they break a reserved rate together.
    pub(crate) fn admit(
        &self,
        loads: &[&Load],
        old: Option<&HostedApp>,
    ) -> Result<Vec<Option<Admission>>, Refusal> {
        let known: Vec<Option<Profile>> = loads.iter().map(|load| self.known(load)).collect();
        let both = loads.iter().zip(&known);
        let news = both.map(|(load, known)| load.candidate(known.as_ref(), old));
        check::admit(&self.shared, &news.collect::<Vec<_>>())
    }

    /// The profile of its network.
    pub(crate) fn known(&self, load: &Load) -> Option<Profile> {
        let object = load.object.as_deref()?;
        self.shared.known_profile(object, &load.network)
    }

    /// Loads an application that has been admitted and has its core. If it is to replace `old`, that one has the same
    /// name.
    pub(crate) fn load_admitted(
        &self,
        load: Load,
        old: Option<&HostedApp>,
        admission: Option<Admission>,
    ) -> Result<Arc<HostedApp>, Refusal> {
        let known = self.known(&load);
        let exclusive = load.exclusive_worker(old);
        let (app, bytes, placement) = self.create(&load, known.as_ref())?;
        let mut table = self.shared.lock_registry();
        if let Some(other) = table.find(&load.name)
            && other.ended.is_none()
            && old.is_none_or(|old| old.number != other.number)
        {
            return Err(name_taken(&load.name));
        }
        // An ended application of this name is forgotten, except the replaced one: it may have ended just now.
        let replaced = old.map(|old| old.number);
        table
            .apps
            .retain(|n, a| a.name != load.name || a.ended.is_none() || Some(*n) == replaced);
        let number = table.last_number + 1;
        table.last_number = number;
        let notes = self.shared.messages.clone();
        let ends = app.on_end(move || drop(notes.send(MonitorMessage::Ended(number))));
        ends.map_err(|e| cannot_load(&load.network_class, e))?;
        let out = load.options.iter().find(|(name, _)| name == "out");
        let hosted = Arc::new(HostedApp {
            number,
            name: load.name,
            network_class: load.network_class,
            priority: load.priority,
            app,
            bytes,
            loaded: SystemTime::now(),
            object: load.object,
            placement: ActorPlacement::new(placement, load.pins),
            exclusive,
            profile: known,
            admission,
            output_file: out.and_then(|(_, path)| OutputFile::resolve(path)),
            options: load.options,
            limits: load.limits,
            can_count: load.can_count,
            versions: Versions {
                announced: AtomicBool::new(old.is_none()),
                ..Versions::default()
            },
            control: ControlState::default(),
            recent: RecentStats::default(),
            started: OnceLock::new(),
            grown_to: AtomicU64::new(0),
            flush_request: OnceLock::new(),
        });
        let seen = AppEntry {
            number,
            name: hosted.name.clone(),
            network_class: hosted.network_class.clone(),
            priority: hosted.priority,
            bytes,
            loaded: hosted.loaded,
            successor_of: replaced,
            state: State::Loaded,
            hosted: Some(hosted.clone()),
            ended: None,
        };
        table.apps.insert(number, seen);
        drop(table);
        if old.is_none() {
            self.emit_loaded(&hosted);
        }
        Ok(hosted)
    }

    /// Creates the application in the runtime: returns it, its memory in bytes, and the workers of its actors.
    fn create(
        &self,
        load: &Load,
        known: Option<&Profile>,
    ) -> Result<(App, u64, Vec<u32>), Refusal> {
        let (network, runtime) = (&load.network, &self.shared.runtime);
        let mut graph = match known {
            Some(known) => known.graph.clone(),
            None => first_guess(network),
        };
        graph.pins = load.pins.clone();
        let refused = |e| cannot_load(&load.network_class, e);
        let mut wanted = load.initial_workers.clone();
        let (app, bytes, mut placement) = loop {
            let placed =
                self.initial_placement(graph.clone(), known.is_some(), &load.load_by_others)?;
            let wanted = wanted.take().filter(|seats| self.are_available(seats));
            let placement = wanted.unwrap_or(placed);
            let options = AppOptions {
                name: Some(load.name.clone()),
                placement: Some(placement.clone()),
                options: load.options.clone(),
                priority: load.priority,
                fixed_buffers: load.fixed_buffers,
                memory_max: load.memory.unwrap_or(0),
                ..AppOptions::default()
            };
            let bytes = App::size(runtime, network, &options);
            let app = bytes.and_then(|b| Ok((App::load(runtime, network, &options)?, b)));
            match app {
                Ok((app, bytes)) => break (app, bytes, placement),
                // A core was reserved since the placement was chosen.
                Err(_) if !self.are_available(&placement) => {}
                Err(e) => return Err(refused(e)),
            }
        };
        app.reserve_rate(load.limits.rate.is_some() && load.can_count);
        // The core of an old version is passed on when that has been paused.
        if let Some(core) = &load.reserved_core {
            let there = core.pass_to(&app).and_then(|()| {
                (0..network.actors() as u32).try_for_each(|a| app.move_actor(a, core.worker))
            });
            there.map_err(refused)?;
            placement.fill(core.worker);
        }
        Ok((app, bytes, placement))
    }

    /// Emits the event; from now on the end of the application is announced, too.
    pub(crate) fn emit_loaded(&self, hosted: &HostedApp) {
        hosted.versions.announced.store(true, Ordering::Relaxed);
        let what = format!("{} as {}", hosted.network_class, hosted.name);
        self.events().emit(EventKind::Loaded, &hosted.name, what);
        if let Some(reserved) = hosted.limits.rate.filter(|_| !hosted.can_count) {
            let text = no_units_text(reserved);
            self.events()
                .emit(EventKind::RateUnmeasurable, &hosted.name, text);
        }
    }

    /// Refuses it if its state and channels take more memory than it may have; `name` is for the message. Returns the
    /// bytes that they take.
    pub fn check_memory(&self, name: &str, load: &Load) -> Result<u64, Refusal> {
        let needs = self.size(load)?;
        match load.memory {
            Some(limit) if needs > limit => {
                let what = format!("{}, and may have {limit}", claims(name, needs));
                let help = load.smaller_help("allow it more with --memory");
                Err(Refusal::new(Kind::Limit, what).help(help))
            }
            _ => Ok(needs),
        }
    }

    /// Memory for state and channels, in bytes. Fails as [`Host::load`] does.
    pub fn size(&self, load: &Load) -> Result<u64, Refusal> {
        let size = App::size(&self.shared.runtime, &load.network, &AppOptions::default());
        size.map_err(|e| cannot_load(&load.network_class, e))
    }

    pub fn start(&self, hosted: &Arc<HostedApp>) -> Result<(), Refusal> {
        let _ = hosted.started.set(Instant::now());
        // In this order: the application may have ended when `start` returns.
        self.set_state(hosted.number, State::Running);
        let started = if hosted.limits.any() {
            self.start_limited(hosted)?
        } else {
            hosted.app.start()
        };
        if let Err(e) = started {
            let what = match (e.status, hosted.app.is_ending()) {
                (Status::STATE, true) => {
                    format!("{} was unloaded before it started", hosted.name)
                }
                // Another thread has started it.
                (Status::STATE, false) => return Ok(()),
                _ => {
                    self.set_state(hosted.number, State::Loaded);
                    format!("{} cannot be started: {e}", hosted.network_class)
                }
            };
            return Err(Refusal::new(Kind::Conflict, what));
        }
        self.shared.send(MonitorMessage::Changed);
        Ok(())
    }

    /// Starts an application with limits on its enforcement thread, which has a priority that a greedy application
    /// cannot starve.
    fn start_limited(
        &self,
        hosted: &Arc<HostedApp>,
    ) -> Result<Result<(), levada_sys::Error>, Refusal> {
        let (shared, app) = (Arc::downgrade(&self.shared), Arc::downgrade(hosted));
        let (sender, receiver) = mpsc::channel();
        let limiter = std::thread::Builder::new().name("levada/limits".to_string());
        let kept = limiter.spawn(move || enforce::run(&shared, &app, &sender));
        let started = kept.map(|_| receiver.recv());
        let refused = |e| {
            self.set_state(hosted.number, State::Loaded);
            Refusal::new(Kind::Limit, format!("a thread cannot be started: {e}"))
        };
        match started {
            Ok(Ok(started)) => Ok(started),
            Ok(Err(e)) => Err(refused(e.to_string())),
            Err(e) => Err(refused(e.to_string())),
        }
    }
}

fn cannot_load(class: &str, e: levada_sys::Error) -> Refusal {
    let kind = match e.status {
        // The network is wrong.
        Status::ARGUMENT | Status::ABI => Kind::Failed,
        _ => Kind::Limit,
    };
    Refusal::new(kind, format!("{class} cannot be loaded: {e}"))
}

/// The error for a name that is in use.
pub(crate) fn name_taken(name: &str) -> Refusal {
    let what = format!("an application {name} is loaded already");
    Refusal::new(Kind::Conflict, what)
        .help("give this one another name (--name NAME, or name = \"NAME\" in a manifest), or unload that one")
}
