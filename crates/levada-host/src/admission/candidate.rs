// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The data of an admission test: what is to be loaded, and what is there.

use crate::app::Hosted;
use crate::app::profile::Measured;
use crate::mapping::weights::unmeasured;
use crate::model::limits::Limits;
use levada_map::App;
use levada_sys::Network;

/// What is to be loaded.
#[derive(Clone, Copy)]
pub struct New<'a> {
    pub name: &'a str,
    pub network: &'a Network,
    pub known: Option<&'a Measured>,
    pub pins: &'a [Option<u32>],
    pub priority: i32,
    pub limits: Limits,
    /// Something in it may count what it does.
    pub counts: bool,
    /// Also where that breaks a promise.
    pub anyway: bool,
    /// The worker whose core it is to have to itself.
    pub exclusive: Option<u32>,
    /// In whose place it comes.
    pub old: Option<&'a Hosted>,
}

/// An application that shares the cores.
pub struct There {
    pub app: App,
    /// Where its actors are.
    pub seats: Vec<Option<u32>>,
    /// When those that come are there, it is not any more.
    pub goes: bool,
}

/// One that is to, and was measured.
pub struct Coming {
    pub app: App,
    pub exclusive: Option<u32>,
    pub anyway: bool,
}

impl Coming {
    pub fn of(new: &New) -> Coming {
        let (limits, priority) = (new.limits, new.priority);
        Coming {
            app: unmeasured(new.name, new.network, new.known, new.pins, limits, priority),
            exclusive: new.exclusive,
            anyway: new.anyway,
        }
    }
}
