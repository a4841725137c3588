// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plain data that all other folders use.

pub(crate) mod admission_report;
pub(crate) mod app_name;
pub(crate) mod app_state;
pub(crate) mod error;
pub mod events;
pub(crate) mod grown;
pub(crate) mod limits;
pub(crate) mod outcome;
pub mod unconsumed;
