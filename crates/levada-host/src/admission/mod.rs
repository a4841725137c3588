// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Admission check of loads against reserved rates.

pub(crate) mod candidate;
pub(crate) mod check;
pub(crate) mod simulation;
