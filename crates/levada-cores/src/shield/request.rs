// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and their errors.

use super::method::Method;
use super::sweep::Sweeper;
use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use std::fmt;

/// Why a shield cannot be raised, and how to proceed.
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

/// What the caller asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub cores: CoreSet,
    /// Only by this method.
    pub method: Option<Method>,
    /// Move everything to this single core.
    pub lightest: Option<u32>,
    /// Names or ids of processes that are not moved.
    pub exclude: Vec<String>,
    /// A running process that gets the cores.
    pub pid: Option<i32>,
    /// Only this thread of the process.
    pub thread: Option<i32>,
    /// The cores need a scheduling domain of their own, for SCHED_DEADLINE.
    pub apart: bool,
}

/// Cores in a sentence: "core 3", "cores 2-3".
pub fn cores(set: &CoreSet) -> String {
    let s = if set.len() == 1 { "" } else { "s" };
    format!("core{s} {set}")
}

pub(super) fn are(set: &CoreSet) -> String {
    let verb = if set.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", cores(set))
}

/// The sweeper for a request; `holder` is the process that holds the shield.
pub fn sweeper_for<K: Kernel>(
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
        exclude: request.exclude.clone(),
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
