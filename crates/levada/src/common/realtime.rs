// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--realtime`: a host whose workers run in a real-time class, before all threads of the usual class on their
//! cores.

use crate::common::output::{Failure, failure_with};
use levada_cores::{Machine, realtime};
use levada_host::{Host, HostOptions};
use levada_sys::realtime_allowed;

/// The host; or why it may not have the real-time priority that was asked for, and what to do.
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

/// Whether hosts of this user may have the least one: else what is missing, and what to do.
pub fn usable() -> Result<(), (String, String)> {
    const LEAST: u32 = 1;
    if !realtime_allowed(LEAST) {
        let (why, help) = missing(LEAST);
        return Err((why.to_string(), help));
    }
    compute_without_end().map_err(|e| (e.what, e.help.unwrap_or_default()))
}

fn refuse<T>(priority: u32) -> Result<T, Failure> {
    let what = format!("the workers cannot have real-time priority {priority}");
    let (why, help) = missing(priority);
    failure_with(format!("{what}: {why}"), help)
}

/// Why the system does not allow it, and what to do: what serves the workers has a priority two above theirs.
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

/// Where there is a limit of how long a thread with a real-time priority may compute without waiting, the system ends
/// the process that does.
fn compute_without_end() -> Result<(), Failure> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit is of this frame.
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

/// What is to be known about it.
pub fn note(options: &HostOptions) -> Option<String> {
    let asked = options.runtime.realtime > 0;
    asked.then(throttled)?
}

/// What the system keeps of each core for others.
pub fn throttled() -> Option<String> {
    realtime::throttle(&Machine::this())
}
