// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The runtime: one worker per core, shared by all applications.

use crate::convert::{text, timeout_ns};
use crate::{Error, Status, WorkerCounters, ffi};
use std::ffi::{c_char, c_void};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Options of a runtime; zero selects the runtime's default.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuntimeOptions {
    pub workers: u32,
    pub no_pin: bool,
    pub no_spin: bool,
    pub spin_us: u32,
    /// CPU time of one action before its application is stopped; zero: no limit.
    pub action_time_limit: Duration,
    pub schedule: Schedule,
    /// Real-time priority of the threads that run applications; 0: the normal scheduling class.
    pub realtime: u32,
    /// Limit of console output per application, in bytes per second; 0: no limit.
    pub output_bytes_per_s: u64,
}

/// Which ready actor of a worker runs next, among those equal in priority and rate reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// The one that has been ready longest.
    #[default]
    EventDriven,
    /// The next one in the order of loading, cyclically.
    RoundRobin,
}

/// Maximum of `RuntimeOptions::realtime`. The two priorities above it are reserved for urgent fibers and service
/// threads.
pub const REALTIME_MAX: u32 = 97;

/// Whether the system allows this process a runtime of that real-time priority.
pub fn realtime_allowed(realtime: u32) -> bool {
    // SAFETY: no memory is passed.
    unsafe { ffi::lvd_realtime_allowed(realtime) }
}

/// The function to call when a worker gets work after a period in which all were idle.
struct WakeHook(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for WakeHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WakeHook")
    }
}

unsafe extern "C" fn on_wakeup(this: *mut c_void) {
    // SAFETY: the `WakeHook` passed to lvd_runtime_create; it outlives the runtime.
    let this = unsafe { &*this.cast::<WakeHook>() };
    (this.0)();
}

#[derive(Debug)]
struct RuntimeHandle {
    raw: NonNull<ffi::lvd_runtime>,
    realtime: u32,
    /// Dropped after the runtime, which calls it.
    _hook: Box<WakeHook>,
}

// SAFETY: all calls on a runtime are thread-safe.
unsafe impl Send for RuntimeHandle {}
unsafe impl Sync for RuntimeHandle {}

impl Drop for RuntimeHandle {
    fn drop(&mut self) {
        // SAFETY: made by lvd_runtime_create; every application holds an Arc of this, so none exists.
        unsafe { ffi::lvd_runtime_destroy(self.raw.as_ptr()) }
    }
}

/// A runtime: one worker per core. Cheap to clone; destroyed with its last clone and last application.
#[derive(Clone, Debug)]
pub struct Runtime(Arc<RuntimeHandle>);

impl Runtime {
    /// Creates a runtime and starts its workers. `hook` is called on a thread of the runtime when a worker gets work
    /// after a period in which all were idle ([`Runtime::is_idle`]). It must not block or panic.
    pub fn new(
        options: &RuntimeOptions,
        hook: impl Fn() + Send + Sync + 'static,
    ) -> Result<Runtime, Error> {
        let hook = Box::new(WakeHook(Box::new(hook)));
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
            on_wakeup: Some(on_wakeup),
            argument: (&raw const *hook).cast_mut().cast(),
        };
        let mut out = std::ptr::null_mut();
        // SAFETY: both pointers are valid for the call.
        Status(unsafe { ffi::lvd_runtime_create(&raw, &mut out) }).check()?;
        let raw = NonNull::new(out).ok_or(Error {
            status: Status::OK,
            why: "the library returned no runtime".to_string(),
        })?;
        Ok(Runtime(Arc::new(RuntimeHandle {
            raw,
            realtime: options.realtime,
            _hook: hook,
        })))
    }

    /// The pointer, for calls that this crate does not wrap; valid as long as this handle.
    pub fn raw(&self) -> *mut ffi::lvd_runtime {
        self.0.raw.as_ptr()
    }

    /// The real-time priority of the threads that run applications; `None`: the normal class.
    pub fn realtime(&self) -> Option<u32> {
        Some(self.0.realtime).filter(|&p| p > 0)
    }

    /// Gives the calling thread the service priority, which is above that of the workers, so that it runs whatever they
    /// compute; nothing if the workers have the normal class. Its children have the normal class.
    pub fn serve(&self) {
        // SAFETY: the handle is live.
        unsafe { ffi::lvd_thread_set_service_priority(self.raw()) }
    }

    pub fn workers(&self) -> u32 {
        // SAFETY: the handle is live.
        unsafe { ffi::lvd_worker_count(self.raw()) }
    }

    /// Whether every worker has been idle for a while; the next one that gets work calls the hook.
    pub fn is_idle(&self) -> bool {
        // SAFETY: the handle is live.
        unsafe { ffi::lvd_runtime_is_idle(self.raw()) }
    }

    /// Removes the core of `worker` from the running set, and returns when nothing runs on it. [`Status::STATE`]: it
    /// was removed already, or is the last one.
    pub fn reserve_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the handle is live.
        Status(unsafe { ffi::lvd_core_reserve(self.raw(), worker) }).check()
    }

    /// Like [`Runtime::reserve_core`], with a timeout. [`Status::TIMEOUT`]: an entity is still there, which the error
    /// names, and nothing has changed.
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
            Status::TIMEOUT => Error {
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

    /// The workers with their core in the running set.
    pub fn available_workers(&self) -> Vec<u32> {
        let available = |&w: &u32| self.worker_counters(w).is_ok_and(|c| c.available);
        (0..self.workers()).filter(available).collect()
    }

    pub fn worker_counters(&self, worker: u32) -> Result<WorkerCounters, Error> {
        let mut out = WorkerCounters::default();
        // SAFETY: the handle is live, `out` valid.
        Status(unsafe { ffi::lvd_worker_counters_read(self.raw(), worker, &mut out) }).check()?;
        Ok(out)
    }
}
