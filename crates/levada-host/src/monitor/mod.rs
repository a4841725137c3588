// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The monitor thread: handles the end of applications, samples all of them as one graph, and applies the moves of
//! the mapper and the balancer.
//!
//! It samples often while a placement is a guess, rarely when nothing happens, and never when nothing could be
//! moved or when all applications are idle. The mapper runs on other threads; the registry's lock is held only for
//! reading.

mod ended;
mod lease_waits;
mod moves;
mod sample;
mod starvation;

use crate::app::HostedApp;
use crate::context::HostContext;
use crate::context::message::MonitorMessage;
use crate::limits::rate::RateMonitor;
use crate::model::app_state::State;
use crate::monitor::lease_waits::LeaseWaits;
use crate::monitor::starvation::{Backoff, TurnTracker};
use levada_map::Balancer;
use levada_sys::Counters;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

struct MonitoredApp {
    hosted: Arc<HostedApp>,
    before: Counters,
    /// Index of its first actor in the graph of all that share cores; `usize::MAX` if its core is reserved.
    first_actor: usize,
    rate_monitor: RateMonitor,
    turn_tracker: TurnTracker,
}

struct Monitor<'a> {
    shared: &'a HostContext,
    /// Those that share cores come first.
    apps: Vec<MonitoredApp>,
    /// The workers with cores that are not reserved.
    available_workers: Vec<u32>,
    balancer: Option<Balancer>,
    /// Times of the last sample, and of the last change.
    sampled_at: Instant,
    changed_at: Instant,
    /// Number of samples.
    sample_count: u64,
    /// Busy time and steal time of each worker, in ns.
    worker_times_ns: Vec<[u64; 2]>,
    /// Mean wait for a core's lease.
    lease_waits: LeaseWaits,
    /// Number of samples in a row in which nothing has fired.
    quiet_samples: u32,
    /// All applications are idle or paused, and any new work sends a message: no sample is taken until then, so that
    /// many idle applications cost no more than a few.
    sleeps_until_wakeup: bool,
    /// Overrunning actors of applications that share cores, and their workers.
    overrunning: Vec<(usize, u32)>,
    /// Sum of the workers' counters, to detect work.
    work_counter: u64,
    /// Number of changes of the running applications and cores; whether the mapper is running; whether its result will
    /// be outdated; whether it runs only because the balancer asked for it.
    generation: u64,
    mapping: bool,
    mapping_is_stale: bool,
    mapping_wished_by_balancer: bool,
    /// Samples since the last change; none: the present set has been given to the mapper.
    samples_unmapped: Option<u32>,
    /// When to map again, if a mapping was discarded because it would have reversed recent moves.
    mapping_deferred_until: Option<Instant>,
    /// Whether a search is running; when the next one may start.
    searching: bool,
    search_from: Instant,
    starvation_backoff: Backoff,
    /// An idle application has become active since the last mapping.
    idle_app_resumed: bool,
    /// When pinned actors may be returned to their pins again.
    pins_from: Instant,
    /// Applications that are about to end: their natives close files, which may take long.
    ending: Vec<u64>,
    /// Something has changed since the last restart.
    restart_pending: bool,
    /// The earliest time of the next sample: samples of many applications may use only a fraction of a core.
    next_look: Instant,
}

/// After a sample or a restart, none for this multiple of the CPU time that it took.
const PAUSE_FACTOR: u32 = 9;

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes to a variable of this frame.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Poll interval for applications that are about to end.
const ENDING_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Older measurements of the capacity left by others are ignored.
const MEASUREMENT_AGE_MAX: Duration = Duration::from_secs(2);

pub fn run(shared: &HostContext, notes: &Receiver<MonitorMessage>) {
    shared.runtime.serve();
    let mut watch = Monitor::new(shared);
    loop {
        watch.await_ends();
        let heard = match watch.next_wait() {
            Some(pause) => notes.recv_timeout(pause),
            None => notes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let first = match heard {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => {
                if watch.is_restart_due() {
                    watch.throttled(Monitor::restart);
                } else if watch.is_sample_due() {
                    watch.throttled(Monitor::take_sample);
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // Several changes at a time cause one restart.
        for note in std::iter::once(first).chain(notes.try_iter()) {
            match note {
                MonitorMessage::Quit => return,
                MonitorMessage::Changed => watch.on_change(),
                MonitorMessage::Awake => watch.on_wakeup(),
                MonitorMessage::Ended(number) => {
                    watch.ended(number);
                    watch.on_change();
                }
                MonitorMessage::Mapped(changes, placement) => watch.on_mapped(changes, placement),
                MonitorMessage::Found(changes, found, took) => {
                    watch.on_search_done(took);
                    watch.on_found(changes, found);
                }
            }
        }
        if watch.is_restart_due() {
            watch.throttled(Monitor::restart);
        }
    }
}

impl Monitor<'_> {
    fn new(shared: &HostContext) -> Monitor<'_> {
        Monitor {
            shared,
            apps: Vec::new(),
            available_workers: Vec::new(),
            balancer: None,
            sampled_at: Instant::now(),
            changed_at: Instant::now(),
            sample_count: 0,
            worker_times_ns: Vec::new(),
            lease_waits: LeaseWaits::new(),
            quiet_samples: 0,
            sleeps_until_wakeup: false,
            overrunning: Vec::new(),
            work_counter: 0,
            generation: 0,
            mapping: false,
            mapping_is_stale: false,
            mapping_wished_by_balancer: false,
            samples_unmapped: None,
            mapping_deferred_until: None,
            searching: false,
            search_from: Instant::now(),
            starvation_backoff: Backoff::new(),
            idle_app_resumed: false,
            pins_from: Instant::now(),
            ending: Vec::new(),
            restart_pending: false,
            next_look: Instant::now(),
        }
    }

    /// Runs something with a cost that grows with the number of applications, and delays the next sample accordingly.
    fn throttled(&mut self, what: impl FnOnce(&mut Self)) {
        let before = cpu_time();
        what(self);
        let took = cpu_time().saturating_sub(before);
        self.next_look = Instant::now() + took * PAUSE_FACTOR;
    }

    /// The applications that run, or the cores, have changed: all are sampled from a new start, and results that the
    /// mapper computed for the previous state are outdated.
    fn on_change(&mut self) {
        self.restart_pending = true;
        self.generation += 1;
        self.samples_unmapped = Some(0);
    }

    /// Whether something has changed, and a restart is allowed now.
    fn is_restart_due(&self) -> bool {
        self.restart_pending && self.until_sample_allowed().is_zero()
    }

    fn until_sample_allowed(&self) -> Duration {
        self.next_look.saturating_duration_since(Instant::now())
    }

    /// An application has ended, or is about to.
    fn ended(&mut self, number: u64) {
        // The monitor's reference is dropped first, so that the last holder frees it.
        self.apps.retain(|w| w.hosted.number != number);
        if !self.shared.ended(number) {
            self.ending.push(number);
        }
    }

    /// Handles the applications that were about to end and have ended now.
    fn await_ends(&mut self) {
        let before = self.ending.len();
        let shared = self.shared;
        self.ending.retain(|number| !shared.ended(*number));
        if self.ending.len() < before {
            self.on_change();
        }
    }

    /// How long to sleep; none: until the next message.
    fn next_wait(&self) -> Option<Duration> {
        let look = if self.restart_pending {
            Some(self.until_sample_allowed())
        } else {
            self.until_sample()
        };
        if self.ending.is_empty() {
            look
        } else {
            Some(look.map_or(ENDING_POLL_INTERVAL, |look| look.min(ENDING_POLL_INTERVAL)))
        }
    }

    /// Whether a sample is due; otherwise the wake-up was for an application that is about to end.
    fn is_sample_due(&self) -> bool {
        self.until_sample() == Some(Duration::ZERO)
    }

    /// Time until the next sample.
    fn until_sample(&self) -> Option<Duration> {
        if self.apps.is_empty() || self.sleeps_until_wakeup {
            return None;
        }
        let period = match self.changed_at.elapsed().as_millis() {
            _ if self.quiet_samples > 4 => Duration::from_millis(1000),
            _ if self.balancer.is_none() => Duration::from_millis(500),
            0..20 => Duration::from_millis(4),
            20..100 => Duration::from_millis(10),
            100..1000 => Duration::from_millis(50),
            // Not in step with a periodic input, which would then be seen at work always.
            _ => Duration::from_millis(150 + self.sample_count * 61 % 100),
        };
        let look = period.saturating_sub(self.sampled_at.elapsed());
        Some(look.max(self.until_sample_allowed()))
    }

    /// A worker has work again.
    fn on_wakeup(&mut self) {
        if std::mem::take(&mut self.sleeps_until_wakeup) {
            self.sampled_at = Instant::now(); // the interval without work is not measured
        }
    }

    /// The applications in these states that are not about to end.
    fn living(&self, wanted: impl Fn(State) -> bool) -> Vec<Arc<HostedApp>> {
        let table = self.shared.lock_registry();
        let all = table.visible().into_iter().filter(|a| wanted(a.state));
        let all = all.filter_map(|a| a.hosted.clone());
        all.filter(|h| !h.app.is_ending()).collect()
    }

    /// Restarts sampling, because the running applications or the cores have changed.
    fn restart(&mut self) {
        self.restart_pending = false;
        self.restart_from_current();
        if let Some(processes) = self.shared.isolated_processes() {
            processes.notify_cores_and_neighbors();
        }
        // A core may have been reserved; the runtime moves actors of paused applications, too.
        for hosted in self.living(|_| true) {
            hosted.emit_moves(&self.shared.events);
        }
    }

    fn restart_from_current(&mut self) {
        // The rate check and the starvation tracker of each application continue across changes of others.
        let seen = self.apps.drain(..);
        let mut seen: BTreeMap<u64, (RateMonitor, TurnTracker)> = seen
            .map(|one| (one.hosted.number, (one.rate_monitor, one.turn_tracker)))
            .collect();
        // So do measurements of other programs, unless they are old.
        let is_recent = self.quiet_samples <= 4 && self.sampled_at.elapsed() < MEASUREMENT_AGE_MAX;
        let before = self.balancer.take().filter(|_| is_recent);
        let running = |state| matches!(state, State::Running | State::Draining);
        let all = self.living(running);
        self.available_workers = self.shared.runtime.available_workers();
        let (alone, mut all): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|h: &Arc<HostedApp>| h.exclusive.is_some());
        let sharing = all.len();
        all.extend(alone);
        // A single application on a single worker needs no samples.
        let reserved = all.iter().any(|h| h.limits.rate.is_some());
        if !self.shared.balance && all.len() < 2 && !reserved {
            return;
        }
        let mut placement = Vec::new();
        for (i, hosted) in all.into_iter().enumerate() {
            let before = hosted.app.counters().unwrap_or_default();
            hosted.recent.record_busy(&before);
            let first = if i < sharing {
                placement.len()
            } else {
                usize::MAX
            };
            if i < sharing {
                placement.extend(before.actors.iter().map(|a| a.target));
            }
            let fresh = || {
                (
                    RateMonitor::of(&hosted),
                    TurnTracker::new(before.actors.len()),
                )
            };
            let (rate_monitor, turns) = seen.remove(&hosted.number).unwrap_or_else(fresh);
            self.apps.push(MonitoredApp {
                rate_monitor,
                turn_tracker: turns,
                hosted,
                before,
                first_actor: first,
            });
        }
        self.sample_overruns();
        if self.shared.balance {
            // A single application that was placed by a guess is trusted less.
            let guessed = matches!(self.sharing(), [one] if one.hosted.profile.is_none());
            let balancer = self.balancer_of(placement, before.as_ref());
            self.balancer = Some(if guessed {
                balancer
            } else {
                balancer.with_measured_placement()
            });
        }
        self.sampled_at = Instant::now();
        self.changed_at = self.sampled_at;
        (self.quiet_samples, self.sleeps_until_wakeup) = (0, false);
        self.generation += 1;
        self.starvation_backoff = Backoff::new();
        self.restore_pins();
        // The mapping waits until something works: many idle applications are loaded at no more cost than a few.
        self.samples_unmapped = Some(0);
        self.mapping_deferred_until = None;
    }
}
