// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host: runs many applications in one process, on one runtime, with one mapping of all their actors to cores.
//!
//! A [`Host`] owns a runtime and a monitor thread, which samples all applications, lets the mapper place their
//! actors as one graph, and detects ends. `levada run` is a host with one application. [`http`] serves the host's
//! interface over a Unix socket; [`client`] calls it.
//!
//! Folders, the lowest first; a folder uses only folders that stand before it:
//! `util`, `model` (plain data), `protocol` (JSON types), `client`, `persist` (state folder), `app` (one
//! application), `context` (registry and shared state), `limits`, `cores` (reservations, load of others), `mapping`
//! (the mapper's input), `admission`, `monitor`, `host` (facade), `lifecycle` (load, replace, pause, stop),
//! `isolated` (applications in child processes), `ops` (operations by name, without HTTP), `http`.
//! `scripts/layers` fails at a cycle.

mod admission;
mod app;
pub mod client;
mod context;
mod cores;
mod host;
pub mod http;
pub mod isolated;
mod lifecycle;
mod limits;
pub mod mapping;
pub mod model;
mod monitor;
pub mod ops;
pub mod persist;
pub mod protocol;
pub mod util;

pub use crate::app::{AppEntry, HostedApp};
pub use crate::host::{Host, HostOptions};
pub use crate::lifecycle::load::Load;
pub use crate::model::admission_report::{Admission, RateReservation, Verdict};
pub use crate::model::app_name::check_name;
pub use crate::model::app_state::State;
pub use crate::model::error::{Kind, Refusal};
pub use crate::model::events::{Event, EventKind, Events};
pub use crate::model::grown::GrownChannel;
pub use crate::model::limits::Limits;
pub use crate::model::outcome::{Ended, Outcome, action_of};
pub use crate::model::unconsumed::{Unconsumed, UnconsumedChannel};
pub use crate::persist::journal::signal_name;
pub use crate::util::launch_env::remember;
pub use crate::util::process::{has_ended, is_stopped, peer};
