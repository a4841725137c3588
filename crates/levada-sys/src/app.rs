// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An application of the runtime: start, pause, drain, stop, progress, placement.

use crate::convert::{timeout_ns, untrusted_line};
use crate::{Error, Network, Runtime, Status, ffi};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// One loaded network with its own state.
pub struct App {
    pub(crate) raw: NonNull<ffi::lvd_app>,
    // Dropped in this order: the application before the network and the runtime that it uses.
    pub(crate) network: Arc<Network>,
    pub(crate) runtime: Runtime,
}

// SAFETY: all calls on an application that are used here are thread-safe.
unsafe impl Send for App {}
unsafe impl Sync for App {}

/// Maximum length in characters of the name of a unit of progress, such as "frames".
const UNIT_CHARS_MAX: usize = 64;

impl App {
    fn call(
        &self,
        f: unsafe extern "C" fn(*mut ffi::lvd_app) -> ffi::lvd_status,
    ) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { f(self.raw.as_ptr()) }).check()
    }

    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network, shared: keeps its code loaded longer than the application lives.
    pub fn network_arc(&self) -> Arc<Network> {
        self.network.clone()
    }

    pub fn start(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_start)
    }

    /// Starts the application paused: nothing runs before [`App::resume`].
    pub fn start_paused(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_start_paused)
    }

    /// Sets or clears a rate reservation: an application with one runs before others of its priority.
    pub fn reserve_rate(&self, reserved: bool) {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_reserve_rate(self.raw.as_ptr(), reserved) };
    }

    /// Pauses the application: no firing begins after this. [`Status::TIMEOUT`]: a firing still runs after `timeout`;
    /// it is the last one, and the application is paused nevertheless.
    pub fn pause(&self, timeout: Duration) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_pause_timeout(self.raw.as_ptr(), timeout_ns(Some(timeout))) })
            .check()
    }

    /// Whether the application is ending or has ended: no firing begins any more.
    pub fn is_ending(&self) -> bool {
        self.state() == ffi::LVD_APP_ENDING || self.has_ended()
    }

    /// Whether [`App::wait`] would return at once.
    pub fn has_ended(&self) -> bool {
        self.state() == ffi::LVD_APP_ENDED
    }

    fn state(&self) -> std::ffi::c_int {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_get_state(self.raw.as_ptr()) }
    }

    pub fn resume(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_resume)
    }

    /// Drains the application: its sources fire no more, elements in flight are processed, and it ends. A C program is
    /// asked to return from `main`. [`Status::NOT_FOUND`]: every actor has inputs.
    pub fn drain(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_drain)
    }

    /// Cancels the drain of a C program that has not yet read the request. [`Status::STATE`]: it has.
    pub fn cancel_drain(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_cancel_drain)
    }

    /// Holds or releases the sources: while they are held, none begins a firing.
    pub fn hold_sources(&self, held: bool) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_hold_sources(self.raw.as_ptr(), held) }).check()
    }

    /// Ends the application as if nothing could fire any more; elements in flight are dropped.
    pub fn exit(&self) {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_exit(self.raw.as_ptr()) }
    }

    /// Calls `then` once, on a thread of the runtime, when the application has ended and nothing of it runs;
    /// [`App::wait`] returns soon after. Call this at most once, before the application is started.
    pub fn on_end(&self, then: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        type Then = Box<dyn FnOnce() + Send>;
        unsafe extern "C" fn ended(data: *mut c_void, _: ffi::lvd_status) {
            // SAFETY: the block holds the pointer written below, or zeros.
            let then = unsafe { (*data.cast::<*mut Then>()).as_mut() };
            if let Some(then) = then {
                // SAFETY: it came from Box::into_raw, and this runs once.
                let then = unsafe { Box::from_raw(then) };
                // A panic must not unwind into C.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(then));
            }
        }
        static KEY: u8 = 0;
        let key = (&raw const KEY).cast();
        let size = size_of::<*mut Then>();
        // SAFETY: the application is live; the key is the address of a static variable of this function.
        let block = unsafe { ffi::lvd_app_data(self.raw.as_ptr(), key, size, Some(ended)) };
        let Some(block) = NonNull::new(block.cast::<*mut Then>()) else {
            return Status(ffi::LVD_E_MEMORY).check();
        };
        // SAFETY: the block is of that size, and only `ended` reads it, later.
        unsafe { block.write(Box::into_raw(Box::new(Box::new(then)))) };
        Ok(())
    }

    /// Stops the application between two firings and waits for its end.
    pub fn stop(&self) -> Result<(), Error> {
        self.stop_timeout(None)
    }

    /// Like [`App::stop`], with a timeout. [`Status::TIMEOUT`]: it has not ended yet; it will.
    pub fn stop_timeout(&self, timeout: Option<Duration>) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_stop_timeout(self.raw.as_ptr(), timeout_ns(timeout)) }).check()
    }

    /// Waits for the end and returns how the application ended. [`Status::TIMEOUT`]: it still runs after `timeout`
    /// (`None`: no limit).
    pub fn wait(&self, timeout: Option<Duration>) -> Status {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_wait(self.raw.as_ptr(), timeout_ns(timeout)) })
    }

    /// Progress, as the name of the unit and a count; `None` if the application has never reported any.
    pub fn progress(&self) -> Option<(String, u64)> {
        let mut unit = std::ptr::null();
        // SAFETY: the application is live, `unit` valid.
        let done = unsafe { ffi::lvd_app_get_progress(self.raw.as_ptr(), &mut unit) };
        (!unit.is_null()).then(|| (untrusted_line(unit, UNIT_CHARS_MAX), done))
    }

    /// Bytes of input consumed, and the total; a total of 0 is unknown. `None` if the application has reported neither.
    pub fn input_progress(&self) -> Option<(u64, u64)> {
        let mut total = 0;
        // SAFETY: the application is live, `total` valid.
        let done = unsafe { ffi::lvd_app_get_input_progress(self.raw.as_ptr(), &mut total) };
        (done > 0 || total > 0).then_some((done, total))
    }

    pub fn move_actor(&self, actor: u32, worker: u32) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_move(self.raw.as_ptr(), actor, worker) }).check()
    }

    /// Reserves the core of `worker` for this application until it is unloaded. [`Status::STATE`]: the core is reserved
    /// already, or is the last one.
    pub fn reserve_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_core_reserve_for(self.raw.as_ptr(), worker) }).check()
    }

    /// Reserves for this application, in the same way, a core that has no worker running and no owner.
    pub fn transfer_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_core_transfer(self.raw.as_ptr(), worker) }).check()
    }

    /// Bytes of the state of its actors and of the rings of its channels, with those that have grown.
    pub fn memory(&self) -> u64 {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_memory(self.raw.as_ptr()) }
    }

    /// What each actor, fiber and thread waits for, as text.
    pub fn wait_report(&self) -> String {
        let mut buffer = vec![0u8; 16 << 10];
        // SAFETY: the application is live, the buffer as large as is said.
        let len = unsafe {
            ffi::lvd_app_wait_report(self.raw.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
        };
        buffer.truncate(len.min(buffer.len() - 1));
        String::from_utf8_lossy(&buffer).into_owned()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // SAFETY: loaded by lvd_app_load, unloaded once.
        unsafe { ffi::lvd_app_unload(self.raw.as_ptr()) }
    }
}
