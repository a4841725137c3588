// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an application may have, kept: a rate that it is promised is what it gets and no more, and of the
//! cores it takes no more than its share.
//!
//! Each limit is a bucket that fills with time and is emptied by what the application does. While one is
//! empty the application is held, as if it were paused; its elements wait where they are. Only an
//! application with a limit has a thread that looks after it, which sleeps as long as nothing could be
//! wrong.
//!
//! A rate is of time as it goes by outside. A share is of the time that its actors had of cores, or slept in natives on
//! them; what a worker waits for its core, since other programs have it, nobody has had.
//!
//! What it has had too much of it pays for, and not more than a second's worth: nobody stands still for long for
//! what lies behind. Only what firings take that had begun when it was told to stop is paid for in whole.

use crate::app::Hosted;
use crate::app::token_bucket::{Bucket, Looked, busy, used};
use crate::context::Shared;
use crate::model::app_state::State;
use crate::util::lock::lock;
use levada_sys::Status;
use std::sync::{Weak, atomic::Ordering, mpsc};
use std::time::{Duration, Instant};

/// At what works it looks when its bucket may be empty, but never sooner or later than this; and ever more
/// seldom at what does nothing.
const SHORTEST: Duration = Duration::from_micros(500);
const USUAL: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(50);
/// At what is paused, or has to wait for so long.
const AWAY: Duration = Duration::from_millis(200);

/// Looks at both of its limits now, and keeps what was seen. True: something is left of each. Who asks has `held` locked,
/// so that a look and what follows from it are one.
fn look_by(hosted: &Hosted, mut look: impl FnMut(&mut Bucket, f64, f64)) -> bool {
    let (mut limits, now) = (lock(&hosted.lately.limits), Instant::now());
    let mut left = true;
    for (which, limit) in limits.iter_mut().enumerate() {
        let Some(Looked { at, bucket }) = limit else {
            continue;
        };
        let seconds = now.saturating_duration_since(*at).as_secs_f64();
        let used = used(hosted, which, bucket);
        look(bucket, seconds, used);
        *at = now;
        left &= bucket.level > 0.0;
    }
    left
}

fn look(hosted: &Hosted, held: bool) -> bool {
    look_by(hosted, |bucket, seconds, used| {
        bucket.look(seconds, used, held);
    })
}

/// It has been paused: what it did until now is counted as of one that ran, or that its limits held.
pub(crate) fn pauses(hosted: &Hosted, held: bool) {
    look(hosted, held);
}

/// It is to go on after a pause. True: its limits hold it, since nothing is left of one of them; it is not resumed before
/// there is. Who looks after it is told.
pub(crate) fn goes_on(hosted: &Hosted) -> bool {
    let left = look_by(hosted, |bucket, seconds, used| {
        bucket.rest(seconds, used);
    });
    if let Some(keeper) = hosted.lately.keeper.get() {
        keeper.unpark();
    }
    !left && !ends(hosted)
}

/// A network that drains takes nothing new: the sooner it has done, the better for all. A C program that is asked to end may
/// go on for as long as it likes.
fn ends(hosted: &Hosted) -> bool {
    hosted.told.drains.load(Ordering::Relaxed) && !hosted.app.network().is_program()
}

/// Starts an application, says how that went, and looks after it until it has ended.
pub fn start(
    shared: &Weak<Shared>,
    hosted: &Weak<Hosted>,
    said: &mpsc::Sender<Result<(), levada_sys::Error>>,
) {
    if let Some(shared) = shared.upgrade() {
        shared.runtime.serve();
    }
    let Some((started, pause)) = hosted.upgrade().map(|h| (begin(&h), pause_of(&h))) else {
        return;
    };
    let runs = started.is_ok();
    // Who has asked for it waits.
    let _ = said.send(started);
    if runs {
        keep(shared, hosted, pause);
    }
}

/// So long nothing can be wrong: until there is something again, or for as long as what there is lasts.
fn pause_of(hosted: &Hosted) -> Duration {
    let limits = *lock(&hosted.lately.limits);
    let all = || limits.iter().flatten().map(|looked| &looked.bucket);
    let wait = all().map(Bucket::wait).fold(0.0, f64::max);
    if all().any(|b| b.level <= 0.0) {
        return Duration::from_secs_f64(wait.min(1.0)).clamp(SHORTEST, AWAY);
    }
    let lasts = all().map(Bucket::lasts).fold(f64::INFINITY, f64::min);
    Duration::from_secs_f64(lasts.min(1.0)).clamp(SHORTEST, USUAL)
}

/// It begins with what the version before it has left, and if that is nothing it is held from its beginning: or each of
/// many versions in a row would have what it takes until the first look at it.
fn begin(hosted: &Hosted) -> Result<(), levada_sys::Error> {
    let mut held = hosted.held();
    let (before, at) = (*lock(&hosted.lineage.left), Instant::now());
    let buckets = [
        (hosted.limits.rate).map(|r| Bucket::of_rate(r).of_next(before[0])),
        (hosted.limits.share).map(|s| Bucket::of_share(s).of_next(before[1])),
    ];
    let nothing_left = buckets.iter().flatten().any(|b| b.level <= 0.0);
    let started = match nothing_left {
        true => hosted.app.start_paused(),
        false => hosted.app.start(),
    };
    // Else somebody else has started it, and looks after it.
    if started.is_ok() {
        *held = nothing_left;
        let _ = hosted.lately.keeper.set(std::thread::current());
        *lock(&hosted.lately.limits) = buckets.map(|b| b.map(|bucket| Looked { at, bucket }));
    }
    started
}

fn keep(shared: &Weak<Shared>, hosted: &Weak<Hosted>, mut pause: Duration) {
    let mut before = 0.0;
    loop {
        // Who lets it go on after a pause wakes this thread.
        std::thread::park_timeout(pause);
        // Nothing is held while it sleeps: who is gone is gone.
        let (Some(shared), Some(hosted)) = (shared.upgrade(), hosted.upgrade()) else {
            return;
        };
        let (shared, hosted) = (&*shared, &*hosted);
        let mut held = hosted.held();
        match shared.state(hosted.number) {
            None | Some(State::Ended | State::Failed | State::Held) => return,
            Some(State::Loaded | State::Paused)
                if !hosted.lineage.sought.load(Ordering::Relaxed) =>
            {
                pause = AWAY;
                continue;
            }
            Some(_) => {}
        }
        let was_held = *held;
        let left = look(hosted, was_held);
        hold(shared, hosted, !left, &mut held);
        drop(held);
        let now = busy(hosted);
        pause = match left && !was_held && now <= before {
            true => (pause * 2).min(LONGEST),
            false => pause_of(hosted),
        };
        before = now;
    }
}

/// Lets nothing of it run, or lets it go on; what a user has paused stays so.
fn hold(shared: &Shared, hosted: &Hosted, wanted: bool, held: &mut bool) {
    let state = shared.state(hosted.number);
    let runs = match state {
        Some(State::Running | State::Draining) => true,
        Some(State::Paused) => hosted.lineage.sought.load(Ordering::Relaxed),
        _ => false,
    };
    let wanted = wanted && !(state == Some(State::Draining) && ends(hosted));
    if *held == wanted || !runs {
        return;
    }
    let done = match wanted {
        // The firing that runs now is paid for later: it is not waited for.
        true => hosted.app.pause(Duration::ZERO),
        false => hosted.app.resume(),
    };
    if done.is_ok() || matches!(done, Err(e) if e.status == Status::TIME) {
        *held = wanted;
    }
}
