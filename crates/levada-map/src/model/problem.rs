// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of the mapper.

use std::fmt;

/// What is wrong with the input, and how to correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub what: String,
    pub help: String,
}

impl Problem {
    pub fn new(what: impl Into<String>, help: impl Into<String>) -> Problem {
        Problem {
            what: what.into(),
            help: help.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.help)
    }
}

impl std::error::Error for Problem {}
