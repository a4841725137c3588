// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mapper: a pure function from cores, a measured graph and wishes to a placement.
//!
//! It reads no file and no clock and knows nothing of a running machine, so the same code places live
//! applications and simulated ones, and the same input always gives the same placement.
//!
//! - [`map`] puts a [`Mix`] of applications on a [`Machine`] by a [`Strategy`]; [`remap`] does so when
//!   some run already; [`admit`] says what a load would do to the promises.
//! - [`simulate`] says which rates a placement gives.
//! - [`Balancer`] decides, from one measurement of a running application to the next, whether another
//!   placement is worth the move.
//! - [`io`] has the files: descriptions, placements, Orcc's mappings.

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
pub use search::admission::{Admission, PlacedMix, Promise, admit};
pub use search::fairness::gain;
pub use search::score::Score;
pub use search::strategy::{Strategy, load_to_lower_bound, map, remap};
#[cfg(test)]
use sim::simulate_until_settled;
pub use sim::{RATE_BURST_S, RATE_BURST_UNITS, Simulated, expected, simulate};

#[cfg(test)]
mod tests;
