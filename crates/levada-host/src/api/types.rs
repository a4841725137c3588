// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What goes over the socket, as JSON. The OpenAPI document is made of these types.

mod asked;
mod seen;
mod told;

pub use asked::*;
pub use seen::counters;
pub use told::*;
