// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada shield status`: the cores, the threads on them, the load that would have to move, and the shields.

use super::hosts::{self, CoreUse};
use super::report;
use crate::cli::ShieldStatusArgs;
use crate::common::output::{self, Failure, plural, table};
use levada_cores::core_load::measure;
use levada_cores::shield::{self as shields, cores};
use levada_cores::undo_log::format::ShieldRecord;
use levada_cores::{CoreSet, Load, Machine, Method, Topology};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

const SAMPLE_TIME: Duration = Duration::from_millis(200);

pub fn status(args: &ShieldStatusArgs) -> Result<ExitCode, Failure> {
    let machine = Machine::this();
    let topology = Topology::of(&machine);
    if let Some(wanted) = &args.cores {
        let unknown = wanted.without(&topology.online);
        if !unknown.is_empty() {
            let here = cores(&topology.online);
            return output::failure(format!(
                "there is no {}: this machine has {here}",
                cores(&unknown)
            ));
        }
    }
    let load = measure(SAMPLE_TIME);
    let there: Vec<ShieldRecord> = shields::list_shields()
        .into_iter()
        .map(|(_, r)| r)
        .collect();
    let hosts = hosts::at_work();
    if args.json {
        let mut all = to_json(args, &machine, &topology, &load, &there);
        let list = all["cores"].as_array_mut().into_iter().flatten();
        for core in list {
            if let Some(host) = core_of(core).and_then(|c| hosts.get(&c)) {
                core["host"] = json!({"process": host.process, "actors": host.actors});
            }
        }
        output::line(&all.to_string())?;
    } else {
        print(args, &machine, &topology, &load, &there, &hosts)?
    }
    Ok(ExitCode::SUCCESS)
}

fn core_of(told: &Value) -> Option<u32> {
    u32::try_from(told["core"].as_u64()?).ok()
}

fn cores_of(there: &[ShieldRecord]) -> CoreSet {
    let cores = there.iter().map(|held| &held.cores);
    cores.fold(CoreSet::default(), |all, cores| all.or(cores))
}

fn print(
    args: &ShieldStatusArgs,
    machine: &Machine,
    topology: &Topology,
    load: &Load,
    there: &[ShieldRecord],
    hosts: &BTreeMap<u32, CoreUse>,
) -> Result<(), Failure> {
    let shielded = cores_of(there);
    let cheapest = load.cheapest(1, topology, &shielded);
    let rows: Vec<Vec<String>> = topology
        .cores
        .iter()
        .map(|core| {
            let on = CoreSet::one(core.id);
            let mut notes = Vec::new();
            if shielded.has(core.id) {
                notes.push("shielded".to_string());
            } else if cheapest.has(core.id) && topology.online.len() > 1 {
                notes.push("cheapest to empty".to_string());
            }
            if !topology.allowed.has(core.id) {
                notes.push("not allowed here".to_string());
            }
            if let Some(host) = hosts.get(&core.id) {
                let actors = plural(host.actors, "actor");
                notes.push(format!(
                    "a host works there (process {}): {actors}",
                    host.process
                ));
            }
            vec![
                format!("core {}", core.id),
                format!("{:.2}", load.busy_of(core.id)),
                load.on(&on).count().to_string(),
                core.siblings.to_string(),
                core.cache.to_string(),
                notes.join(", "),
            ]
        })
        .collect();
    let head = ["", "busy", "threads", "same core", "same cache", ""];
    output::line(table(&head, &rows).trim_end())?;
    if let Some(wanted) = &args.cores {
        let others = topology.online.without(wanted).without(&shielded);
        output::line(&format!(
            "\non {}: {}, {:.2} of a core busy",
            cores(wanted),
            plural(load.on(wanted).count(), "thread"),
            report::work(load, wanted)
        ))?;
        let rows: Vec<Vec<String>> = load
            .on(wanted)
            .filter(|w| w.share >= 0.0005)
            .take(15)
            .map(|w| vec![w.name.clone(), w.tid.to_string(), format!("{:.3}", w.share)])
            .collect();
        if !rows.is_empty() {
            output::line(table(&["", "thread", "of a core"], &rows).trim_end())?;
        }
        match load.lightest(&others) {
            Some(one) => output::line(&format!(
                "it would go to {}; the most lightly loaded is {one} ({:.2} busy)",
                cores(&others),
                load.busy_of(one)
            ))?,
            None => output::line("there is no other core for it")?,
        }
    }
    if there.is_empty() {
        output::line("\nno shield")?;
    }
    for record in there {
        let sentence = Method::from_name(&record.method).map_or("being raised", Method::sentence);
        let held = match record.holder(machine) {
            Some(holder) => format!("held by process {}", holder.pid),
            None => "its holder has ended: run levada shield restore".into(),
        };
        let program: Vec<String> = record.critical.iter().map(|w| w.pid.to_string()).collect();
        output::line(&format!(
            "\nshield on {} by {sentence}, {held}; program {}; {} evicted",
            cores(&record.cores),
            program.join(", "),
            record.evicted
        ))?;
    }
    Ok(())
}

fn to_json(
    args: &ShieldStatusArgs,
    machine: &Machine,
    topology: &Topology,
    load: &Load,
    there: &[ShieldRecord],
) -> Value {
    let list: Vec<Value> = topology
        .cores
        .iter()
        .map(|core| {
            json!({
                "core": core.id, "busy": load.busy_of(core.id),
                "threads": load.on(&CoreSet::one(core.id)).count(),
                "siblings": core.siblings.to_string(), "cache": core.cache.to_string(),
                "cache_kib": core.cache_kib, "allowed": topology.allowed.has(core.id),
            })
        })
        .collect();
    let shields: Vec<Value> = there
        .iter()
        .map(|r| {
            json!({
                "cores": r.cores.to_string(), "method": r.method, "holder": r.holder(machine).map(|w| w.pid),
                "guard": r.guard.map(|g| g.pid),
                "program": r.critical.iter().map(|w| w.pid).collect::<Vec<_>>(),
                "evicted": r.evicted,
            })
        })
        .collect();
    let on = args.cores.as_ref().map(|wanted| {
        let threads: Vec<Value> = load
            .on(wanted)
            .map(|w| json!({"name": w.name, "pid": w.pid, "tid": w.tid, "share": w.share, "kernel": w.kernel}))
            .collect();
        let others = topology.online.without(wanted).without(&cores_of(there));
        json!({
            "cores": wanted.to_string(), "busy": report::work(load, wanted), "threads": threads,
            "others": others.to_string(), "lightest": load.lightest(&others),
        })
    });
    json!({
        "cores": list, "shields": shields, "on": on,
        "cheapest": load.cheapest(1, topology, &cores_of(there)).to_string(),
    })
}
