// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Enforces per-application limits with token buckets: a rate (units per second of wall-clock time) and a CPU quota
//! (core-seconds per second; CPU time of actors, and time that natives sleep on a worker; not the time that a
//! worker waits for its core).
//!
//! An application with an empty bucket is paused; its channels keep their contents. Only an application with a
//! limit has an enforcement thread, which sleeps as long as no bucket can become empty.

use crate::app::HostedApp;
use crate::app::token_bucket::{BucketSnapshot, TokenBucket, busy_s, consumed};
use crate::context::HostContext;
use crate::model::app_state::State;
use crate::util::lock::lock;
use levada_sys::Status;
use std::sync::{Weak, atomic::Ordering, mpsc};
use std::time::{Duration, Instant};

/// Bounds of the interval between checks while the bucket may become empty; the interval doubles, up to the last one,
/// while the application does nothing.
const CHECK_INTERVAL_MIN: Duration = Duration::from_micros(500);
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(5);
const CHECK_INTERVAL_IDLE_MAX: Duration = Duration::from_millis(50);
/// Interval for a paused application, and the longest wait for credit.
const CHECK_INTERVAL_PAUSED: Duration = Duration::from_millis(200);

/// Updates both buckets with the current counters. Returns true if both have credit. The caller holds the lock of
/// `limited`, so that the update and its consequence are atomic.
fn update_buckets_with(
    hosted: &HostedApp,
    mut update: impl FnMut(&mut TokenBucket, f64, f64),
) -> bool {
    let (mut limits, now) = (lock(&hosted.recent.buckets), Instant::now());
    let mut left = true;
    for (which, limit) in limits.iter_mut().enumerate() {
        let Some(BucketSnapshot { at, bucket }) = limit else {
            continue;
        };
        let seconds = now.saturating_duration_since(*at).as_secs_f64();
        let used = consumed(hosted, which, bucket);
        update(bucket, seconds, used);
        *at = now;
        left &= bucket.level > 0.0;
    }
    left
}

fn update_buckets(hosted: &HostedApp, held: bool) -> bool {
    update_buckets_with(hosted, |bucket, seconds, used| {
        bucket.update(seconds, used, held);
    })
}

/// After a pause: use until now counts as that of a running application, or of one that was paused by its limits
/// (`held`).
pub(crate) fn on_pause(hosted: &HostedApp, held: bool) {
    update_buckets(hosted, held);
}

/// Before a resume. Returns true if a limit has no credit: the application stays paused until there is some. Wakes the
/// enforcement thread.
pub(crate) fn on_resume(hosted: &HostedApp) -> bool {
    let left = update_buckets_with(hosted, |bucket, seconds, used| {
        bucket.update_after_pause(seconds, used);
    });
    if let Some(enforcer) = hosted.recent.enforcer.get() {
        enforcer.unpark();
    }
    !left && !is_draining_network(hosted)
}

/// A draining network takes no new input, and the sooner it ends the better. A draining C program may run for as long
/// as it likes.
fn is_draining_network(hosted: &HostedApp) -> bool {
    hosted.control.draining.load(Ordering::Relaxed) && !hosted.app.network().is_program()
}

/// Body of the enforcement thread: starts the application, reports the result, and enforces its limits until it has
/// ended.
pub fn run(
    shared: &Weak<HostContext>,
    hosted: &Weak<HostedApp>,
    said: &mpsc::Sender<Result<(), levada_sys::Error>>,
) {
    if let Some(shared) = shared.upgrade() {
        shared.runtime.serve();
    }
    let Some((started, pause)) = hosted.upgrade().map(|h| (start_app(&h), next_check(&h))) else {
        return;
    };
    let runs = started.is_ok();
    // The caller waits for the result.
    let _ = said.send(started);
    if runs {
        enforce_until_end(shared, hosted, pause);
    }
}

/// The time until a bucket can change from credit to no credit, or back.
fn next_check(hosted: &HostedApp) -> Duration {
    let limits = *lock(&hosted.recent.buckets);
    let all = || limits.iter().flatten().map(|looked| &looked.bucket);
    let wait = all().map(TokenBucket::refill_s).fold(0.0, f64::max);
    if all().any(|b| b.level <= 0.0) {
        return Duration::from_secs_f64(wait.min(1.0))
            .clamp(CHECK_INTERVAL_MIN, CHECK_INTERVAL_PAUSED);
    }
    let lasts = all()
        .map(TokenBucket::drain_s)
        .fold(f64::INFINITY, f64::min);
    Duration::from_secs_f64(lasts.min(1.0)).clamp(CHECK_INTERVAL_MIN, CHECK_INTERVAL_MAX)
}

/// Starts the application with the credit of its previous version. Without credit it starts paused; otherwise each of
/// many versions in a row would run until its first check.
fn start_app(hosted: &HostedApp) -> Result<(), levada_sys::Error> {
    let mut held = hosted.lock_limited();
    let (before, at) = (*lock(&hosted.versions.inherited_credits), Instant::now());
    let buckets = [
        (hosted.limits.rate).map(|r| TokenBucket::of_rate(r).with_credit(before[0])),
        (hosted.limits.cpus).map(|s| TokenBucket::of_share(s).with_credit(before[1])),
    ];
    let nothing_left = buckets.iter().flatten().any(|b| b.level <= 0.0);
    let started = if nothing_left {
        hosted.app.start_paused()
    } else {
        hosted.app.start()
    };
    // Otherwise another thread has started it, and enforces its limits.
    if started.is_ok() {
        *held = nothing_left;
        let _ = hosted.recent.enforcer.set(std::thread::current());
        *lock(&hosted.recent.buckets) =
            buckets.map(|b| b.map(|bucket| BucketSnapshot { at, bucket }));
    }
    started
}

fn enforce_until_end(shared: &Weak<HostContext>, hosted: &Weak<HostedApp>, mut pause: Duration) {
    let mut before = 0.0;
    loop {
        // A resume wakes this thread.
        std::thread::park_timeout(pause);
        // While it sleeps it holds no reference, so that a removed application is freed.
        let (Some(shared), Some(hosted)) = (shared.upgrade(), hosted.upgrade()) else {
            return;
        };
        let (shared, hosted) = (&*shared, &*hosted);
        let mut held = hosted.lock_limited();
        match shared.state(hosted.number) {
            None | Some(State::Ended | State::Failed | State::Quarantined) => return,
            Some(State::Loaded | State::Paused)
                if !hosted.versions.upgrade_pending.load(Ordering::Relaxed) =>
            {
                pause = CHECK_INTERVAL_PAUSED;
                continue;
            }
            Some(_) => {}
        }
        let was_held = *held;
        let left = update_buckets(hosted, was_held);
        set_limited(shared, hosted, !left, &mut held);
        drop(held);
        let now = busy_s(hosted);
        pause = if left && !was_held && now <= before {
            (pause * 2).min(CHECK_INTERVAL_IDLE_MAX)
        } else {
            next_check(hosted)
        };
        before = now;
    }
}

/// Pauses or resumes the application by its limits; one that a user has paused stays paused.
fn set_limited(shared: &HostContext, hosted: &HostedApp, wanted: bool, held: &mut bool) {
    let state = shared.state(hosted.number);
    let runs = match state {
        Some(State::Running | State::Draining) => true,
        Some(State::Paused) => hosted.versions.upgrade_pending.load(Ordering::Relaxed),
        _ => false,
    };
    let wanted = wanted && !(state == Some(State::Draining) && is_draining_network(hosted));
    if *held == wanted || !runs {
        return;
    }
    let done = if wanted {
        // The running firing is not awaited; its CPU time becomes debt.
        hosted.app.pause(Duration::ZERO)
    } else {
        hosted.app.resume()
    };
    if done.is_ok() || matches!(done, Err(e) if e.status == Status::TIMEOUT) {
        *held = wanted;
    }
}
