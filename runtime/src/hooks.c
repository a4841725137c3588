/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The functions behind the hooks (core/hooks.h): the one file that knows all layers. */
#include "core/hooks.h"
#include "app/app.h"
#include "blocking/blocking.h"
#include "deadlock/wait_report.h"
#include "fork/fork.h"
#include "rpc/unit.h"

#include "deadlock/deadlock_detect.h"
#include "deadlock/wait_graph.h"
#include "program/program_app.h"
#include "rpc/unit_process.h"
#include "srpc/srpc_misuse.h"
#include "stream/stream.h"

const lvd_hook_table lvd_hooks = {
    .app = {.quiet = lvd_app_quiet, .reaper_held_up = lvd_keeper_held_up},
    .polls = {.withdraw = lvd_questions_withdraw, .keep_last = lvd_questions_keep_last},
    .streams = {.fiber_waits = lvd_stream_ends_flush,
                .fiber_ends = lvd_stream_ends_close,
                .thread_waits = lvd_stream_thread_flush},
    .forks = {.leave = lvd_forks_leave,
              .set_aside = lvd_forks_set_aside,
              .set_back_without = lvd_forks_set_back_without,
              .enter = lvd_forks_enter,
              .abandon = lvd_forks_abandon,
              .drop = lvd_forks_drop,
              .forsake = lvd_forks_forsake,
              .look = lvd_forks_look,
              .sleep = lvd_forks_sleep,
              .may_sleep = lvd_forks_may_sleep,
              .awake = lvd_forks_awake,
              .worker_ends = lvd_forks_worker_ends,
              .runtime_begins = lvd_forks_runtime_begins,
              .runtime_ends = lvd_forks_runtime_ends,
              .free = lvd_forks_free},
    .shared = {.claim = lvd_shared_claim,
               .is_theirs = lvd_shared_is_theirs,
               .waiter = lvd_shared_waiter,
               .free = lvd_shared_free},
    .calls = {.free = lvd_calls_free, .units_free = lvd_units_free},
    .deadlock = {.in_vain = lvd_fibers_in_vain,
                 .save_report = lvd_fibers_story,
                 .awaits_outside = lvd_streams_await_threads,
                 .app_awaited = lvd_app_awaited,
                 .parent_decides = lvd_knot_comes_first,
                 .expect = lvd_knot_expect,
                 .free = lvd_knot_free,
                 .take = lvd_knot_take,
                 .look = lvd_knot_look},
    .child = {.falls = lvd_process_falls, .forget_parent = lvd_process_forget_parent},
    .programs = {.unwatch = lvd_program_unwatch,
                 .part = lvd_program_part,
                 .misuse_told = lvd_misuse_told,
                 .registering = lvd_program_registering},
};
