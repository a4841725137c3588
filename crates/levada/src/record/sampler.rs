// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples the counters of an application while it runs. The number of samples is bounded: at the limit, every
//! second sample is dropped and the interval doubles.

use levada_host::HostedApp;
use levada_sys::{Counters, Runtime};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// The counters at one moment, for all actors and channels in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Nanoseconds in completed activations, and possibly a part of the current one.
    pub busy: Vec<u64>,
    pub activations: Vec<u64>,
    /// Whether the actor is not running.
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

/// Reading a counter takes a part of a cache line from a worker's cache; these intervals cost about a hundredth of a
/// core. For pictures of 20 ms one sample per millisecond is sufficient.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
const INTERVAL_PER_VALUE: Duration = Duration::from_micros(8);
/// Limits on the number of samples, and on the values in all of them.
const SAMPLES_MAX: usize = 1 << 14;
const VALUES_MAX: usize = 1 << 22;

/// Samples on a thread of its own until [`Sampler::end`].
pub struct Sampler {
    looking: JoinHandle<Series>,
    ends: Sender<()>,
}

impl Sampler {
    /// `None` if the thread cannot be created.
    pub fn begin(hosted: &Arc<HostedApp>, runtime: &Runtime) -> Option<Sampler> {
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

    /// All samples since the start; `counters` are the final values.
    pub fn end(self, counters: &Counters) -> Vec<Sample> {
        drop(self.ends);
        let mut seen = self.looking.join().unwrap_or_default().samples;
        seen.push(Sample::of(counters));
        seen
    }
}

/// Raises this thread's priority above the workers', which occupy all cores, maybe in a real-time class of their own
/// or of the process. Without the permission to do so, there are fewer samples.
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

/// A bounded number of samples at equal intervals.
struct Series {
    samples: Vec<Sample>,
    /// The current interval, in units of the first one.
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
        self.samples.first().map_or(1, Sample::values).max(1)
    }

    fn interval(&self) -> Duration {
        INTERVAL_MIN.max(INTERVAL_PER_VALUE * self.values() as u32) * self.wide
    }

    fn add(&mut self, sample: Sample) {
        self.samples.push(sample);
        // Even, so that the last of one more sample is kept.
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
    fn at_the_limit_every_second_sample_is_dropped() {
        let sample = |n: u64, numbers: usize| Sample {
            busy: vec![n; numbers],
            ..Sample::default()
        };
        let mut few = Series::default();
        (0..100).for_each(|n| few.add(sample(n, 3)));
        assert_eq!((few.samples.len(), few.interval()), (100, INTERVAL_MIN));
        // Large applications have fewer samples at longer intervals.
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
