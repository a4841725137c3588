// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What C has in another way than Rust: texts, arrays, limits of time.

use crate::{Error, Status, ffi};
use std::ffi::{CStr, CString, c_char};
use std::time::Duration;

/// # Safety
/// `data` points to `len` values that live as long as the result, or `len` is 0.
pub(crate) unsafe fn slice<'a, T>(data: *const T, len: u32) -> &'a [T] {
    if data.is_null() || len == 0 {
        &[]
    } else {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(data, len as usize) }
    }
}

/// A C string of the runtime's; empty for null.
pub(crate) fn text(s: *const c_char) -> String {
    if s.is_null() {
        String::new()
    } else {
        // SAFETY: the runtime's strings are terminated and live.
        unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned()
    }
}

/// What an application says of itself, in a line of so many characters at the most, none of which controls anything.
pub(crate) fn said(s: *const c_char, most: usize) -> String {
    let first: String = text(s).chars().take(most).collect();
    levada_text::escaped_line(&first).into_owned()
}

pub(crate) fn c_string(s: &str) -> Result<CString, Error> {
    CString::new(s).map_err(|_| Error {
        status: Status(ffi::LVD_E_ARGUMENT),
        why: format!("{s:?} holds a zero byte"),
    })
}

/// As the runtime takes a limit: negative is none.
pub(crate) fn timeout_ns(timeout: Option<Duration>) -> i64 {
    timeout.map_or(-1, |t| i64::try_from(t.as_nanos()).unwrap_or(i64::MAX))
}
