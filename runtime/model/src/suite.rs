// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A suite: the sources of one protocol, the harness that compiles them, its checks; and what there
//! is to say about orders that no check needs.

use crate::check::Check;
use crate::mutate::Mutant;
use crate::{channel, inbox, worker};

pub struct Suite {
    pub name: &'static str,
    /// What is compiled, relative to the runtime's folder: the harness, and sources that ship.
    pub compiled: &'static [&'static str],
    /// The sources whose orders are mutated, relative to the runtime's folder.
    pub sources: &'static [&'static str],
    pub checks: &'static [Check],
}

pub const SUITES: &[Suite] = &[
    Suite {
        name: "channel",
        compiled: &["model/c/channel.c"],
        // The harness makes the barrier that the caller of a channel has to make.
        sources: &["include/levada/channel.h", "model/c/channel.c"],
        checks: channel::CHECKS,
    },
    Suite {
        name: "inbox",
        compiled: &["model/c/inbox.c"],
        sources: &["include/levada/inbox.h"],
        checks: inbox::CHECKS,
    },
    Suite {
        name: "worker",
        compiled: &[
            "model/c/worker.c",
            "src/worker.c",
            "src/entity.c",
            "src/settle.c",
            "src/wait.c",
            "src/control.c",
        ],
        sources: &["src/worker.c", "src/entity.c", "src/settle.c", "src/wait.c"],
        checks: worker::CHECKS,
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

/// Between a thread and its own signal handler, which the checker does not have.
const SIGNAL: &str = "orders a thread against its own signal handler";

const fn signal(function: &'static str, file: &'static str) -> Kept {
    Kept {
        file,
        function,
        call: "lvd_fence_compiler",
        weaker: "weak_fence_compiler",
        why: SIGNAL,
    }
}

pub const KEPT: &[Kept] = &[
    signal("call_run", "src/worker.c"),
    signal("lvd_entity_wake", "src/entity.c"),
    Kept {
        file: "src/worker.c",
        function: "lvd_workers_command",
        call: "lvd_load_acquire_u32",
        weaker: "lvd_load_relaxed_u32",
        why: "its commands lie on a stack, unwatched; model/c/worker.c makes the same wait",
    },
];

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
    ("src/fault.c", "later"),
    ("src/native.c", "later"),
    ("src/runtime.c", "later"),
    ("src/why.c", "later"),
    ("port/linux_wait.c", "later"),
];
