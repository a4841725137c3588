// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formatting that several of these commands share.

use crate::common::output::{Failure, grouped, plural, table, unit_of};
use levada_host::model::unconsumed;
use levada_host::protocol::{Application, Details, HostInfo, Progress, Worker};
use levada_host::{State, Verdict};
use std::path::Path;

/// The real-time priority of a host's workers, if any.
pub fn realtime(host: &HostInfo) -> String {
    let say = |priority| format!(", workers at real-time priority {priority}");
    host.realtime.map_or_else(String::new, say)
}

pub(super) fn applications(all: &[Application]) -> String {
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|a| {
            vec![
                a.name.clone(),
                state(a),
                a.network.clone(),
                format!("{:.1} s", a.seconds),
                grouped(a.firings),
                format!("{:.2} s", a.busy),
                bytes(a.memory),
                a.progress.as_ref().map_or(String::new(), done),
            ]
        })
        .collect();
    let head = [
        "application",
        "state",
        "network",
        "for",
        "firings",
        "busy",
        "memory",
        "done",
    ];
    table(&head, &rows)
}

/// Applications that the host has not restored, with the reason and what to do.
pub(super) fn left_out(all: &[Application]) -> String {
    let held = all.iter().filter(|a| a.state == State::Quarantined);
    let lines: String = held
        .map(|a| {
            format!(
                "\n  {name}: {}\n  levada resume {name} loads it again, levada unload {name} forgets \
                 it\n",
                a.outcome.as_deref().unwrap_or_default(),
                name = a.name
            )
        })
        .collect();
    lines
}

/// What applications that are done have left in their channels, a line for each application.
pub(super) fn left_over(all: &[Application]) -> String {
    let lines = all.iter().filter_map(|a| {
        let text = unconsumed::text(&a.unconsumed, a.unconsumed_omitted)?;
        Some(format!("\n  {}: {text}\n", a.name))
    });
    lines.collect()
}

/// Applications with a process that does not respond, so that their data are old.
pub(super) fn silent(all: &[Application]) -> String {
    let lines = all.iter().filter_map(|a| {
        let why = match a.outcome {
            None => "does not answer",
            Some(_) => "has ended without a word",
        };
        let after = a.last_report_s?;
        let name = &a.name;
        Some(format!(
            "\n  {name}: what it has done is what it said after {after:.1} s; its process {why}\n"
        ))
    });
    lines.collect()
}

/// The state; isolated applications are shown with their process.
fn state(a: &Application) -> String {
    match (a.isolated, &a.outcome) {
        (Some(process), None) => format!("{} in {process}", a.state),
        _ => a.state.to_string(),
    }
}

pub(super) fn done(p: &Progress) -> String {
    format!("{} {}", grouped(p.done), unit_of(p.done, &p.unit))
}

pub(super) fn core(w: &Worker) -> String {
    match w.cpu {
        0.. => format!("{} (core {})", w.worker, w.cpu),
        _ => w.worker.to_string(),
    }
}

pub(super) fn share(share: Option<f64>) -> String {
    share.map_or("-".to_string(), |s| format!("{:.1}%", s * 100.0))
}

pub(super) fn bytes(n: u64) -> String {
    match n {
        n if n >= 10 << 20 => format!("{} MiB", n >> 20),
        n if n >= 10 << 10 => format!("{} KiB", n >> 10),
        n => plural(n as usize, "byte"),
    }
}

/// A path as text, for a request to a host.
pub(super) fn as_text(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        let what = format!("{path:?} is no text in UTF-8, and a host is told paths as text");
        Failure::new(what)
            .help("give it another name, or a link that has one; levada run takes any")
    })
}

pub(super) fn loaded_all(all: &[Details]) -> String {
    let mut noted = Vec::new();
    for made in all {
        // Warnings are printed like those of `levada check`.
        say_on!("{}", made.text);
        let admission = made.admission.iter();
        let mut unkept = admission.filter(|a| a.verdict != Verdict::Kept);
        // Equal notes are printed once.
        if let Some(a) = unkept.next().filter(|a| !noted.contains(&&a.text)) {
            say!("note: {}", a.text);
            noted.push(&a.text);
        }
    }
    let lines: Vec<String> = all.iter().map(what_is_loaded).collect();
    lines.join("\n")
}

fn what_is_loaded(made: &Details) -> String {
    let a = &made.application;
    let isolated = a.isolated.map(|process| format!(", in process {process}"));
    let alone = a
        .exclusive
        .map(|worker| format!(", alone on worker {worker}"));
    format!(
        "loaded {} ({}): {}, {}, {}{}{}",
        a.name,
        a.network,
        plural(a.actors, "actor"),
        plural(made.channel.len(), "channel"),
        bytes(a.memory),
        isolated.unwrap_or_default(),
        alone.unwrap_or_default()
    )
}
