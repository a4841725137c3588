// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada list`, `show` and `why`: all applications, one in detail, and what each of its actors waits for.

use super::format::{applications, left_out, left_over, silent};
use super::{CommandResult, application_path, client, client_for_wait, request, timeout_query};
use crate::cli::{AllArgs, OneArgs};
use crate::common::output::{grouped, plural, table};
use levada_host::State;
use levada_host::client::Method;
use levada_host::model::unconsumed;
use levada_host::protocol::{Application, Details, HostInfo, Why};
use serde_json::Value;

pub fn list(args: &AllArgs) -> CommandResult {
    // Requested before the list, so that an application that is restored meanwhile is listed as loaded.
    let left = if args.at.json {
        Vec::new()
    } else {
        client(&args.at)?.get::<HostInfo>("/host")?.not_restored
    };
    request(
        &args.at,
        client(&args.at)?,
        Method::GET,
        "/applications",
        &Value::Null,
        |all: &Vec<Application>| {
            let shown = if all.is_empty() {
                "no application is loaded\n".to_string()
            } else {
                applications(all) + &left_over(all) + &silent(all) + &left_out(all)
            };
            shown + &not_restored(all, &left)
        },
    )
}

const NAMES_SHOWN_MAX: usize = 8;

/// Applications of the previous host that this host did not restore.
fn not_restored(all: &[Application], left: &[String]) -> String {
    let is_shown = |name: &&String| !all.iter().any(|a| a.name == **name);
    let names: Vec<&str> = left.iter().filter(is_shown).map(|n| n.as_str()).collect();
    if names.is_empty() {
        return String::new();
    }
    let more = match names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "\n  {} of the last host not loaded again: {}{more} (levada resume NAME loads it, levada unload NAME \
         forgets it)\n",
        plural(names.len(), "application"),
        names[..names.len().min(NAMES_SHOWN_MAX)].join(", "),
    )
}

pub fn why(args: &OneArgs) -> CommandResult {
    request(
        &args.at,
        client_for_wait(&args.at)?,
        Method::GET,
        &application_path(&args.name, &format!("/why{}", timeout_query(&args.at))),
        &Value::Null,
        |why: &Why| why.text.clone(),
    )
}

pub fn show(args: &OneArgs) -> CommandResult {
    request(
        &args.at,
        client(&args.at)?,
        Method::GET,
        &application_path(&args.name, ""),
        &Value::Null,
        |d: &Details| {
            let mut out = applications(std::slice::from_ref(&d.application));
            if d.application.state == State::Quarantined {
                return out + &left_out(std::slice::from_ref(&d.application));
            }
            if let Some(outcome) = &d.application.outcome {
                out += &format!("\n  {outcome}\n");
            }
            if !d.application.unconsumed.is_empty() {
                out += "\n  elements were left over\n";
            }
            let a = &d.application;
            for line in unconsumed::lines(&a.unconsumed, a.unconsumed_omitted) {
                out += &format!("    {line}\n");
            }
            out += &silent(std::slice::from_ref(&d.application));
            out += &reserved_rate(&d.application);
            let rows: Vec<Vec<String>> = d
                .actor
                .iter()
                .map(|a| {
                    vec![
                        a.name.clone(),
                        pinned(a.worker, a.pin),
                        grouped(a.firings),
                        format!("{:.3} s", a.busy),
                        format!("{:.3} ms", a.longest * 1e3),
                    ]
                })
                .collect();
            let head = ["actor", "worker", "firings", "busy", "longest"];
            out += &format!("\n{}", table(&head, &rows));
            let rows: Vec<Vec<String>> = d
                .channel
                .iter()
                .map(|c| {
                    vec![
                        format!("{} -> {}", c.from, c.to),
                        capacity(c.capacity, c.loaded_capacity),
                        grouped(u64::from(c.fill)),
                        grouped(c.got),
                        grouped(c.full),
                        grouped(c.empty),
                    ]
                })
                .collect();
            if !rows.is_empty() {
                let head = ["channel", "capacity", "fill", "elements", "full", "empty"];
                out += &format!("\n{}", table(&head, &rows));
            }
            out
        },
    )
}

/// With the capacity at load, if the channel has grown.
fn capacity(now: u32, loaded: u32) -> String {
    let now_text = grouped(u64::from(now));
    match loaded {
        0 => now_text,
        loaded if loaded < now => format!("{now_text} (was {})", grouped(u64::from(loaded))),
        _ => now_text,
    }
}

/// The reserved rate and the measured one.
fn reserved_rate(a: &Application) -> String {
    let Some(reserved) = a.reserved_rate else {
        return String::new();
    };
    let unit = a.progress.as_ref().map(|p| p.unit.as_str());
    let unit = unit.filter(|unit| !unit.is_empty()).unwrap_or("units");
    let measured = a
        .measured_rate
        .map(|measured| format!(", measured {measured:.1}"));
    let missed = match a.rate_miss_count.unwrap_or(0) {
        0 => String::new(),
        1 => ", missed once".to_string(),
        times => format!(", missed {times} times"),
    };
    let measured = measured.unwrap_or_default();
    let is = match a.rate_missed {
        Some(true) => ", misses it now",
        _ => "",
    };
    format!("\n  has reserved {reserved:.1} {unit} a second{measured}{missed}{is}\n")
}

/// The worker of an actor, and whether it is pinned.
fn pinned(worker: u32, pin: Option<u32>) -> String {
    match pin {
        None => worker.to_string(),
        Some(pin) if pin == worker => format!("{worker}, pinned"),
        Some(pin) => format!("{worker}, pinned to {pin}"),
    }
}
