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
//! - [`text`] has the files: descriptions, placements, Orcc's mappings.

mod admit;
mod alike;
mod balance;
mod course;
mod exact;
mod graph;
mod judge;
mod left;
mod load;
mod looking;
mod machine;
mod mix;
mod number;
mod place;
pub mod random;
mod reach;
mod side_by_side;
mod sim;
mod strategy;
mod swings;
pub mod text;

pub use admit::{Admission, Promise, Scene, admit};
pub use alike::gain;
pub use balance::{Balancer, Found, Sample, Search};
pub use course::Course;
pub use graph::{Graph, Link};
pub use judge::{KEPT, Score};
pub use machine::{Core, Costs, Machine};
pub use mix::{Actor, App, Channel, Mix, Problem, told_apart};
pub use number::shown;
pub use place::{Placement, bottleneck, improve, lower_bound, place};
#[cfg(test)]
use sim::simulate_until_settled;
pub use sim::{SAVED, SAVED_UNITS, Scheduling, Simulated, expected, simulate};
pub use strategy::{Strategy, busiest_to_bound, map, remap};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_course;
#[cfg(test)]
mod tests_mix;
#[cfg(test)]
mod tests_promise;
#[cfg(test)]
mod tests_random;
#[cfg(test)]
mod tests_ranked;
#[cfg(test)]
mod tests_seen;
#[cfg(test)]
mod tests_swing;
