// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands that need no folder of their own, one file each.

pub mod build;
pub mod check;
pub mod doctor;
pub mod fmt;
pub mod graph;
pub mod host;
pub mod manual;
pub mod map;
pub mod mcapi;
pub mod play;
pub mod prepare;
pub mod run;
pub mod translate;
