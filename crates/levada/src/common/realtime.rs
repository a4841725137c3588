// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--realtime`: a host with workers in a real-time class, before all threads of the usual class on their cores.

use crate::common::output::{Failure, failure_with};
use levada_cores::{Machine, realtime};
use levada_host::{Host, HostOptions};
use levada_sys::realtime_allowed;

/// Creates the host; fails with a help text if its real-time priority is not permitted.
pub fn start(options: &HostOptions) -> Result<Host, Failure> {
    let priority = options.runtime.realtime;
    if priority > 0 {
        if !realtime_allowed(priority) {
            return refuse(priority);
        }
        compute_without_end()?;
    }
    Ok(Host::new(options)?)
}

/// Whether hosts of this user may have the lowest real-time priority; else what is missing, and what to do.
pub fn usable() -> Result<(), (String, String)> {
    const PRIORITY_MIN: u32 = 1;
    if !realtime_allowed(PRIORITY_MIN) {
        let (why, help) = missing(PRIORITY_MIN);
        return Err((why.to_string(), help));
    }
    compute_without_end().map_err(|e| (e.what, e.help.unwrap_or_default()))
}

fn refuse<T>(priority: u32) -> Result<T, Failure> {
    let what = format!("the workers cannot have real-time priority {priority}");
    let (why, help) = missing(priority);
    failure_with(format!("{what}: {why}"), help)
}

/// Why the system does not permit it, and what to do. Service threads need a priority two above the workers'.
fn missing(priority: u32) -> (&'static str, String) {
    let most = priority + 2;
    let help = format!(
        "be root, or have a limit of at least {most} (ulimit -r {most}; LimitRTPRIO={most} in a unit of systemd): \
         what serves the workers goes before them"
    );
    let own = std::process::id() as i32;
    let (why, help) = realtime::refused(&Machine::this(), own, &help);
    (why.unwrap_or("the system does not allow it"), help)
}

/// Removes the limit on CPU time without blocking (RLIMIT_RTTIME), at which the system ends processes with real-time
/// threads.
fn compute_without_end() -> Result<(), Failure> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit is a local variable.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &mut limit) } == 0;
    if !known || limit.rlim_cur == libc::RLIM_INFINITY {
        return Ok(());
    }
    let (micros, most) = (limit.rlim_cur, libc::RLIM_INFINITY);
    limit = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: as above.
    if unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &limit) } == 0 {
        return Ok(());
    }
    failure_with(
        format!(
            "at a real-time priority the system ends what computes for {micros} µs without waiting"
        ),
        "lift that limit (ulimit -R unlimited; LimitRTTIME=infinity in a unit of systemd)",
    )
}

/// A note about throttling, if it matters.
pub fn note(options: &HostOptions) -> Option<String> {
    let asked = options.runtime.realtime > 0;
    asked.then(throttled)?
}

/// The part of each core that the system reserves for non-real-time threads.
pub fn throttled() -> Option<String> {
    realtime::throttle(&Machine::this())
}
