// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The life of an application in this process: load, replace, pause, stop. All are `impl Host` blocks.

pub(crate) mod control;
pub(crate) mod initial_placement;
pub(crate) mod load;
pub(crate) mod next_version;
pub(crate) mod replace;
pub(crate) mod stop;
