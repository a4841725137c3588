// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The problem: machine, workload, actor graph, cost profiles, and errors.

pub mod cost_profile;
pub mod format;
pub mod graph;
pub mod machine;
pub mod mix;
pub mod problem;
