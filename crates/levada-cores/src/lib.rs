// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cores of this machine, and shields: programs alone on cores of their own.
//!
//! [`Topology`] says which cores there are; [`Load`] what is on them. A [`Shield`] takes cores away from
//! everything else, in the first way that works ([`Rung`]), and gives them back when it is lowered, or
//! when whoever holds it dies. What was before is in a ledger; [`shield::restore::settle`] makes it so again.
//!
//! All that changes something in the kernel goes through [`Kernel`], so tests run against a machine of
//! their own.

pub mod core_load;
pub mod cpu_set;
pub mod machine;
pub mod realtime;
pub mod shield;
#[cfg(test)]
mod test_machine;
pub mod topology;
pub mod undo_log;

pub use core_load::{Load, Sample, ThreadLoad};
pub use cpu_set::CoreSet;
pub use machine::{Kernel, Linux, Machine, Stat};
pub use shield::restore::Restored;
pub use shield::{Error, Method, Raised, Request, Shield};
pub use topology::{Core, Topology};
