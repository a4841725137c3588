// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cores of this machine, and shields: CPU cores reserved for one program.
//!
//! [`Topology`] lists the cores and [`Load`] measures their load. A [`Shield`] moves everything
//! else away from its cores, by the first [`Method`] that works on this machine, and undoes its
//! changes when it is lowered or its holder dies. The state before is in an undo log
//! ([`undo_log`]); [`shield::restore::restore_shield`] applies it.
//!
//! All changes of kernel state go through the trait [`Kernel`], so that tests run against a
//! simulated machine.

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
