/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The hooks (src/core/hooks.h) of a check: those of which it has the functions, or stand-ins. */
#pragma weak lvd_app_quiet
#pragma weak lvd_keeper_held_up
#pragma weak lvd_questions_withdraw
#pragma weak lvd_questions_keep_last
#pragma weak lvd_stream_ends_flush
#pragma weak lvd_stream_ends_close
#pragma weak lvd_stream_thread_flush
#pragma weak lvd_forks_leave
#pragma weak lvd_forks_set_aside
#pragma weak lvd_forks_set_back_without
#pragma weak lvd_forks_enter
#pragma weak lvd_forks_abandon
#pragma weak lvd_forks_drop
#pragma weak lvd_forks_forsake
#pragma weak lvd_forks_look
#pragma weak lvd_forks_sleep
#pragma weak lvd_forks_may_sleep
#pragma weak lvd_forks_awake
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
#pragma weak lvd_fibers_in_vain
#pragma weak lvd_fibers_story
#pragma weak lvd_streams_await_threads
#pragma weak lvd_app_awaited
#pragma weak lvd_knot_comes_first
#pragma weak lvd_knot_expect
#pragma weak lvd_knot_free
#pragma weak lvd_knot_take
#pragma weak lvd_knot_look
#pragma weak lvd_process_falls
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
