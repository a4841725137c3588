/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The functions behind the hooks (core/hooks.h). This is the only file that includes all layers. */
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
    .app = {.check_quiescent = lvd_app_check_quiescent,
            .reaper_spawn_backup = lvd_reaper_spawn_backup},
    .polls = {.withdraw = lvd_fd_watches_withdraw, .keep_last = lvd_fd_watches_keep_last},
    .streams = {.fiber_waits = lvd_stream_ends_flush,
                .fiber_ends = lvd_stream_ends_close,
                .thread_waits = lvd_stream_thread_flush},
    .forks = {.suspend = lvd_forks_suspend,
              .set_aside = lvd_forks_set_aside,
              .set_back_without = lvd_forks_set_back_without,
              .resume = lvd_forks_resume,
              .abandon = lvd_forks_abandon,
              .drop = lvd_forks_drop,
              .abandon_suspended = lvd_forks_abandon_suspended,
              .poll = lvd_forks_poll,
              .before_sleep = lvd_forks_before_sleep,
              .may_sleep = lvd_forks_may_sleep,
              .after_sleep = lvd_forks_after_sleep,
              .worker_ends = lvd_forks_worker_ends,
              .runtime_begins = lvd_forks_runtime_begins,
              .runtime_ends = lvd_forks_runtime_ends,
              .free = lvd_forks_free},
    .shared = {.claim = lvd_shared_claim,
               .is_theirs = lvd_shared_is_theirs,
               .waiter = lvd_shared_waiter,
               .free = lvd_shared_free},
    .calls = {.free = lvd_calls_free, .units_free = lvd_units_free},
    .deadlock = {.is_deadlocked = lvd_app_is_deadlocked,
                 .save_report = lvd_app_save_wait_report,
                 .awaits_outside = lvd_app_awaits_outside,
                 .app_awaited = lvd_app_awaited,
                 .parent_decides = lvd_deadlock_is_parents,
                 .expect = lvd_deadlock_expect_users,
                 .free = lvd_deadlock_probe_free,
                 .take = lvd_deadlock_take_record,
                 .look = lvd_deadlock_probe_run},
    .child = {.record_crash = lvd_process_record_crash, .forget_parent = lvd_process_forget_parent},
    .programs = {.unwatch = lvd_program_unwatch,
                 .part = lvd_program_part,
                 .misuse_told = lvd_misuse_told,
                 .registering = lvd_program_registering},
};
