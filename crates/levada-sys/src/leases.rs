// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Core leases, by which processes share the cores of a machine (`levada/lease.h`).

use crate::{Error, Status, ffi};

/// While this exists, the process grants leases to all processes of its user.
#[derive(Debug)]
pub struct Leases(());

/// The lease of one core: its holder and its counters.
pub type LeaseCore = ffi::lvd_lease_core;

impl Leases {
    /// Begins to grant leases. Call this before a runtime is created. [`Status::STATE`]: another process grants them;
    /// [`Status::NOT_FOUND`]: leases are off.
    pub fn begin() -> Result<Leases, Error> {
        // SAFETY: no memory is passed.
        Status(unsafe { ffi::lvd_leases_begin() }).check()?;
        Ok(Leases(()))
    }

    /// The leases of all cores with a lease that was ever held; empty if this process does not take part.
    pub fn read() -> Vec<LeaseCore> {
        let mut cores: Vec<LeaseCore> = Vec::new();
        loop {
            let room = cores.len() as u32;
            let mut count = room;
            // SAFETY: `cores` has room for `count` records.
            let status = Status(unsafe { ffi::lvd_leases_read(cores.as_mut_ptr(), &mut count) });
            if status != Status::OK {
                return Vec::new();
            }
            let fits = count <= room;
            cores.resize(count as usize, LeaseCore::default());
            if fits {
                return cores;
            }
        }
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        // SAFETY: no memory is passed.
        unsafe { ffi::lvd_leases_end() }
    }
}
