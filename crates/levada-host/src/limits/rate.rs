// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The measured rate and load of an application, and whether it meets its reserved rate.

use crate::app::HostedApp;
use crate::app::recent::STARTUP_S;
use crate::app::token_bucket::rate_bucket_state;
use crate::context::HostContext;
use crate::model::admission_report::no_units_text;
use crate::model::app_state::State;
use crate::model::events::EventKind;
use crate::util::lock::lock;
use levada_map::{Graph, RATE_TOLERANCE};
use levada_sys::Counters;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Length of the interval over which a reserved rate is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub struct RateMonitor {
    /// Start of the interval, and the units done until then.
    checked: (Instant, f64),
    samples: Samples,
    /// Overflow of the rate bucket at that time.
    overflow: f64,
    /// The user has been told that it counts no units; at the latest at its load, if that is known then.
    uncounted: bool,
}

/// Samples in the interval: how many, at how many of them all actors waited, and at how many its rate limit paused it.
/// An application that cannot keep up is always ready and has credit; one that waits at times keeps up with its input
/// or its consumer.
#[derive(Default)]
struct Samples {
    all: u32,
    waiting: u32,
    limited: u32,
}

impl RateMonitor {
    pub fn of(hosted: &HostedApp) -> RateMonitor {
        RateMonitor {
            checked: (Instant::now(), hosted.own_units()),
            samples: Samples::default(),
            overflow: rate_bucket_state(hosted).1,
            uncounted: !hosted.can_count,
        }
    }

    /// Starts a new interval: in the last one the application was paused or idle.
    fn restart(&mut self, hosted: &HostedApp) {
        *self = RateMonitor {
            uncounted: self.uncounted,
            ..RateMonitor::of(hosted)
        };
    }

    /// Counts a sample.
    pub fn count_sample(&mut self, hosted: &HostedApp, now: &Counters) {
        self.samples.all += 1;
        // Unknown for the fibers of a C program.
        let waits = !now.actors.is_empty() && now.actors.iter().all(|a| a.waits);
        self.samples.waiting += u32::from(waits);
        self.samples.limited += u32::from(!waits && rate_bucket_state(hosted).0);
    }

    /// Checks whether the reserved rate is met. `fires`: some actor has fired.
    pub fn check(&mut self, shared: &HostContext, hosted: &HostedApp, fires: bool) {
        let (Some(reserved), (at, before)) = (hosted.limits.rate, self.checked) else {
            return;
        };
        let elapsed = at.elapsed();
        // Low rates are checked over longer intervals.
        let judged = CHECK_INTERVAL.as_secs_f64().max(4.0 / reserved);
        if elapsed.as_secs_f64() < judged {
            return;
        }
        // All applications were idle for a while, and none was sampled.
        if elapsed.as_secs_f64() > 2.0 * judged {
            self.restart(hosted);
            return;
        }
        // A paused application cannot miss its rate.
        if shared.state(hosted.number) == Some(State::Paused) {
            self.restart(hosted);
            hosted.recent.rate_missed.store(false, Ordering::Relaxed);
            return;
        }
        if (fires || !hosted.can_count) && counts_nothing(hosted) {
            self.checked.0 = Instant::now();
            if !self.uncounted {
                let text = no_units_text(reserved);
                shared
                    .events
                    .emit(EventKind::RateUnmeasurable, &hosted.name, text);
            }
            self.uncounted = true;
            hosted.app.reserve_rate(false);
            return;
        }
        if std::mem::take(&mut self.uncounted) {
            hosted.app.reserve_rate(true);
        }
        let now = hosted.own_units();
        let measured = (now - before) / elapsed.as_secs_f64();
        self.checked = (Instant::now(), now);
        *lock(&hosted.recent.measured_rate) = Some(measured);
        let looks = std::mem::take(&mut self.samples);
        let lost = rate_bucket_state(hosted).1;
        // Credit was discarded: it has missed units, even if it has used the saved credit at once.
        let has_had_all = lost <= std::mem::replace(&mut self.overflow, lost);
        let kept_up = looks.waiting + if has_had_all { looks.limited } else { 0 };
        // A difference of one unit between two samples is not significant.
        let missing = reserved * (1.0 - RATE_TOLERANCE) - measured;
        let late = missing * elapsed.as_secs_f64() > 1.0 && kept_up * 10 < looks.all;
        let was = hosted.recent.rate_missed.swap(late, Ordering::Relaxed);
        if late && !was {
            hosted
                .recent
                .rate_miss_count
                .fetch_add(1, Ordering::Relaxed);
            let text = format!(
                "{measured:.1} of {reserved:.1} {} a second",
                unit_of(hosted)
            );
            shared
                .events
                .emit(EventKind::RateMissed, &hosted.name, text);
        }
    }
}

/// Its unit, as it reports it or has reported it in an earlier run.
fn unit_of(hosted: &HostedApp) -> String {
    let told = hosted.app.progress().map(|(unit, _)| unit);
    let before = || {
        hosted
            .profile
            .as_ref()?
            .units_done
            .clone()
            .map(|(unit, _)| unit)
    };
    let unit = told.or_else(before).filter(|unit| !unit.is_empty());
    unit.unwrap_or_else(|| "units".to_string())
}

/// It has counted no units, neither in this run nor in an earlier one.
fn counts_nothing(hosted: &HostedApp) -> bool {
    let counted = hosted
        .profile
        .as_ref()
        .is_some_and(|k| k.units_done.is_some());
    hosted.app.progress().is_none() && !counted
}

/// Updates idle detection. Returns whether an idle application has become active.
pub fn update_idle(hosted: &HostedApp, now: &Counters) -> bool {
    // An application that has just been loaded is about to start.
    if hosted.uptime_s() < STARTUP_S {
        return false;
    }
    let rate = lock(&hosted.recent.load);
    let takes = rate.as_ref().map_or(f64::MAX, |r| r.busy.iter().sum());
    let fibers: f64 = lock(&hosted.recent.fiber_load).iter().sum();
    let waits = now.actors.iter().all(|a| a.waits);
    lock(&hosted.recent.idle).sample(takes + fibers * 1e9, waits)
}

/// Weight of a new sample in the mean; time constant 0.3 s.
fn sample_weight(seconds: f64) -> f64 {
    1.0 - (-seconds / 0.3).exp()
}

/// Updates the mean usage of its fibers on each core. Returns whether they have used any.
pub fn update_fiber_load(
    hosted: &HostedApp,
    before: &Counters,
    now: &Counters,
    elapsed: Duration,
) -> bool {
    let seconds = elapsed.as_secs_f64();
    if seconds <= 0.0 {
        return false;
    }
    let mut mean = lock(&hosted.recent.fiber_load);
    mean.resize(now.fibers.len(), 0.0);
    let both = before.fibers.iter().zip(&now.fibers);
    for (mean, (before, now)) in mean.iter_mut().zip(both) {
        let part = now.saturating_sub(*before).as_secs_f64() / seconds;
        *mean += sample_weight(seconds) * (part.min(1.0) - *mean);
    }
    before.fibers != now.fibers
}

/// Resets the means after a time without work. `nothing` is the application's graph without work; none: the load is
/// kept, for an application that continues with it.
pub fn reset_load(hosted: &HostedApp, nothing: Option<Graph>) {
    lock(&hosted.recent.fiber_load).fill(0.0);
    if let Some(measured) = &mut *lock(&hosted.recent.measured_rate) {
        *measured = 0.0;
    }
    if nothing.is_some() {
        *lock(&hosted.recent.load) = nothing;
    }
}

/// Updates the mean load, with newer samples weighing more.
pub fn update_load(hosted: &HostedApp, did: &Graph, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    if seconds <= 0.0 {
        return;
    }
    let weight = sample_weight(seconds);
    // The CPU time of an activation is counted when it ends, but the usage is at most one core.
    let of_second = |busy: f64| (busy / seconds).min(1e9);
    let mut rate = lock(&hosted.recent.load);
    match rate.as_mut().filter(|r| r.busy.len() == did.busy.len()) {
        Some(rate) => {
            for (mean, new) in rate.busy.iter_mut().zip(&did.busy) {
                *mean += weight * (of_second(*new) - *mean);
            }
        }
        None => {
            let mut first = did.clone();
            first.busy.iter_mut().for_each(|b| *b = of_second(*b));
            *rate = Some(first);
        }
    }
}
