// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A suite: the sources of one protocol, the harness that compiles them, its checks; and what there
//! is to say about orders that no check needs.

use crate::check::Check;
use crate::mutate::Mutant;
use crate::{channel, inbox};

pub struct Suite {
    pub name: &'static str,
    /// In c/.
    pub harness: &'static str,
    /// The sources whose orders are mutated, relative to the runtime's folder.
    pub sources: &'static [&'static str],
    pub checks: &'static [Check],
}

pub const SUITES: &[Suite] = &[
    Suite {
        name: "channel",
        harness: "channel.c",
        // The harness makes the barrier that the caller of a channel has to make.
        sources: &["include/levada/channel.h", "model/c/channel.c"],
        checks: channel::CHECKS,
    },
    Suite {
        name: "inbox",
        harness: "inbox.c",
        sources: &["include/levada/inbox.h"],
        checks: inbox::CHECKS,
    },
];

/// An order that is there although no check fails without it.
pub struct Kept {
    pub file: &'static str,
    pub function: &'static str,
    pub call: &'static str,
    pub weaker: &'static str,
    pub why: &'static str,
}

pub const KEPT: &[Kept] = &[];

impl Kept {
    pub fn covers(&self, m: &Mutant) -> bool {
        self.file == m.file
            && self.function == m.function
            && self.call == m.call
            && self.weaker == m.weaker
    }
}

/// Sources that use orders and are in no suite, and why.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("src/app.c", "later"),
    ("src/control.c", "later"),
    ("src/entity.c", "later"),
    ("src/fault.c", "later"),
    ("src/native.c", "later"),
    ("src/runtime.c", "later"),
    ("src/settle.c", "later"),
    ("src/wait.c", "later"),
    ("src/why.c", "later"),
    ("src/worker.c", "later"),
    ("port/linux_wait.c", "later"),
];
