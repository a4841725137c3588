// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts the measurements of a run to a description for `levada map --simulate`, and reads the placement that a
//! run is given.

pub mod profile;
pub mod sampler;

use crate::common::output::Failure;
use levada_host::HostedApp;
use levada_host::mapping::weights;
use levada_map::io::{Description, description_text};
use levada_map::{CostProfile, Machine, Mix, Problem};
use levada_sys::{Counters, Network, WorkerCounters};
use sampler::Sample;
use std::path::Path;
use std::time::{Duration, Instant};

/// A rate is measured over at least this share of the total progress.
const RATE_WINDOW_SHARE_MIN: f64 = 0.5;
/// There is always some other load: a core that has lost less than this share of its time to it keeps its speed.
const LOST_SHARE_MIN: f64 = 0.002;

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::new(problem.what).help(problem.help)
    }
}

/// Reads a file; the error names the option.
pub fn read_text(option: &str, file: &Path) -> Result<String, Failure> {
    levada_host::util::text_file::read(file)
        .map_err(|e| Failure::new(format!("{option} {}: {e}", file.display())))
}

/// The cost profile of each actor along the stream, in per cent of its mean; `None` if it cannot be determined.
pub fn cost_profile(
    network: &Network,
    counters: &Counters,
    samples: &[Sample],
) -> Option<Vec<Vec<f64>>> {
    let links = network.links().into_iter();
    let links: Vec<(usize, usize)> = links.map(|l| (l.0 as usize, l.1 as usize)).collect();
    profile::costs(counters.actors.len(), &links, samples)
}

/// The machine as it was during the run: the speed of each core is reduced by the time that other programs used on
/// it. The measured costs of actors exclude that time, but the measured rate does not.
pub fn measured_machine(machine: &Machine, ran: &[WorkerCounters]) -> Machine {
    let mut machine = machine.clone();
    for (core, ran) in machine.cores.iter_mut().zip(ran) {
        let (busy, lost) = (ran.busy_ns as f64, ran.preempted_ns as f64);
        if lost > LOST_SHARE_MIN * (busy + lost) {
            core.speed *= busy / (busy + lost);
        }
    }
    machine
}

/// Spread of costs from step to step within a part of a profile. Traces of a decoder's actors have a standard
/// deviation of 17 to 26 per cent from activation to activation; this value corresponds to 35 per cent. With it the
/// simulated rates of three placements of that decoder are 1.02 to 1.08 times their measured rates, without it 0.99
/// to 1.25 times.
const STEP_STDDEV: f64 = 0.6;

/// A description of the run, computed from its counters.
pub fn description(
    hosted: &HostedApp,
    machine: &Machine,
    counters: &Counters,
    costs: Option<Vec<Vec<f64>>>,
    (start, elapsed): (Instant, Duration),
) -> String {
    // An application that reports no progress has completed one unit: a run.
    let (unit, done) =
        weights::counted_units(hosted, counters).unwrap_or(("runs".to_string(), 1.0));
    let machine = weights::credible_machine(hosted, machine, counters);
    let mut app = weights::app_from_counters(hosted, &machine, counters, (unit, done));
    // The placement was the mapper's choice, so actors are not pinned.
    app.actors.iter_mut().for_each(|actor| actor.pin = None);
    app.cost_profile = costs.and_then(|costs| {
        let names = app.actors.iter().map(|a| a.name.as_str());
        let profile = CostProfile::new(done, names.zip(costs).collect()).ok()?;
        Some(profile.with_spread(STEP_STDDEV))
    });
    let text = description_text(&Description {
        machine,
        mix: Mix {
            apps: vec![app],
            exclusive: Vec::new(),
        },
        placement: Some(counters.actors.iter().map(|a| a.worker).collect()),
        rates: vec![steady((start, elapsed), hosted.last_move(), done)],
    });
    format!("# Recorded by levada run --record; for levada map --simulate.\n\n{text}")
}

/// The rate under the last placement: that of the time since an actor was moved, and none where most was
/// done under others.
fn steady(
    (start, elapsed): (Instant, Duration),
    moved: Option<(Instant, f64)>,
    done: f64,
) -> Option<f64> {
    let (since, before) = moved.unwrap_or((start, 0.0));
    let time = (start + elapsed).saturating_duration_since(since);
    let rest = done - before;
    (rest >= RATE_WINDOW_SHARE_MIN * done).then(|| rest / time.as_secs_f64().max(1e-9))
}

/// The cores that a placement file gives to the actors of a network.
pub fn pins(
    file: &Path,
    name: &str,
    network: &Network,
    workers: usize,
) -> Result<Vec<Option<u32>>, Failure> {
    let text = read_text("--placement", file)?;
    levada_host::mapping::placement_file::pins(&text, name, name, network, workers, false)
        .map_err(|p| Failure::new(format!("{}: {}", file.display(), p.what)).help(p.help))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What actors cost is told without what others took; so the machine is to be as slow as they made it.
    #[test]
    fn cores_are_as_fast_as_what_others_left_of_them() {
        let ran = |busy_ms: u64, lost_ms: u64| WorkerCounters {
            busy_ns: busy_ms * 1_000_000,
            preempted_ns: lost_ms * 1_000_000,
            ..WorkerCounters::default()
        };
        let speeds = |ran: &[WorkerCounters]| -> Vec<f64> {
            let was = measured_machine(&Machine::new(3), ran);
            was.cores.iter().map(|c| c.speed).collect()
        };
        let some = [ran(750, 250), ran(1000, 0), ran(0, 0)];
        assert_eq!(speeds(&some), [0.75, 1.0, 1.0]);
        // Small losses are ignored, and so are workers that did nothing.
        assert_eq!(speeds(&[ran(10_000, 1), ran(0, 0)]), [1.0, 1.0, 1.0]);
    }

    #[test]
    fn a_recorded_rate_is_that_of_the_recorded_placement() {
        let start = Instant::now();
        let ran = (start, Duration::from_secs(10));
        let at = |seconds, before| Some((start + Duration::from_secs(seconds), before));
        assert_eq!(steady(ran, None, 100.0), Some(10.0));
        // Twice as fast since it was moved.
        assert_eq!(steady(ran, at(4, 25.0), 100.0), Some(12.5));
        assert_eq!(steady(ran, at(9, 80.0), 100.0), None);
    }
}
