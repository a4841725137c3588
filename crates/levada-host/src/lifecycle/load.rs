// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loading: from a network to an application that runs, beside the others and without touching them.

use crate::admission::candidate::New;
use crate::admission::check;
use crate::app::control_state::Told;
use crate::app::output_file::Target;
use crate::app::placement::Seats;
use crate::app::profile::Measured;
use crate::app::recent::Lately;
use crate::app::versions::Lineage;
use crate::app::{Hosted, Seen};
use crate::context::message::Note;
use crate::cores::reserve::Emptied;
use crate::host::Host;
use crate::limits::enforce;
use crate::mapping::graph::first_guess;
use crate::model::admission_report::{Admission, no_units};
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::What;
use crate::model::limits::Limits;
use levada_sys::{App, AppOptions, Network, Status};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Instant, SystemTime};

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
    /// Workers where they begin, if that is known: they may be moved then.
    pub seats: Option<Vec<u32>>,
    /// The part of each worker's core that programs beside this host take; empty: nobody knows.
    pub beside: Vec<f64>,
    pub limits: Limits,
    /// Something in it may count what it does; else nothing can be promised to it.
    pub counts: bool,
    /// Load it even where that breaks a promise.
    pub anyway: bool,
    /// It has a core that nothing else is on.
    pub exclusive: bool,
    /// That core, where it has been emptied before.
    pub core: Option<Arc<Emptied>>,
}

impl Load {
    /// That of the one in whose place it comes, if it is to have one.
    fn own_core(&self, old: Option<&Hosted>) -> Option<u32> {
        old.and_then(|old| old.exclusive).filter(|_| self.exclusive)
    }

    /// As the admission test sees it.
    pub(crate) fn candidate<'a>(
        &'a self,
        known: Option<&'a Measured>,
        old: Option<&'a Hosted>,
    ) -> New<'a> {
        New {
            name: &self.name,
            network: &self.network,
            known,
            pins: &self.pins,
            priority: self.priority,
            limits: self.limits,
            counts: self.counts,
            anyway: self.anyway,
            exclusive: self.alone_on(old),
            old,
        }
    }

    /// The worker whose core it is to have to itself.
    pub(crate) fn alone_on(&self, old: Option<&Hosted>) -> Option<u32> {
        let emptied = self.core.as_ref().map(|core| core.worker);
        self.own_core(old).or(emptied)
    }
}

impl Host {
    /// Loads an application, beside the others and without touching them. Nothing of it runs before
    /// [`Host::start`].
    pub fn load(&self, mut load: Load) -> Result<Arc<Hosted>, Refusal> {
        if load.exclusive && load.core.is_none() {
            load.core = Some(self.empty_for(&load, None)?);
        }
        let admission = self.admit(&[&load], None)?.pop().flatten();
        self.load_admitted(load, None, admission)
    }

    /// Empties a core for one that is to have it to itself, which may take a while: who holds locks that others need
    /// has it done before. Refuses what cannot be admitted first.
    pub(crate) fn empty_for(
        &self,
        load: &Load,
        old: Option<&Hosted>,
    ) -> Result<Arc<Emptied>, Refusal> {
        let name = match load.name.as_str() {
            "" => &load.class,
            name => name,
        };
        if load.pins.iter().any(Option::is_some) {
            let what =
                format!("{name} is to have a core to itself, and has actors that are pinned");
            return Err(Refusal::new(Kind::Wrong, what).help("leave out the pins, or --exclusive"));
        }
        let cores = self.shared.to_empty(name)?;
        let known = self.known(load);
        let new = New {
            name,
            exclusive: cores.first().copied(),
            ..load.candidate(known.as_ref(), old)
        };
        check::admit(&self.shared, &[new])?;
        Ok(Arc::new(self.shared.empty_one(name, &cores)?))
    }

    /// What loading these does to the promises, of each; refused where they break some together.
    pub(crate) fn admit(
        &self,
        loads: &[&Load],
        old: Option<&Hosted>,
    ) -> Result<Vec<Option<Admission>>, Refusal> {
        let known: Vec<Option<Measured>> = loads.iter().map(|load| self.known(load)).collect();
        let both = loads.iter().zip(&known);
        let news = both.map(|(load, known)| load.candidate(known.as_ref(), old));
        check::admit(&self.shared, &news.collect::<Vec<_>>())
    }

    /// What was measured of its network.
    pub(crate) fn known(&self, load: &Load) -> Option<Measured> {
        let object = load.object.as_deref()?;
        self.shared.known(object, &load.network)
    }

    /// Loads what has been admitted, and can have its core. Of its name there may be one, `old`, which it is to replace.
    pub(crate) fn load_admitted(
        &self,
        load: Load,
        old: Option<&Hosted>,
        admission: Option<Admission>,
    ) -> Result<Arc<Hosted>, Refusal> {
        let known = self.known(&load);
        let exclusive = load.alone_on(old);
        let (app, bytes, placement) = self.make(&load, known.as_ref())?;
        let mut table = self.shared.table();
        if let Some(other) = table.find(&load.name)
            && other.ended.is_none()
            && old.is_none_or(|old| old.number != other.number)
        {
            return Err(taken(&load.name));
        }
        // What is left of an earlier one of this name is forgotten, but for the one that is replaced: it may
        // have ended a moment ago.
        let replaced = old.map(|old| old.number);
        table
            .apps
            .retain(|n, a| a.name != load.name || a.ended.is_none() || Some(*n) == replaced);
        let number = table.last + 1;
        table.last = number;
        let notes = self.shared.notes.clone();
        let ends = app.on_end(move || drop(notes.send(Note::Ended(number))));
        ends.map_err(|e| cannot_load(&load.class, e))?;
        let out = load.options.iter().find(|(name, _)| name == "out");
        let hosted = Arc::new(Hosted {
            number,
            name: load.name,
            class: load.class,
            priority: load.priority,
            app,
            bytes,
            loaded: SystemTime::now(),
            object: load.object,
            seats: Seats::new(placement, load.pins),
            exclusive,
            known,
            admission,
            out: out.and_then(|(_, path)| Target::of(path)),
            options: load.options,
            limits: load.limits,
            counts: load.counts,
            lineage: Lineage {
                heard_of: AtomicBool::new(old.is_none()),
                ..Lineage::default()
            },
            told: Told::default(),
            lately: Lately::default(),
            started: OnceLock::new(),
            printed: OnceLock::new(),
        });
        let seen = Seen {
            number,
            name: hosted.name.clone(),
            class: hosted.class.clone(),
            priority: hosted.priority,
            bytes,
            loaded: hosted.loaded,
            after: replaced,
            state: State::Loaded,
            hosted: Some(hosted.clone()),
            ended: None,
        };
        table.apps.insert(number, seen);
        drop(table);
        if old.is_none() {
            self.tell_loaded(&hosted);
        }
        Ok(hosted)
    }

    /// Its memory, and places for its actors on cores that are open: the application, its bytes, who sits where.
    fn make(&self, load: &Load, known: Option<&Measured>) -> Result<(App, u64, Vec<u32>), Refusal> {
        let (network, runtime) = (&load.network, &self.shared.runtime);
        let mut graph = match known {
            Some(known) => known.graph.clone(),
            None => first_guess(network),
        };
        graph.pins = load.pins.clone();
        let refused = |e| cannot_load(&load.class, e);
        let mut wanted = load.seats.clone();
        let (app, bytes, mut placement) = loop {
            let placed = self.seats_of_one(graph.clone(), known.is_some(), &load.beside)?;
            let wanted = wanted.take().filter(|seats| self.are_open(seats));
            let placement = wanted.unwrap_or(placed);
            let options = AppOptions {
                name: Some(load.name.clone()),
                placement: Some(placement.clone()),
                options: load.options.clone(),
                priority: load.priority,
                ..AppOptions::default()
            };
            let bytes = App::size(runtime, network, &options);
            let app = bytes.and_then(|b| Ok((App::load(runtime, network, &options)?, b)));
            match app {
                Ok((app, bytes)) => break (app, bytes, placement),
                // Somebody has asked for a core since it was placed there.
                Err(_) if !self.are_open(&placement) => {}
                Err(e) => return Err(refused(e)),
            }
        };
        app.promise(load.limits.rate.is_some() && load.counts);
        // That of the old one is handed on when it stands still.
        if let Some(core) = &load.core {
            let there = core.pass(&app).and_then(|()| {
                (0..network.actors() as u32).try_for_each(|a| app.move_actor(a, core.worker))
            });
            there.map_err(refused)?;
            placement.fill(core.worker);
        }
        Ok((app, bytes, placement))
    }

    /// From now on its end is told, too.
    pub(crate) fn tell_loaded(&self, hosted: &Hosted) {
        hosted.lineage.heard_of.store(true, Ordering::Relaxed);
        let what = format!("{} as {}", hosted.class, hosted.name);
        self.events().tell(What::Loaded, &hosted.name, what);
        if let Some(promised) = hosted.limits.rate.filter(|_| !hosted.counts) {
            let text = no_units(promised);
            self.events().tell(What::Uncounted, &hosted.name, text);
        }
    }

    /// The bytes that it would claim: state and channels. The errors of [`Host::load`].
    pub fn size(&self, load: &Load) -> Result<u64, Refusal> {
        let size = App::size(&self.shared.runtime, &load.network, &AppOptions::default());
        size.map_err(|e| cannot_load(&load.class, e))
    }

    pub fn start(&self, hosted: &Arc<Hosted>) -> Result<(), Refusal> {
        let _ = hosted.started.set(Instant::now());
        // In this order: it may have ended before we are back.
        self.set_state(hosted.number, State::Running);
        let started = match hosted.limits.any() {
            true => self.start_kept(hosted)?,
            false => hosted.app.start(),
        };
        if let Err(e) = started {
            let what = match (e.status, hosted.app.is_ending()) {
                (Status::STATE, true) => {
                    format!("{} has been unloaded before it began", hosted.name)
                }
                // Somebody else has let it begin.
                (Status::STATE, false) => return Ok(()),
                _ => {
                    self.set_state(hosted.number, State::Loaded);
                    format!("{} cannot be started: {e}", hosted.class)
                }
            };
            return Err(Refusal::new(Kind::Conflict, what));
        }
        self.shared.note(Note::Changed);
        Ok(())
    }

    /// Who looks after its limits starts it. Where it takes all cores from us at once, it does not take them from him.
    fn start_kept(&self, hosted: &Arc<Hosted>) -> Result<Result<(), levada_sys::Error>, Refusal> {
        let (shared, app) = (Arc::downgrade(&self.shared), Arc::downgrade(hosted));
        let (sender, receiver) = mpsc::channel();
        let keeper = std::thread::Builder::new().name("levada/keep".to_string());
        let kept = keeper.spawn(move || enforce::start(&shared, &app, &sender));
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
        // It is the network that is wrong.
        Status::ARGUMENT | Status::LAYOUT => Kind::Failed,
        _ => Kind::Limit,
    };
    Refusal::new(kind, format!("{class} cannot be loaded: {e}"))
}

/// There is one of this name.
pub(crate) fn taken(name: &str) -> Refusal {
    let what = format!("an application {name} is loaded already");
    Refusal::new(Kind::Conflict, what)
        .help("give this one another name (--name NAME, or name = \"NAME\" in a manifest), or unload that one")
}
