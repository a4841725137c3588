// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Observes the MCAPI domains of this machine, and removes what dead processes have left in them
//! (`<levada/mcapi_observe.h>`).

use crate::{Error, Status, ffi};

pub type Node = ffi::lvd_mcapi_node_info;
pub type Endpoint = ffi::lvd_mcapi_endpoint_info;
pub type Cleared = ffi::lvd_mcapi_cleanup_result;

/// A copy of a domain's state.
#[derive(Clone, Debug)]
pub struct Domain {
    pub number: u32,
    /// The transport of its messages and channels: `shm` (shared memory) or `pmq` (POSIX message queues).
    pub transport: &'static str,
    /// Number of processes in its table, with the dead ones.
    pub processes: u32,
    /// Number of dead processes in its table.
    pub dead: u32,
    pub nodes: Vec<Node>,
    pub endpoints: Vec<Endpoint>,
}

/// Number of domains for which the first call of [`domains`] has room; there may be more.
const DOMAINS_ROOM: usize = 256;

/// The numbers of the domains of this machine, ascending.
pub fn domains() -> Result<Vec<u32>, Error> {
    let mut numbers = vec![0; DOMAINS_ROOM];
    loop {
        let (room, mut count) = (numbers.len() as u32, 0);
        // SAFETY: `numbers` has `room` elements.
        Status(unsafe { ffi::lvd_mcapi_domains(numbers.as_mut_ptr(), room, &mut count) })
            .check()?;
        let all = count as usize <= numbers.len();
        numbers.resize(count as usize, 0);
        if all {
            return Ok(numbers);
        }
    }
}

/// Reads the state of a domain. [`Status::NOT_FOUND`]: no such domain; [`Status::ABI`]: its file is of another version.
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
    // SAFETY: `seen` is valid; after success its tables are valid until lvd_mcapi_domain_forget frees them.
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

/// Removes what dead processes have left in a domain, and the domain if it has no live process. [`Status::ABI`]: a
/// process of another version uses it.
pub fn clean(number: u32) -> Result<Cleared, Error> {
    let mut cleared = Cleared::default();
    // SAFETY: `cleared` is valid.
    Status(unsafe { ffi::lvd_mcapi_domain_clean(number, &mut cleared) }).check()?;
    Ok(cleared)
}
