// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Code that several commands share.

#[macro_use]
pub mod output;

pub mod artifact;
pub mod compile_progress;
pub mod core_time;
pub mod io_options;
pub mod load_progress;
pub mod native_hang;
pub mod prepare_cache;
pub mod program;
pub mod progress;
pub mod projects;
pub mod realtime;
pub mod resolve;
pub mod run_summary;
pub mod runnable;
pub mod sd_notify;
pub mod signals;
pub mod sources;
pub mod status_line;
pub mod std_streams;
pub mod trial_open;
