// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is mapped and onto what: the machine, the mix of applications, and their graph.

pub mod cost_profile;
pub mod format;
pub mod graph;
pub mod machine;
pub mod mix;
pub mod problem;
