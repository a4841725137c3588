// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What survives the host: the state folder, the start journal, crash records, and partial outputs.

pub mod crash_record;
pub(crate) mod journal;
pub(crate) mod partial_outputs;
pub mod store;
