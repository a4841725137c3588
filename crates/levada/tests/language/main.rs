// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of what CAL programs do: the language, its libraries, and projects.

#[path = "../common/mod.rs"]
mod common;

mod cameras;
mod communication;
mod natives;
mod projects;
mod semantics;
mod std_units;
mod strings;
mod unspecified;
