// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of hosts: `levada host`, the commands that talk to it, and its HTTP interface.

#[path = "../common/mod.rs"]
mod common;

mod admission;
mod applications;
mod blocked_natives;
mod clients;
mod crash_recovery;
mod drain;
mod events;
mod exclusive;
mod exit_statuses;
mod fuzz;
mod growth;
mod hysteresis;
mod idle;
mod isolated;
mod lateness;
mod leases;
mod limits;
mod load;
mod manifests;
mod many;
mod openapi;
mod other_load;
mod output_limit;
mod pending;
mod placement;
mod preemption;
mod program_stop;
mod programs;
mod quarantine;
mod rates;
mod realtime;
mod replace;
mod replace_drain;
mod service;
mod starvation;
mod state_folder;
mod top;
mod unconsumed;
