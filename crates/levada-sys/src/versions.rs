// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A new version of an application: what it takes over, or inherits, from the old one.

use crate::convert::text;
use crate::{App, Error, Status, ffi};
use std::ffi::c_char;

impl App {
    /// What `old` leaves when it comes to a good end is for this one, which is not started yet. Both are
    /// kept until then, or until [`App::leaves_nothing`].
    pub fn set_data_successor(&self, old: &App) -> Result<(), Error> {
        // SAFETY: both applications are live.
        Status(unsafe { ffi::lvd_app_set_data_successor(self.raw.as_ptr(), old.raw.as_ptr()) })
            .check()
    }

    /// What it leaves ends with it, whoever was to have it.
    pub fn leaves_nothing(&self) {
        // SAFETY: the application is live; null is nobody.
        unsafe { ffi::lvd_app_set_data_successor(std::ptr::null_mut(), self.raw.as_ptr()) };
    }

    /// What actors that both have do not take along from `old`, in words: one thing a line.
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

    /// It goes on where `old` is, which is paused: what both have in common goes along. The old one is as it
    /// was, and is to be [finished](App::finish) before this one is started. Fails with [`Status::STATE`] where
    /// that is not possible at this moment.
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

    /// Whether natives of versions before it have left something that nobody has asked for: their code ends it.
    pub fn has_unclaimed_data(&self) -> bool {
        // SAFETY: the application is live.
        unsafe { ffi::lvd_app_has_unclaimed_data(self.raw.as_ptr()) }
    }
}
