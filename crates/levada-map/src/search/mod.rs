// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The choice of a placement: candidates from several strategies, compared by simulation; and the
//! admission test.

pub mod admission;
pub mod evaluate;
pub mod fairness;
pub mod parallel;
pub mod score;
pub mod screening;
pub mod strategy;
