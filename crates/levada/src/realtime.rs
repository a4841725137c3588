// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--realtime`: a host whose workers go before all that is of the usual class on their cores.

use crate::output::{Failure, failure_with};
use levada_cores::{Machine, realtime};
use levada_host::{Host, HostOptions};
use levada_sys::realtime_allowed;

/// The host; or why it may not have the real-time priority that was asked for, and what to do.
pub fn start(options: &HostOptions) -> Result<Host, Failure> {
    let priority = options.runtime.realtime;
    if priority > 0 && !realtime_allowed(priority) {
        return refuse(priority);
    }
    Ok(Host::new(options)?)
}

/// What serves the workers has a priority two above theirs.
fn refuse<T>(priority: u32) -> Result<T, Failure> {
    let most = priority + 2;
    let what = format!("the workers cannot have real-time priority {priority}");
    let help = format!(
        "be root, or have a limit of at least {most} (ulimit -r {most}; LimitRTPRIO={most} in a unit of systemd): \
         what serves the workers goes before them"
    );
    let own = std::process::id() as i32;
    match realtime::refused(&Machine::this(), own, &help) {
        (Some(why), help) => failure_with(format!("{what}: {why}"), help),
        (None, help) => failure_with(format!("{what}: the system does not allow it"), help),
    }
}

/// What is to be known about it.
pub fn note(options: &HostOptions) -> Option<String> {
    let asked = options.runtime.realtime > 0;
    asked.then(|| realtime::throttle(&Machine::this()))?
}
