// SPDX-License-Identifier: Apache-2.0 OR MIT

pub mod body;
pub mod follow_slots;
mod handlers;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod path;
pub mod router;
pub mod serve;
pub mod socket;
