// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mapper: a pure function from a machine, a measured actor graph and constraints to a
//! placement.
//!
//! The crate reads no files and no clock and has no access to a running machine. The same code
//! therefore places live and simulated applications, and equal input gives an equal placement.
//!
//! - [`map`] places a [`Mix`] of applications on a [`Machine`] by a [`Strategy`]; [`remap`] does so
//!   when part of the mix already runs; [`admit`] predicts the effect of a load on reserved rates.
//! - [`simulate`] predicts the rates that a placement gives.
//! - [`Balancer`] decides after each measurement of a running application whether another placement
//!   is worth the moves.
//! - [`io`] reads and writes descriptions, placements and Orcc's mapping files.
//!
//! Folders, each of which may use those before it: `model`, `place`, `sim`, `search`; `balance`
//! uses `model` and `place`; `io` uses `model`.

mod balance;
pub mod io;
mod model;
mod place;
pub mod random;
mod search;
mod sim;

pub use balance::{Balancer, Sample, Search, SearchResult};
pub use model::cost_profile::CostProfile;
pub use model::format::format_number;
pub use model::graph::{Graph, Link, Placement};
pub use model::machine::{Core, Costs, Machine, Scheduling};
pub use model::mix::{Actor, App, Channel, Mix, RATE_TOLERANCE, clamp_priority};
pub use model::problem::Problem;
pub use place::bounds::lower_bound;
pub use place::heuristics::{bottleneck, improve, place};
pub use search::admission::{Admission, PlacedMix, RateReservation, admit};
pub use search::fairness::gain;
pub use search::score::Score;
pub use search::strategy::{Strategy, load_to_lower_bound, map, remap};
#[cfg(test)]
use sim::simulate_until_settled;
pub use sim::{RATE_BURST_S, RATE_BURST_UNITS, Simulated, simulate, simulate_steady_state};

#[cfg(test)]
mod tests;
