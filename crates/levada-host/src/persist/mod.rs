// SPDX-License-Identifier: Apache-2.0 OR MIT

pub mod crash_record;
pub(crate) mod journal;
pub(crate) mod partial_outputs;
pub mod store;
