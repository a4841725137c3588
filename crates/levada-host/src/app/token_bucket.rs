// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Token buckets of an application: its rate and its share.

use crate::app::Hosted;
use crate::util::lock::lock;
use levada_map::{RATE_BURST_S, RATE_BURST_UNITS};
use std::time::Instant;

/// What was not used of a share is kept for so long; of a rate for longer, so that who had to wait for a long
/// firing of another makes up for it.
const KEPT: f64 = 0.05;
/// Of what was used too much so many seconds' worth is paid for.
const OWED: f64 = 1.0;

/// Fills at `rate` a second, up to `most`.
#[derive(Clone, Copy)]
pub(crate) struct Bucket {
    pub(crate) rate: f64,
    pub(crate) most: f64,
    pub(crate) level: f64,
    /// It never owes more than this.
    pub(crate) owes: f64,
    /// But for what is used while it is held: that is what firings take that had begun.
    pub(crate) firings: bool,
    pub(crate) used: f64,
    /// What is used a second while nothing holds it.
    pub(crate) speed: f64,
    /// What has come in vain, since it was full.
    pub(crate) lost: f64,
    /// The level of a new bucket; a pause fills it no further than that.
    pub(crate) begins: f64,
}

impl Bucket {
    /// Of units.
    pub(crate) fn of_rate(rate: f64) -> Bucket {
        Bucket {
            owes: (rate * OWED).max(RATE_BURST_UNITS),
            ..Bucket::new(rate, RATE_BURST_S, RATE_BURST_UNITS)
        }
    }

    /// Of seconds on cores.
    pub(crate) fn of_share(share: f64) -> Bucket {
        Bucket {
            owes: share * OWED,
            firings: true,
            ..Bucket::new(share, KEPT, 0.005)
        }
    }

    /// A new version begins with no more than what the one before it has left, which fills in so many seconds, or owes.
    pub(crate) fn after(mut self, left: Option<f64>) -> Bucket {
        self.level = self
            .level
            .min(left.map_or(f64::INFINITY, |seconds| seconds * self.rate));
        if !self.firings {
            self.level = self.level.max(-self.owes);
        }
        self
    }

    /// The same, and with what is known of how fast it is used.
    pub(crate) fn of_next(self, left: Option<Left>) -> Bucket {
        Bucket {
            speed: left.map_or(0.0, |left| left.speed),
            ..self.after(left.map(|left| left.now()))
        }
    }

    /// It begins with no more than is kept of anything.
    pub(crate) fn new(rate: f64, kept: f64, least: f64) -> Bucket {
        let begins = (rate * KEPT).max(least);
        Bucket {
            rate,
            most: (rate * kept).max(least),
            level: begins,
            begins,
            owes: 0.0,
            firings: false,
            used: 0.0,
            speed: 0.0,
            lost: 0.0,
        }
    }

    /// So much is used in all, after so many seconds more, in which it was held or not; whether there is
    /// something left.
    pub(crate) fn look(&mut self, seconds: f64, used: f64, held: bool) -> bool {
        if !held && seconds > 0.0 {
            // What comes by gulps is as fast as the last few of them.
            self.speed = ((used - self.used) / seconds).max(self.speed * 0.9);
        }
        let owed = self.level;
        // What counts anew has not given anything back.
        self.level += self.rate * seconds - (used - self.used).max(0.0);
        self.lost += (self.level - self.most).max(0.0);
        self.level = self.level.min(self.most);
        if !(held && self.firings) {
            // What is owed already is not forgotten.
            self.level = self.level.max(owed.min(-self.owes));
        }
        self.used = used;
        self.level > 0.0
    }

    /// The same after a pause of so many seconds. They pay what is owed, and save no more than there is at a beginning;
    /// what was used meanwhile are the firings that had begun before the pause.
    pub(crate) fn rest(&mut self, seconds: f64, used: f64) -> bool {
        let (level, lost) = (self.level, self.lost);
        self.level = level.max((level + self.rate * seconds).min(self.begins));
        self.look(0.0, used, true);
        self.lost = lost;
        self.level > 0.0
    }

    /// What is left when so much is used in all: the seconds in which it fills.
    pub(crate) fn left(&self, used: f64) -> f64 {
        (self.level - (used - self.used).max(0.0)) / self.rate
    }

    /// Seconds until there is something again.
    pub(crate) fn wait(&self) -> f64 {
        (-self.level / self.rate).max(0.0)
    }

    /// Seconds for which it lasts.
    pub(crate) fn lasts(&self) -> f64 {
        match self.speed > 0.0 {
            true => self.level.max(0.0) / self.speed,
            false => f64::INFINITY,
        }
    }
}

/// What is left of a limit: so many seconds' worth at this time, and what has come since.
#[derive(Clone, Copy)]
pub(crate) struct Left {
    at: Instant,
    seconds: f64,
    speed: f64,
}

impl Left {
    fn now(&self) -> f64 {
        self.seconds + self.at.elapsed().as_secs_f64()
    }
}

/// A limit as it was at this time.
#[derive(Clone, Copy)]
pub(crate) struct Looked {
    pub(crate) at: Instant,
    pub(crate) bucket: Bucket,
}

/// What a version that has ended has left of its rate and its share: who takes its place has no more.
pub(crate) fn left(old: &Hosted) -> [Option<Left>; 2] {
    let (looked, before) = (*lock(&old.lately.limits), *lock(&old.lineage.left));
    [0, 1].map(|i| match looked[i] {
        Some(Looked { at, bucket }) => Some(Left {
            at,
            seconds: bucket.left(used(old, i, &bucket)),
            speed: bucket.speed,
        }),
        // It has not begun.
        None => before[i],
    })
}

/// Whether it is held since it has had all that its rate gives it, for now; and what that has given it in vain until now.
pub(crate) fn of_its_rate(hosted: &Hosted) -> (bool, f64) {
    let rate = lock(&hosted.lately.limits)[0];
    rate.map_or((false, 0.0), |Looked { bucket, .. }| {
        (bucket.level <= 0.0, bucket.lost)
    })
}

pub(crate) fn busy(hosted: &Hosted) -> f64 {
    let counters = hosted.app.counters().unwrap_or_default();
    counters.busy().as_secs_f64()
}

/// What has been used of its rate (0) or of its share (1) in all. What it computes never becomes less.
pub(crate) fn used(hosted: &Hosted, which: usize, bucket: &Bucket) -> f64 {
    match which {
        0 => hosted.done(),
        _ => busy(hosted).max(bucket.used),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_what_it_gets_and_keeps_little() {
        let mut bucket = Bucket::new(100.0, KEPT, 2.0);
        bucket.owes = 100.0;
        assert!(bucket.look(0.01, 4.0, false));
        // 400 a second: the one that is left is gone in a 400th.
        assert!((bucket.lasts() - 2.0 / 400.0).abs() < 1e-9);
        assert!(!bucket.look(0.0, 10.0, false));
        assert!((bucket.wait() - 0.04).abs() < 1e-9);
        assert!(bucket.look(0.06, 10.0, true));
        assert_eq!(bucket.lost, 0.0);
        // However long it did nothing, it may not make up for that.
        assert!(bucket.look(100.0, 10.0, true));
        assert!(bucket.lost > 9900.0);
        assert!(!bucket.look(0.0, 15.5, false));
    }

    /// However often it is replaced, all versions together have what one has.
    #[test]
    fn a_new_version_begins_with_what_the_old_one_has_left() {
        let mut bucket = Bucket::of_rate(100.0);
        assert!(bucket.look(0.01, 4.0, false));
        let left = bucket.left(6.0) + 0.01;
        assert!((left - 0.01).abs() < 1e-9, "{left}");
        assert!((Bucket::of_rate(100.0).after(Some(left)).level - 1.0).abs() < 1e-9);
        // What is owed takes no longer where the new one has less.
        let owed = bucket.left(1000.0);
        assert!((Bucket::of_rate(100.0).after(Some(owed)).wait() - OWED).abs() < 1e-9);
        assert!((Bucket::of_rate(10.0).after(Some(owed)).wait() - OWED).abs() < 1e-9);
        assert!((Bucket::of_share(0.1).after(Some(-2.0)).wait() - 2.0).abs() < 1e-9);
        // But not more than at a beginning.
        let saved = bucket.left(6.0) + 100.0;
        let fresh = Bucket::of_rate(100.0).level;
        assert_eq!(Bucket::of_rate(100.0).after(Some(saved)).level, fresh);
        assert_eq!(Bucket::of_rate(100.0).after(None).level, fresh);
    }

    /// It began to be looked after late, was not held for a minute, or counts by thousands: a second later it goes on.
    #[test]
    fn nobody_waits_for_long_for_what_lies_behind() {
        for mut bucket in [Bucket::of_rate(100.0), Bucket::of_share(0.3)] {
            let mut used = 6000.0;
            assert!(!bucket.look(0.01, used, false));
            assert!((bucket.wait() - OWED).abs() < 1e-9);
            for _ in 0..60 {
                used += 990.0;
                assert!(!bucket.look(1.0, used, false));
                assert!(bucket.wait() <= OWED + 1e-9);
            }
            assert!(bucket.look(OWED + 0.01, used, true));
            // Once is once: it has no more than it is allowed after that.
            assert!(!bucket.look(0.0, used + bucket.rate, true));
        }
        // What was counted while it was held makes no difference for a rate, and what counts anew gives nothing.
        let mut bucket = Bucket::of_rate(100.0);
        assert!(!bucket.look(0.01, 1e6, true));
        assert!((bucket.wait() - OWED).abs() < 1e-9);
        assert!(!bucket.look(0.5, 0.0, true));
        assert!((bucket.wait() - OWED + 0.5).abs() < 1e-9);
        // One unit in ten seconds is waited for, though that is more than a second.
        let mut seldom = Bucket::of_rate(0.1);
        assert!(!seldom.look(0.0, 3.0, false));
        assert!((seldom.wait() - 10.0).abs() < 1e-9);
    }

    /// A firing that had begun when its application was told to stop is paid for in whole, and once.
    #[test]
    fn a_long_firing_takes_more_than_a_share_and_is_paid_for() {
        let mut bucket = Bucket::of_share(0.5);
        assert!(!bucket.look(0.1, 0.1, false));
        for tenths in 2..=50 {
            assert!(!bucket.look(0.1, f64::from(tenths) * 0.1, true));
        }
        // Five seconds of one core, of which it had half.
        assert!((bucket.wait() - 5.0).abs() < 0.1);
        // Paused and resumed, it owes what it owed.
        assert!(!bucket.look(0.1, 5.0, false));
        assert!((bucket.wait() - 4.9).abs() < 0.1);
        assert!(bucket.look(5.0, 5.0, true));
    }

    /// Each pause pays what it lasts, and no more is saved in it than there is at a beginning.
    #[test]
    fn a_pause_pays_what_is_owed_and_saves_little() {
        let mut bucket = Bucket::of_rate(100.0);
        assert!(!bucket.look(0.0, 55.0, false));
        assert_eq!(bucket.level, -50.0);
        assert!(!bucket.rest(0.25, 55.0));
        assert_eq!(bucket.level, -25.0);
        // What firings did that had begun is paid, too.
        assert!(!bucket.rest(0.0, 60.0));
        assert_eq!(bucket.level, -30.0);
        assert!(bucket.rest(100.0, 60.0));
        assert_eq!(bucket.level, bucket.begins);
        assert_eq!(bucket.lost, 0.0);
        // What was saved while it ran stays.
        assert!(bucket.look(0.3, 60.0, false));
        assert!(bucket.rest(100.0, 60.0));
        assert!((bucket.level - 35.0).abs() < 1e-9);
    }
}
