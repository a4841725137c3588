// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A loaded C program (`levada/program.h`), which [`crate::Network::program`] makes.

use crate::convert::{c_string, text};
use crate::{Error, Status, ffi};
use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr::NonNull;

/// A loaded copy of a C program; dropping it unloads the code.
#[derive(Debug)]
pub(crate) struct Program(NonNull<ffi::lvd_program>);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the `Network` that owns this is being dropped, and every application holds its network: none exists.
        unsafe { ffi::lvd_program_close(self.0.as_ptr()) }
    }
}

impl Program {
    /// See [`crate::Network::program`].
    ///
    /// # Safety
    /// The program's code runs in this process: it must be trusted.
    pub(crate) unsafe fn open(path: &Path, arguments: &[String]) -> Result<Program, String> {
        let wrong = |e: Error| e.why;
        let file = path.to_string_lossy();
        let argv = std::iter::once(file.as_ref()).chain(arguments.iter().map(String::as_str));
        let argv: Result<Vec<CString>, Error> = argv.map(c_string).collect();
        let argv = argv.map_err(wrong)?;
        let raw: Vec<*const c_char> = argv.iter().map(|a| a.as_ptr()).collect();
        let path = CString::new(path.as_os_str().as_encoded_bytes());
        let path = path.map_err(|_| format!("{file:?} contains a zero byte"))?;
        let mut out = std::ptr::null_mut();
        let mut why = [0 as c_char; 512];
        let argc = std::ffi::c_int::try_from(raw.len()).map_err(|e| e.to_string())?;
        // SAFETY: everything pointed to outlives the call; the caller guarantees that the program can be trusted.
        let status = Status(unsafe {
            ffi::lvd_program_open(
                path.as_ptr(),
                argc,
                raw.as_ptr(),
                &mut out,
                why.as_mut_ptr(),
                why.len(),
            )
        });
        why[why.len() - 1] = 0;
        NonNull::new(out).map(Program).ok_or_else(|| {
            let why = text(why.as_ptr());
            if why.is_empty() {
                format!("{file}: {}", Error { status, why })
            } else {
                why
            }
        })
    }

    /// The network as which the program is loaded; valid as long as this. It has no actors.
    pub(crate) fn network(&self) -> Option<NonNull<ffi::lvd_network>> {
        // SAFETY: the program is open.
        let network = unsafe { ffi::lvd_program_network(self.0.as_ptr()) };
        NonNull::new(network.cast_mut())
    }
}
