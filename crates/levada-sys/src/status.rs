// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The status of a call of the C library, and the error made of a status that is not `LVD_OK`.

use crate::ffi;
use std::ffi::CStr;

/// Why a call failed, or how an application ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub ffi::lvd_status);

impl Status {
    pub const OK: Status = Status(ffi::LVD_OK);
    pub const STATE: Status = Status(ffi::LVD_E_STATE);
    pub const TIMEOUT: Status = Status(ffi::LVD_E_TIMEOUT);
    pub const FAULT: Status = Status(ffi::LVD_E_FAULT);
    pub const DEADLOCK: Status = Status(ffi::LVD_E_DEADLOCK);
    pub const STOPPED: Status = Status(ffi::LVD_E_STOPPED);
    pub const ABI: Status = Status(ffi::LVD_E_ABI);
    pub const NOT_FOUND: Status = Status(ffi::LVD_E_NOT_FOUND);
    pub const ARGUMENT: Status = Status(ffi::LVD_E_ARGUMENT);

    pub fn name(self) -> &'static str {
        // SAFETY: never null, constant text.
        let text = unsafe { CStr::from_ptr(ffi::lvd_status_name(self.0)) };
        text.to_str().unwrap_or("?")
    }

    pub fn text(self) -> &'static str {
        // SAFETY: never null, constant text.
        let text = unsafe { CStr::from_ptr(ffi::lvd_status_text(self.0)) };
        text.to_str().unwrap_or("?")
    }

    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Status::OK => Ok(()),
            status => Err(Error {
                status,
                why: String::new(),
            }),
        }
    }
}

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A failed call: its status, and the sentence that the library wrote, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: Status,
    pub why: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.why.is_empty() {
            write!(f, "{} ({})", self.status.text(), self.status.name())
        } else {
            write!(f, "{}", self.why)
        }
    }
}

impl std::error::Error for Error {}
