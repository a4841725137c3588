// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the whole crate.

mod balance;
mod channel_visibility;
mod cost_profile;
mod hysteresis;
mod io;
pub(crate) mod mix;
pub(crate) mod place;
pub(crate) mod random_mixes;
mod rate_reservation;
mod screening;
