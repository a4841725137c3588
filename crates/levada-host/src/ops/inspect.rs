// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Read-only queries: the host, one application, the map of workers, statistics, and wait reports.

use crate::model::app_state::State;
use crate::model::error::Kind;
use crate::model::outcome::Outcome;
use crate::ops::restore::not_restored_error;
use crate::ops::sharing_report;
use crate::ops::state::ServerState;
use crate::ops::workers::workers;
use crate::protocol::{Application, Details, Failed, HostInfo, Stats, Why, Worker};
use std::time::Duration;

/// Information about the host.
pub fn info(served: &ServerState) -> HostInfo {
    HostInfo {
        version: env!("CARGO_PKG_VERSION").to_string(),
        pid: std::process::id(),
        seconds: served.started_at.elapsed().as_secs_f64(),
        workers: served.host.runtime().workers(),
        realtime: served.host.runtime().realtime(),
        applications: served.live(),
        preparing: served.preparing.count(),
        not_restored: served
            .store
            .as_ref()
            .map(|m| m.unrestored())
            .unwrap_or_default(),
    }
}

/// An application with its actors and channels.
pub(crate) fn details_by_name(served: &ServerState, name: &str) -> Result<Details, Failed> {
    // One that is being restored is found either among the loaded ones or among those that are not, but may change
    // sides between two looks.
    try_details(served, name).or_else(|_| try_details(served, name))
}

fn try_details(served: &ServerState, name: &str) -> Result<Details, Failed> {
    if let Some(isolated) = served.isolated.find(name) {
        return Ok(isolated.details());
    }
    let unknown = match served.host.find(name) {
        Ok(seen) => return Ok(Details::from(&seen)),
        Err(unknown) => unknown,
    };
    let out = served.not_restored().into_iter().find(|a| a.name == name);
    let unknown = || not_restored_error(served, name).unwrap_or(unknown);
    Ok(Details {
        application: out.ok_or_else(unknown)?,
        ..Details::default()
    })
}

/// What an application waits for, as text.
pub(crate) fn wait_report(
    served: &ServerState,
    name: &str,
    timeout: Option<Duration>,
) -> Result<Why, Failed> {
    match try_wait_report(served, name, timeout) {
        // As with `details_by_name`.
        Err(failed) if failed.kind == Some(Kind::Unknown) => try_wait_report(served, name, timeout),
        done => done,
    }
}

fn try_wait_report(
    served: &ServerState,
    name: &str,
    timeout: Option<Duration>,
) -> Result<Why, Failed> {
    if let Some(isolated) = served.isolated.find(name) {
        return isolated.wait_report(timeout);
    }
    let why = |text| Why {
        application: name.to_string(),
        text,
    };
    if let Some(reason) = not_restored_error(served, name) {
        return Ok(why(reason.what + "\n"));
    }
    let seen = served.host.find(name)?;
    Ok(why(match (&seen.hosted, &seen.ended) {
        (Some(hosted), _) if seen.state == State::Paused => hosted.app.wait_report(),
        (Some(hosted), _) => hosted.wait_report() + &sharing_report::text(served, hosted),
        (None, Some(ended)) => match &ended.outcome {
            Outcome::Deadlock(why) => why.clone(),
            other if other.is_good() => format!("{name} has ended: {}\n", other.text()),
            other => format!("{name} has failed: {}\n", other.text()),
        },
        (None, None) => String::new(),
    }))
}

/// The workers with the actors on each, also those of isolated applications.
pub(crate) fn worker_map(served: &ServerState) -> Vec<Worker> {
    let mut all = workers(served, &served.host.list());
    for (isolated, theirs) in served.isolated.workers() {
        isolated.add_to(&mut all, theirs);
    }
    all
}

pub(crate) fn stats_with(served: &ServerState, application: Vec<Application>) -> Stats {
    Stats {
        host: info(served),
        worker: workers(served, &served.host.list()),
        application,
    }
}
