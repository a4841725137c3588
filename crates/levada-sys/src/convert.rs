// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conversions between C and Rust: strings, arrays, timeouts.

use crate::{Error, Status, ffi};
use std::ffi::{CStr, CString, c_char};
use std::time::Duration;

/// The C array of `len` elements at `data`; empty for a null pointer.
///
/// # Safety
/// `data` points to `len` values that live as long as the result, or `data` is null, or `len` is 0.
pub(crate) unsafe fn slice<'a, T>(data: *const T, len: u32) -> &'a [T] {
    if data.is_null() || len == 0 {
        &[]
    } else {
        // SAFETY: the caller guarantees it, and neither is null nor 0 here.
        unsafe { std::slice::from_raw_parts(data, len as usize) }
    }
}

/// A copy of a string of the runtime, with invalid UTF-8 replaced; empty for a null pointer.
pub(crate) fn text(s: *const c_char) -> String {
    if s.is_null() {
        String::new()
    } else {
        // SAFETY: callers pass strings of the runtime, which are terminated and live.
        unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned()
    }
}

/// The first `chars_max` characters of a text that an application supplied, with control characters escaped, as one
/// line.
pub(crate) fn untrusted_line(s: *const c_char, chars_max: usize) -> String {
    let first: String = text(s).chars().take(chars_max).collect();
    levada_text::escaped_line(&first).into_owned()
}

/// A copy of `s` for C. Fails with `LVD_E_ARGUMENT` if it contains a zero byte.
pub(crate) fn c_string(s: &str) -> Result<CString, Error> {
    CString::new(s).map_err(|_| Error {
        status: Status(ffi::LVD_E_ARGUMENT),
        why: format!("{s:?} contains a zero byte"),
    })
}

/// A timeout in nanoseconds, as the runtime takes it; `None` is -1, no limit.
pub(crate) fn timeout_ns(timeout: Option<Duration>) -> i64 {
    timeout.map_or(-1, |t| i64::try_from(t.as_nanos()).unwrap_or(i64::MAX))
}
