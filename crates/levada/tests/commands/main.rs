// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the commands that need no host.

#[path = "../common/mod.rs"]
mod common;

mod build;
mod c_compiler;
mod check;
mod compile_growth;
mod deadlocks;
mod doctor;
mod doctor_pid;
mod explain;
mod faults;
mod fmt;
mod graph;
mod map;
mod named_files;
mod options;
mod output_files;
mod play;
mod prepare_cache;
mod priorities;
mod run;
mod schedule;
mod streams;
mod unconsumed;
mod usage;
