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
    /// What is compiled, relative to the runtime's folder: the harness, and sources that ship.
    pub compiled: &'static [&'static str],
    /// The sources whose orders are mutated, relative to the runtime's folder. One that several
    /// suites name is mutated once, and tried in each.
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
        name: "lock",
        compiled: &[
            "model/c/lock.c",
            "mcapi/domain/owner_lock.c",
            "platform/mutex.c",
        ],
        sources: &["mcapi/domain/owner_lock.h", "mcapi/domain/owner_lock.c"],
        checks: lock::CHECKS,
    },
    Suite {
        name: "lease",
        compiled: &["model/c/lease.c", "src/lease/core_lease.c"],
        sources: &["src/lease/core_lease.c"],
        checks: lease::CHECKS,
    },
    Suite {
        name: "visit",
        compiled: &["model/c/visit.c"],
        sources: &["mcapi/domain/call_guard.h"],
        checks: visit::CHECKS,
    },
    Suite {
        name: "worker",
        compiled: &[
            "model/c/stubs/norelief.c",
            "model/c/worker.c",
            "model/c/stubs/noleases.c",
            "model/c/stubs/noprograms.c",
            "model/c/stubs/nowatchdog.c",
            "model/c/stubs/nointerrupts.c",
            "model/c/stubs/nolost.c",
            "model/c/stubs/nowaiting.c",
            "model/c/stubs/nofibers.c",
            "model/c/stubs/noforks.c",
            "src/sched/worker.c",
            "src/sched/entity.c",
            "src/sched/park_barrier.c",
            "src/sched/app_liveness.c",
            "src/wait/wait.c",
            "src/app/app_control.c",
            "src/app/app_reaper.c",
            "src/app/quiescence.c",
            "src/core/status.c",
            "platform/mutex.c",
            "src/sched/want.c",
            "model/c/stubs/hooks.c",
        ],
        sources: &[
            "src/sched/worker.c",
            "src/sched/entity.c",
            "src/sched/park_barrier.c",
            "src/sched/app_liveness.c",
            "src/wait/wait.c",
            "src/sched/want.c",
            "src/app/app_control.c",
            "src/app/app_reaper.c",
            "src/app/quiescence.c",
        ],
        checks: worker::CHECKS,
    },
    Suite {
        name: "app",
        compiled: &[
            "model/c/stubs/norelief.c",
            "model/c/app.c",
            "model/c/stubs/noleases.c",
            "model/c/stubs/nowatchdog.c",
            "model/c/stubs/nolost.c",
            "model/c/stubs/nowaiting.c",
            "model/c/arena.c",
            "model/c/stubs/noprograms.c",
            "model/c/stubs/nofibers.c",
            "model/c/stubs/noforks.c",
            "src/app/app.c",
            "src/channel/channel.c",
            "src/app/app_control.c",
            "src/app/app_reaper.c",
            "src/app/quiescence.c",
            "src/sched/entity.c",
            "src/sched/fault.c",
            "src/sched/preempt.c",
            "src/sched/forced_exit.c",
            "src/runtime/runtime.c",
            "src/sched/park_barrier.c",
            "src/sched/app_liveness.c",
            "src/sched/overrun.c",
            "src/wait/wait.c",
            "src/sched/worker.c",
            "src/core/status.c",
            "platform/mutex.c",
            "src/sched/want.c",
            "model/c/stubs/hooks.c",
            "src/app/app_cores.c",
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
            "model/c/stubs/norelief.c",
            "model/c/fiber.c",
            "model/c/stubs/noleases.c",
            "model/c/stubs/noprograms.c",
            "model/c/stubs/nowatchdog.c",
            "model/c/stubs/nointerrupts.c",
            "model/c/stubs/nolost.c",
            "model/c/stubs/nowaiting.c",
            "model/c/world.c",
            "model/c/arena.c",
            "model/c/context.c",
            "model/c/stubs/noforks.c",
            "platform/context_aarch64.S",
            "platform/context_riscv.S",
            "platform/context_x86_64.S",
            "src/sched/actor_stack.c",
            "src/app/app_fibers.c",
            "src/channel/channel.c",
            "src/app/app_control.c",
            "src/app/app_reaper.c",
            "src/app/quiescence.c",
            "src/sched/entity.c",
            "src/sched/fiber.c",
            "src/sched/fiber_pool.c",
            "src/sched/fiber_start.c",
            "src/sched/stack_overflow.c",
            "src/sched/park_barrier.c",
            "src/sched/app_liveness.c",
            "src/stream/stream.c",
            "src/stream/wake_threshold.c",
            "src/sched/actor_timer.c",
            "src/sched/timer.c",
            "src/wait/wait.c",
            "src/sched/worker.c",
            "src/core/status.c",
            "platform/mutex.c",
            "src/sched/want.c",
            "model/c/stubs/hooks.c",
            "src/wait/fiber_join.c",
        ],
        sources: &[
            "include/levada/wait.h",
            "src/sched/actor_stack.c",
            "src/app/app_fibers.c",
            "src/app/app_control.c",
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
            "src/sched/want.c",
        ],
        checks: fiber::CHECKS,
    },
    Suite {
        name: "call",
        compiled: &[
            "model/c/stubs/norelief.c",
            "model/c/call.c",
            "model/c/stubs/noleases.c",
            "model/c/stubs/nowatchdog.c",
            "model/c/stubs/nointerrupts.c",
            "model/c/stubs/nolost.c",
            "model/c/stubs/nowaiting.c",
            "model/c/world.c",
            "model/c/arena.c",
            "model/c/stubs/noprograms.c",
            "model/c/context.c",
            "model/c/stubs/noforks.c",
            "platform/context_aarch64.S",
            "platform/context_riscv.S",
            "platform/context_x86_64.S",
            "src/sched/actor_stack.c",
            "src/app/app_fibers.c",
            "src/rpc/call.c",
            "src/channel/channel.c",
            "src/app/app_control.c",
            "src/app/app_reaper.c",
            "src/app/quiescence.c",
            "src/sched/entity.c",
            "src/sched/fiber.c",
            "src/sched/fiber_pool.c",
            "src/sched/fiber_start.c",
            "src/sched/stack_overflow.c",
            "src/runtime/runtime.c",
            "src/sched/park_barrier.c",
            "src/sched/app_liveness.c",
            "src/stream/stream.c",
            "src/stream/wake_threshold.c",
            "src/sched/actor_timer.c",
            "src/sched/timer.c",
            "src/sched/priority_worker.c",
            "src/wait/wait.c",
            "src/sched/worker.c",
            "src/core/status.c",
            "platform/mutex.c",
            "src/sched/want.c",
            "model/c/stubs/hooks.c",
            "src/wait/fiber_join.c",
            "src/app/app_cores.c",
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
        compiled: &["model/c/fork.c", "src/fork/deque.c", "platform/mutex.c"],
        sources: &["include/levada/fork.h", "src/fork/deque.c"],
        checks: fork::CHECKS,
    },
    Suite {
        name: "steal",
        compiled: &[
            "model/c/stubs/norelief.c",
            "model/c/steal.c",
            "model/c/stubs/noleases.c",
            "model/c/stubs/nowatchdog.c",
            "model/c/stubs/nointerrupts.c",
            "model/c/stubs/nolost.c",
            "model/c/stubs/nowaiting.c",
            "model/c/world.c",
            "model/c/arena.c",
            "model/c/stubs/noprograms.c",
            "model/c/context.c",
            "platform/context_aarch64.S",
            "platform/context_riscv.S",
            "platform/context_x86_64.S",
            "src/sched/actor_stack.c",
            "src/app/app_fibers.c",
            "src/channel/channel.c",
            "src/app/app_control.c",
            "src/fork/deque_pool.c",
            "src/app/app_reaper.c",
            "src/app/quiescence.c",
            "src/sched/entity.c",
            "src/sched/fiber.c",
            "src/sched/fiber_pool.c",
            "src/sched/fiber_start.c",
            "src/sched/stack_overflow.c",
            "src/fork/deque.c",
            "src/fork/fork_proxy.c",
            "src/fork/fork_thread.c",
            "src/fork/parallel_for.c",
            "src/sched/park_barrier.c",
            "src/sched/app_liveness.c",
            "src/fork/steal.c",
            "src/stream/stream.c",
            "src/stream/wake_threshold.c",
            "src/sched/actor_timer.c",
            "src/sched/timer.c",
            "src/wait/wait.c",
            "src/sched/worker.c",
            "src/core/status.c",
            "platform/mutex.c",
            "src/sched/want.c",
            "model/c/stubs/hooks.c",
            "src/wait/fiber_join.c",
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
            "model/c/link.c",
            "model/c/stubs/nowaiting.c",
            "model/c/arena.c",
            "src/channel/channel.c",
            "src/ipc/link.c",
            "src/ipc/shared_stream.c",
            "src/stream/stream.c",
            "src/stream/wake_threshold.c",
            "src/wait/wait.c",
            "src/core/status.c",
            "platform/mutex.c",
            "src/sched/want.c",
            "model/c/stubs/hooks.c",
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
            "model/c/mcapi.c",
            "model/c/stubs/nowaiting.c",
            "model/c/arena.c",
            "mcapi/api/broadcast.c",
            "mcapi/api/channel.c",
            "mcapi/domain/domain.c",
            "mcapi/api/endpoint.c",
            "mcapi/api/held_packets.c",
            "mcapi/domain/owner_lock.c",
            "mcapi/api/request.c",
            "mcapi/transport/shm/shm_broadcast.c",
            "mcapi/transport/shm/shm_channel.c",
            "mcapi/transport/shm/shm_loan.c",
            "mcapi/transport/shm/shm_queue.c",
            "mcapi/transport/shm/shm_view.c",
            "mcapi/domain/wait.c",
            "src/channel/channel.c",
            "src/wait/wait.c",
            "src/core/status.c",
            "platform/mutex.c",
            "src/sched/want.c",
            "model/c/stubs/hooks.c",
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

/// An order that is there although no check fails without it.
pub struct Kept {
    pub file: &'static str,
    pub function: &'static str,
    pub call: &'static str,
    pub weaker: &'static str,
    pub why: &'static str,
    /// In so many places of the function.
    pub places: usize,
}

/// Between a thread and its own signal handler, which the checker does not have.
const SIGNAL: &str = "orders a thread against its own signal handler";

/// The keeper sees the phase.
const EARLY: &str = "a keeper that is awake may see the phase before it sees reaper_work";

/// The waker reads the owner.
const DETOUR: &str = "saves a detour: who reads an older owner wakes that one, who passes it on";

/// Of two stores to a word that must come in a certain order.
const IN_TURN: &str =
    "the checker keeps the stores to a word in the order in which they are executed";

const MADE: &str =
    "memory that is made while threads run is not watched: it may be new to the reader";

const UNJUDGED: &str = "no check comes to rest in the handler of a signal";
const FIBERS_REST: &str =
    "no check has fibers that come to rest: who finds none left must see what they did";

const HELD: &str =
    "the barriers of pausing and turning seem to order it, too: not searched deep enough";

const TOLD: &str = "who has a handle has been told of it, and is ordered by that";

/// Of a slot whose sender stands between its post and saying so, when its receiver dies.
const BETWEEN: &str = "needs a slot used again under a stale view of the heads: more preemptions than its checks have";

const NODES_END: &str =
    "what a node that ends reads of its process's other nodes: no check ends one";

/// Of the flag of a sleeper, or the bit of its node in a set.
const EITHER: &str = "the fences of ringer and sleeper order them: either sees the other's";

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
pub const KEPT: &[Kept] = &[
    kept("src/sched/worker.c", "call_run", "lvd_fence_compiler", "weak_fence_compiler", SIGNAL)
        .places(2),
    kept("src/sched/actor_stack.c", "call_run", "lvd_fence_compiler", "weak_fence_compiler", SIGNAL)
        .places(2),
    kept("src/sched/entity.c", "make_ready", "lvd_cas_acq_rel_u32", "lvd_cas_release_u32", DETOUR),
    kept("src/sched/entity.c", "make_ready", "lvd_cas_acq_rel_u32", "lvd_cas_acquire_u32",
        "the new owner sees the waker's stores by the inbox; so does who finds it READY"),
    kept("src/sched/app_liveness.c", "lvd_app_end", "lvd_exchange_release_u32", "lvd_exchange_relaxed_u32",
        EARLY),
    kept("src/app/app_reaper.c", "find_ending", "lvd_load_acquire_u32", "lvd_load_relaxed_u32", EARLY),
    kept("src/app/app_reaper.c", "finish", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "the checker makes it an exchange, which carries on the release of ENDING"),
    kept("src/sched/entity.c", "lvd_entity_park", "lvd_cas_release_u32", "lvd_cas_relaxed_u32", DETOUR),
    kept("src/sched/want.c", "sleeper_wake", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr", MADE),
    kept("src/sched/want.c", "lvd_want_arm", "lvd_store_release_ptr", "lvd_store_relaxed_ptr", MADE),
    kept("src/sched/fiber.c", "suspend", "lvd_cas_release_u32", "lvd_cas_relaxed_u32", DETOUR),
    kept("src/sched/fiber_start.c", "lvd_fiber_begin", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "for lvd_fibers_each, and what that reads next it reads unwatched (LVD_RACY_READ)"),
    kept("src/sched/app_liveness.c", "uncount_fibers", "lvd_add_release_u32", "lvd_add_relaxed_u32",
        "fibers_end reads this count alone; in the checks `live` is released after it"),
    kept("src/app/app_fibers.c", "lvd_app_close", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "no check closes an application: who sees it closed must see the fibers started before"),
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
        "only a third who takes the end could miss what the first did with it"),
    kept("src/stream/stream.c", "free_stream", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        "no check frees a stream while a thread ends"),
    kept("src/stream/stream.c", "end_thread", "lvd_store_release_ptr", "lvd_store_relaxed_ptr",
        "no thread ends before its check"),
    kept("src/stream/stream.c", "lvd_stream_destroy", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        "no check frees a stream: who frees it must see what was done with its ends").places(2),
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
        "no check has suspects: rest that lasts is a matter of time"),
    kept("src/ipc/shared_stream.c", "leave_name", "lvd_fence_seq_cst", "weak_fence_seq_cst",
        "as in lvd_shared_end, but its check has no preemptions (bound 0)"),
    kept("src/sched/worker.c", "lvd_worker_start", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "an urgent worker is started while others look: what they see begins as memory does"),
    kept("src/runtime/runtime.c", "each_entity", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "no check takes a core from fibers"),
    kept("src/fork/deque.c", "lvd_fork_run", "lvd_add_release_u64", "lvd_add_relaxed_u64", MADE),
    kept("src/fork/deque.c", "lvd_deque_ask", "lvd_exchange_acquire_u32", "lvd_exchange_relaxed_u32",
        IN_TURN),
    kept("src/fork/deque.c", "serve", "lvd_exchange_release_u32", "lvd_exchange_relaxed_u32", IN_TURN),
    kept("src/fork/deque.c", "lvd_deque_abandon", "lvd_load_acquire_u64", "lvd_load_relaxed_u64",
        "its check has no preemptions (bound 0): who uses the stack again must see what others did"),
    kept("src/rpc/call.c", "core_cancel", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        "what it reads first, the fiber's application, it reads unwatched (LVD_RACY_READ)"),
    kept("src/sched/priority_worker.c", "lvd_worker_begin", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "what it reads next begins as the checker's memory does"),
    kept("src/app/app_control.c", "hold_sources", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "no check drains what was paused before: as in let_go, for who meets this value and not that"),
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
        "for an urgent worker: what is seen of it begins as memory does"),
    kept("mcapi/transport/shm/shm_queue.c", "send", "lvd_load_acquire_u32", "lvd_load_relaxed_u32", TOLD),
    kept("mcapi/transport/shm/shm_queue.c", "send", "lvd_store_release_u64", "lvd_store_relaxed_u64",
        BETWEEN),
    kept("mcapi/transport/shm/shm_queue.c", "settle_slots", "lvd_load_acquire_u64", "lvd_load_relaxed_u64", BETWEEN),
    kept("mcapi/transport/shm/shm_queue.c", "mc_shm_open", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "with the tables lock, which orders"),
    kept("mcapi/transport/shm/shm_queue.c", "take_slot", "lvd_store_release_u64", "lvd_store_relaxed_u64",
        "in turn for who finds them after a death, which to the checker comes in the text's order"),
    kept("mcapi/api/endpoint.c", "node_id_at", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        "of the node's number, which node.c stores: no check has a node that ends"),
    kept("mcapi/api/endpoint.c", "mc_endpoints_delete", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        NODES_END),
    kept("mcapi/api/endpoint.c", "mc_endpoints_delete", "lvd_load_acquire_u32", "lvd_load_relaxed_u32",
        NODES_END),
    kept("mcapi/api/endpoint.c", "local_endpoint_at", "lvd_store_release_ptr", "lvd_store_relaxed_ptr", MADE),
    kept("mcapi/api/endpoint.c", "open_local", "lvd_store_release_u32", "lvd_store_relaxed_u32", TOLD),
    kept("mcapi/api/endpoint.c", "delete_endpoint", "lvd_store_release_u32", "lvd_store_relaxed_u32",
        "who finds it gone must see what became of its channel: no check here has one"),
    kept("mcapi/domain/wait.c", "notify", "lvd_exchange_acq_rel_u32", "lvd_exchange_release_u32", EITHER)
        .places(2),
    kept("mcapi/domain/wait.c", "notify", "lvd_exchange_acq_rel_u32", "lvd_exchange_acquire_u32", EITHER)
        .places(2),
    kept("mcapi/domain/wait.c", "notify", "lvd_add_release_u32", "lvd_add_relaxed_u32",
        "who sleeps on it compares it in the system, and looks again whatever it is"),
    kept("mcapi/domain/wait.c", "mc_notify_all", "lvd_exchange_acq_rel_u32", "lvd_exchange_release_u32",
        EITHER),
    kept("mcapi/domain/wait.c", "mc_notify_all", "lvd_exchange_acq_rel_u32", "lvd_exchange_acquire_u32",
        EITHER),
    kept("mcapi/transport/shm/shm_queue.c", "mc_shm_ready", "lvd_load_acquire_ptr", "lvd_load_relaxed_ptr",
        "of a channel: no check here has one"),
];

impl Kept {
    /// In so many places of the function.
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
        "a call comes back through the inbox; what follows an actor that was moved meanwhile is seen by that",
    ),
    (
        "src/blocking/blocking_pool.c",
        "hands a call to a thread of its own by one word; the way back is an event or the inbox",
    ),
    (
        "src/rpc/unit_process.c",
        "the checker has one process; its own is a word set once, what the other side said when it failed",
    ),
    (
        "src/rpc/unit_process_call.c",
        "the same; a count of calls under way",
    ),
    (
        "src/child/unit_process_child.c",
        "the same; the parent, set once",
    ),
    (
        "src/rpc/unit_process_load.c",
        "the same; the last words again",
    ),
    (
        "src/srpc/srpc.c",
        "whether the program has booted, under a lock",
    ),
    (
        "src/srpc/srpc_streams.c",
        "a table filled under a lock, that others look into",
    ),
    (
        "src/lease/lease_client.c",
        "a table found under a lock; how long is waited for whom, which is a matter of time",
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
        "reads what fibers at rest wait for",
    ),
    (
        "src/wait/thread_waiters.c",
        "a list under a lock, and a count of who is inside; who is on it is judged when rest has lasted, \
         which is a matter of time",
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
        "looks at a loader's state, as window.c does, and at whether a program serves",
    ),
    (
        "src/app/native.c",
        "progress, for whoever looks; and until when an application has printed, a word that stands for itself",
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
