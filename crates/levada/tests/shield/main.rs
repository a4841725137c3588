// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of shields: `levada shield`, and the shields of the C library.

#[path = "../common/mod.rs"]
mod common;

mod command;
mod host;
mod intruders;
mod library;
mod restore;
mod several;
