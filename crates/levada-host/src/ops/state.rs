// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state that all operations share: the host, the isolated applications, pending loads, reservations, and the
//! state folder.

use crate::app::AppEntry;
use crate::host::Host;
use crate::isolated::{Isolated, IsolatedSet, LaunchConfig, details_of};
use crate::model::app_state::State;
use crate::ops::pending;
use crate::ops::prepare_process::Preparing;
use crate::persist::store::{Restore, StateStore};
use crate::protocol::{Application, Details};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The state that all operations share.
pub struct ServerState {
    pub host: Host,
    /// The command `levada`, for preparation processes.
    pub command: PathBuf,
    pub started_at: Instant,
    /// The state folder, if there is one.
    pub store: Option<Arc<StateStore>>,
    /// What to restore of the previous host.
    pub restore: Restore,
    /// Held from the choice of a name until the host knows the application.
    pub name_lock: Mutex<()>,
    /// Loads and replacements in progress, and names to restore.
    pub pending: pending::PendingLoads,
    /// Running preparations.
    pub preparing: Preparing,
    /// Isolated applications, and how their processes are started.
    pub isolated: Arc<IsolatedSet>,
    pub launch: LaunchConfig,
    /// Cores that are reserved for other processes.
    pub reservations: crate::ops::reservations::CoreReservations,
    pub followers: crate::ops::event_followers::Followers,
}

impl ServerState {
    /// All visible applications: those of this process, and the isolated ones.
    fn visible(&self) -> (Vec<AppEntry>, Vec<Arc<Isolated>>) {
        self.pending.with_visibility(|sees| {
            let (mut here, mut isolated) = (self.host.list(), self.isolated.list());
            here.retain(|a| sees(&a.name, a.number));
            isolated.retain(|i| sees(&i.name, i.number));
            (here, isolated)
        })
    }

    /// All applications with their actors and channels, by number.
    pub(crate) fn details(&self) -> Vec<Details> {
        let (here, isolated) = self.visible();
        let mut all: Vec<Details> = here.iter().map(Details::from).collect();
        all.extend(details_of(&isolated));
        all.sort_by_key(|d| d.application.number);
        all
    }

    /// All applications.
    pub(crate) fn applications(&self) -> Vec<Application> {
        // An application that is being restored moves between the two lists; it is in one of these.
        let before = self.not_restored();
        let (here, isolated) = self.visible();
        let mut all: Vec<Application> = here.iter().map(Application::from).collect();
        all.extend(details_of(&isolated).map(|details| details.application));
        all.sort_by_key(|a| a.number);
        let mut left = self.not_restored();
        let gone = before
            .into_iter()
            .filter(|a| !left.iter().any(|l| l.name == a.name));
        left.extend(gone.collect::<Vec<_>>());
        left.sort_by(|a, b| a.name.cmp(&b.name));
        left.retain(|l| !all.iter().any(|a| a.name == l.name));
        all.extend(left);
        all
    }

    /// Applications of the previous host that this one does not restore.
    pub(crate) fn not_restored(&self) -> Vec<Application> {
        let Some(memory) = &self.store else {
            return Vec::new();
        };
        let told = |(name, why): (String, String)| Application {
            network: memory.read(&name).map_or(String::new(), |r| r.network),
            name,
            state: State::Quarantined,
            outcome: Some(why),
            ..Application::default()
        };
        memory.unrestored_reasons().into_iter().map(told).collect()
    }

    /// Number of applications that have not ended.
    pub fn live(&self) -> usize {
        let (here, isolated) = self.visible();
        let here = here.iter().filter(|a| a.hosted.is_some()).count();
        here + isolated.iter().filter(|i| i.lives()).count()
    }

    /// Stops all; returns the names of those with a last firing that has not ended within that time.
    pub fn stop_timeout(&self, timeout: Duration) -> Vec<String> {
        std::thread::scope(|scope| {
            let isolated = scope.spawn(|| self.isolated.stop_timeout(timeout));
            let mut lasting = self.host.stop_timeout(timeout);
            lasting.extend(isolated.join().unwrap_or_default());
            lasting
        })
    }
}
