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

/// The waker reads the owner.
const DETOUR: &str = "saves a detour: who reads an older owner wakes that one, who passes it on";

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
        file: "src/entity.c",
        function: "make_ready",
        call: "lvd_cas_acq_rel_u32",
        weaker: "lvd_cas_release_u32",
        why: DETOUR,
    },
    Kept {
        file: "src/entity.c",
        function: "make_ready",
        call: "lvd_cas_acq_rel_u32",
        weaker: "lvd_cas_acquire_u32",
        why: "who ends the application sees the guest that wakes (control.c is in no check)",
    },
    Kept {
        file: "src/entity.c",
        function: "lvd_entity_park",
        call: "lvd_cas_release_u32",
        weaker: "lvd_cas_relaxed_u32",
        why: DETOUR,
    },
    Kept {
        file: "src/entity.c",
        function: "wake_from_outside",
        call: "lvd_add_acq_rel_u32",
        weaker: "weak_add_acquire_u32",
        why: "only the acquire is needed, and there is no addition with that alone",
    },
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
    ("src/app.c", LOCKED),
    ("src/control.c", LOCKED),
    ("src/fault.c", LOCKED),
    ("src/native.c", LOCKED),
    ("src/runtime.c", LOCKED),
    ("src/why.c", "reads live counters for a report"),
    (
        "port/linux_wait.c",
        "the operating system's side: a mutex on its futex, and the barrier",
    ),
];

/// Loading, starting, stopping: seldom, mostly under locks, and run under the thread sanitizer.
const LOCKED: &str = "a slow path";
