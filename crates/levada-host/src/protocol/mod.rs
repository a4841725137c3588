// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JSON types of the HTTP interface. The OpenAPI document is generated from them.

pub mod lenient;
pub(crate) mod requests;
pub(crate) mod responses;
pub(crate) mod timeout;
pub(crate) mod version;

pub use requests::*;
pub use responses::*;
