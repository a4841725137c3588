// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What workers, actors, channels and fibers have done so far.

use crate::convert::text;
use crate::{App, Error, Status, ffi};
use std::time::Duration;

/// What a worker did so far.
pub type WorkerCounters = ffi::lvd_worker_counters;
/// What a channel carried so far, for one of its consumers.
pub type ChannelCounters = ffi::lvd_channel_counters;

#[derive(Clone, Debug, Default)]
pub struct ActorCounters {
    pub name: String,
    /// Where it is.
    pub worker: u32,
    /// Where it shall be: by the last move, or by the runtime's, from a worker that is stuck.
    pub target: u32,
    pub firings: u64,
    pub activations: u64,
    pub busy: Duration,
    pub longest: Duration,
    /// The run that it is in until now, once it lasts for milliseconds; else zero.
    pub runs: Duration,
    /// At the moment: for a channel, or for what is outside; or it has ended.
    pub waits: bool,
    /// For what is outside, in the middle of a firing.
    pub waits_external: bool,
    /// Of the main of a C program: what its fibers compute, which is not in `busy`.
    pub fibers: Duration,
}

impl ActorCounters {
    /// CPU time, that of a C program's fibers with it.
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
    /// CPU time of its fibers on each worker: of a C program, all that it computes there.
    pub fibers: Vec<Duration>,
    /// What it has counted itself, and of what.
    pub progress: Option<(String, u64)>,
}

/// While they are read, others may have the reader's core for some milliseconds: so often they are read anew until what was
/// counted meanwhile is next to nothing.
const TRIES: u32 = 8;
const NOTHING: u64 = 64;

impl Counters {
    /// CPU time of all of it.
    pub fn busy(&self) -> Duration {
        let actors = self.actors.iter().map(|a| a.busy);
        actors.chain(self.fibers.iter().copied()).sum()
    }
}

impl App {
    pub fn counters(&self) -> Result<Counters, Error> {
        let done = |told: &Option<(String, u64)>| told.as_ref().map_or(0, |t| t.1);
        for tries in 1.. {
            let before = done(&self.progress());
            let read = self.read_counters()?;
            let progress = self.progress();
            let more = done(&progress).saturating_sub(before);
            if more <= 1 + before / NOTHING || tries == TRIES {
                let progress = progress.map(|(unit, now)| (unit, now - more / 2));
                return Ok(Counters { progress, ..read });
            }
        }
        unreachable!("it has been read")
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
