// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada map`: shows the placement of actors in a host; with `--simulate`, maps applications onto a machine, both
//! described in a file, and predicts their rates.

use crate::cli::{MapArgs, SimulateArgs};
use crate::client;
use crate::common::artifact::{self, Kind};
use crate::common::output::{self, Failure, failure_with, table};
use crate::record::read_text;
use levada_map::io::{Description, placement_text, read_description, read_placement};
use levada_map::{
    App, Placement, Problem, Scheduling, Simulated, Strategy, load_to_lower_bound, map,
    simulate_steady_state,
};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longer lists are summarised.
const APPLICATIONS_LISTED_MAX: usize = 24;

struct Mapped {
    name: &'static str,
    placement: Placement,
    took: Duration,
    /// The load of the busiest core, relative to its lower bound.
    busiest: f64,
    simulated: Simulated,
}

pub fn map_of(args: &MapArgs) -> Result<ExitCode, Failure> {
    match &args.simulate {
        Some(file) => simulated(file, &args.how, args.at.json),
        None => client::map(&args.at, args.how.write.as_deref()),
    }
}

fn simulated(file: &Path, args: &SimulateArgs, json: bool) -> Result<ExitCode, Failure> {
    let text = read_text("--simulate", file)?;
    let mut read = read_description(&text)
        .map_err(|p| Failure::new(format!("{}: {}", file.display(), p.what)).help(p.help))?;
    if let Some(file) = &args.placement {
        let wrong =
            |p: Problem| Failure::new(format!("{}: {}", file.display(), p.what)).help(p.help);
        let named = read_placement(&read_text("--placement", file)?).map_err(wrong)?;
        let pinned = read.mix.pin(&named, read.machine.workers());
        pinned.map_err(wrong)?;
    }
    if args.round_robin {
        read.machine.scheduling = Scheduling::RoundRobin;
    }
    let mapped = match args.strategy.as_str() {
        "all" => Strategy::ALL
            .iter()
            .rev()
            .map(|s| mapped(&read, *s))
            .collect(),
        "recorded" => recorded(&read).map(|m| vec![m]),
        name => match Strategy::named(name) {
            Some(strategy) => mapped(&read, strategy).map(|m| vec![m]),
            None => failure_with(
                format!("there is no strategy {name}"),
                "there are levada, partition, glb, lb, round-robin; all, and recorded",
            ),
        },
    }?;
    if let Some(file) = &args.write {
        let text = placement_text(&read.mix, &mapped[0].placement);
        artifact::write(file, text.as_bytes(), Kind::Toml)?;
    }
    if json {
        output::line(&as_json(&read, &mapped).to_string())?
    } else {
        output::line(as_text(&read, &mapped).trim_end())?
    }
    Ok(ExitCode::SUCCESS)
}

fn mapped(read: &Description, strategy: Strategy) -> Result<Mapped, Failure> {
    let start = Instant::now();
    let placement = map(&read.mix, &read.machine, strategy)?;
    judged(read, strategy.name(), placement, start.elapsed())
}

/// The recorded placement.
fn recorded(read: &Description) -> Result<Mapped, Failure> {
    match read.placement.clone() {
        Some(placement) => judged(read, "recorded", placement, Duration::ZERO),
        None => failure_with(
            "this description has no placement",
            "levada run --record writes one that has",
        ),
    }
}

fn judged(
    read: &Description,
    name: &'static str,
    placement: Placement,
    took: Duration,
) -> Result<Mapped, Failure> {
    let (mix, machine) = (&read.mix, &read.machine);
    Ok(Mapped {
        name,
        took,
        busiest: load_to_lower_bound(mix, machine, &placement)?,
        simulated: simulate_steady_state(mix, machine, &placement, machine.scheduling),
        placement,
    })
}

impl Mapped {
    fn gain(&self, mix: &levada_map::Mix, other: &Mapped) -> f64 {
        levada_map::gain(mix, &self.simulated.rates, &other.simulated.rates)
    }
}

fn as_text(read: &Description, mapped: &[Mapped]) -> String {
    let (mix, machine) = (&read.mix, &read.machine);
    let mut out = format!(
        "{} on {}: {} in all\n\n",
        output::plural(mix.apps.len(), "application"),
        output::plural(machine.workers(), "core"),
        output::plural(mix.actors(), "actor")
    );
    let mut rows = Vec::new();
    for m in mapped {
        let busy = m.simulated.busy.iter().sum::<f64>() / m.simulated.busy.len() as f64;
        rows.push(vec![
            m.name.to_string(),
            format!("{:.1} ms", m.took.as_secs_f64() * 1e3),
            format!("{:.3}", m.busiest),
            format!("{:.1} %", busy * 100.0),
            format!("{:.3}", m.gain(mix, &mapped[0])),
        ]);
    }
    let first = format!("rates to {}", mapped[0].name);
    let head = [
        "strategy",
        "mapped in",
        "load to lower bound",
        "cores busy",
        &first,
    ];
    out += &table(&head, &rows);
    out += "\n";
    let mut head = vec!["application", "unit", "reserved rate", "recorded"];
    head.extend(mapped.iter().map(|m| m.name));
    let mut rows = Vec::new();
    for (i, app) in mix.apps.iter().enumerate().take(APPLICATIONS_LISTED_MAX) {
        let shown = |x: Option<f64>| x.map_or("-".to_string(), |x| format!("{x:.2}"));
        let mut row = vec![
            app.name.clone(),
            format!("{}/s", app.unit),
            shown(app.reserved_rate),
            shown(read.rates[i]),
        ];
        row.extend(mapped.iter().map(|m| {
            let rate = m.simulated.rates[i];
            let short = is_broken(app, rate);
            let from = if m.simulated.settled(i) {
                String::new()
            } else {
                format!("{:.2} to ", m.simulated.slowest[i])
            };
            format!("{from}{rate:.2}{}", if short { " (broken)" } else { "" })
        }));
        rows.push(row);
    }
    out += &table(&head, &rows);
    if mix.apps.len() > APPLICATIONS_LISTED_MAX {
        out += &format!(
            "  ... and {} more; --json lists all\n",
            mix.apps.len() - APPLICATIONS_LISTED_MAX
        );
    }
    out
}

/// Whether this rate is less than the application's reserved rate.
fn is_broken(app: &App, rate: f64) -> bool {
    let least = |reserved: f64| reserved * (1.0 - levada_map::RATE_TOLERANCE);
    app.reserved_rate
        .is_some_and(|reserved| rate < least(reserved))
}

fn as_json(read: &Description, mapped: &[Mapped]) -> Value {
    let of = |m: &Mapped| {
        let apps = read.mix.apps.iter().zip(read.mix.ranges()).enumerate();
        let apps = apps.map(|(i, (app, range))| {
            let cores = app.actors.iter().zip(&m.placement[range]);
            let cores: serde_json::Map<String, Value> = cores
                .map(|(a, core)| (a.name.clone(), json!(core)))
                .collect();
            json!({
                "name": app.name, "unit": app.unit, "priority": app.priority,
                "reserved_rate": app.reserved_rate, "broken": is_broken(app, m.simulated.rates[i]),
                "recorded": read.rates[i], "rate": m.simulated.rates[i],
                "rate_of_slowest_actor": m.simulated.slowest[i], "cores": cores,
            })
        });
        json!({
            "strategy": m.name,
            "seconds": m.took.as_secs_f64(),
            "load_to_lower_bound": m.busiest,
            "rates_vs_first": m.gain(&read.mix, &mapped[0]),
            "cores_busy": m.simulated.busy,
            "simulated_seconds": m.simulated.seconds,
            "applications": apps.collect::<Vec<_>>(),
        })
    };
    json!({
        "cores": read.machine.workers(),
        "actors": read.mix.actors(),
        "applications": read.mix.apps.len(),
        "mapped": mapped.iter().map(of).collect::<Vec<_>>(),
    })
}
