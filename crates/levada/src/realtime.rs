// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--realtime`: a host whose workers go before all that is of the usual class on their cores.

use crate::output::{Failure, failure_with};
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
    asked.then(|| realtime::throttle(&Machine::this()))?
}
