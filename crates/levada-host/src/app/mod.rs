// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One application of the host: what is known of it while it lives ([`HostedApp`]), and its entry in the registry
//! ([`AppEntry`]).

pub(crate) mod control_state;
pub(crate) mod idle;
pub(crate) mod output_file;
pub(crate) mod placement;
pub(crate) mod profile;
pub(crate) mod recent;
pub(crate) mod token_bucket;
pub(crate) mod versions;

use crate::app::control_state::ControlState;
use crate::app::output_file::OutputFile;
use crate::app::placement::ActorPlacement;
use crate::app::profile::Profile;
use crate::app::recent::RecentStats;
use crate::app::token_bucket::credits_of;
use crate::app::versions::Versions;
use crate::model::admission_report::Admission;
use crate::model::app_state::State;
use crate::model::error::{Kind, Refusal};
use crate::model::events::{EventKind, Events};
use crate::model::grown::{self, GrownChannel};
use crate::model::limits::Limits;
use crate::model::outcome::Ended;
use crate::util::c_stdio::FlushRequest;
use crate::util::lock::lock;
use levada_sys::{App, ChannelCounters, Counters};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::{Instant, SystemTime};

/// A loaded application.
pub struct HostedApp {
    pub number: u64,
    pub name: String,
    pub network_class: String,
    pub priority: i32,
    pub app: App,
    /// Memory for state and channels, in bytes.
    pub bytes: u64,
    pub loaded: SystemTime,
    pub(crate) object: Option<PathBuf>,
    pub placement: ActorPlacement,
    /// The worker with the core that is reserved for it.
    pub exclusive: Option<u32>,
    /// The profile of an earlier run, by which it was placed.
    pub(crate) profile: Option<Profile>,
    /// The result of its admission check, if any rate was reserved.
    pub admission: Option<Admission>,
    /// Options of its natives.
    pub(crate) options: Vec<(String, String)>,
    /// The file that it writes, if it is a regular file.
    pub(crate) output_file: Option<OutputFile>,
    pub limits: Limits,
    /// Whether it contains a native that can report progress.
    pub(crate) can_count: bool,
    pub(crate) versions: Versions,
    pub(crate) control: ControlState,
    pub(crate) recent: RecentStats,
    pub(crate) started: OnceLock<Instant>,
    /// The sum of its channels' capacities at the last event about their growth; 0: there was none.
    pub(crate) grown_to: AtomicU64,
    /// The flush of its output, requested when it has ended.
    pub(crate) flush_request: OnceLock<FlushRequest>,
}

impl HostedApp {
    /// Number of times that the mapper has moved one of its actors.
    pub fn moves(&self) -> usize {
        self.recent.moves.load(Ordering::Relaxed)
    }

    /// Emits an event if channels have grown since the last one.
    pub(crate) fn emit_growth(&self, counters: &Counters, events: &Events) {
        let sum = |of: fn(&ChannelCounters) -> u32| {
            let all = counters.channels.iter().map(|c| u64::from(of(c)));
            all.sum::<u64>()
        };
        let capacity = sum(|c| c.capacity);
        let announced = self.grown_to.fetch_max(capacity, Ordering::Relaxed);
        if capacity <= announced.max(sum(|c| c.loaded_capacity)) {
            return;
        }
        let grown = GrownChannel::find(&self.app.network().describe(), counters);
        let text = grown::text(&grown).unwrap_or_default();
        events.emit(EventKind::Grown, &self.name, text);
    }

    pub(crate) fn count_move(&self) {
        self.recent.moves.fetch_add(1, Ordering::Relaxed);
        let done = self.own_units();
        let mut moved = lock(&self.recent.last_move);
        *moved = Some((Instant::now(), done));
    }

    /// Reported progress: unit and count; that of the previous version until it has counted something itself.
    pub(crate) fn progress(&self) -> Option<(String, u64)> {
        let before = || lock(&self.versions.inherited_count).clone();
        self.app.progress().or_else(before)
    }

    /// Units done by this version, without those of previous versions.
    pub(crate) fn own_units(&self) -> f64 {
        let counted = self.app.progress();
        counted.map_or(0.0, |(_, counted)| self.versions.own_count(counted) as f64)
    }

    /// Continues the count and the limit credit of `old`.
    pub(crate) fn continue_counters(&self, old: &HostedApp) {
        *lock(&self.versions.inherited_count) = old.progress();
        *lock(&self.versions.inherited_credits) = credits_of(old);
    }

    /// Time of the last move of an actor, and the units done until then; none if no actor was moved.
    pub fn last_move(&self) -> Option<(Instant, f64)> {
        *lock(&self.recent.last_move)
    }

    /// The reserved rate; none if the application counts no units, which was reported when it was loaded.
    pub(crate) fn reserved_rate(&self) -> Option<f64> {
        self.limits.rate.filter(|_| self.can_count)
    }

    pub fn has_reserved_rate(&self) -> bool {
        self.reserved_rate().is_some()
    }

    /// Whether it is idle, so that it keeps its place. An application with a reserved rate never is: its place must
    /// allow that rate.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_reserved_rate() && lock(&self.recent.idle).is_idle()
    }

    /// CPU demand in cores, if the application is paced from outside: by a clock, its input, or the consumer of its
    /// output.
    pub(crate) fn paced_demand(&self) -> Option<f64> {
        lock(&self.recent.idle)
            .paced_demand()
            .map(|takes| takes / 1e9)
    }

    /// An option of its natives.
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Recent rate in units per second, if a rate is reserved.
    pub fn measured_rate(&self) -> Option<f64> {
        *lock(&self.recent.measured_rate)
    }

    pub fn is_rate_missed(&self) -> bool {
        self.recent.rate_missed.load(Ordering::Relaxed)
    }

    /// False for an application that was loaded paused.
    pub(crate) fn has_started(&self) -> bool {
        self.started.get().is_some()
    }

    /// The wait report, as text.
    pub fn wait_report(&self) -> String {
        // A pause holds the lock as long as a firing runs; a query does not wait for it.
        match self.control.try_is_limited() {
            Some(true) => format!(
                "{} waits until its limits permit it to continue\n",
                self.name
            ),
            _ => self.app.wait_report(),
        }
    }

    /// Whether it is being unloaded immediately, or before it has started.
    pub(crate) fn is_unloading(&self) -> bool {
        self.control.unloading.load(Ordering::Acquire)
    }

    /// Takes the control lock.
    pub(crate) fn lock_control(&self, until: Instant) -> Result<MutexGuard<'_, ()>, Refusal> {
        self.control.lock_control(until).ok_or_else(|| {
            let what = format!(
                "another request pauses {} and waits for a firing to end",
                self.name
            );
            Refusal::new(Kind::Timeout, what).help("try again, or wait longer with --timeout")
        })
    }

    /// Locks the flag that says whether a limit pauses it.
    pub(crate) fn lock_limited(&self) -> MutexGuard<'_, bool> {
        self.control.lock_limited()
    }

    pub(crate) fn uptime_s(&self) -> f64 {
        let started = self.started.get();
        started.map_or(0.0, |at| at.elapsed().as_secs_f64())
    }
}

/// An entry of the registry.
#[derive(Clone)]
pub struct AppEntry {
    pub number: u64,
    pub name: String,
    pub network_class: String,
    pub priority: i32,
    pub bytes: u64,
    pub loaded: SystemTime,
    /// The number of the previous version; it waits for the end of that one.
    pub successor_of: Option<u64>,
    pub state: State,
    /// Until it has ended.
    pub hosted: Option<Arc<HostedApp>>,
    /// After it has ended.
    pub ended: Option<Arc<Ended>>,
}

impl AppEntry {
    /// A copy with the current state: an end that the runtime knows already counts, even if the registry does not know
    /// it yet.
    pub(crate) fn snapshot(&self) -> AppEntry {
        let ending = self.hosted.as_ref().is_some_and(|h| h.app.is_ending());
        AppEntry {
            state: if ending { State::Ending } else { self.state },
            ..self.clone()
        }
    }
}
