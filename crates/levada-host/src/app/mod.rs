// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An application of the host: what is known of it as long as it lives, its state, and its place in the table.

pub(crate) mod control_state;
pub(crate) mod idle;
pub(crate) mod output_file;
pub(crate) mod placement;
pub(crate) mod profile;
pub(crate) mod recent;
pub(crate) mod token_bucket;
pub(crate) mod versions;

use crate::app::control_state::Told;
use crate::app::output_file::Target;
use crate::app::placement::Seats;
use crate::app::profile::Measured;
use crate::app::recent::Lately;
use crate::app::token_bucket::left;
use crate::app::versions::Lineage;
use crate::model::admission_report::Admission;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::limits::Limits;
use crate::model::outcome::Ended;
use crate::util::c_stdio::Asked;
use crate::util::lock::lock;
use levada_sys::App;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::{Instant, SystemTime};

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
    pub seats: Seats,
    /// The worker whose core it has to itself.
    pub exclusive: Option<u32>,
    /// What an earlier run has measured, by which it was placed.
    pub(crate) known: Option<Measured>,
    /// What its load does to promises, where there were any.
    pub admission: Option<Admission>,
    /// What its natives were given.
    pub(crate) options: Vec<(String, String)>,
    /// Where it writes, if that is a file.
    pub(crate) out: Option<Target>,
    pub limits: Limits,
    /// Something in it may count what it does.
    pub(crate) counts: bool,
    pub(crate) lineage: Lineage,
    pub(crate) told: Told,
    pub(crate) lately: Lately,
    pub(crate) started: OnceLock<Instant>,
    /// Since when what it has printed is written, as it has ended.
    pub(crate) printed: OnceLock<Asked>,
}

impl Hosted {
    /// How often one of its actors was moved by the mapper.
    pub fn moves(&self) -> usize {
        self.lately.moves.load(Ordering::Relaxed)
    }

    pub(crate) fn count_move(&self) {
        self.lately.moves.fetch_add(1, Ordering::Relaxed);
        let done = self.done();
        let mut moved = lock(&self.lately.moved);
        *moved = Some((Instant::now(), done));
    }

    /// What has been counted of it, and what that is called; by the version before it, as long as it has counted nothing
    /// itself.
    pub(crate) fn progress(&self) -> Option<(String, u64)> {
        let before = || lock(&self.lineage.inherited).clone();
        self.app.progress().or_else(before)
    }

    /// Units that it has done itself, so without those of the versions before it.
    pub(crate) fn done(&self) -> f64 {
        let counted = self.app.progress();
        counted.map_or(0.0, |(_, counted)| self.lineage.beyond(counted) as f64)
    }

    /// It goes on from where `old` has counted to, with what that has left of its limits.
    pub(crate) fn counts_on(&self, old: &Hosted) {
        *lock(&self.lineage.inherited) = old.progress();
        *lock(&self.lineage.left) = left(old);
    }

    /// When its actors came to where they are, if any was moved, and what it had done until then.
    pub fn moved(&self) -> Option<(Instant, f64)> {
        *lock(&self.lately.moved)
    }

    /// The rate that it is promised. What counts nothing runs as if without, and that was said when it was loaded.
    pub(crate) fn promised(&self) -> Option<f64> {
        self.limits.rate.filter(|_| self.counts)
    }

    pub fn is_promised(&self) -> bool {
        self.promised().is_some()
    }

    /// Whether it does next to nothing, so that it stays where it is. What is promised something has its place kept where
    /// it can have that.
    pub(crate) fn rests(&self) -> bool {
        !self.is_promised() && lock(&self.lately.resting).is()
    }

    /// The cores that it takes, where something outside says how fast it is: a clock, its input, who takes its output.
    pub(crate) fn paced(&self) -> Option<f64> {
        lock(&self.lately.resting).paced().map(|takes| takes / 1e9)
    }

    /// What its natives were told.
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Units a second lately, of what is promised a rate.
    pub fn pace(&self) -> Option<f64> {
        *lock(&self.lately.pace)
    }

    pub fn is_late(&self) -> bool {
        self.lately.is_late.load(Ordering::Relaxed)
    }

    /// It may have been loaded paused.
    pub(crate) fn has_begun(&self) -> bool {
        self.started.get().is_some()
    }

    /// Who waits for whom, in words.
    pub fn why(&self) -> String {
        // Who pauses it has that in hand as long as a firing lasts: nobody who only asks waits for it.
        match self.told.is_held() {
            Some(true) => format!("{} waits until its limits let it go on\n", self.name),
            _ => self.app.why(),
        }
    }

    /// Whether somebody has it taken away, at once or before it has begun.
    pub(crate) fn goes(&self) -> bool {
        self.told.goes.load(Ordering::Acquire)
    }

    /// Takes it in hand.
    pub(crate) fn in_hand(&self, until: Instant) -> Result<MutexGuard<'_, ()>, Refusal> {
        self.told.in_hand(until).ok_or_else(|| {
            let what = format!("somebody else pauses {}, and waits for a firing", self.name);
            Refusal::new(Kind::Timeout, what).help("try again, or wait longer")
        })
    }

    /// Whether its limits hold it, which nobody changes meanwhile.
    pub(crate) fn held(&self) -> MutexGuard<'_, bool> {
        self.told.held()
    }

    pub(crate) fn seconds(&self) -> f64 {
        let started = self.started.get();
        started.map_or(0.0, |at| at.elapsed().as_secs_f64())
    }
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
    /// Whose end it waits for, to go on from there.
    pub after: Option<u64>,
    pub state: State,
    /// Until it has ended.
    pub hosted: Option<Arc<Hosted>>,
    /// From then on.
    pub ended: Option<Arc<Ended>>,
}

impl Seen {
    /// As it is told: what the runtime knows already counts, whether or not the table has heard of it.
    pub(crate) fn told(&self) -> Seen {
        let ending = self.hosted.as_ref().is_some_and(|h| h.app.is_ending());
        Seen {
            state: if ending { State::Ending } else { self.state },
            ..self.clone()
        }
    }
}
