// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The limits of an application.

/// The limits of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Reserved and maximum rate, in units per second, such as frames.
    pub rate: Option<f64>,
    /// CPU quota in cores: 0.5 is half of one core.
    pub cpus: Option<f64>,
}

impl Limits {
    pub fn any(&self) -> bool {
        self.rate.is_some() || self.cpus.is_some()
    }
}
