// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an application does in a second, as it was measured, and whether that is what it was promised.

use crate::app::Hosted;
use crate::app::recent::BEGINS;
use crate::app::token_bucket::of_its_rate;
use crate::context::Shared;
use crate::model::admission_report::no_units;
use crate::model::app_state::State;
use crate::model::events::What;
use crate::util::lock::lock;
use levada_map::{Graph, RATE_TOLERANCE};
use levada_sys::Counters;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A promise is judged by what was done in so long a time.
const JUDGED: Duration = Duration::from_secs(1);

pub struct Pace {
    /// What it had done at some time, by which its promise is judged.
    told: (Instant, f64),
    looks: Looks,
    /// What its rate had given it in vain then.
    lost: f64,
    /// It has been told that it counts nothing, at the latest when it was loaded where that is known then.
    uncounted: bool,
}

/// Since the last judgement: how often it was looked at, and all of it waited then, or it was held since it had had its rate.
/// Who cannot keep up has always something to do, and something left; who has nothing to do at times keeps up with its
/// input, or with who takes its output.
#[derive(Default)]
struct Looks {
    all: u32,
    waits: u32,
    held: u32,
}

impl Pace {
    pub fn of(hosted: &Hosted) -> Pace {
        Pace {
            told: (Instant::now(), hosted.done()),
            looks: Looks::default(),
            lost: of_its_rate(hosted).1,
            uncounted: !hosted.counts,
        }
    }

    /// What it did until now is not judged: it was to do nothing, or had nothing to do.
    fn begin_anew(&mut self, hosted: &Hosted) {
        *self = Pace {
            uncounted: self.uncounted,
            ..Pace::of(hosted)
        };
    }

    /// It has been looked at.
    pub fn seen(&mut self, hosted: &Hosted, now: &Counters) {
        self.looks.all += 1;
        // Of a C program's fibers that is not known.
        let waits = !now.actors.is_empty() && now.actors.iter().all(|a| a.waits);
        self.looks.waits += u32::from(waits);
        self.looks.held += u32::from(!waits && of_its_rate(hosted).0);
    }

    /// Does it what it was promised? `fires`: some actor of it has fired.
    pub fn judge(&mut self, shared: &Shared, hosted: &Hosted, fires: bool) {
        let (Some(promised), (at, before)) = (hosted.limits.rate, self.told) else {
            return;
        };
        let elapsed = at.elapsed();
        // What happens seldom is looked at for longer.
        let judged = JUDGED.as_secs_f64().max(4.0 / promised);
        if elapsed.as_secs_f64() < judged {
            return;
        }
        // For a while nobody had anything to do, and it was not looked at.
        if elapsed.as_secs_f64() > 2.0 * judged {
            self.begin_anew(hosted);
            return;
        }
        // What stands still because it was told to has all that it is to have.
        if shared.state(hosted.number) == Some(State::Paused) {
            self.begin_anew(hosted);
            hosted.lately.is_late.store(false, Ordering::Relaxed);
            return;
        }
        if (fires || !hosted.counts) && counts_nothing(hosted) {
            self.told.0 = Instant::now();
            if !self.uncounted {
                let text = no_units(promised);
                shared.events.tell(What::Uncounted, &hosted.name, text);
            }
            self.uncounted = true;
            hosted.app.promise(false);
            return;
        }
        if std::mem::take(&mut self.uncounted) {
            hosted.app.promise(true);
        }
        let now = hosted.done();
        let pace = (now - before) / elapsed.as_secs_f64();
        self.told = (Instant::now(), now);
        *lock(&hosted.lately.pace) = Some(pace);
        let looks = std::mem::take(&mut self.looks);
        let lost = of_its_rate(hosted).1;
        // Who has missed some of it, and has had what was saved at once, is late all the same.
        let has_had_all = lost <= std::mem::replace(&mut self.lost, lost);
        let kept_up = looks.waits + if has_had_all { looks.held } else { 0 };
        // Between two looks one unit more or less is none.
        let missing = promised * (1.0 - RATE_TOLERANCE) - pace;
        let late = missing * elapsed.as_secs_f64() > 1.0 && kept_up * 10 < looks.all;
        let was = hosted.lately.is_late.swap(late, Ordering::Relaxed);
        if late && !was {
            hosted.lately.late.fetch_add(1, Ordering::Relaxed);
            let text = format!("{pace:.1} of {promised:.1} {} a second", unit_of(hosted));
            shared.events.tell(What::Late, &hosted.name, text);
        }
    }
}

/// What it counts, as it says itself, or has said in an earlier run.
fn unit_of(hosted: &Hosted) -> String {
    let told = hosted.app.progress().map(|(unit, _)| unit);
    let before = || hosted.known.as_ref()?.done.clone().map(|(unit, _)| unit);
    let unit = told.or_else(before).filter(|unit| !unit.is_empty());
    unit.unwrap_or_else(|| "units".to_string())
}

/// It has counted nothing yet, nor in an earlier run.
fn counts_nothing(hosted: &Hosted) -> bool {
    let counted = hosted.known.as_ref().is_some_and(|k| k.done.is_some());
    hosted.app.progress().is_none() && !counted
}

/// Whether it has rested until now, and has begun again: by what it does in a second, and by its counters.
pub fn rest(hosted: &Hosted, now: &Counters) -> bool {
    // What has just been loaded is about to begin.
    if hosted.seconds() < BEGINS {
        return false;
    }
    let rate = lock(&hosted.lately.rate);
    let takes = rate.as_ref().map_or(f64::MAX, |r| r.busy.iter().sum());
    let fibers: f64 = lock(&hosted.lately.fibers).iter().sum();
    let waits = now.actors.iter().all(|a| a.waits);
    lock(&hosted.lately.resting).look(takes + fibers * 1e9, waits)
}

/// So much newer samples count.
fn weight(seconds: f64) -> f64 {
    1.0 - (-seconds / 0.3).exp()
}

/// The part of a core that its fibers took on each since `before`, in the same way; whether they took any.
pub fn remember_fibers(
    hosted: &Hosted,
    before: &Counters,
    now: &Counters,
    elapsed: Duration,
) -> bool {
    let seconds = elapsed.as_secs_f64();
    if seconds <= 0.0 {
        return false;
    }
    let mut mean = lock(&hosted.lately.fibers);
    mean.resize(now.fibers.len(), 0.0);
    let both = before.fibers.iter().zip(&now.fibers);
    for (mean, (before, now)) in mean.iter_mut().zip(both) {
        let part = now.saturating_sub(*before).as_secs_f64() / seconds;
        *mean += weight(seconds) * (part.min(1.0) - *mean);
    }
    before.fibers != now.fibers
}

/// Nobody has done anything for a while: nor has it. `nothing` is its graph in which nobody does; none: what it did is kept,
/// since it goes on with that.
pub fn forget(hosted: &Hosted, nothing: Option<Graph>) {
    lock(&hosted.lately.fibers).fill(0.0);
    if let Some(pace) = &mut *lock(&hosted.lately.pace) {
        *pace = 0.0;
    }
    if nothing.is_some() {
        *lock(&hosted.lately.rate) = nothing;
    }
}

/// What it does in a second, newer samples counting more.
pub fn remember(hosted: &Hosted, did: &Graph, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    if seconds <= 0.0 {
        return;
    }
    let weight = weight(seconds);
    // An activation that ends is counted whole, but nobody takes more than a core.
    let of_second = |busy: f64| (busy / seconds).min(1e9);
    let mut rate = lock(&hosted.lately.rate);
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
