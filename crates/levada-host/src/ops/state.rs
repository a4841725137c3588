// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the handlers of requests share: the host, what stands beside it, and all of its applications, whether they are
//! in its process or in one of their own.

use crate::app::Seen;
use crate::host::Host;
use crate::isolated::{AllIsolated, Isolated, Starts, details_of};
use crate::model::app_state::State;
use crate::ops::pending;
use crate::ops::prepare_process::Preparing;
use crate::persist::store::{Memory, Restore};
use crate::protocol::{Application, Details};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the handlers share.
pub struct Served {
    pub host: Host,
    /// The command `levada`, which prepares what is to be loaded.
    pub command: PathBuf,
    pub began: Instant,
    /// Where it remembers what is loaded, if it does.
    pub memory: Option<Arc<Memory>>,
    /// Load what ran when the host before this one ended.
    pub restore: Restore,
    /// Held from the choice of a name until the host knows it.
    pub naming: Mutex<()>,
    /// Who is loaded or replaced now, or is to be loaded again.
    pub coming: pending::AllComing,
    /// What prepares loads now.
    pub preparing: Preparing,
    /// Those that have a process of their own, and how such a process is started.
    pub isolated: Arc<AllIsolated>,
    pub starts: Starts,
    /// Cores that are somebody else's for a while.
    pub away: crate::ops::reservations::AllAway,
    pub followers: crate::ops::event_followers::Followers,
}

impl Served {
    /// All that are there, of several that are loaded together all or none; those of this process, and the isolated ones.
    fn seen(&self) -> (Vec<Seen>, Vec<Arc<Isolated>>) {
        self.coming.seen(|sees| {
            let (mut here, mut isolated) = (self.host.list(), self.isolated.list());
            here.retain(|a| sees(&a.name, a.number));
            isolated.retain(|i| sees(&i.name, i.number));
            (here, isolated)
        })
    }

    /// All applications with their actors and channels, by their numbers.
    pub(crate) fn details(&self) -> Vec<Details> {
        let (here, isolated) = self.seen();
        let mut all: Vec<Details> = here.iter().map(Details::from).collect();
        all.extend(details_of(&isolated));
        all.sort_by_key(|d| d.application.number);
        all
    }

    /// All applications, in short.
    pub(crate) fn applications(&self) -> Vec<Application> {
        // One that is restored at this moment goes from one list to the other, or back: it is in one of these.
        let before = self.left_out();
        let (here, isolated) = self.seen();
        let mut all: Vec<Application> = here.iter().map(Application::from).collect();
        all.extend(details_of(&isolated).map(|details| details.application));
        all.sort_by_key(|a| a.number);
        let mut left = self.left_out();
        let gone = before
            .into_iter()
            .filter(|a| !left.iter().any(|l| l.name == a.name));
        left.extend(gone.collect::<Vec<_>>());
        left.sort_by(|a, b| a.name.cmp(&b.name));
        left.retain(|l| !all.iter().any(|a| a.name == l.name));
        all.extend(left);
        all
    }

    /// What the host before this one had loaded, and this one does not load again.
    pub(crate) fn left_out(&self) -> Vec<Application> {
        let Some(memory) = &self.memory else {
            return Vec::new();
        };
        let told = |(name, why): (String, String)| Application {
            network: memory.read(&name).map_or(String::new(), |r| r.network),
            name,
            state: State::Held,
            outcome: Some(why),
            ..Application::default()
        };
        memory.left_out().into_iter().map(told).collect()
    }

    /// How many have not ended.
    pub fn live(&self) -> usize {
        let (here, isolated) = self.seen();
        let here = here.iter().filter(|a| a.hosted.is_some()).count();
        here + isolated.iter().filter(|i| i.lives()).count()
    }

    /// Stops all; the names of those whose last firing has not ended within that time.
    pub fn stop_within(&self, within: Duration) -> Vec<String> {
        std::thread::scope(|scope| {
            let isolated = scope.spawn(|| self.isolated.stop_within(within));
            let mut lasting = self.host.stop_within(within);
            lasting.extend(isolated.join().unwrap_or_default());
            lasting
        })
    }
}
