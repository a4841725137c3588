// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada stats`: the work of each worker since the host began, and the cost of its leases.

use super::format::{applications, core, realtime, share};
use super::{CommandResult, client, request};
use crate::cli::AtArgs;
use crate::common::output::{grouped, plural, table};
use levada_host::client::Method;
use levada_host::protocol::{Stats, Worker};
use serde_json::Value;

pub fn stats(at: &AtArgs) -> CommandResult {
    request(
        at,
        client(at)?,
        Method::GET,
        "/stats",
        &Value::Null,
        |s: &Stats| {
            let of = s.host.seconds.max(1e-9);
            let rows: Vec<Vec<String>> = s
                .worker
                .iter()
                .map(|w| {
                    vec![
                        core(w),
                        format!("{:.1} s", w.busy),
                        share(Some((w.busy / of).min(1.0))),
                        format!("{:.1} s", w.preempted),
                        grouped(w.activations),
                        grouped(w.sleeps),
                        w.actor.len().to_string(),
                    ]
                })
                .collect();
            let head = [
                "worker",
                "busy",
                "share",
                "preempted",
                "activations",
                "sleeps",
                "actors",
            ];
            format!(
                "  up for {:.1} s, {} loaded{}\n\n{}\n{}{}",
                s.host.seconds,
                plural(s.host.applications, "application"),
                realtime(&s.host),
                table(&head, &rows),
                leases(s),
                applications(&s.application)
            )
        },
    )
}

/// Leases of cores that other processes requested.
fn leases(s: &Stats) -> String {
    let row = |w: &Worker| {
        let lease = w.lease.as_ref()?;
        let owner = match lease.process {
            None => "no process".to_string(),
            Some(process) if process == s.host.pid => "the host".to_string(),
            Some(process) => format!("process {process}"),
        };
        Some(vec![
            core(w),
            owner,
            lease.waiting.to_string(),
            grouped(lease.transfers),
            grouped(lease.preempted),
            grouped(lease.reclaimed_idle),
            format!("{:.1} ms", 1e3 * lease.waited_s / lease.waits.max(1) as f64),
            format!("{:.1} ms", 1e3 * lease.longest_s),
        ])
    };
    let rows: Vec<Vec<String>> = s.worker.iter().filter_map(row).collect();
    if rows.is_empty() {
        String::new()
    } else {
        let head = [
            "lease of",
            "has it",
            "waiting",
            "transfers",
            "preempted",
            "reclaimed idle",
            "waits",
            "longest",
        ];
        format!("{}\n", table(&head, &rows))
    }
}
