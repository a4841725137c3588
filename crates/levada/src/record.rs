// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a run measured, as a description for `levada map --simulate`; and placements given to a run.

use crate::output::Failure;
use levada_host::{Hosted, weights};
use levada_map::text::{Described, describe};
use levada_map::{Machine, Mix, Problem};
use levada_sys::{Counters, Network};
use std::path::Path;
use std::time::Duration;

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::new(problem.what).help(problem.help)
    }
}

/// What a file holds, or why it cannot be read.
pub fn text_of(option: &str, file: &Path) -> Result<String, Failure> {
    let read = std::fs::read_to_string(file);
    read.map_err(|e| Failure::new(format!("{option} {}: {e}", file.display())))
}

/// A description of what ran, as these counters have it.
pub fn described(
    hosted: &Hosted,
    machine: &Machine,
    counters: &Counters,
    elapsed: Duration,
) -> String {
    // What counts nothing has done one thing: run.
    let (unit, done) = weights::counted(hosted).unwrap_or(("runs".to_string(), 1.0));
    let app = weights::weighed(hosted, machine, counters, (unit, done));
    let text = describe(&Described {
        machine: machine.clone(),
        mix: Mix {
            apps: vec![app],
            exclusive: Vec::new(),
        },
        placement: Some(counters.actors.iter().map(|a| a.worker).collect()),
        rates: vec![Some(done / elapsed.as_secs_f64().max(1e-9))],
    });
    format!("# Recorded by levada run --record; for levada map --simulate.\n\n{text}")
}

/// The cores that a placement file gives to the actors of a network.
pub fn pins(
    file: &Path,
    name: &str,
    network: &Network,
    workers: usize,
) -> Result<Vec<Option<u32>>, Failure> {
    let text = text_of("--placement", file)?;
    levada_host::placement::pins(&text, name, network, workers, false)
        .map_err(|p| Failure::new(format!("{}: {}", file.display(), p.what)).help(p.help))
}
