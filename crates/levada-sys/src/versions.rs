// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Upgrades: what a new version of an application takes from the old one.

use crate::convert::text;
use crate::{App, Error, Status, ffi};
use std::ffi::c_char;

impl App {
    /// When `old` ends successfully, its persistent data passes to this application, which is not started yet. Keep
    /// both until then, or until [`App::discard_data`].
    pub fn set_data_successor(&self, old: &App) -> Result<(), Error> {
        // SAFETY: both applications are live.
        Status(unsafe { ffi::lvd_app_set_data_successor(self.raw.as_ptr(), old.raw.as_ptr()) })
            .check()
    }

    /// The persistent data of this application is freed with it, and passes to no successor.
    pub fn discard_data(&self) {
        // SAFETY: the application is live; null stands for no successor.
        unsafe { ffi::lvd_app_set_data_successor(std::ptr::null_mut(), self.raw.as_ptr()) };
    }

    /// What actors of both versions cannot take from `old`, as text: one line each.
    pub fn reset_report(&self, old: &App) -> String {
        let ask = |text: &mut [u8]| {
            // SAFETY: both applications are live, the buffer as large as is said.
            unsafe {
                let (app, old) = (self.raw.as_ptr(), old.raw.as_ptr());
                ffi::lvd_app_reset_report(app, old, text.as_mut_ptr().cast(), text.len())
            }
        };
        let mut text = vec![0u8; ask(&mut []) + 1];
        ask(&mut text);
        text.pop();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Continues from the state of `old`, which is paused: actors and channels of both versions keep their state. `old`
    /// is unchanged; end it by [`App::exit`] before this application is started. [`Status::STATE`]: not possible now.
    pub fn upgrade_from(&self, old: &App) -> Result<(), Error> {
        let mut why = [0 as c_char; 512];
        // SAFETY: both applications are live, the buffer as large as is said.
        let status = Status(unsafe {
            ffi::lvd_app_upgrade_from(
                self.raw.as_ptr(),
                old.raw.as_ptr(),
                why.as_mut_ptr(),
                why.len(),
            )
        });
        match status {
            Status::OK => Ok(()),
            status => Err(Error {
                status,
                why: text(why.as_ptr()),
            }),
        }
    }

    /// Whether it holds persistent data that no native has requested. It is freed by functions in the code that made
    /// it, which must stay loaded.
    pub fn has_unclaimed_data(&self) -> bool {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_has_unclaimed_data(self.raw.as_ptr()) }
    }
}
