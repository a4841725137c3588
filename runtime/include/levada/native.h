/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Native: services for C functions that an actor calls (CAL's @native).
 *
 * A network may be loaded several times in one process, so a native must keep no static state;
 * lvd_app_data holds what it needs to remember. Unless stated otherwise, call these functions on
 * the thread that runs the actor. */
#ifndef LVD_NATIVE_H
#define LVD_NATIVE_H

#include <levada/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_app lvd_app;

/* The application of the actor or fiber that runs on this thread; null on a thread that is no
 * worker. */
LVD_API lvd_app *lvd_current_app(void);

/* An opaque identity of the actor that runs on this thread, comparable within its application;
 * null outside of actors. */
LVD_API const void *lvd_current_actor(void);

/* The value of the option `name` ("in", "out", ...) that the application was loaded with, or null.
 * Lives as long as the application. */
LVD_API const char *lvd_app_option(lvd_app *app, const char *name);

/* The application's block of `size` bytes for `key` (any address that the caller owns), zeroed at
 * the first request; null if out of memory. The application owns the block. `end` (may be null)
 * runs once when the application has ended and no actor of it runs, with LVD_OK or the reason of
 * the failure. */
LVD_API void *lvd_app_data(lvd_app *app, const void *key, size_t size,
                           void (*end)(void *data, lvd_status outcome));

/* Like lvd_app_data, for persistent data: if a new version of the application
 * (lvd_app_upgrade_from) requests a block of the same name and size, it gets the old version's
 * block, with its own `end`. The block must therefore contain no pointers to code, applications or
 * actors. `name` must live as long as the application. */
LVD_API void *lvd_app_persistent_data(lvd_app *app, const char *name, const void *key, size_t size,
                                      void (*end)(void *data, lvd_status outcome));

/* True if the application shall end by itself: it is being unloaded, or a new version waits to
 * replace it (lvd_app_drain). Sources of a network are ended without this. A C program asks before
 * it takes its next element; on true it takes no more, outputs what it has, leaves what its new
 * version needs in persistent blocks, and returns from main. Once true, it stays true. From any
 * thread. */
LVD_API bool lvd_app_is_draining(lvd_app *app);

/* Fails the application with this message, as a fault of the current action. Does not return. */
LVD_API LVD_NORETURN void lvd_native_fail(const char *format, ...) LVD_PRINTF(1, 2);

/* Ends the actor that runs on this thread, as a source at the end of its input: it never fires
 * again. Output of earlier firings is delivered and elements in flight are processed; the current
 * firing is discarded. Does not return. */
LVD_API LVD_NORETURN void lvd_native_end(void);

/* Fails the application with this message, as a fault of no actor, and returns. The `end` function
 * of a block may call it too: an application that had ended successfully has then failed. */
LVD_API void lvd_app_fail(lvd_app *app, const char *format, ...) LVD_PRINTF(2, 3);

/* Ends the application now, successfully, like exit(0) in a program of its own. Elements in flight
 * are discarded. Not needed where the input just ends. */
LVD_API void lvd_app_exit(lvd_app *app);

/* From now on the application ends successfully, not with a deadlock, when it becomes quiescent
 * while actors wait for room or for one another, and no channel may grow. For an application that
 * got all of its input, plus padding that brings out the last results. */
LVD_API void lvd_app_set_quiescent_ok(lvd_app *app);

/* Reports progress: `done` in the unit `unit` ("frames"). `unit` must live as long as the
 * application; its first 64 characters are shown. */
LVD_API void lvd_app_progress(lvd_app *app, const char *unit, uint64_t done);

/* Reports the bytes of input consumed, and the total; total 0: unknown, as of a pipe. From any
 * thread; the last call holds. */
LVD_API void lvd_app_input_progress(lvd_app *app, uint64_t done_bytes, uint64_t total_bytes);

/* Runs call(argument), which may block in the system for any time. The fiber, or the actor (if
 * LVD_CLASS_CAN_BLOCK, as compiled CAL is), is suspended and its worker runs other work. The call
 * runs on a helper thread (at most 512 per runtime; further calls wait for one), so thread-local
 * variables, errno included, are not the caller's: pass results in `argument`. On a thread that is
 * no worker it is a plain call. LVD_E_LIMIT: no thread is available. LVD_E_CANCELLED,
 * LVD_E_STOPPED (fibers only): the call was not made, since it was still waiting for a thread.
 *
 * If the fiber is cancelled or the application ends meanwhile, a signal interrupts the system call
 * (EINTR), and `call` must return. A fiber then continues; in an actor lvd_run_blocking does not
 * return, like lvd_native_fail. So the caller must hold no lock, and own nothing but what
 * lvd_app_data keeps. */
LVD_API lvd_status lvd_run_blocking(void (*call)(void *argument), void *argument);

/* Suspends the caller, as lvd_run_blocking does, until CLOCK_MONOTONIC reaches `ns` nanoseconds;
 * returns at once if it has. Uses a timer of the worker, no thread. In a fiber returns
 * LVD_E_CANCELLED, LVD_E_STOPPED like any wait. Any other thread sleeps. */
LVD_API lvd_status lvd_wait_until(int64_t ns);

/* Suspends the caller likewise until the descriptor can be read or written without blocking, or
 * has reached its end or an error; returns at once if it already has. A pipe or terminal reported
 * writable accepts 4096 bytes without blocking. One thread serves all such waits. In a fiber
 * returns LVD_E_CANCELLED, LVD_E_STOPPED like any wait. LVD_E_LIMIT: the system watches no more
 * descriptors. */
LVD_API lvd_status lvd_wait_readable(int fd);
LVD_API lvd_status lvd_wait_writable(int fd);

/* Like lvd_wait_readable, for a native that has not consumed input in this firing. If the
 * application is replaced meanwhile, the firing is discarded and the new version repeats it
 * (LVD_CLASS_RESTARTABLE). If the application drains, such a source ends, as by lvd_native_end; so
 * does one with a firing that had no effect yet (lvd_actor.in_guard). In a fiber returns LVD_E_EOF
 * once the application drains (lvd_app_is_draining), even if input is available: that input is left
 * to the next version. */
LVD_API lvd_status lvd_wait_input_restartable(int fd);

/* Call before a native writes `bytes` bytes to the console that all applications of the process
 * share, as CAL's `print` does. Where `app` has exceeded its output rate
 * (lvd_runtime_options.output_bytes_per_s), suspends the caller like lvd_wait_until. */
LVD_API void lvd_app_throttle_output(lvd_app *app, size_t bytes);

/* With `on`, a process that an application of a host forks does not inherit this descriptor: the
 * reader of a pipe sees its end only when all copies are closed. Call with false before the
 * descriptor is closed. No effect outside of hosts. From any thread. */
LVD_API void lvd_close_on_fork(int fd, bool on);

/* True if the descriptor can be read without blocking, or has reached its end or an error.
 * Otherwise the calling actor is scheduled again once that is so, and the application does not end
 * before; a guard uses this while the actor also waits for elements. Only requests since the
 * actor's last firing count, and only while the descriptor is open. On other threads and in fibers
 * it only queries. */
LVD_API bool lvd_poll_readable(int fd);

#ifdef __cplusplus
}
#endif
#endif
