// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is asked for, and why it cannot be had.

use super::method::Method;
use super::sweep::Sweeper;
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use std::fmt;

/// Why there is no shield, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub what: String,
    pub help: Option<String>,
}

impl Error {
    pub fn new(what: impl Into<String>, help: &str) -> Error {
        Error {
            what: what.into(),
            help: Some(help.to_string()).filter(|h| !h.is_empty()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.what)
    }
}

impl std::error::Error for Error {}

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub cores: CoreSet,
    /// Only in this way.
    pub by: Option<Method>,
    /// What is on the cores goes to this one alone.
    pub lightest: Option<u32>,
    /// Names or ids of processes that stay where they are.
    pub protect: Vec<String>,
    /// A process that runs already and is to be alone.
    pub pid: Option<i32>,
    /// Of that process this thread only.
    pub thread: Option<i32>,
    /// The cores must be apart for the scheduler, too: deadlines need that.
    pub apart: bool,
}

/// Cores as a sentence has them: "core 3", "cores 2-3".
pub fn cores(set: &CoreSet) -> String {
    let s = if set.len() == 1 { "" } else { "s" };
    format!("core{s} {set}")
}

pub(super) fn are(set: &CoreSet) -> String {
    let verb = if set.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", cores(set))
}

/// The broom of a request; `holder` is the process that holds the shield.
pub fn sweeper<K: Kernel>(
    machine: &Machine<K>,
    request: &Request,
    others: &CoreSet,
    method: Method,
    holder: i32,
) -> Sweeper {
    Sweeper {
        shield: request.cores.clone(),
        others: others.clone(),
        lightest: request.lightest,
        protect: request.protect.clone(),
        user: match method {
            Method::Own => machine.owner(std::process::id() as i32),
            _ => None,
        },
        inside: request
            .pid
            .filter(|_| request.thread.is_none())
            .into_iter()
            .collect(),
        threads: request.thread.into_iter().collect(),
        holder: request.pid.map_or(0, |_| holder),
        ..Sweeper::default()
    }
}
