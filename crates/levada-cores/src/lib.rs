// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cores of this machine, and shields: programs alone on cores of their own.
//!
//! [`Topology`] says which cores there are; [`Load`] what is on them. A [`Shield`] takes cores away from
//! everything else, in the first way that works ([`Rung`]), and gives them back when it is lowered, or
//! when whoever holds it dies. What was before is in a ledger; [`restore::settle`] makes it so again.
//!
//! All that changes something in the kernel goes through [`Kernel`], so tests run against a machine of
//! their own.

#[cfg(test)]
mod fake;
pub mod given;
pub mod groups;
pub mod guard;
pub mod knobs;
pub mod ledger;
pub mod load;
pub mod machine;
pub mod realtime;
pub mod record;
pub mod restore;
pub mod set;
pub mod shield;
pub mod sweep;
pub mod topology;

pub use load::{Load, Look, Work};
pub use machine::{Kernel, Linux, Machine, Stat};
pub use restore::Restored;
pub use set::CoreSet;
pub use shield::{Error, Raised, Request, Rung, Shield};
pub use topology::{Core, Topology};
