// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The choice among candidate placements by simulation, and what rests on it.

pub mod admission;
pub mod evaluate;
pub mod fairness;
pub mod parallel;
pub mod score;
pub mod screening;
pub mod strategy;
