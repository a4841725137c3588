// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why something was not done.

use crate::admission::Admission;

/// Which sort of thing was wrong with what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It says something that cannot be.
    Wrong,
    /// There is no such application, actor, worker.
    Unknown,
    /// Not in the state that things are in.
    Conflict,
    /// There is not enough of something.
    Limit,
}

/// Why something was not done, and what to do about it.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub kind: Kind,
    pub what: String,
    pub help: Option<String>,
    /// It is as asked for all the same, but later: a new version is there as soon as the old one has ended.
    pub comes: bool,
    /// What it would have done to the promises, where that is why.
    pub admission: Option<Box<Admission>>,
}

impl Refusal {
    pub fn new(kind: Kind, what: impl Into<String>) -> Refusal {
        Refusal {
            kind,
            what: what.into(),
            help: None,
            comes: false,
            admission: None,
        }
    }

    pub fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Refusal {}
