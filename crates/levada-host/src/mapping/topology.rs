// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine as the mapper sees it: which workers share a physical core, a cache or a socket, and the
//! communication costs.

use crate::mapping::transfer_cost;
use levada_map::{Core, Machine};
use levada_sys::Runtime;
use std::path::{Path, PathBuf};

/// The CPU of each worker; -1: not pinned.
fn cpus(runtime: &Runtime) -> Vec<i32> {
    let workers = 0..runtime.workers();
    workers
        .map(|w| runtime.worker_counters(w).map_or(-1, |c| c.cpu))
        .collect()
}

/// The machine of a runtime, worker by worker: topology from the kernel, and costs measured now, before anything runs.
pub fn machine(runtime: &Runtime) -> Machine {
    let cpus = cpus(runtime);
    let known: Option<Vec<Core>> = cpus.iter().map(|&cpu| core(cpu)).collect();
    let machine = match known {
        Some(cores) => Machine {
            cores,
            ..Machine::new(0)
        },
        None => Machine::new(cpus.len()),
    };
    transfer_cost::with_measured_byte_cost(&machine, &cpus)
}

fn core(cpu: i32) -> Option<Core> {
    let folder = PathBuf::from(format!(
        "/sys/devices/system/cpu/cpu{}",
        u32::try_from(cpu).ok()?
    ));
    let body = first(&folder.join("topology/thread_siblings_list"))?;
    let socket = first(&folder.join("topology/physical_package_id"))?;
    // The last-level cache.
    let cache = (0..8)
        .rev()
        .find_map(|i| first(&folder.join(format!("cache/index{i}/shared_cpu_list"))));
    Some(Core {
        speed: 1.0,
        physical: body,
        cache: cache.unwrap_or(socket),
        socket,
    })
}

/// The first number of a file: CPUs that share something have the same list.
fn first(file: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(file).ok()?;
    text.trim()
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}
