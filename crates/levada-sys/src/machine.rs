// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Machines: processors behind a window, booted and run without an application (`<levada/machine.h>`).

use crate::{Error, Status, ffi};
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::time::Duration;

/// The state of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No program has run since boot.
    Waits,
    /// A program is running.
    Runs,
    /// The last program has ended with this status.
    Ended(u32),
    /// The last program failed, hung, or was stopped: the reason.
    Failed(String),
    /// A program that serves procedures is running.
    Serves,
    /// The machine has ended, does not reply, or violates the protocol: the reason.
    Dead(String),
}

/// A booted machine; dropping it ends the machine.
pub struct Machine(NonNull<ffi::lvd_machine>);

// SAFETY: the machine is bound to no thread, and `&mut self` admits one thread at a time.
unsafe impl Send for Machine {}

/// Makes an error of a status that is not `LVD_OK`, with the window's error text if it has one.
pub(crate) fn check(status: ffi::lvd_status) -> Result<(), Error> {
    Status(status).check().map_err(|e| Error {
        // SAFETY: the text is this thread's own, terminated, and unchanged until the thread's next call.
        why: unsafe { CStr::from_ptr(ffi::lvd_window_error_text()) }
            .to_string_lossy()
            .into_owned(),
        ..e
    })
}

fn ns(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

impl Machine {
    /// Starts a machine and waits at most `limit` for its loader. `kind` is `qemu`, `qemu32`, `native`, `uio:DEVICE` or
    /// `remoteproc:PROCESSOR,...`. [`Status::NOT_FOUND`]: no such kind, loader, emulator or device;
    /// [`Status::TIMEOUT`]: it does not start.
    pub fn boot(kind: &str, limit: Duration) -> Result<Machine, Error> {
        let kind = CString::new(kind).map_err(|_| Error {
            status: Status(ffi::LVD_E_ARGUMENT),
            why: "the name of a kind of machine cannot contain a zero byte".into(),
        })?;
        let mut machine = std::ptr::null_mut();
        // SAFETY: both pointers are valid during the call.
        check(unsafe { ffi::lvd_machine_boot(kind.as_ptr(), ns(limit), &mut machine) })?;
        Ok(Machine(NonNull::new(machine).expect("it was booted")))
    }

    /// Reads an image file and keeps it for [`run`](Machine::run). On failure the previous image is kept.
    pub fn load(&mut self, file: &Path) -> Result<(), Error> {
        let file = CString::new(file.as_os_str().as_bytes()).map_err(|_| Error {
            status: Status(ffi::LVD_E_ARGUMENT),
            why: "a file name cannot contain a zero byte".into(),
        })?;
        // SAFETY: the machine is live, and the name valid during the call.
        check(unsafe { ffi::lvd_machine_load(self.0.as_ptr(), file.as_ptr()) })
    }

    /// Starts the image from its beginning. [`Status::STATE`]: there is no image, or a program is running;
    /// [`Status::TIMEOUT`]: the loader does not react within `limit`.
    pub fn run(&mut self, limit: Duration) -> Result<(), Error> {
        // SAFETY: the machine is live.
        check(unsafe { ffi::lvd_machine_run(self.0.as_ptr(), ns(limit)) })
    }

    /// Ends the running program. [`Status::STATE`]: none is running; [`Status::TIMEOUT`]: it does not end within
    /// `limit`.
    pub fn stop(&mut self, limit: Duration) -> Result<(), Error> {
        // SAFETY: the machine is live.
        check(unsafe { ffi::lvd_machine_stop(self.0.as_ptr(), ns(limit)) })
    }

    /// Reads the state. While a program runs, first waits until it rings, at most `wait`. Call this at least once per
    /// second, since it also probes the loader.
    pub fn look(&mut self, wait: Duration) -> State {
        let mut seen = ffi::lvd_machine_report {
            state: 0,
            result: 0,
            text: [0; 200],
        };
        // SAFETY: the machine is live, and the report valid during the call.
        unsafe { ffi::lvd_machine_look(self.0.as_ptr(), ns(wait), &mut seen) };
        // SAFETY: the call has terminated the text.
        let text = unsafe { CStr::from_ptr(seen.text.as_ptr()) };
        let text = text.to_string_lossy().into_owned();
        match seen.state {
            ffi::LVD_MACHINE_IDLE => State::Waits,
            ffi::LVD_MACHINE_RUNNING => State::Runs,
            ffi::LVD_MACHINE_EXITED => State::Ended(seen.result),
            ffi::LVD_MACHINE_FAILED => State::Failed(text),
            ffi::LVD_MACHINE_SERVING => State::Serves,
            _ => State::Dead(text),
        }
    }

    /// A file descriptor that is readable when [`look`](Machine::look) has news; the machine owns it.
    pub fn bell(&self) -> RawFd {
        // SAFETY: the machine is live.
        unsafe { ffi::lvd_machine_bell(self.0.as_ptr()) }
    }

    /// The id of the process that is the machine: an emulator, or the native program.
    pub fn process(&self) -> i32 {
        // SAFETY: the machine is live.
        unsafe { ffi::lvd_machine_process(self.0.as_ptr()) }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: the machine is live, and not used after this.
        unsafe { ffi::lvd_machine_end(self.0.as_ptr()) }
    }
}
