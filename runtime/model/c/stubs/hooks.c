/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The hooks (src/core/hooks.h) of a check: those of which it has the functions, or stand-ins. */
#pragma weak lvd_app_check_quiescent
#pragma weak lvd_reaper_spawn_backup
#pragma weak lvd_fd_watches_withdraw
#pragma weak lvd_fd_watches_keep_last
#pragma weak lvd_stream_ends_flush
#pragma weak lvd_stream_ends_close
#pragma weak lvd_stream_thread_flush
#pragma weak lvd_forks_suspend
#pragma weak lvd_forks_set_aside
#pragma weak lvd_forks_set_back_without
#pragma weak lvd_forks_resume
#pragma weak lvd_forks_abandon
#pragma weak lvd_forks_drop
#pragma weak lvd_forks_abandon_suspended
#pragma weak lvd_forks_poll
#pragma weak lvd_forks_before_sleep
#pragma weak lvd_forks_may_sleep
#pragma weak lvd_forks_after_sleep
#pragma weak lvd_forks_worker_ends
#pragma weak lvd_forks_runtime_begins
#pragma weak lvd_forks_runtime_ends
#pragma weak lvd_forks_free
#pragma weak lvd_shared_claim
#pragma weak lvd_shared_is_theirs
#pragma weak lvd_shared_waiter
#pragma weak lvd_shared_free
#pragma weak lvd_calls_free
#pragma weak lvd_units_free
#pragma weak lvd_app_is_deadlocked
#pragma weak lvd_app_save_wait_report
#pragma weak lvd_app_awaits_outside
#pragma weak lvd_app_awaited
#pragma weak lvd_deadlock_is_parents
#pragma weak lvd_deadlock_expect_users
#pragma weak lvd_deadlock_probe_free
#pragma weak lvd_deadlock_take_record
#pragma weak lvd_deadlock_probe_run
#pragma weak lvd_process_record_crash
#pragma weak lvd_process_forget_parent
#pragma weak lvd_program_unwatch
#pragma weak lvd_program_part
#pragma weak lvd_misuse_told
#pragma weak lvd_program_registering

#include "src/hooks.c"
#include "src/app/app.h"
#include "src/blocking/blocking.h"
#include "src/deadlock/wait_report.h"
#include "src/fork/fork.h"
#include "src/rpc/unit.h"
#include "src/stream/stream.h"
