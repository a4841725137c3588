// SPDX-License-Identifier: Apache-2.0 OR MIT

pub(crate) mod candidate;
pub(crate) mod check;
pub(crate) mod simulation;
