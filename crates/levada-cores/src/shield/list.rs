// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Existing shields, and whether further cores can be shielded.

use super::request::{Error, are, cores};
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use crate::topology::Topology;
use crate::undo_log::format::{LogState, ShieldRecord};
use crate::undo_log::log_paths;
use std::path::PathBuf;

/// Checks whether these cores can be shielded in addition to `shielded`; returns the cores that
/// remain for everything else.
pub fn check(
    wanted: &CoreSet,
    topology: &Topology,
    shielded_cores: &CoreSet,
) -> Result<CoreSet, Error> {
    let unknown = wanted.without(&topology.online);
    let others = topology.online.without(wanted).without(shielded_cores);
    let forbidden = wanted.without(&topology.allowed);
    if wanted.is_empty() {
        return Err(Error::new(
            "no core is named",
            "name one, as in: levada shield 3 -- ./program",
        ));
    }
    if !unknown.is_empty() {
        let what = format!(
            "there {} no {}: this machine has {}",
            if unknown.len() == 1 { "is" } else { "are" },
            cores(&unknown),
            cores(&topology.online)
        );
        return Err(Error::new(what, ""));
    }
    if !forbidden.is_empty() {
        return Err(Error::new(
            format!(
                "this process may not use {}: it may use {}",
                cores(&forbidden),
                cores(&topology.allowed)
            ),
            "a container or taskset restricts it",
        ));
    }
    if others.is_empty() || topology.allowed.without(wanted).is_empty() {
        let what = match topology.online.len() {
            1 => format!("{} is the only one", cores(wanted)),
            _ => format!("{} would leave no core for everything else", cores(wanted)),
        };
        let what = if shielded_cores.is_empty() {
            what
        } else {
            format!("{what}: {} shielded already", are(shielded_cores))
        };
        return Err(Error::new(what, "one core must remain"));
    }
    Ok(others)
}

/// The shields that this user can see, with the paths of their logs.
pub fn list_shields() -> Vec<(PathBuf, ShieldRecord)> {
    let read = |path: PathBuf| {
        let record = LogState::read(&path).unwrap_or_default();
        let shields = record.shields.into_iter();
        shields.map(|held| (path.clone(), held)).collect::<Vec<_>>()
    };
    log_paths().into_iter().flat_map(read).collect()
}

/// The shielded cores.
pub fn shielded_cores(there: &[(PathBuf, ShieldRecord)]) -> CoreSet {
    let cores = there.iter().map(|(_, held)| &held.cores);
    cores.fold(CoreSet::default(), |all, cores| all.or(cores))
}

pub(super) fn check_unshielded<K: Kernel>(
    machine: &Machine<K>,
    held: &ShieldRecord,
    wanted: &CoreSet,
) -> Result<(), Error> {
    let both = held.cores.and(wanted);
    if both.is_empty() {
        return Ok(());
    }
    let holder = held.holder(machine).or(held.tool).map_or(0, |w| w.pid);
    Err(Error::new(
        format!("{} shielded already, by process {holder}", are(&both)),
        &format!("levada shield release {} ends that", held.cores),
    ))
}
