/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Native: what C functions called from an actor (CAL's @native) may ask of their surroundings.
 *
 * One network can be loaded many times in one process, so natives keep no static state: what they
 * need to remember they keep with lvd_app_data. All calls are for the thread that runs the
 * actor. */
#ifndef LVD_NATIVE_H
#define LVD_NATIVE_H

#include <levada/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_app lvd_app;

/* The application whose actor runs on this thread; null outside of actors. */
LVD_API lvd_app *lvd_current_app(void);

/* A name for the actor that runs on this thread, to compare with others of its application; null
 * outside of actors. */
LVD_API const void *lvd_current_actor(void);

/* The option `name` that the application was loaded with ("in", "out", ...), or null. Lives as long
 * as the application. */
LVD_API const char *lvd_app_option(lvd_app *app, const char *name);

/* The application's block for `key` (any address that is yours), zeroed when first asked for; null
 * if there is no memory. `end` (may be null) runs once when the application has ended, with LVD_OK
 * or why it failed; no actor of it runs then. */
LVD_API void *lvd_app_data(lvd_app *app, const void *key, size_t size,
                           void (*end)(void *data, lvd_status outcome));

/* The same for what a new version of the application is to have as it is (lvd_app_take_over): when it asks
 * for a block of this name and size it gets the old one's, and `end` is its own. So what lies there must
 * not lead into code, nor to an application or actor. `name` lives as long as the application. */
LVD_API void *lvd_app_heirloom(lvd_app *app, const char *name, const void *key, size_t size,
                               void (*end)(void *data, lvd_status outcome));

/* Is the application to come to its end by itself: is it unloaded, or does a new version wait to take its
 * place (lvd_app_drain)? A network's sources are ended without being asked. A C program asks where it takes its
 * next element: it takes no more then, gives what it has, and returns from main; what its new version needs
 * to go on from there it leaves in heirlooms. What was told true once stays true. From any thread. */
LVD_API bool lvd_app_drains(lvd_app *app);

/* Stops the application with this message, as a fault of the action that called. */
LVD_API LVD_NORETURN void lvd_native_fail(const char *format, ...) LVD_PRINTF(1, 2);

/* Ends the actor that runs on this thread, as a source whose input is exhausted: it never fires
 * again. What it gave in earlier firings is delivered, and what is in flight comes out; the firing
 * that called does not take place. */
LVD_API LVD_NORETURN void lvd_native_end(void);

/* Stops the application with this message, as a fault of no actor, and returns. It may be called by
 * the `end` of a block, too: an application that had ended well has failed then. */
LVD_API void lvd_app_fail(lvd_app *app, const char *format, ...) LVD_PRINTF(2, 3);

/* Ends the application now, and well: what an exit(0) would do in a program that holds nothing
 * else. What is in flight is dropped; an application whose input merely ends need not call this. */
LVD_API void lvd_app_finish(lvd_app *app);

/* From now on the application may come to rest with actors that wait for room or for one another:
 * that is its good end, and no deadlock. For one whose input has been given and which has got more,
 * so that the last of it comes out. */
LVD_API void lvd_app_ends_at_rest(lvd_app *app);

/* What the application has done so far, in its own unit ("frames"): shown as progress. `unit` must
 * live as long as the application; its first 64 characters are shown. */
LVD_API void lvd_app_progress(lvd_app *app, const char *unit, uint64_t done);

/* How many bytes of its input the application has taken, and how many there are in all; 0: unknown, as
 * of a pipe. May be called from any thread; the last call holds. */
LVD_API void lvd_app_input_progress(lvd_app *app, uint64_t done_bytes, uint64_t total_bytes);

/* Calls call(argument), which may block in the system as long as it likes: the fiber, or the actor
 * (if it is LVD_CLASS_MAY_WAIT, as compiled CAL is), waits, and its worker goes on with other work
 * meanwhile. The call runs on a thread of its own (the runtime keeps at most 512; further calls wait
 * for one), so thread-local variables, errno too, are not the caller's: hand results over in
 * `argument`. On any other thread it is just a call. LVD_E_LIMIT: no thread can be had.
 * LVD_E_CANCELLED, LVD_E_STOPPED (fibers): the call was not made, it waited for a thread still.
 *
 * When the fiber is cancelled, or the application ends meanwhile, a signal interrupts what the call
 * waits for in the system (EINTR): it must return then. A fiber goes on; in an actor lvd_blocking does not return, as
 * lvd_native_fail does not. So hold no lock here, and own nothing but what lvd_app_data keeps. */
LVD_API lvd_status lvd_blocking(void (*call)(void *argument), void *argument);

/* Waits, in the same way, until CLOCK_MONOTONIC has come to `ns`; at once if it has. No thread waits for
 * it: the worker has an alarm, and is free until then. In a fiber LVD_E_CANCELLED, LVD_E_STOPPED as from any
 * wait. Any other thread just sleeps. */
LVD_API lvd_status lvd_wait_until(int64_t ns);

/* Waits, in the same way, until the descriptor can be read or written without blocking, or has an
 * end or an error to tell; at once if it can already. Of a pipe or a terminal that can be written,
 * 4096 bytes at a time do not block. All who wait so share one thread. In a fiber LVD_E_CANCELLED,
 * LVD_E_STOPPED as from any wait. LVD_E_LIMIT: the system watches no more. */
LVD_API lvd_status lvd_wait_readable(int fd);
LVD_API lvd_status lvd_wait_writable(int fd);

/* lvd_wait_readable, for a native that has taken nothing of its input yet: what it is called for can be
 * done anew. So a new version of the application need not wait until something comes: this firing is
 * left here for good, and the new version begins it anew (LVD_CLASS_RESTARTS). When its application drains, such
 * a source ends here, as by lvd_native_end, and so does one that has done nothing yet of this firing (lvd_actor.looks). In a fiber, LVD_E_ENDED as soon
 * as its application drains (lvd_app_drains), whether or not there is something: that is the next version's. */
LVD_API lvd_status lvd_wait_input(int fd);

/* Before a native writes so many bytes to what all applications of the process print to, as `print` in CAL does: where
 * `app` has printed more than the runtime lets it (lvd_runtime_options), this waits, as lvd_wait_until does. */
LVD_API void lvd_app_prints(lvd_app *app, size_t bytes);

/* In a host, a process that an application forks is not to have this descriptor (`on`): the reader of a pipe gets its
 * end only when all copies are closed. Call it with false before the descriptor is closed. Outside of hosts it has no
 * effect. From any thread. */
LVD_API void lvd_close_on_fork(int fd, bool on);

/* Can the descriptor be read without blocking, or has it an end or an error to tell? Where it has not,
 * the actor that asks is asked to run again as soon as it has: so this is what a guard asks, whose
 * actor waits for elements meanwhile, too. The application goes on until then. Only what was asked
 * since the actor last fired counts, and only while it is open. On any other thread, and in fibers,
 * this asks and no more. */
LVD_API bool lvd_ask_readable(int fd);

#ifdef __cplusplus
}
#endif
#endif
