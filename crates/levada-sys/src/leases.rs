// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Leases: processes that share the cores of a machine (levada/lease.h).

use crate::{Error, Status, ffi};

/// This process gives leases to all of its user, until this goes.
#[derive(Debug)]
pub struct Leases(());

/// Of a core.
pub type LeaseCore = ffi::lvd_lease_core;

impl Leases {
    /// Before there is a runtime. `Status::STATE`: another process gives them; `Status::NOT_FOUND`: they are
    /// off.
    pub fn begin() -> Result<Leases, Error> {
        // SAFETY: no pointers.
        Status(unsafe { ffi::lvd_leases_begin() }).check()?;
        Ok(Leases(()))
    }

    /// Of all cores whose lease was ever taken; none: this process takes no part.
    pub fn read() -> Vec<LeaseCore> {
        let mut cores: Vec<LeaseCore> = Vec::new();
        loop {
            let room = cores.len() as u32;
            let mut count = room;
            // SAFETY: there is room for `count`.
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
        // SAFETY: no pointers.
        unsafe { ffi::lvd_leases_end() }
    }
}
