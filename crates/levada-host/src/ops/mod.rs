// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations by the name of an application, wherever it runs. No HTTP.

pub(crate) mod convert;
pub mod event_followers;
pub mod inspect;
pub(crate) mod leases;
pub(crate) mod load;
pub(crate) mod memory_limit;
pub(crate) mod move_actor;
pub(crate) mod names;
pub(crate) mod output_conflicts;
pub(crate) mod pause;
pub mod pending;
pub mod prepare_process;
pub(crate) mod ready;
pub(crate) mod replace;
pub mod reservations;
pub(crate) mod restore;
pub(crate) mod sharing_report;
pub mod state;
pub(crate) mod unload;
pub(crate) mod workers;
