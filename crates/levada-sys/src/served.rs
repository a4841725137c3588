// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A unit of its own, for calls of its procedures one at a time, with files as the ends of its streams (served.c).

use crate::{Error, Status, ffi, machine};
use std::ffi::{CStr, CString, c_int};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// Maximum size in bytes of a procedure's result.
const RESULT_BYTES_MAX: usize = 65536;

/// A stream of a call, and the file from which it is filled or to which it is written.
#[derive(Debug)]
pub struct Flow {
    /// The procedure's name for the stream; a name of digits only is a `STREAM_ID` of Streaming RPC.
    pub name: String,
    pub file: File,
    /// Size of an element in bytes.
    pub size: u32,
    /// True: from the file to the procedure; false: from the procedure to the file.
    pub input: bool,
}

/// A booted unit with an application of its own; dropping it ends both.
pub struct Served(NonNull<ffi::lvd_sys_served>);

// SAFETY: the functions of served.c can be called from any thread, and `drop` runs once.
unsafe impl Send for Served {}
unsafe impl Sync for Served {}

fn text(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| Error {
        status: Status::ARGUMENT,
        why: "a name cannot contain a zero byte".into(),
    })
}

impl Served {
    /// Boots the unit of this name, such as `qemu:FILE`, and waits until it serves.
    pub fn load(unit: &str) -> Result<Served, Error> {
        let unit = text(unit)?;
        let mut out = std::ptr::null_mut();
        // SAFETY: both pointers are valid during the call.
        machine::check(unsafe { ffi::lvd_sys_served_load(unit.as_ptr(), &mut out) })?;
        Ok(Served(NonNull::new(out).expect("it was loaded")))
    }

    /// [`Status::OK`] while the unit serves, otherwise why it has ended.
    pub fn state(&self) -> Status {
        // SAFETY: the unit is live.
        Status(unsafe { ffi::lvd_sys_served_state(self.0.as_ptr()) })
    }

    /// The id of the unit's process.
    pub fn process(&self) -> i32 {
        // SAFETY: the unit is live.
        unsafe { ffi::lvd_sys_served_process(self.0.as_ptr()) }
    }

    /// Calls a procedure, or runs a task of Streaming RPC, and waits until it returns. Returns the result and the
    /// number of elements that each stream has carried. Only one call may run at a time. The error names the stream
    /// that failed, if one did.
    pub fn call(
        &self,
        procedure: &str,
        argument: &[u8],
        flows: &[Flow],
    ) -> Result<(Vec<u8>, Vec<u64>), Error> {
        let procedure = text(procedure)?;
        let numbered = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
        let names = flows.iter().map(|f| {
            if numbered(&f.name) {
                text(&format!("number {}", f.name))
            } else {
                text(&f.name)
            }
        });
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let raw = |(f, name): (&Flow, &CString)| ffi::lvd_sys_flow {
            name: name.as_ptr(),
            file: f.file.as_raw_fd(),
            size: f.size,
            r#in: f.input,
            status: ffi::LVD_OK,
            error: 0 as c_int,
            count: 0,
        };
        let mut raws: Vec<_> = flows.iter().zip(&names).map(raw).collect();
        let mut result = vec![0; RESULT_BYTES_MAX];
        let mut size = result.len();
        let mut why = [0; 300];
        // SAFETY: the unit is live; every pointer is valid during the call for the size that is passed with it.
        let status = Status(unsafe {
            ffi::lvd_sys_served_call(
                self.0.as_ptr(),
                procedure.as_ptr(),
                argument.as_ptr().cast(),
                argument.len(),
                raws.as_mut_ptr(),
                raws.len() as u32,
                result.as_mut_ptr().cast(),
                &mut size,
                why.as_mut_ptr(),
                why.len(),
            )
        });
        for (flow, raw) in flows.iter().zip(&raws) {
            let why = match (Status(raw.status), raw.error) {
                (Status::OK, 0) => continue,
                (Status::OK, error) => std::io::Error::from_raw_os_error(error).to_string(),
                (Status(ffi::LVD_E_EOF), _) => {
                    format!("the file ends within an element of {} bytes", raw.size)
                }
                (Status(ffi::LVD_E_STATE), _) => format!(
                    "the procedure has returned and not used it, or its elements do not have {} bytes",
                    raw.size
                ),
                (Status::ARGUMENT, _) => {
                    format!("the procedure's elements do not have {} bytes", raw.size)
                }
                (status, _) => status.text().to_string(),
            };
            return Err(Error {
                status: Status(raw.status),
                why: format!("stream {}: {why}", flow.name),
            });
        }
        // SAFETY: the call has terminated the text.
        let why = unsafe { CStr::from_ptr(why.as_ptr()) };
        status.check().map_err(|e| Error {
            why: why.to_string_lossy().into_owned(),
            ..e
        })?;
        result.truncate(size);
        Ok((result, raws.iter().map(|r| r.count).collect()))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // SAFETY: the unit is live, and not used after this.
        unsafe { ffi::lvd_sys_served_end(self.0.as_ptr()) }
    }
}
