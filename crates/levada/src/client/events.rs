// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada events`: prints the events of a host, one per line.

use super::{CommandResult, client};
use crate::cli::EventsArgs;
use crate::common::output::{self, plural};
use levada_host::Unconsumed;
use levada_host::model::unconsumed;
use serde::Deserialize;
use serde_json::Value;
use std::process::ExitCode;

pub fn events(args: &EventsArgs) -> CommandResult {
    let since = args.since.map(|n| format!("&since={n}"));
    let address = format!(
        "/events?follow={}{}",
        args.follow,
        since.unwrap_or_default()
    );
    let mut written = Ok(());
    client(&args.at)?.lines(&address, |line| {
        written = if args.at.json {
            output::line(line)
        } else {
            output::line(&event(line))
        };
        written.is_ok()
    })?;
    written?;
    if args.follow {
        // The stream of events is complete. A broken connection would be an error.
        say!("the host has ended");
    }
    Ok(ExitCode::SUCCESS)
}

fn event(line: &str) -> String {
    let Ok(event) = serde_json::from_str::<Value>(line) else {
        return line.to_string();
    };
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_string();
    if event["event"] == "missed" {
        let count = event["count"].as_u64().unwrap_or_default();
        let were = if count == 1 { "was" } else { "were" };
        let missed = format!("{} {were} missed", plural(count as usize, "event"));
        return match (event["sequence_restarted"] == true, count) {
            (true, 0) => {
                "  (that number is of an earlier host: the numbers have begun again)".to_string()
            }
            (true, _) => {
                format!(
                    "  (that number is of an earlier host: the numbers have begun again, and {missed})"
                )
            }
            (false, _) => format!("  ({missed})"),
        };
    }
    let at = event["at"].as_f64().unwrap_or_default();
    let day = at.rem_euclid(86400.0);
    let time = format!(
        "{:02}:{:02}:{:06.3}",
        (day / 3600.0) as u32,
        (day / 60.0) as u32 % 60,
        day % 60.0
    );
    let mut out = format!("{time}  {:<11} {}", text("event"), text("application"));
    if event["event"] == "moved" {
        out += &format!(
            ".{}: worker {} -> {}",
            text("actor"),
            event["from"],
            event["to"]
        );
    }
    match text("detail").as_str() {
        "" => {}
        detail => out += &format!(": {detail}"),
    }
    let left = Unconsumed::deserialize(&event).ok();
    if let Some(left) = left.and_then(|u| unconsumed::text(&u.channels, u.omitted)) {
        out += &format!("; {left}");
    }
    out
}
