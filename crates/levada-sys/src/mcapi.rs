// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The MCAPI domains of this machine, seen from outside (`<levada/mcapi_observe.h>`).

use crate::{Error, Status, ffi};

pub type Node = ffi::lvd_mcapi_node_info;
pub type Endpoint = ffi::lvd_mcapi_endpoint_info;
pub type Cleared = ffi::lvd_mcapi_cleanup_result;

/// A domain as it was at one moment.
#[derive(Clone, Debug)]
pub struct Domain {
    pub number: u32,
    /// Its name: what carries its messages and channels.
    pub transport: &'static str,
    pub processes: u32,
    /// Of those, how many are not alive.
    pub dead: u32,
    pub nodes: Vec<Node>,
    pub endpoints: Vec<Endpoint>,
}

/// The numbers of the domains that have names here, in order.
pub fn domains() -> Result<Vec<u32>, Error> {
    let mut numbers = vec![0; 256];
    loop {
        let (room, mut count) = (numbers.len() as u32, 0);
        // SAFETY: there is room for as many as is said.
        Status(unsafe { ffi::lvd_mcapi_domains(numbers.as_mut_ptr(), room, &mut count) })
            .check()?;
        let all = count as usize <= numbers.len();
        numbers.resize(count as usize, 0);
        if all {
            return Ok(numbers);
        }
    }
}

/// Looks at one. [`Status::NOT_FOUND`]: there is none; [`Status::ABI`]: no file of this version.
pub fn look(number: u32) -> Result<Domain, Error> {
    let mut seen = ffi::lvd_mcapi_domain_info {
        number,
        transport: 0,
        processes: 0,
        dead: 0,
        node_count: 0,
        endpoint_count: 0,
        node: std::ptr::null_mut(),
        endpoint: std::ptr::null_mut(),
    };
    // SAFETY: `seen` is valid; what it says after success is there until it is forgotten.
    unsafe {
        Status(ffi::lvd_mcapi_domain_snapshot(number, &mut seen)).check()?;
        let domain = Domain {
            number,
            transport: match seen.transport {
                ffi::LVD_MCAPI_TRANSPORT_PMQ => "pmq",
                _ => "shm",
            },
            processes: seen.processes,
            dead: seen.dead,
            nodes: std::slice::from_raw_parts(seen.node, seen.node_count as usize).to_vec(),
            endpoints: std::slice::from_raw_parts(seen.endpoint, seen.endpoint_count as usize)
                .to_vec(),
        };
        ffi::lvd_mcapi_domain_forget(&mut seen);
        Ok(domain)
    }
}

/// Clears away what the dead have left in it.
pub fn clean(number: u32) -> Result<Cleared, Error> {
    let mut cleared = Cleared::default();
    // SAFETY: `cleared` is valid.
    Status(unsafe { ffi::lvd_mcapi_domain_clean(number, &mut cleared) }).check()?;
    Ok(cleared)
}
