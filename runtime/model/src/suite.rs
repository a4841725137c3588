// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A suite: the sources of one protocol, the harness that compiles them, its checks; and what there
//! is to say about orders that no check needs.

use crate::check::Check;
use crate::mutate::Mutant;
use crate::{
    app, call, channel, fiber, fork, inbox, lease, link, lock, mcapi, steal, visit, worker,
};

pub struct Suite {
    pub name: &'static str,
    /// The files that are compiled, relative to the runtime's folder: the harness and shipped sources.
    pub compiled: &'static [&'static [&'static str]],
    /// The sources in which orders are mutated, relative to the runtime's folder. One that several
    /// suites name is mutated once, and tried in each.
    pub sources: &'static [&'static str],
    pub checks: &'static [Check],
}

/// Waiting by threads.
const WAIT: &[&str] = &[
    "model/c/stubs/hooks.c",
    "model/c/stubs/no_thread_waiters.c",
    "platform/mutex.c",
    "src/core/status.c",
    "src/sched/wait_item.c",
    "src/wait/wait.c",
];

/// Workers and an application, without what interrupts them.
const WORKERS: &[&str] = &[
    "model/c/stubs/no_backup_worker.c",
    "model/c/stubs/no_leases.c",
    "model/c/stubs/no_programs.c",
    "model/c/stubs/no_steal_time.c",
    "model/c/stubs/no_watchdog.c",
    "src/app/app_control.c",
    "src/app/app_reaper.c",
    "src/app/quiescence.c",
    "src/sched/app_liveness.c",
    "src/sched/entity.c",
    "src/sched/park_barrier.c",
    "src/sched/worker.c",
];

/// Fibers, actors with stacks, and streams.
const FIBERS: &[&str] = &[
    "model/c/arena.c",
    "model/c/context.c",
    "model/c/world.c",
    "model/c/stubs/no_growth.c",
    "model/c/stubs/no_preempt.c",
    "platform/context_aarch64.S",
    "platform/context_riscv.S",
    "platform/context_x86_64.S",
    "src/app/app_fibers.c",
    "src/app/app_open.c",
    "src/channel/channel.c",
    "src/sched/actor_stack.c",
    "src/sched/actor_timer.c",
    "src/sched/fiber.c",
    "src/sched/fiber_pool.c",
    "src/sched/fiber_start.c",
    "src/sched/stack_overflow.c",
    "src/sched/timer.c",
    "src/stream/stream.c",
    "src/stream/wake_threshold.c",
    "src/wait/fiber_join.c",
];

pub const SUITES: &[Suite] = &[
    Suite {
        name: "channel",
        compiled: &[&["model/c/channel.c"]],
        // The harness makes the barrier that the caller of a channel has to make.
        sources: &["include/levada/channel.h", "model/c/channel.c"],
        checks: channel::CHECKS,
    },
    Suite {
        name: "inbox",
        compiled: &[&["model/c/inbox.c"]],
        sources: &["include/levada/inbox.h"],
        checks: inbox::CHECKS,
    },
    Suite {
        name: "lock",
        compiled: &[&[
            "model/c/lock.c",
            "mcapi/domain/owner_lock.c",
            "platform/mutex.c",
        ]],
        sources: &["mcapi/domain/owner_lock.h", "mcapi/domain/owner_lock.c"],
        checks: lock::CHECKS,
    },
    Suite {
        name: "lease",
        compiled: &[&["model/c/lease.c", "src/lease/core_lease.c"]],
        sources: &["src/lease/core_lease.c"],
        checks: lease::CHECKS,
    },
    Suite {
        name: "visit",
        compiled: &[&["model/c/visit.c"]],
        sources: &["mcapi/domain/call_guard.h"],
        checks: visit::CHECKS,
    },
    Suite {
        name: "worker",
        compiled: &[
            WAIT,
            WORKERS,
            &[
                "model/c/worker.c",
                "model/c/stubs/no_fibers.c",
                "model/c/stubs/no_forks.c",
                "model/c/stubs/no_growth.c",
                "model/c/stubs/no_preempt.c",
            ],
        ],
        sources: &[
            "src/sched/worker.c",
            "src/sched/entity.c",
            "src/sched/park_barrier.c",
            "src/sched/app_liveness.c",
            "src/wait/wait.c",
            "src/sched/wait_item.c",
            "src/app/app_control.c",
            "src/app/app_reaper.c",
            "src/app/quiescence.c",
        ],
        checks: worker::CHECKS,
    },
    Suite {
        name: "app",
        compiled: &[
            WAIT,
            WORKERS,
            &[
                "model/c/app.c",
                "model/c/arena.c",
                "model/c/stubs/no_fibers.c",
                "model/c/stubs/no_forks.c",
                "src/app/app.c",
                "src/app/app_cores.c",
                "src/app/channel_growth.c",
                "src/channel/channel.c",
                "src/runtime/runtime.c",
                "src/sched/fault.c",
                "src/sched/forced_exit.c",
                "src/sched/overrun.c",
                "src/sched/preempt.c",
            ],
        ],
        sources: &[
            "src/app/app.c",
            "src/app/app_control.c",
            "src/app/app_reaper.c",
            "src/app/quiescence.c",
            "src/sched/fault.c",
            "src/runtime/runtime.c",
            "platform/mutex.c",
            "src/sched/worker.c",
            "src/sched/entity.c",
        ],
        checks: app::CHECKS,
    },
    Suite {
        name: "fiber",
        compiled: &[
            WAIT,
            WORKERS,
            FIBERS,
            &["model/c/fiber.c", "model/c/stubs/no_forks.c"],
        ],
        sources: &[
            "include/levada/wait.h",
            "src/sched/actor_stack.c",
            "src/app/app_fibers.c",
            "src/app/app_control.c",
            "src/app/app_open.c",
            "src/app/app_reaper.c",
            "src/app/quiescence.c",
            "src/sched/fiber.c",
            "src/sched/fiber_pool.c",
            "src/sched/fiber_start.c",
            "src/sched/park_barrier.c",
            "src/sched/app_liveness.c",
            "src/stream/stream.c",
            "src/stream/wake_threshold.c",
            "src/wait/wait.c",
            "src/sched/wait_item.c",
        ],
        checks: fiber::CHECKS,
    },
    Suite {
        name: "call",
        compiled: &[
            WAIT,
            WORKERS,
            FIBERS,
            &[
                "model/c/call.c",
                "model/c/stubs/no_forks.c",
                "src/app/app_cores.c",
                "src/rpc/call.c",
                "src/runtime/runtime.c",
                "src/sched/priority_worker.c",
            ],
        ],
        sources: &[
            "src/app/app_fibers.c",
            "src/rpc/call.c",
            "src/sched/fiber.c",
            "src/sched/fiber_start.c",
            "src/runtime/runtime.c",
            "src/sched/priority_worker.c",
        ],
        checks: call::CHECKS,
    },
    Suite {
        name: "fork",
        compiled: &[&["model/c/fork.c", "platform/mutex.c", "src/fork/deque.c"]],
        sources: &["include/levada/fork.h", "src/fork/deque.c"],
        checks: fork::CHECKS,
    },
    Suite {
        name: "steal",
        compiled: &[
            WAIT,
            WORKERS,
            FIBERS,
            &[
                "model/c/steal.c",
                "src/fork/deque.c",
                "src/fork/deque_pool.c",
                "src/fork/fork_proxy.c",
                "src/fork/fork_thread.c",
                "src/fork/parallel_for.c",
                "src/fork/steal.c",
            ],
        ],
        sources: &[
            "src/fork/deque_pool.c",
            "src/fork/fork.h",
            "src/fork/deque.c",
            "src/fork/fork_proxy.c",
            "src/fork/fork_thread.c",
            "src/fork/parallel_for.c",
            "src/fork/steal.c",
        ],
        checks: steal::CHECKS,
    },
    Suite {
        name: "link",
        compiled: &[
            WAIT,
            &[
                "model/c/arena.c",
                "model/c/link.c",
                "src/channel/channel.c",
                "src/ipc/link.c",
                "src/ipc/shared_stream.c",
                "src/stream/stream.c",
                "src/stream/wake_threshold.c",
            ],
        ],
        sources: &[
            "src/ipc/link.h",
            "src/ipc/link.c",
            "src/ipc/shared_stream.c",
        ],
        checks: link::CHECKS,
    },
    Suite {
        name: "mcapi",
        compiled: &[
            WAIT,
            &[
                "model/c/arena.c",
                "model/c/mcapi.c",
                "mcapi/api/broadcast.c",
                "mcapi/api/channel.c",
                "mcapi/api/endpoint.c",
                "mcapi/api/held_packets.c",
                "mcapi/api/request.c",
                "mcapi/domain/domain.c",
                "mcapi/domain/owner_lock.c",
                "mcapi/domain/wait.c",
                "mcapi/transport/shm/shm_broadcast.c",
                "mcapi/transport/shm/shm_channel.c",
                "mcapi/transport/shm/shm_loan.c",
                "mcapi/transport/shm/shm_queue.c",
                "mcapi/transport/shm/shm_view.c",
                "src/channel/channel.c",
            ],
        ],
        sources: &[
            "mcapi/domain/domain.c",
            "mcapi/domain/domain.h",
            "mcapi/api/endpoint.c",
            "mcapi/transport/shm/shm_queue.c",
            "mcapi/domain/wait.c",
        ],
        checks: mcapi::CHECKS,
    },
];

/// An order that stays although no check fails without it.
pub struct Kept {
    pub file: &'static str,
    pub function: &'static str,
    pub call: &'static str,
    pub weaker: &'static str,
    pub why: &'static str,
    /// Number of places in the function.
    pub places: usize,
}

/// Between a thread and its own signal handler, which the checker does not have.
const SIGNAL: &str = "orders a thread against its own signal handler";

/// Between the phase of an application and `reaper_work`.
const EARLY: &str = "a reaper that is awake may see the phase before it sees reaper_work";

/// The waker reads the owner.
const DETOUR: &str =
    "saves a detour: a waker that reads an older owner wakes that worker, which passes it on";

/// Of two stores to a word that must come in a certain order.
const IN_TURN: &str =
    "the checker keeps the stores to a word in the order in which they are executed";

const MADE: &str = "memory allocated while threads run is not observed: a reader that sees it too early is not found";

const UNJUDGED: &str = "no check becomes quiescent in a signal handler";
const FIBERS_REST: &str =
    "no check has fibers that become quiescent: a reader of the count must see what they did";

const HELD: &str = "the barriers of pausing and of the worker's turns seem to order it, too: not searched deep enough";

const TOLD: &str = "a process that has a handle has received it, which orders";

/// Of a slot that its sender has posted, without having recorded that yet, when its receiver dies.
const BETWEEN: &str = "needs a slot used again under a stale view of the heads: more preemptions than its checks have";

const NODES_END: &str =
    "what a node that ends reads of its process's other nodes: no check ends a node";

/// Of the flag of a sleeping thread, or the bit of its node in a set.
const EITHER: &str =
    "the fences of the waking and the sleeping side order them: one of them sees the other's store";

/// file, function, order, weaker, why
const fn kept(
    file: &'static str,
    function: &'static str,
    call: &'static str,
    weaker: &'static str,
    why: &'static str,
) -> Kept {
    Kept {
        file,
        function,
        call,
        weaker,
        why,
        places: 1,
    }
}

#[rustfmt::skip] // a table
pub const KEPT_ORDERS: &[Kept] = &[
    kept("src/sched/worker.c", "call_run", "lvd_fence_compiler", "weak_fence_compiler", SIGNAL)
        .places(2),
    kept("src/sched/actor_stack.c", "call_run", "lvd_fence_compiler", "weak_fence_compiler", SIGNAL)
        .places(2),
    kept("src/sched/entity.c", "make_ready", "lvd_cas_acq_rel_u32", "lvd_cas_release_u32", DETOUR),
    kept("src/sched/entity.c", "make_ready", "lvd_cas_acq_rel_u32", "lvd_cas_acquire_u32",
        "the new owner sees the waker's stores by the inbox; so does a waker that finds it READY"),
    kept("src/sched/app_liveness.c", "lvd_app_end", "lvd_exchange_release_u32", "lvd_exchange_relaxed_u32",
        EARLY),
    kept("src/app/app_reaper.c", "find_ending", "lvd_load_acquire_u32", "lvd_load_relaxed_u32", EARLY),
    kept("src/app/app_reaper.c", "finish", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "the checker makes it an exchange, which carries on the release of ENDING"),
    kept("src/sched/entity.c", "lvd_entity_park", "lvd_cas_release_u32", "lvd_cas_relaxed_u32", DETOUR),
    kept("src/sched/wait_item.c", "wait_point_wake", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr", MADE),
    kept("src/sched/wait_item.c", "lvd_wait_item_arm", "lvd_store_release_ptr", "lvd_store_relaxed_ptr", MADE),
    kept("src/sched/fiber.c", "suspend", "lvd_cas_release_u32", "lvd_cas_relaxed_u32", DETOUR),
    kept("src/sched/fiber_start.c", "lvd_fiber_begin", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "for lvd_fibers_each, and what that reads next it reads unwatched (LVD_RACY_READ)"),
    kept("src/sched/app_liveness.c", "uncount_fibers", "lvd_add_release_u32", "lvd_add_relaxed_u32",
        "cancel_and_wait reads this count alone; in the checks `live` is released after it"),
    kept("src/app/app_open.c", "lvd_app_close", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "no check closes an application: a thread that sees it closed must see the fibers started before"),
    kept("src/sched/fiber.c", "may_follow", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "no check pauses an application that has fibers: as may_run of worker.c"),
    kept("src/sched/fiber.c", "switch_to_next", "lvd_fence_compiler", "weak_fence_compiler",
        "makes the switch faster, or orders a thread against its own signal handler").places(3),
    kept("src/sched/fiber.c", "lvd_fiber_preempted", "lvd_fence_compiler", "weak_fence_compiler", SIGNAL),
    kept("src/sched/fiber.c", "give_way", "lvd_fence_compiler", "weak_fence_compiler", SIGNAL),
    kept("mcapi/domain/call_guard.h", "mc_no_call_in", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr", MADE)
        .places(2),
    kept("src/sched/fiber_pool.c", "make_chunk", "lvd_store_release_ptr", "lvd_store_relaxed_ptr", MADE),
    kept("src/sched/fiber_pool.c", "lvd_fibers_each", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        MADE),
    kept("src/sched/fiber_pool.c", "lvd_fibers_each", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "what it reads next, it reads unwatched (LVD_RACY_READ)"),
    kept("src/stream/stream.c", "claim_end", "lvd_store_release_ptr", "lvd_store_relaxed_ptr",
        "only a third owner of the end could miss what the first did with it"),
    kept("src/stream/stream.c", "free_stream", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        "no check frees a stream while a thread ends"),
    kept("src/stream/stream.c", "end_thread", "lvd_store_release_ptr", "lvd_store_relaxed_ptr",
        "no thread ends before its check"),
    kept("src/stream/stream.c", "lvd_stream_destroy", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        "no check frees a stream: the thread that frees it must see what was done with its ends").places(2),
    kept("src/app/app_reaper.c", "finish", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "no check has a thief under way when all fibers have ended"),
    kept("src/app/quiescence.c", "lvd_app_check_quiescent", "lvd_exchange_release_u32", "lvd_exchange_relaxed_u32",
        UNJUDGED),
    kept("src/app/quiescence.c", "lvd_deferred_checks_run", "lvd_exchange_acquire_u32", "lvd_exchange_relaxed_u32",
        UNJUDGED),
    kept("src/app/quiescence.c", "fibers_rest", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        FIBERS_REST).places(2),
    kept("src/app/quiescence.c", "decide", "lvd_load_acquire_u32", "lvd_load_relaxed_u32", FIBERS_REST),
    kept("src/app/quiescence.c", "check_suspect", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "no check has suspects: they depend on how long quiescence lasts"),
    kept("src/ipc/shared_stream.c", "leave_name", "lvd_fence_seq_cst", "weak_fence_seq_cst",
        "as in lvd_shared_end, but its check has no preemptions (bound 0)"),
    kept("src/sched/worker.c", "lvd_worker_start", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "an urgent worker is started while others read: the checker's initial memory has what they see"),
    kept("src/runtime/runtime.c", "each_entity", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "no check takes a core from fibers"),
    kept("src/fork/deque.c", "lvd_fork_run", "lvd_add_release_u64", "lvd_add_relaxed_u64", MADE),
    kept("src/fork/deque.c", "lvd_deque_ask", "lvd_exchange_acquire_u32", "lvd_exchange_relaxed_u32",
        IN_TURN),
    kept("src/fork/deque.c", "serve", "lvd_exchange_release_u32", "lvd_exchange_relaxed_u32", IN_TURN),
    kept("src/fork/deque.c", "lvd_deque_abandon", "lvd_load_acquire_u64", "lvd_load_relaxed_u64",
        "its check has no preemptions (bound 0): the next user of the stack must see what others did"),
    kept("src/rpc/call.c", "core_cancel", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        "what it reads first, the fiber's application, it reads unwatched (LVD_RACY_READ)"),
    kept("src/sched/priority_worker.c", "lvd_worker_begin", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "the checker's initial memory has what it reads next"),
    kept("src/app/app_control.c", "hold_sources", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "no check drains a paused application: as in let_go, for a reader of this value instead of that"),
    kept("src/app/app_control.c", "take_up", "lvd_exchange_acq_rel_u32", "lvd_exchange_release_u32", HELD),
    kept("src/app/app_control.c", "lvd_app_requeue_held", "lvd_exchange_acq_rel_u32", "lvd_exchange_acquire_u32",
        HELD),
    kept("src/rpc/call.c", "begin", "lvd_store_release_ptr", "lvd_store_relaxed_ptr",
        "the same, for core_cancel"),
    kept("src/fork/deque.c", "lvd_deque_ask", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr", MADE),
    kept("src/fork/deque_pool.c", "take_up", "lvd_store_release_ptr", "lvd_store_relaxed_ptr", MADE),
    kept("src/fork/fork_proxy.c", "take_place", "lvd_cas_release_ptr", "lvd_cas_relaxed_ptr", MADE),
    kept("src/fork/fork_proxy.c", "lvd_fork_proxy_is_taken", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        MADE),
    kept("src/fork/deque.c", "set_abandon", "lvd_fence_compiler", "weak_fence_compiler", SIGNAL)
        .places(2),
    kept("src/runtime/runtime.c", "command", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "for an urgent worker: the checker's initial memory has what is seen of it"),
    kept("mcapi/transport/shm/shm_queue.c", "send", "lvd_load_acquire_u32", "lvd_load_relaxed_u32", TOLD),
    kept("mcapi/transport/shm/shm_queue.c", "send", "lvd_store_release_u64", "lvd_store_relaxed_u64",
        BETWEEN),
    kept("mcapi/transport/shm/shm_queue.c", "settle_slots", "lvd_load_acquire_u64", "lvd_load_relaxed_u64", BETWEEN),
    kept("mcapi/transport/shm/shm_queue.c", "mc_shm_open", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "with the tables lock, which orders"),
    kept("mcapi/transport/shm/shm_queue.c", "take_slot", "lvd_store_release_u64", "lvd_store_relaxed_u64",
        "keeps the order for cleanup after a death; the checker keeps the order of the text"),
    kept("mcapi/api/endpoint.c", "node_id_at", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "of the node's number, which node.c stores: no check has a node that ends"),
    kept("mcapi/api/endpoint.c", "mc_endpoints_delete", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        NODES_END),
    kept("mcapi/api/endpoint.c", "mc_endpoints_delete", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        NODES_END),
    kept("mcapi/api/endpoint.c", "local_endpoint_at", "lvd_store_release_ptr", "lvd_store_relaxed_ptr", MADE),
    kept("mcapi/api/endpoint.c", "open_local", "lvd_store_release_u32", "lvd_store_relaxed_u32", TOLD),
    kept("mcapi/api/endpoint.c", "delete_endpoint", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "a process that finds it gone must see what became of its channel: no check here has one"),
    kept("mcapi/domain/wait.c", "notify", "lvd_exchange_acq_rel_u32", "lvd_exchange_release_u32", EITHER)
        .places(2),
    kept("mcapi/domain/wait.c", "notify", "lvd_exchange_acq_rel_u32", "lvd_exchange_acquire_u32", EITHER)
        .places(2),
    kept("mcapi/domain/wait.c", "notify", "lvd_add_release_u32", "lvd_add_relaxed_u32",
        "the system compares it before the sleep, and the sleeper polls again whatever it is"),
    kept("mcapi/domain/wait.c", "mc_notify_all", "lvd_exchange_acq_rel_u32", "lvd_exchange_release_u32",
        EITHER),
    kept("mcapi/domain/wait.c", "mc_notify_all", "lvd_exchange_acq_rel_u32", "lvd_exchange_acquire_u32",
        EITHER),
    kept("mcapi/transport/shm/shm_queue.c", "mc_shm_ready", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        "of a channel: no check here has one"),
];

impl Kept {
    /// Number of places in the function.
    const fn places(mut self, places: usize) -> Kept {
        self.places = places;
        self
    }

    pub fn covers(&self, m: &Mutant) -> bool {
        self.file == m.file
            && self.function == m.function
            && self.call == m.call
            && self.weaker == m.weaker
    }
}

/// Sources that use orders and are in no suite, and why.
pub const ELSEWHERE: &[(&str, &str)] = &[
    (
        "src/sched/actor_call.c",
        "a call returns through the inbox, which orders what follows an actor that was moved meanwhile",
    ),
    (
        "src/blocking/blocking_pool.c",
        "passes a call to its own thread by one word; it returns by an event or the inbox",
    ),
    (
        "src/rpc/unit_process.c",
        "the checker has one process; the only word is set once: the text that the other side sent when it failed",
    ),
    (
        "src/rpc/unit_process_call.c",
        "the same; a count of calls in progress",
    ),
    (
        "src/child/unit_process_child.c",
        "the same; the parent, set once",
    ),
    ("src/rpc/unit_process_load.c", "the same; the same text"),
    (
        "src/srpc/srpc.c",
        "whether the program has booted, under a lock",
    ),
    (
        "src/srpc/srpc_streams.c",
        "a table that is filled under a lock, and read without",
    ),
    (
        "src/lease/lease_client.c",
        "a table found under a lock; and waiting times, which the checker does not have",
    ),
    (
        "src/sched/backup_worker.c",
        "whether a worker that begins late has begun, as for an urgent one",
    ),
    (
        "src/deadlock/wait_report_fibers.c",
        "reads live counters for a report",
    ),
    (
        "src/deadlock/wait_graph.c",
        "reads what parked fibers wait for",
    ),
    (
        "src/wait/thread_waiters.c",
        "a list under a lock, and a count of its users; deadlock detection reads it when quiescence has \
         lasted, and the checker has no time",
    ),
    (
        "src/deadlock/deadlock_detect.c",
        "the same; and a word that asks the notifier for a probe, with its doorbell",
    ),
    (
        "src/amp/window.c",
        "a command and its answer, a number each, with the checker's one kind of processor at one side only; \
         what is streamed goes through channels and link.c",
    ),
    (
        "src/amp/machine.c",
        "reads a loader's state, as window.c does, and whether a program serves",
    ),
    (
        "src/app/native.c",
        "progress, for readers; and the time until which output is throttled, a word of its own",
    ),
    (
        "src/deadlock/wait_report_actors.c",
        "reads live counters for a report",
    ),
    (
        "platform/linux/wait.c",
        "the operating system's side of the barrier",
    ),
];
