// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measurement of rates and core usage over a number of steps.

use super::profile_cursor::ProfileCursor;
use super::{Entity, Simulated, Simulator};

impl Entity<'_> {
    /// Units since counting started.
    fn units(&self) -> f64 {
        (self.done - self.done_before) as f64 / self.firings
    }

    /// Whether it has completed its cost profile since counting started, if it has one.
    fn is_through(&self) -> bool {
        self.cursor.as_ref().is_none_or(|a| a.whole().is_some())
    }

    /// Units per nanosecond since counting started (`time` nanoseconds ago); over whole profiles if
    /// any was completed.
    fn rate(&self, time: f64) -> f64 {
        let whole = self.cursor.as_deref().and_then(ProfileCursor::whole);
        whole.unwrap_or(self.units() / time)
    }
}

impl Simulator<'_> {
    /// Runs a number of steps and measures them.
    pub(super) fn count_steps(&mut self, steps: usize) -> Simulated {
        let (mix, begin) = (self.mix, self.now);
        for entity in &mut self.entities {
            entity.done_before = entity.done;
            if let Some(cursor) = &mut entity.cursor {
                cursor.count_from(entity.done, begin);
            }
        }
        self.entities.iter_mut().for_each(|e| e.rested = e.resting);
        self.drop_all_unused();
        let caps = self.entities.iter_mut().filter_map(|e| e.limiter.as_mut());
        caps.for_each(|limiter| limiter.lost_before = limiter.lost);
        self.workers.iter_mut().for_each(|w| w.busy = 0.0);
        self.run(steps);
        let time = (self.now - begin).max(1.0);
        let mut rates = vec![0.0; mix.apps.len()];
        let mut slowest = vec![f64::INFINITY; mix.apps.len()];
        let mut firings = vec![0.0; mix.apps.len()];
        let kept = self.kept(time);
        for entity in &self.entities {
            let rate = 1e9 * entity.rate(time);
            let actors = mix.apps[entity.app].actors.len() as f64;
            rates[entity.app] += rate / actors;
            firings[entity.app] += (entity.done - entity.done_before) as f64 / actors;
            slowest[entity.app] = slowest[entity.app].min(rate);
        }
        // While channels fill, actors before them exceed the sustainable rate.
        rates
            .iter_mut()
            .zip(self.most())
            .for_each(|(rate, most)| *rate = rate.min(most));
        for (i, limit) in self.limits.iter().enumerate() {
            if let Some(rate) = limit.and_then(|limit| kept[i].map(|kept| limit * kept)) {
                rates[i] = rate;
                slowest[i] = rate;
            }
        }
        let busy = self.workers.iter().map(|w| (w.busy / time).min(1.0));
        let mut all = self.entities.iter();
        let whole = all.all(|e| e.is_through() || rates[e.app] == 0.0);
        Simulated {
            rates,
            slowest,
            busy: busy.collect(),
            seconds: time / 1e9,
            firings,
            whole,
        }
    }

    /// Maximum rate of each application in units per second, by its work on its busiest core.
    fn most(&self) -> Vec<f64> {
        let mut work = vec![vec![0.0; self.workers.len()]; self.mix.apps.len()];
        for entity in &self.entities {
            work[entity.app][entity.core()] += entity.firing * entity.firings;
        }
        let busiest = |cores: &Vec<f64>| cores.iter().copied().fold(0.0, f64::max);
        work.iter().map(|cores| 1e9 / busiest(cores)).collect()
    }

    /// For each application that was ahead of its rate limit: the fraction of the limit that it
    /// reached within `time` nanoseconds.
    fn kept(&mut self, time: f64) -> Vec<Option<f64>> {
        self.drop_all_unused();
        let mut kept: Vec<Option<f64>> = vec![None; self.mix.apps.len()];
        for entity in self.entities.iter().filter(|e| e.rested) {
            if let Some(limiter) = &entity.limiter {
                // Whatever the number of whole units was, it has had all but what expired.
                let share = 1.0 - (limiter.lost - limiter.lost_before) / (limiter.rate * time);
                let least = kept[entity.app].unwrap_or(1.0).min(share);
                kept[entity.app] = Some(least.max(0.0));
            }
        }
        let mut longest = vec![0.0f64; self.workers.len()];
        for entity in &self.entities {
            longest[entity.core()] = longest[entity.core()].max(entity.firing);
        }
        for entity in &self.entities {
            if let (Some(kept), Some(limit)) = (&mut kept[entity.app], self.limits[entity.app]) {
                // Channels absorb the output of the source for long. An actor that is behind by
                // more than arrived since its last possible turn does not keep up.
                let due = limit * time * 1e-9;
                let behind = 1.0 + limit * longest[entity.core()] * 1e-9;
                *kept = kept.min((entity.units() + behind) / due);
            }
        }
        kept
    }
}
