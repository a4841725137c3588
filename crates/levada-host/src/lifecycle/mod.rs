// SPDX-License-Identifier: Apache-2.0 OR MIT

pub(crate) mod control;
pub(crate) mod initial_placement;
pub(crate) mod load;
pub(crate) mod next_version;
pub(crate) mod replace;
pub(crate) mod stop;
