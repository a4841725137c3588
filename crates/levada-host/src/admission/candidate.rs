// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Data of an admission check: the applications to be loaded and those that are already loaded.

use crate::app::HostedApp;
use crate::app::profile::Profile;
use crate::mapping::weights::app_from_profile;
use crate::model::limits::Limits;
use levada_map::App;
use levada_sys::Network;

/// An application to be loaded.
#[derive(Clone, Copy)]
pub struct LoadCandidate<'a> {
    pub name: &'a str,
    pub network: &'a Network,
    pub profile: Option<&'a Profile>,
    pub pins: &'a [Option<u32>],
    pub priority: i32,
    pub limits: Limits,
    /// Whether it contains a native that can report progress.
    pub can_count: bool,
    /// Load it even if that breaks a reserved rate.
    pub force: bool,
    /// The worker with the core that is to be reserved for it.
    pub exclusive: Option<u32>,
    /// The application that it replaces.
    pub old: Option<&'a HostedApp>,
}

/// An application that shares the cores.
pub struct Resident {
    pub app: App,
    /// The workers of its actors.
    pub workers: Vec<Option<u32>>,
    /// It is replaced by one of the candidates.
    pub is_replaced: bool,
}

/// An application to be loaded that has a profile.
pub struct Candidate {
    pub app: App,
    pub exclusive: Option<u32>,
    pub force: bool,
}

impl Candidate {
    pub fn of(new: &LoadCandidate) -> Candidate {
        let (limits, priority) = (new.limits, new.priority);
        Candidate {
            app: app_from_profile(
                new.name,
                new.network,
                new.profile,
                new.pins,
                limits,
                priority,
            ),
            exclusive: new.exclusive,
            force: new.force,
        }
    }
}
