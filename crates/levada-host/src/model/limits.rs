// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The limits of an application.

/// What an application is promised and allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Units a second, such as frames.
    pub rate: Option<f64>,
    /// Cores: 0.5 is half of one.
    pub share: Option<f64>,
}

impl Limits {
    pub fn any(&self) -> bool {
        self.rate.is_some() || self.share.is_some()
    }
}
