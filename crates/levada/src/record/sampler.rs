// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples the counters of an application while it runs. The number of samples is bounded: at the limit, every
//! second sample is dropped and the interval doubles.

use levada_host::Hosted;
use levada_sys::{Counters, Runtime};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the counters said at one moment; of each actor and channel in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Nanoseconds; of the activations that have ended, and maybe some of one that has not.
    pub busy: Vec<u64>,
    pub activations: Vec<u64>,
    /// Nothing of it runs.
    pub waits: Vec<bool>,
    pub put: Vec<u64>,
    pub got: Vec<u64>,
}

impl Sample {
    fn of(counters: &Counters) -> Sample {
        let busy = |a: &levada_sys::ActorCounters| a.busy.as_nanos() as u64;
        Sample {
            busy: counters.actors.iter().map(busy).collect(),
            activations: counters.actors.iter().map(|a| a.activations).collect(),
            waits: counters.actors.iter().map(|a| a.waits).collect(),
            put: counters.channels.iter().map(|c| c.put).collect(),
            got: counters.channels.iter().map(|c| c.got).collect(),
        }
    }

    fn values(&self) -> usize {
        2 * self.busy.len() + self.put.len() + self.got.len()
    }
}

/// To look takes lines from the workers' caches, for each number a part of one: a hundredth of a core or so. A picture of
/// twenty milliseconds is seen well enough with one in each.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
const INTERVAL_PER_VALUE: Duration = Duration::from_micros(8);
/// Looks at the most, and numbers in all of them.
const SAMPLES_MAX: usize = 1 << 14;
const VALUES_MAX: usize = 1 << 22;

/// Who looks, until it is asked what was seen.
pub struct Sampler {
    looking: JoinHandle<Series>,
    ends: Sender<()>,
}

impl Sampler {
    /// None where there is no thread for it.
    pub fn begin(hosted: &Arc<Hosted>, runtime: &Runtime) -> Option<Sampler> {
        let (ends, ended) = mpsc::channel::<()>();
        let (hosted, runtime) = (hosted.clone(), runtime.clone());
        let sample = move || hosted.app.counters().map(|c| Sample::of(&c));
        let watch = move || {
            raise_priority(&runtime);
            let mut seen = Series::default();
            while let (Ok(sample), Err(RecvTimeoutError::Timeout)) =
                (sample(), ended.recv_timeout(seen.interval()))
            {
                seen.add(sample);
            }
            seen
        };
        let thread = std::thread::Builder::new().name("looks".to_string());
        let looking = thread.spawn(watch).ok()?;
        Some(Sampler { looking, ends })
    }

    /// What was seen from the beginning, when there was nothing, to the end, when the counters are these.
    pub fn end(self, counters: &Counters) -> Vec<Sample> {
        drop(self.ends);
        let mut seen = self.looking.join().unwrap_or_default().samples;
        seen.push(Sample::of(counters));
        seen
    }
}

/// Workers have all cores, maybe in a real-time class, in which nobody else would have a turn to look: their own, or that
/// of the whole process. Where that may not be, there are fewer looks.
fn raise_priority(runtime: &Runtime) {
    if runtime.realtime().is_some() {
        return runtime.serve();
    }
    // SAFETY: all of it is about the calling thread, and `param` is valid.
    unsafe {
        let mut param: libc::sched_param = std::mem::zeroed();
        libc::sched_getparam(0, &mut param);
        param.sched_priority += 1;
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &param);
    }
}

/// As many looks as there may be, at even intervals.
struct Series {
    samples: Vec<Sample>,
    /// How many intervals of the first kind are one now.
    wide: u32,
}

impl Default for Series {
    fn default() -> Series {
        Series {
            samples: Vec::new(),
            wide: 1,
        }
    }
}

impl Series {
    fn values(&self) -> usize {
        self.samples.first().map_or(1, Sample::numbers).max(1)
    }

    fn interval(&self) -> Duration {
        INTERVAL_MIN.max(INTERVAL_PER_VALUE * self.values() as u32) * self.wide
    }

    fn add(&mut self, sample: Sample) {
        self.samples.push(sample);
        // An even number: of one more the last is kept.
        let most = (SAMPLES_MAX.min(VALUES_MAX / self.values()) & !1).max(2);
        if self.samples.len() > most {
            let mut at = 0;
            self.samples.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.wide = self.wide.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_looks_every_other_is_kept() {
        let sample = |n: u64, numbers: usize| Sample {
            busy: vec![n; numbers],
            ..Sample::default()
        };
        let mut few = Series::default();
        (0..100).for_each(|n| few.add(sample(n, 3)));
        assert_eq!((few.samples.len(), few.interval()), (100, INTERVAL_MIN));
        // Of large applications fewer, and less often.
        for numbers in [1, 1000] {
            let mut seen = Series::default();
            let most = (SAMPLES_MAX.min(VALUES_MAX / (2 * numbers)) & !1) as u64;
            let mut at = 0;
            while seen.wide < 8 {
                seen.add(sample(at, numbers));
                at += u64::from(seen.wide);
                assert!(seen.samples.len() as u64 <= most);
            }
            assert!(seen.samples.len() as u64 >= most / 2);
            for (i, sample) in seen.samples.iter().enumerate() {
                assert_eq!(sample.busy[0], 8 * i as u64, "look {i}");
            }
            assert_eq!(
                seen.interval(),
                INTERVAL_MIN.max(INTERVAL_PER_VALUE * 2 * numbers as u32) * 8
            );
        }
    }
}
