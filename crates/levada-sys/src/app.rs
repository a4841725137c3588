// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An application: how it begins, runs, rests and ends.

use crate::convert::{said, timeout_ns};
use crate::{Error, Network, Runtime, Status, ffi};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// One loaded network with its own state.
pub struct App {
    pub(crate) raw: NonNull<ffi::lvd_app>,
    // In this order: the application goes first, then what it stands on.
    pub(crate) network: Arc<Network>,
    pub(crate) runtime: Runtime,
}

// SAFETY: all calls on an application that are used here are thread-safe.
unsafe impl Send for App {}
unsafe impl Sync for App {}

/// Characters of a unit: "frames".
const UNIT: usize = 64;

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

    /// The same, for who needs its code for longer than the application lives.
    pub fn network_arc(&self) -> Arc<Network> {
        self.network.clone()
    }

    pub fn start(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_start)
    }

    /// The same, but it is paused from its beginning.
    pub fn start_paused(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_start_paused)
    }

    /// It goes before others of its priority, or does not any more.
    pub fn reserve_rate(&self, promised: bool) {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_reserve_rate(self.raw.as_ptr(), promised) };
    }

    /// Nothing more of it begins. Fails with [`Status::TIME`] if a firing lasts longer than `timeout`;
    /// it is paused all the same.
    pub fn pause(&self, timeout: Duration) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_pause_timeout(self.raw.as_ptr(), timeout_ns(Some(timeout))) })
            .check()
    }

    /// Told to end, or out of itself: nothing of it begins any more.
    pub fn is_ending(&self) -> bool {
        self.state() == ffi::LVD_APP_ENDING || self.has_ended()
    }

    /// [`App::wait`] would return at once.
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

    /// Ends its sources; what is in flight comes out, and then it ends by itself. Fails with
    /// [`Status::UNKNOWN`] if no actor is without inputs. A C program is asked to return.
    pub fn drain(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_drain)
    }

    /// Takes that back, of a C program that has not heard of it; fails with [`Status::STATE`] if it has.
    pub fn cancel_drain(&self) -> Result<(), Error> {
        self.call(ffi::lvd_app_cancel_drain)
    }

    /// No source of it begins another firing for as long as it rests.
    pub fn hold_sources(&self, rests: bool) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_hold_sources(self.raw.as_ptr(), rests) }).check()
    }

    /// Ends it as if nothing more could fire; what is in flight is dropped.
    pub fn exit(&self) {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_exit(self.raw.as_ptr()) }
    }

    /// Calls `then` once, from a thread of the runtime, when it has ended and nothing of it runs any
    /// more: [`App::wait`] returns soon after that. To be called before it is started, once.
    pub fn on_end(&self, then: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        type Then = Box<dyn FnOnce() + Send>;
        unsafe extern "C" fn ended(data: *mut c_void, _: ffi::lvd_status) {
            // SAFETY: the block holds what is put there below, or zero.
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
        // SAFETY: the application is live, the key an address of ours.
        let block = unsafe { ffi::lvd_app_data(self.raw.as_ptr(), key, size, Some(ended)) };
        let Some(block) = NonNull::new(block.cast::<*mut Then>()) else {
            return Status(ffi::LVD_E_MEMORY).check();
        };
        // SAFETY: the block is of that size, and only `ended` reads it, later.
        unsafe { block.write(Box::into_raw(Box::new(Box::new(then)))) };
        Ok(())
    }

    /// Ends it between two firings, and waits until it has ended.
    pub fn stop(&self) -> Result<(), Error> {
        self.stop_timeout(None)
    }

    /// The same. Fails with [`Status::TIME`] if that lasts longer than `timeout`; it ends all the same.
    pub fn stop_timeout(&self, timeout: Option<Duration>) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_stop_timeout(self.raw.as_ptr(), timeout_ns(timeout)) }).check()
    }

    /// How it ended; [`Status::TIME`] if it runs still after `timeout` (`None`: for ever).
    pub fn wait(&self, timeout: Option<Duration>) -> Status {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_app_wait(self.raw.as_ptr(), timeout_ns(timeout)) })
    }

    /// What it has done, in its own unit; `None` if it never said.
    pub fn progress(&self) -> Option<(String, u64)> {
        let mut unit = std::ptr::null();
        // SAFETY: the application is live, `unit` valid.
        let done = unsafe { ffi::lvd_app_get_progress(self.raw.as_ptr(), &mut unit) };
        (!unit.is_null()).then(|| (said(unit, UNIT), done))
    }

    /// How many bytes of its input it has taken, and of how many; a total of 0 is unknown. `None` if it has not said.
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

    /// Nothing but this has the core of `worker` from now on, until it is unloaded. `Status::STATE`: the
    /// core is somebody's already, or the last one.
    pub fn reserve_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_core_reserve_for(self.raw.as_ptr(), worker) }).check()
    }

    /// The core of `worker`, which was taken for nobody, is its own in the same way.
    pub fn transfer_core(&self, worker: u32) -> Result<(), Error> {
        // SAFETY: the application is live.
        Status(unsafe { ffi::lvd_core_transfer(self.raw.as_ptr(), worker) }).check()
    }

    /// Who waits for whom, in words.
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
