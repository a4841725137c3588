/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Hooks: calls from a lower layer to a higher one. The lower layer declares the function here and
 * calls it through this table; src/hooks.c, above all layers, fills the table. So calls between
 * folders go down only and nothing has to be registered. A test or the model checker replaces in
 * the table what it leaves out.
 *
 * No hook is on the path of an element: each is called when something begins, ends, fails, blocks
 * or sleeps. */
#ifndef LVD_CORE_HOOKS_H
#define LVD_CORE_HOOKS_H

#include <levada/wait.h>

struct lvd_worker;
struct lvd_entity;
struct lvd_fiber;
struct lvd_app;
struct lvd_runtime;
struct lvd_link;
struct lvd_record;
struct lvd_unit;
struct lvd_user;
struct lvd_program;
struct lvd_shared_stream;

typedef struct lvd_hook_table {
  struct { /* app/ */
    /* `live` has become 0, or an external condition has changed since. */
    void (*check_quiescent)(struct lvd_app *app);
    /* The calling reaper is about to block: another one takes over its work. */
    void (*reaper_spawn_backup)(struct lvd_runtime *rt);
  } app;
  struct { /* blocking/: descriptors that an actor has polled and found without data */
    void (*withdraw)(struct lvd_entity *e);  /* all watches */
    void (*keep_last)(struct lvd_entity *e); /* withdraws those from before its last firing */
  } polls;
  struct { /* stream/ */
    /* A fiber that uses streams is about to wait. */
    void (*fiber_waits)(struct lvd_fiber *f);
    void (*fiber_ends)(struct lvd_fiber *f, lvd_status outcome);
    /* The calling thread, which runs no fiber, is about to wait. */
    void (*thread_waits)(void);
  } streams;
  struct { /* fork/: see deque_pool.c, steal.c and fork_thread.c */
    /* A fiber with open forks is suspended, ... */
    void (*suspend)(struct lvd_worker *w, struct lvd_fiber *f);
    bool (*set_aside)(struct lvd_worker *w, struct lvd_fiber *f);
    void (*set_back_without)(void);
    /* ... resumed, ... */
    void (*resume)(struct lvd_worker *w, struct lvd_fiber *f);
    /* ... abandoned while it ran, ... */
    void (*abandon)(struct lvd_worker *w, struct lvd_fiber *f);
    /* ... or will not be resumed (overrun.c), ... */
    void (*drop)(struct lvd_fiber *f);
    /* ... in this case because `app` ends. */
    void (*abandon_suspended)(struct lvd_app *app, struct lvd_fiber *f);
    /* A worker has no work. True: it has stolen a call, which is ready. */
    bool (*poll)(struct lvd_worker *w);
    /* The last poll before a worker sleeps. *most: the longest sleep in ns (negative:
     * unlimited). */
    bool (*before_sleep)(struct lvd_worker *w, int64_t *most);
    bool (*may_sleep)(const struct lvd_worker *w); /* false: a fork has already woken it */
    void (*after_sleep)(struct lvd_worker *w);
    void (*worker_ends)(void);
    void (*runtime_begins)(struct lvd_runtime *rt);
    void (*runtime_ends)(struct lvd_runtime *rt);
    void (*free)(struct lvd_runtime *rt);
  } forks;
  struct { /* ipc/shared_stream.c: streams to another process */
    /* False: the other process owns that end. */
    bool (*claim)(struct lvd_shared_stream *ss, bool sender);
    bool (*is_theirs)(const struct lvd_shared_stream *ss, bool sender);
    lvd_waiter *(*waiter)(struct lvd_shared_stream *ss, bool sender);
    void (*free)(struct lvd_shared_stream *ss);
  } shared;
  struct { /* rpc/call.c */
    void (*free)(struct lvd_runtime *rt);
    void (*units_free)(struct lvd_app *app);
  } calls;
  struct { /* deadlock/ */
    /* Are fibers or threads of `app` deadlocked? Called while it is quiescent, with its gate
     * held. */
    bool (*is_deadlocked)(struct lvd_app *app);
    /* Saves the wait report of the fibers before they end. */
    void (*save_report)(struct lvd_app *app);
    /* Do threads or other processes hold ends of its streams, or calls? */
    bool (*awaits_outside)(struct lvd_app *app);
    /* The application that meets `want`; null: no single one. */
    struct lvd_app *(*app_awaited)(const lvd_wait_item *want);
    bool (*parent_decides)(const struct lvd_link *link);
    void (*expect)(struct lvd_link *link, const char *name, const struct lvd_user *party,
                   uint32_t parties);
    void (*free)(struct lvd_link *link);
    bool (*take)(struct lvd_link *link, const struct lvd_record *r);
    void (*look)(struct lvd_link *link);
  } deadlock;
  struct { /* child/: this process as a unit of a parent process */
    void (*record_crash)(const char *name, const char *what);
    void (*forget_parent)(void);
  } child;
  struct { /* srpc/ and program/ */
    void (*unwatch)(struct lvd_app *app);
    void (*part)(struct lvd_app *app);
    void (*misuse_told)(struct lvd_unit *unit, const struct lvd_record *r);
    const struct lvd_program *(*registering)(void);
  } programs;
} lvd_hook_table;

extern const lvd_hook_table lvd_hooks;

#endif
