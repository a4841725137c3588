// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Safe bindings of liblevada: a [`Runtime`], the [`Network`] of a shared object, and the [`App`]s
//! loaded from it.
//!
//! This is the one narrow place between the tools (Rust) and the runtime (C17). It adds lifetimes
//! and names, and no behaviour.

pub mod ffi;
pub mod leases;
pub mod machine;
pub mod mcapi;
pub mod served;

mod app;
mod convert;
mod counters;
mod fault;
mod load;
mod network;
mod object_in_use;
mod program;
mod runtime;
mod status;
mod versions;

pub use app::App;
pub use counters::{ActorCounters, ChannelCounters, Counters, WorkerCounters};
pub use fault::Fault;
pub use load::AppOptions;
pub use network::{ActorShape, NETWORK_SYMBOL, Network};
pub use runtime::{REALTIME_MAX, Runtime, RuntimeOptions, Schedule, realtime_allowed};
pub use status::{Error, Status};
