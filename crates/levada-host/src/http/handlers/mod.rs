// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The handlers of requests, by path. A handler reads the request, calls `ops`, and writes the response.

pub(crate) mod applications;
pub(crate) mod control;
pub(crate) mod events;
pub(crate) mod neighbors;
pub(crate) mod observe;
pub(crate) mod reservations;
