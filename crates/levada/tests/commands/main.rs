// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the commands that need no host.

#[path = "../common/mod.rs"]
mod common;

mod doctor_pid;
mod errors;
mod explain;
mod fmt;
mod map;
mod options;
mod play;
mod prepare_cache;
mod priorities;
mod schedule;
mod success;
