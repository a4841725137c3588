// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Core leases, as read from the shared table.

use crate::protocol::Lease;
use levada_sys::leases::Leases;
use std::collections::HashMap;

/// The leases that another process has ever requested, by core.
pub fn by_core() -> HashMap<i32, Lease> {
    let wanted = |l: &levada_sys::leases::LeaseCore| {
        let others = process_of(l.thread).is_some_and(|p| p != std::process::id());
        l.transfers + l.preempted + l.reclaimed_idle > 0 || l.waiting > 0 || others
    };
    Leases::read()
        .into_iter()
        .filter(wanted)
        .map(|l| {
            let lease = Lease {
                process: process_of(l.thread),
                waiting: l.waiting,
                transfers: l.transfers,
                preempted: l.preempted,
                reclaimed_idle: l.reclaimed_idle,
                waits: l.waits,
                waited_s: l.waited_ns as f64 / 1e9,
                longest_s: l.longest_ns as f64 / 1e9,
            };
            (l.cpu as i32, lease)
        })
        .collect()
}

/// The process of a thread; none if there is no such thread.
fn process_of(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}
