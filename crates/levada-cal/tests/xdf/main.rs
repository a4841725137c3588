// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of networks that are elaborated from files: what a correct one becomes, and what is reported about each wrong
//! one.

mod elaborate;
mod errors;
mod files;
mod parameters;
mod rates;
mod support;
