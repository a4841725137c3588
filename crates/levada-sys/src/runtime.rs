// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The runtime: one worker per core, which all applications share.

use crate::convert::{text, timeout_ns};
use crate::{Error, Status, WorkerCounters, ffi};
use std::ffi::{c_char, c_void};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// How a runtime is set up; zeros are the runtime's own choice.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuntimeOptions {
    pub workers: u32,
    pub no_pin: bool,
    pub no_spin: bool,
    pub spin_us: u32,
    /// CPU time of one action before its application is stopped; zero: no limit.
    pub action_time_limit: Duration,
    pub schedule: Schedule,
    /// The real-time priority of what runs applications; 0: they are of the usual class.
    pub realtime: u32,
    /// So many bytes a second an application may print; 0: as many as it likes.
    pub output_bytes_per_s: u64,
}

/// Which of the actors that can fire on a worker goes next, where priorities and promises leave a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// The one that could fire first.
    #[default]
    EventDriven,
    /// The next one in the order of loading, behind the one that ran last, and round.
    RoundRobin,
}

/// The highest priority that `RuntimeOptions::realtime` takes: two above it are what serves the workers.
pub const REALTIME_MAX: u32 = 97;

/// Does the system let this process have a runtime of that real-time priority?
pub fn realtime_allowed(realtime: u32) -> bool {
    // SAFETY: no memory is passed.
    unsafe { ffi::lvd_realtime_allowed(realtime) }
}

/// What is called when a worker has something to do after a time in which none had.
struct Awake(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Awake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Awake")
    }
}

unsafe extern "C" fn awake(this: *mut c_void) {
    // SAFETY: the `Awake` that the runtime was made with, which outlives it.
    let this = unsafe { &*this.cast::<Awake>() };
    (this.0)();
}

#[derive(Debug)]
struct RuntimeHandle {
    raw: NonNull<ffi::lvd_runtime>,
    realtime: u32,
    /// Dropped when there is no runtime any more to call it.
    _awake: Box<Awake>,
}

// SAFETY: all calls on a runtime are thread-safe.
unsafe impl Send for RuntimeHandle {}
unsafe impl Sync for RuntimeHandle {}

impl Drop for RuntimeHandle {
    fn drop(&mut self) {
        // SAFETY: made by lvd_runtime_create; applications hold an Arc of this, so none is left.
        unsafe { ffi::lvd_runtime_destroy(self.raw.as_ptr()) }
    }
}

/// One worker per core. Cheap to clone; ends with the last clone and the last application.
#[derive(Clone, Debug)]
pub struct Runtime(Arc<RuntimeHandle>);

impl Runtime {
    /// `wakes` is called on a thread of the runtime's when a worker has something to do after a time in which none
    /// had (`rests`). It must not block, nor panic.
    pub fn new(
        options: &RuntimeOptions,
        wakes: impl Fn() + Send + Sync + 'static,
    ) -> Result<Runtime, Error> {
        let wakes = Box::new(Awake(Box::new(wakes)));
        let raw = ffi::lvd_runtime_options {
            workers: options.workers,
            spin_us: options.spin_us,
            no_spin: options.no_spin,
            no_pin: options.no_pin,
            round_robin: options.schedule == Schedule::RoundRobin,
            action_time_limit_ns: u64::try_from(options.action_time_limit.as_nanos())
                .unwrap_or(u64::MAX),
            entities: 0,
            realtime: options.realtime,
            output_bytes_per_s: options.output_bytes_per_s,
            on_wakeup: Some(awake),
            argument: (&raw const *wakes).cast_mut().cast(),
        };
        let mut out = std::ptr::null_mut();
        // SAFETY: both pointers are valid for the call.
        Status(unsafe { ffi::lvd_runtime_create(&raw, &mut out) }).check()?;
        let raw = NonNull::new(out).ok_or(Error {
            status: Status::OK,
            why: "the runtime gave nothing".to_string(),
        })?;
        Ok(Runtime(Arc::new(RuntimeHandle {
            raw,
            realtime: options.realtime,
            _awake: wakes,
        })))
    }

    /// For calls that this crate does not make; it lives as long as this.
    pub fn raw(&self) -> *mut ffi::lvd_runtime {
        self.0.raw.as_ptr()
    }

    /// The real-time priority of what runs applications, if it has one.
    pub fn realtime(&self) -> Option<u32> {
        Some(self.0.realtime).filter(|&p| p > 0)
    }

    /// The calling thread controls what runs here: where the workers have a real-time priority it has a higher one from
    /// now on, so that it has its turn whatever they compute. What it starts is of the usual class.
    pub fn serve(&self) {
        // SAFETY: the handle is live.
        unsafe { ffi::lvd_thread_set_service_priority(self.raw()) }
    }

    pub fn workers(&self) -> u32 {
        // SAFETY: the handle is live.
        unsafe { ffi::lvd_worker_count(self.raw()) }
    }

    /// No worker has had anything to do for a while; the next one that has makes the runtime call what it was made with.
    pub fn is_idle(&self) -> bool {
        // SAFETY: the handle is live.
        unsafe { ffi::lvd_runtime_is_idle(self.raw()) }
    }

    /// Nothing runs on the core of `worker` any more when this returns. `Status::STATE`: it was taken
    /// already, or is the last one.
    pub fn reserve_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the handle is live.
        Status(unsafe { ffi::lvd_core_reserve(self.raw(), worker) }).check()
    }

    /// The same, waiting no longer than that. `Status::TIME`: somebody is there still, as the error says, and all
    /// is as it was.
    pub fn reserve_core_timeout(&self, worker: u32, timeout: Duration) -> Result<(), Error> {
        let mut why = [0 as c_char; 256];
        // SAFETY: the handle is live, the buffer as large as is said.
        let status = Status(unsafe {
            ffi::lvd_core_reserve_timeout(
                self.raw(),
                worker,
                timeout_ns(Some(timeout)),
                why.as_mut_ptr(),
                why.len(),
            )
        });
        status.check().map_err(|e| match status {
            Status::TIME => Error {
                status,
                why: text(why.as_ptr()),
            },
            _ => e,
        })
    }

    pub fn release_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the handle is live.
        Status(unsafe { ffi::lvd_core_release(self.raw(), worker) }).check()
    }

    /// The workers whose core is for all.
    pub fn open(&self) -> Vec<u32> {
        let given = |&w: &u32| self.worker_counters(w).is_ok_and(|c| c.available);
        (0..self.workers()).filter(given).collect()
    }

    pub fn worker_counters(&self, worker: u32) -> Result<WorkerCounters, Error> {
        let mut out = WorkerCounters::default();
        // SAFETY: the handle is live, `out` valid.
        Status(unsafe { ffi::lvd_worker_counters_read(self.raw(), worker, &mut out) }).check()?;
        Ok(out)
    }
}
