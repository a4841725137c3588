// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Machines behind a window, by themselves (`<levada/machine.h>`).

use crate::{Error, Status, ffi};
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::time::Duration;

/// What a machine is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Waits,
    Runs,
    /// The last program has returned this.
    Ended(u32),
    /// The last program has failed, or was stopped.
    Failed(String),
    /// A program that serves procedures.
    Serves,
    Dead(String),
}

pub struct Machine(NonNull<ffi::lvd_machine>);

// SAFETY: it is used by one thread at a time, and no matter by which.
unsafe impl Send for Machine {}

/// With the sentence that came with the status, if any.
pub(crate) fn check(status: ffi::lvd_status) -> Result<(), Error> {
    Status(status).check().map_err(|e| Error {
        // SAFETY: it is this thread's text, and stays until its next call.
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
    /// Starts one of a kind (`qemu`, `qemu32`, `native`, `uio:DEVICE`, `remoteproc:PROCESSOR,...`), and waits for its loader.
    pub fn boot(kind: &str, limit: Duration) -> Result<Machine, Error> {
        let kind = CString::new(kind).map_err(|_| Error {
            status: Status(ffi::LVD_E_ARGUMENT),
            why: String::new(),
        })?;
        let mut machine = std::ptr::null_mut();
        // SAFETY: the pointers are of this frame.
        check(unsafe { ffi::lvd_machine_boot(kind.as_ptr(), ns(limit), &mut machine) })?;
        Ok(Machine(NonNull::new(machine).expect("it was booted")))
    }

    /// Keeps an image for [`run`](Machine::run); when it is a bad one, the one before is still there.
    pub fn load(&mut self, file: &Path) -> Result<(), Error> {
        let file = CString::new(file.as_os_str().as_bytes()).map_err(|_| Error {
            status: Status(ffi::LVD_E_ARGUMENT),
            why: "a file's name has no zero byte in it".into(),
        })?;
        // SAFETY: the machine is there, and the name of this frame.
        check(unsafe { ffi::lvd_machine_load(self.0.as_ptr(), file.as_ptr()) })
    }

    pub fn run(&mut self, limit: Duration) -> Result<(), Error> {
        // SAFETY: the machine is there.
        check(unsafe { ffi::lvd_machine_run(self.0.as_ptr(), ns(limit)) })
    }

    /// Ends the program that runs.
    pub fn stop(&mut self, limit: Duration) -> Result<(), Error> {
        // SAFETY: the machine is there.
        check(unsafe { ffi::lvd_machine_stop(self.0.as_ptr(), ns(limit)) })
    }

    /// While a program runs: waits for a ring, no longer than that; then looks.
    pub fn look(&mut self, wait: Duration) -> State {
        let mut seen = ffi::lvd_machine_report {
            state: 0,
            result: 0,
            text: [0; 200],
        };
        // SAFETY: the machine is there, and the report of this frame.
        unsafe { ffi::lvd_machine_look(self.0.as_ptr(), ns(wait), &mut seen) };
        // SAFETY: the call has ended it with a zero.
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

    /// What can be read when [`look`](Machine::look) has something to see.
    pub fn bell(&self) -> RawFd {
        // SAFETY: the machine is there.
        unsafe { ffi::lvd_machine_bell(self.0.as_ptr()) }
    }

    /// The process that it is.
    pub fn process(&self) -> i32 {
        // SAFETY: the machine is there.
        unsafe { ffi::lvd_machine_process(self.0.as_ptr()) }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more.
        unsafe { ffi::lvd_machine_end(self.0.as_ptr()) }
    }
}
