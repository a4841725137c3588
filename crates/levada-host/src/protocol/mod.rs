// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What goes over the socket, as JSON. The OpenAPI document is made of these types.

pub mod lenient;
pub(crate) mod requests;
pub(crate) mod responses;
pub(crate) mod timeout;

pub use requests::*;
pub use responses::*;
