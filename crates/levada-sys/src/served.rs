// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A unit whose procedures are called one by one, with files for its streams (served.c).

use crate::{Error, Status, ffi, machine};
use std::ffi::{CStr, CString, c_int};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// The most that a result may have here.
const RESULT: usize = 65536;

/// A stream of a call's, and the file that it comes from or goes to.
#[derive(Debug)]
pub struct Flow {
    /// As the procedure calls it; digits alone are one of the paper's numbers.
    pub name: String,
    pub file: File,
    /// Bytes of an element.
    pub size: u32,
    /// From the file to the procedure.
    pub input: bool,
}

pub struct Served(NonNull<ffi::lvd_sys_served>);

// SAFETY: calls on it may come from any thread; it is ended by its last owner.
unsafe impl Send for Served {}
unsafe impl Sync for Served {}

fn text(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| Error {
        status: Status::ARGUMENT,
        why: "a name has no zero byte in it".into(),
    })
}

impl Served {
    /// Boots a machine of a unit's name, `qemu:FILE`, and has it serve.
    pub fn load(unit: &str) -> Result<Served, Error> {
        let unit = text(unit)?;
        let mut out = std::ptr::null_mut();
        // SAFETY: the pointers are of this frame.
        machine::check(unsafe { ffi::lvd_sys_served_load(unit.as_ptr(), &mut out) })?;
        Ok(Served(NonNull::new(out).expect("it was loaded")))
    }

    /// It serves, or why it does not any more.
    pub fn state(&self) -> Status {
        // SAFETY: it is there.
        Status(unsafe { ffi::lvd_sys_served_state(self.0.as_ptr()) })
    }

    /// The process that it is.
    pub fn process(&self) -> i32 {
        // SAFETY: it is there.
        unsafe { ffi::lvd_sys_served_process(self.0.as_ptr()) }
    }

    /// Calls a procedure, or one of the paper's tasks, and waits for its end: the result, and how many elements
    /// went through each stream. One call at a time.
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
        let mut result = vec![0; RESULT];
        let mut size = result.len();
        let mut why = [0; 300];
        // SAFETY: it is there; all that is pointed to is of this frame, and as large as is said.
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
                    format!("the file ends amid an element of {} bytes", raw.size)
                }
                (Status(ffi::LVD_E_STATE), _) => format!(
                    "the procedure has returned and not used it, or with elements of another size than {} bytes",
                    raw.size
                ),
                (Status::ARGUMENT, _) => format!("elements there do not have {} bytes", raw.size),
                (status, _) => status.text().to_string(),
            };
            return Err(Error {
                status: Status(raw.status),
                why: format!("stream {}: {why}", flow.name),
            });
        }
        // SAFETY: the call has ended it with a zero.
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
        // SAFETY: nobody has it any more.
        unsafe { ffi::lvd_sys_served_end(self.0.as_ptr()) }
    }
}
