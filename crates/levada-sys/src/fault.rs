// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fault that ended an application: its kind, and the source line where it happened.

use crate::convert::text;
use crate::{App, ffi};

/// The fault that ended an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `none`, `index`, `division`, `check`, `memory`, `illegal`, `time`, `native` or `unknown`.
    pub kind: &'static str,
    pub actor: String,
    pub action: String,
    pub file: String,
    pub line: u32,
    pub message: String,
}

impl App {
    /// The fault that ended the application, if one did.
    pub fn fault(&self) -> Option<Fault> {
        // SAFETY: all fields are integers or pointers, for which zero bytes are valid.
        let mut raw: ffi::lvd_fault = unsafe { std::mem::zeroed() };
        // SAFETY: the application is live, `raw` valid.
        if !unsafe { ffi::lvd_app_fault(self.raw.as_ptr(), &mut raw) } {
            return None;
        }
        raw.message[raw.message.len() - 1] = 0;
        let kinds = [
            "none", "index", "division", "check", "memory", "illegal", "time", "native",
        ];
        Some(Fault {
            kind: kinds.get(raw.kind as usize).copied().unwrap_or("unknown"),
            actor: text(raw.actor),
            action: text(raw.action),
            file: text(raw.file),
            line: raw.line,
            message: text(raw.message.as_ptr()),
        })
    }
}
