// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada map` of a host: the placement of actors as a table, and as a file that `levada load` accepts.

use super::format::{core, share};
use super::{CommandResult, client, request};
use crate::cli::AtArgs;
use crate::common::artifact::{self, Kind};
use crate::common::output::{Failure, plural, table};
use levada_host::client::Method;
use levada_host::protocol::Worker;
use levada_map::io::placement_text;
use levada_map::{Actor, App, Mix};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The placement, in the format that `--placement` accepts.
fn placement(all: &[Worker]) -> String {
    let mut mix = Mix::default();
    let mut seats: BTreeMap<&str, Vec<(&str, u32)>> = BTreeMap::new();
    for w in all {
        for a in &w.actor {
            let of = seats.entry(&a.application).or_default();
            of.push((&a.actor, w.worker));
        }
    }
    for (app, actors) in &seats {
        let actor = |(name, _): &(&str, u32)| Actor {
            name: name.to_string(),
            time: 0.0,
            firings: 0.0,
            pin: None,
        };
        mix.apps.push(App {
            name: app.to_string(),
            unit: String::new(),
            priority: 0,
            reserved_rate: None,
            actors: actors.iter().map(actor).collect(),
            channels: Vec::new(),
            cpus: None,
            cost_profile: None,
        });
    }
    let workers: Vec<u32> = seats
        .values()
        .flatten()
        .map(|(_, worker)| *worker)
        .collect();
    placement_text(&mix, &workers)
}

pub fn map(at: &AtArgs, write: Option<&Path>) -> CommandResult {
    if let Some(file) = write {
        let all = client(at)?.text(Method::GET, "/map", &Value::Null)?;
        let all: Vec<Worker> = serde_json::from_str(&all).map_err(|e| {
            Failure::new(format!("the host sent a reply that cannot be parsed: {e}"))
        })?;
        artifact::write(file, placement(&all).as_bytes(), Kind::Toml)?;
    }
    request(
        at,
        client(at)?,
        Method::GET,
        "/map",
        &Value::Null,
        |all: &Vec<Worker>| {
            let mut rows = Vec::new();
            for w in all {
                let actors = || w.actor.iter().chain(&w.isolated);
                let shares = actors().filter_map(|a| a.share);
                let programs = w.program.iter().map(|p| p.share);
                let total = shares.chain(programs).fold(0.0, |all, one| all + one);
                let many = plural(actors().count(), "actor");
                let owner = if w.available {
                    many
                } else {
                    format!("{many}, and no others")
                };
                rows.push(vec![core(w), owner, share(Some(total.min(1.0)))]);
                for a in &w.actor {
                    let name = format!("  {}.{}", a.application, a.actor);
                    let stays = match a.pin {
                        None => String::new(),
                        Some(pin) if pin == w.worker => "pinned".to_string(),
                        Some(pin) => format!("pinned to {pin}"),
                    };
                    rows.push(vec![name, stays, share(a.share)]);
                }
                for a in &w.isolated {
                    let name = format!("  {}.{}", a.application, a.actor);
                    rows.push(vec![name, "isolated".to_string(), share(a.share)]);
                }
                for p in &w.program {
                    let name = format!("  {}", p.application);
                    rows.push(vec![name, "its fibers".to_string(), share(Some(p.share))]);
                }
            }
            table(&["worker", "", "of a core"], &rows)
        },
    )
}
