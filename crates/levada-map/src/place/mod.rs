// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From a graph to a placement: heuristics, exhaustive search, and bounds.

pub mod bounds;
pub mod exhaustive;
pub mod heuristics;
pub mod loads;
