// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The HTTP interface over a Unix socket: routes, handlers, the server and its socket. What handlers do is in
//! `ops`.

pub mod body;
pub mod follow_slots;
mod handlers;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod path;
pub mod router;
pub mod serve;
pub mod socket;
