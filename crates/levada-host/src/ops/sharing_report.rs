// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which applications use the workers that an application could use now, for its wait report.

use crate::app::HostedApp;
use crate::ops::leases;
use crate::ops::state::ServerState;
use crate::ops::workers::workers;
use std::collections::{BTreeMap, BTreeSet};

/// A smaller fraction of a core is not reported.
const REPORTED_FRACTION_MIN: f64 = 0.05;

/// The recent users of the workers that the application could use now: a line per worker that others use.
pub fn text(served: &ServerState, hosted: &HostedApp) -> String {
    let counters = hosted.app.counters().unwrap_or_default();
    let could = counters.actors.iter().filter(|a| !a.waits);
    let wanted: BTreeSet<u32> = could.map(|a| a.worker).collect();
    let leases = leases::by_core();
    let all = workers(served, &served.host.list());
    let mut out = String::new();
    for worker in all.iter().filter(|w| wanted.contains(&w.worker)) {
        let mut took: BTreeMap<&str, f64> = BTreeMap::new();
        for placed in &worker.actor {
            *took.entry(&placed.application).or_default() += placed.share.unwrap_or(0.0);
        }
        for program in &worker.program {
            *took.entry(&program.application).or_default() += program.share;
        }
        let own = took.remove(hosted.name.as_str()).unwrap_or(0.0);
        out += &shared(worker.worker, took, own);
        let lease = leases.get(&worker.cpu).and_then(|l| l.process);
        if let Some(other) = lease.filter(|p| *p != std::process::id()) {
            let (cpu, worker) = (worker.cpu, worker.worker);
            out += &format!("core {cpu}, that of worker {worker}, is process {other}'s now\n");
        }
    }
    out
}

/// The usage of a worker by others, the largest first, and by the application itself.
fn shared(worker: u32, others: BTreeMap<&str, f64>, own: f64) -> String {
    let mut others: Vec<(&str, f64)> = others.into_iter().collect();
    others.retain(|(_, share)| *share >= REPORTED_FRACTION_MIN);
    if others.is_empty() {
        return String::new();
    }
    others.sort_by(|a, b| b.1.total_cmp(&a.1));
    let percent = |share: f64| format!("{:.0}%", 100.0 * share);
    let others = others
        .iter()
        .map(|(name, share)| format!("{} by {name}", percent(*share)));
    format!(
        "worker {worker} was recently used {}, and {} by this one\n",
        others.collect::<Vec<_>>().join(", "),
        percent(own)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_user_comes_first_and_idle_ones_are_left_out() {
        let others = BTreeMap::from([("a", 0.2), ("burn", 0.7), ("idle", 0.01)]);
        let said = shared(1, others, 0.1);
        assert_eq!(
            said,
            "worker 1 was recently used 70% by burn, 20% by a, and 10% by this one\n"
        );
        assert_eq!(shared(0, BTreeMap::from([("idle", 0.0)]), 1.0), "");
    }
}
