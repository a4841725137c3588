/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Hooks: what a lower layer asks of one above it. The lower layer declares it here and calls it by this table; src/hooks.c,
 * above all layers, fills the table with the functions of those that ship. So the calls from folder to folder go down
 * only, nothing has to be registered, and what a test or the model checker leaves out it replaces in the table.
 *
 * None of these is on the way of an element: each is called when something begins, ends, fails, blocks or sleeps. */
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
    void (*check_quiescent)(
        struct lvd_app *app); /* live has come to 0, or what is outside has changed since */
    void (*reaper_spawn_backup)(
        struct lvd_runtime *rt); /* another reaper does its work meanwhile */
  } app;
  struct { /* blocking/: descriptors that an actor has found without data */
    void (*withdraw)(struct lvd_entity *e);  /* all of them */
    void (*keep_last)(struct lvd_entity *e); /* those from before its last firing */
  } polls;
  struct {                                    /* stream/ */
    void (*fiber_waits)(struct lvd_fiber *f); /* one that uses streams is about to */
    void (*fiber_ends)(struct lvd_fiber *f, lvd_status outcome);
    void (*thread_waits)(void); /* the calling thread, which is no fiber */
  } streams;
  struct { /* fork/: see deque_pool.c, steal.c and fork_thread.c */
    void (*suspend)(struct lvd_worker *w,
                    struct lvd_fiber *f); /* a fiber with open forks is suspended */
    bool (*set_aside)(struct lvd_worker *w, struct lvd_fiber *f);
    void (*set_back_without)(void);
    void (*resume)(struct lvd_worker *w, struct lvd_fiber *f);  /* ... and goes on */
    void (*abandon)(struct lvd_worker *w, struct lvd_fiber *f); /* ... or was abandoned */
    void (*drop)(struct lvd_fiber *f); /* ... or is not gone on with (overrun.c) */
    void (*abandon_suspended)(struct lvd_app *app,
                              struct lvd_fiber *f); /* ... and never is, since `app` ends */
    bool (*poll)(
        struct lvd_worker *w); /* a worker without work: true: something was stolen, and is ready */
    bool (*before_sleep)(struct lvd_worker *w,
                         int64_t *most); /* before it sleeps, for *most at the most: once more */
    bool (*may_sleep)(const struct lvd_worker *w); /* false: a fork has woken it already */
    void (*after_sleep)(struct lvd_worker *w);
    void (*worker_ends)(void);
    void (*runtime_begins)(struct lvd_runtime *rt);
    void (*runtime_ends)(struct lvd_runtime *rt);
    void (*free)(struct lvd_runtime *rt);
  } forks;
  struct { /* ipc/shared_stream.c: streams with another process */
    bool (*claim)(struct lvd_shared_stream *ss,
                  bool sender); /* false: the other side has that end */
    bool (*is_theirs)(const struct lvd_shared_stream *ss, bool sender);
    lvd_waiter *(*waiter)(struct lvd_shared_stream *ss, bool sender);
    void (*free)(struct lvd_shared_stream *ss);
  } shared;
  struct { /* rpc/call.c */
    void (*free)(struct lvd_runtime *rt);
    void (*units_free)(struct lvd_app *app);
  } calls;
  struct { /* deadlock/ */
    bool (*is_deadlocked)(
        struct lvd_app *app); /* do fibers, or threads, wait in vain? At rest, the gate closed */
    void (*save_report)(struct lvd_app *app); /* who waits for whom, for when they have gone */
    bool (*awaits_outside)(
        struct lvd_app *app); /* threads or other processes have ends of its streams, or calls */
    struct lvd_app *(*app_awaited)(const lvd_want *want); /* null: of none alone */
    bool (*parent_decides)(const struct lvd_link *link);
    void (*expect)(struct lvd_link *link, const char *name, const struct lvd_user *party,
                   uint32_t parties);
    void (*free)(struct lvd_link *link);
    bool (*take)(struct lvd_link *link, const struct lvd_record *r);
    void (*look)(struct lvd_link *link);
  } deadlock;
  struct { /* child/: this process, where it is a unit of another one */
    void (*falls)(const char *who, const char *what);
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
