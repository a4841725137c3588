// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host: many applications in one process, on one runtime, under one map.
//!
//! A [`Host`] owns a runtime, and a thread that watches: it takes samples of all applications, lets the
//! mapper place all their actors as one graph, and notices what has ended. `levada run` is a host with
//! one application. [`events`] tells what happens in it; [`api`] speaks of it over a socket, and [`client`]
//! to it.

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

pub use crate::app::{Hosted, Seen};
pub use crate::host::{Host, HostOptions};
pub use crate::lifecycle::load::Load;
pub use crate::model::admission_report::{Admission, Promise, Verdict};
pub use crate::model::app_name::check_name;
pub use crate::model::app_state::State;
pub use crate::model::error::{Kind, Refusal};
pub use crate::model::events::{Event, Events, What};
pub use crate::model::limits::Limits;
pub use crate::model::outcome::{Ended, Outcome, action_of};
pub use crate::persist::journal::signal_name;
pub use crate::util::launch_env::remember;
pub use crate::util::process::{has_ended, is_stopped, peer};
