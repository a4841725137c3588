// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters of workers, actors, channels and fibers.

use crate::convert::text;
use crate::{ActorShape, App, Error, Status, ffi};
use std::time::Duration;

/// Counters of a worker.
pub type WorkerCounters = ffi::lvd_worker_counters;
/// Counters of a channel, for one of its consumers.
pub type ChannelCounters = ffi::lvd_channel_counters;

impl ChannelCounters {
    /// The actor and the port that put elements into it; `None`: the program outside of the network.
    pub fn producer<'a>(&self, actors: &'a [ActorShape]) -> Option<(&'a str, &'a str)> {
        let actor = actors.get(self.from.actor as usize)?;
        Some((&actor.name, port(&actor.outputs, self.from.port)))
    }

    /// The actor and the port that take its elements; `None`: the program outside of the network.
    pub fn consumer<'a>(&self, actors: &'a [ActorShape]) -> Option<(&'a str, &'a str)> {
        let actor = actors.get(self.to.actor as usize)?;
        Some((&actor.name, port(&actor.inputs, self.to.port)))
    }
}

fn port(ports: &[String], index: u32) -> &str {
    ports.get(index as usize).map_or("", String::as_str)
}

#[derive(Clone, Debug, Default)]
pub struct ActorCounters {
    pub name: String,
    /// Index of its current worker.
    pub worker: u32,
    /// Index of its future worker: set by the last move, or by the runtime when its worker is blocked.
    pub target: u32,
    pub firings: u64,
    pub activations: u64,
    pub busy: Duration,
    pub longest: Duration,
    /// Duration of the current activation once it lasts for milliseconds; else zero.
    pub runs: Duration,
    /// It waits for a channel or for external input, or has ended.
    pub waits: bool,
    /// It waits for external input in the middle of a firing.
    pub waits_external: bool,
    /// For the actor of a C program: CPU time of its fibers, which is not part of `busy`.
    pub fibers: Duration,
}

impl ActorCounters {
    /// CPU time, including the fibers of a C program.
    pub fn computed(&self) -> Duration {
        self.busy + self.fibers
    }
}

/// All counters of an application at one moment.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub actors: Vec<ActorCounters>,
    /// One for each consumer of each channel.
    pub channels: Vec<ChannelCounters>,
    /// CPU time of its fibers on each worker.
    pub fibers: Vec<Duration>,
    /// Progress: the name of the unit, and the count.
    pub progress: Option<(String, u64)>,
}

/// The reader may lose its core for milliseconds while it reads. The counters are read at most this number of times,
/// until the progress made meanwhile is at most one unit, or 1/64 of the total.
const READS_MAX: u32 = 8;
const PROGRESS_FRACTION: u64 = 64;

impl Counters {
    /// CPU time of the whole application.
    pub fn busy(&self) -> Duration {
        let actors = self.actors.iter().map(|a| a.busy);
        actors.chain(self.fibers.iter().copied()).sum()
    }
}

impl App {
    pub fn counters(&self) -> Result<Counters, Error> {
        let done = |progress: &Option<(String, u64)>| progress.as_ref().map_or(0, |t| t.1);
        for reads in 1.. {
            let before = done(&self.progress());
            let read = self.read_counters()?;
            let progress = self.progress();
            let more = done(&progress).saturating_sub(before);
            if more <= 1 + before / PROGRESS_FRACTION || reads == READS_MAX {
                let progress = progress.map(|(unit, now)| (unit, now - more / 2));
                return Ok(Counters { progress, ..read });
            }
        }
        unreachable!("the last read returns")
    }

    fn read_counters(&self) -> Result<Counters, Error> {
        let mut actors = self.network.actors() as u32;
        let mut channels = self.network.links().len() as u32;
        // SAFETY: zero is a value of every field.
        let zero: ffi::lvd_actor_counters = unsafe { std::mem::zeroed() };
        let mut actor = vec![zero; actors as usize];
        let mut channel = vec![ChannelCounters::default(); channels as usize];
        // SAFETY: both arrays hold as many as is said.
        Status(unsafe {
            ffi::lvd_app_counters(
                self.raw.as_ptr(),
                actor.as_mut_ptr(),
                &mut actors,
                channel.as_mut_ptr(),
                &mut channels,
            )
        })
        .check()?;
        actor.truncate(actors as usize);
        channel.truncate(channels as usize);
        let actors = actor.iter().map(|a| ActorCounters {
            name: text(a.name),
            worker: a.worker,
            target: a.target,
            firings: a.firings,
            activations: a.activations,
            busy: Duration::from_nanos(a.busy_ns),
            longest: Duration::from_nanos(a.longest_ns),
            runs: Duration::from_nanos(a.runs_ns),
            waits: a.waits,
            waits_external: a.waits_external,
            fibers: Duration::ZERO,
        });
        let mut actors: Vec<ActorCounters> = actors.collect();
        let fibers = (0..self.runtime.workers()).map(|w| self.fibers_on(w));
        let fibers: Vec<Duration> = fibers.collect();
        if self.network.is_program()
            && let Some(main) = actors.first_mut()
        {
            main.fibers = fibers.iter().sum();
        }
        Ok(Counters {
            actors,
            channels: channel,
            fibers,
            progress: None,
        })
    }

    /// CPU time of its fibers on a worker.
    fn fibers_on(&self, worker: u32) -> Duration {
        // SAFETY: the application is live.
        let ns = unsafe { ffi::lvd_app_fibers_busy_on(self.raw.as_ptr(), worker) };
        Duration::from_nanos(ns)
    }
}
