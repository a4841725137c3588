/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Blocking calls: a call that may block in the kernel runs on a helper thread while its fiber or
 * actor waits. Helpers are not pinned, sleep when there is no call, and number at most HELPERS_MAX;
 * further calls are queued. Waits for a descriptor need no helper: one thread, the poller, waits
 * for all of them (epoll).
 *
 * Until the call returns, the application counts as live. An application that ends interrupts its
 * calls by a signal. An actor with a pending call stays RUNNING and is in no queue; the call
 * returns as a wake-up does, through the inbox of its worker. If the application has ended
 * meanwhile, the actor is not resumed but abandoned where it waits.
 *
 * An fd watch is registered when an actor has polled a descriptor without data
 * (lvd_poll_readable): the poller wakes the actor as a push would, and it checks again. The watch
 * is withdrawn when the actor runs again, or has fired since it polled. Until then it keeps the
 * application live, like a call.
 *
 * Pairs of orders
 *   begin: store_release work       -> helper: load_acquire work        the call
 *   back (sched/actor_call.c) */
#include "../sched/fiber.h"
#include "../sched/no_abandon.h"
#include "../stream/stream.h"
#include "blocking.h"

#include <stdlib.h>

enum { HELPERS_MAX = 512 };

typedef struct lvd_blocking_request {
  void (*call)(void *); /* null: it waits for a descriptor */
  void *argument;
  lvd_entity *entity;
  int fd;
  bool to_write;
  bool input; /* it ends when the application drains */
  /* It is queued for a helper or watched by the poller; under pool_lock. */
  bool listed;
  struct lvd_blocking_request *next; /* in that list; under pool_lock */
  bool is_watch;  /* an fd watch: allocated, and freed by the thread that unlists it */
  uint64_t fired; /* the actor's count of firings when it polled */
  struct lvd_blocking_request *other; /* in the actor's list of fd watches; under pool_lock */
} lvd_blocking_request;

typedef struct lvd_helper {
  lvd_runtime *rt;
  lvd_os_thread *thread;
  struct lvd_helper *next;
  lvd_a32 work; /* 1: run `out`; 2: end */
  lvd_blocking_request out;
  bool idle; /* under pool_lock */
} lvd_helper;

/* ---- helpers ------------------------------------------------------------------------------ */

static void give_back(lvd_entity *e) {
  if (e->is_fiber)
    lvd_event_set(&((lvd_fiber *)e)->unblocked, 1);
  else
    lvd_call_complete(e);
}

/* Records what it waits for, for wait reports (wait_report_fibers.c). */
static void set_blocked(lvd_blocking_request *out, uint32_t blocked) {
  if (out->entity->is_fiber) lvd_store_relaxed_u32(&((lvd_fiber *)out->entity)->blocked, blocked);
}

/* The call of `h` is done; true: it has got the next one. */
static bool next_call(lvd_helper *h) {
  lvd_runtime *rt = h->rt;
  lvd_os_lock(&rt->pool_lock);
  lvd_blocking_request *next = rt->calls_first;
  if (next) {
    rt->calls_first = next->next;
    next->listed = false;
    h->out = *next;
    set_blocked(next, LVD_BLOCKED_IN_CALL);
  } else {
    h->out.entity = NULL;
    h->idle = true;
  }
  lvd_os_unlock(&rt->pool_lock);
  return next;
}

static void helper_main(void *argument) {
  lvd_helper *h = argument;
  lvd_os_thread_set_interruptible();
  lvd_take_priority(h->rt, LVD_PRIO_APP);
  for (;;) {
    uint32_t work;
    while ((work = lvd_load_acquire_u32(&h->work)) == 0) lvd_os_wait(&h->work, 0, -1);
    if (work == 2) return;
    lvd_store_relaxed_u32(&h->work, 0);
    for (bool more = true; more;) {
      lvd_entity *entity = h->out.entity;
      h->out.call(h->out.argument);
      more = next_call(h);
      give_back(entity);
    }
  }
}

static void enqueue(lvd_runtime *rt, lvd_blocking_request *out) {
  out->next = NULL;
  out->listed = true;
  if (rt->calls_first)
    rt->calls_last->next = out;
  else
    rt->calls_first = out;
  rt->calls_last = out;
}

/* ---- the poller --------------------------------------------------------------------------- */

static lvd_blocking_request **watches_of(lvd_runtime *rt, int fd) {
  return &rt->watched[(uint32_t)fd % LVD_WATCHED];
}

/* Watches the descriptor for all that is waited for at it. */
static bool watch_again(lvd_runtime *rt, int fd) {
  bool read = false, write = false;
  for (const lvd_blocking_request *o = *watches_of(rt, fd); o; o = o->next) {
    read |= o->fd == fd && !o->to_write;
    write |= o->fd == fd && o->to_write;
  }
  return (!read && !write) || lvd_os_poller_watch(rt->poller, fd, read, write);
}

static void leave_actor(const lvd_blocking_request *watch_request) {
  lvd_aptr *first = &watch_request->entity->fd_watches;
  lvd_blocking_request *o = lvd_load_relaxed_ptr(first);
  if (o == watch_request) {
    lvd_store_relaxed_ptr(first, watch_request->other);
    return;
  }
  while (o->other != watch_request) o = o->other;
  o->other = watch_request->other;
}

/* Moves `*at` from its list to the front of `list`. */
static lvd_blocking_request *unlist(lvd_blocking_request **at, lvd_blocking_request *list) {
  lvd_blocking_request *o = *at;
  if (o->is_watch) leave_actor(o);
  *at = o->next;
  o->next = list;
  o->listed = false;
  return o;
}

/* Wakes the actor of an fd watch: there may be data, or its application ends. */
static void wake_actor(lvd_blocking_request *watch_request) {
  lvd_entity *e = watch_request->entity;
  lvd_app *app = e->app;
  free(watch_request);
  lvd_os_lock(&app->gate);
  if (lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING) lvd_entity_wake_locked(e);
  bool last = lvd_add_relaxed_u32(&app->live, UINT32_MAX) == 1;
  lvd_os_unlock(&app->gate);
  if (last) lvd_hooks.app.check_quiescent(app);
  lvd_call_uncount(app);
}

static void give_all_back(lvd_blocking_request *list) {
  for (lvd_blocking_request *next; list; list = next) {
    next = list->next; /* it lies on the stack that is resumed */
    if (list->is_watch)
      wake_actor(list);
    else
      give_back(list->entity);
  }
}

static void poller_main(void *argument) {
  lvd_runtime *rt = argument;
  enum { EVENTS_MAX = 64 };
  lvd_os_ready_fd ready[EVENTS_MAX];
  lvd_take_priority(rt, LVD_PRIO_SERVICE);
  for (;;) {
    uint32_t n = lvd_os_poller_wait(rt->poller, ready, EVENTS_MAX);
    for (uint32_t i = 0; i < n; i++) {
      const lvd_os_ready_fd *r = &ready[i];
      lvd_blocking_request *list = NULL;
      if (r->fd < 0) return;
      lvd_os_lock(&rt->pool_lock);
      for (lvd_blocking_request **at = watches_of(rt, r->fd); *at;) {
        if ((*at)->fd == r->fd && ((*at)->to_write ? r->to_write : r->to_read))
          list = unlist(at, list);
        else
          at = &(*at)->next;
      }
      watch_again(rt, r->fd); /* for waits for the other direction */
      lvd_os_unlock(&rt->pool_lock);
      give_all_back(list);
    }
  }
}

static lvd_status watch(lvd_runtime *rt, lvd_blocking_request *out) {
  lvd_status status = LVD_OK;
  lvd_os_lock(&rt->pool_lock);
  if (!rt->poller) status = lvd_os_poller_open(&rt->poller);
  if (status == LVD_OK && !rt->poller_thread)
    status = lvd_os_thread_start(&rt->poller_thread, -1, "levada/poll", poller_main, rt);
  /* Under the lock: a thread that requests draining finds it in the list, or the request is found
   * here. */
  if (status == LVD_OK && out->input && lvd_app_is_draining(out->entity->app)) status = LVD_E_EOF;
  if (status == LVD_OK) {
    lvd_blocking_request **first = watches_of(rt, out->fd);
    out->next = *first;
    out->listed = true;
    *first = out;
    if (out->is_watch) {
      out->other = lvd_load_relaxed_ptr(&out->entity->fd_watches);
      lvd_store_relaxed_ptr(&out->entity->fd_watches, out);
    }
    set_blocked(out, LVD_BLOCKED_AT_DESCRIPTOR);
    if (!watch_again(rt, out->fd)) {
      (void)unlist(first, NULL);
      status = lvd_limit("the system watches no more descriptors: fs.epoll.max_user_watches");
    }
  }
  lvd_os_unlock(&rt->pool_lock);
  return status;
}

/* Gives `out`, which lies on the stack of the waiter, to a helper or to the poller. */
static lvd_status send_out(lvd_runtime *rt, lvd_blocking_request *out) {
  lvd_status status = LVD_OK;
  if (!out->call) return watch(rt, out);
  lvd_os_lock(&rt->pool_lock);
  lvd_helper *h = rt->helpers;
  while (h && !h->idle) h = h->next;
  if (!h && rt->helper_count < HELPERS_MAX && (h = calloc(1, sizeof *h))) {
    h->rt = rt;
    if (lvd_os_thread_start(&h->thread, -1, "levada/blocking", helper_main, h) == LVD_OK) {
      h->next = rt->helpers;
      rt->helpers = h;
      rt->helper_count++;
    } else {
      free(h);
      h = NULL;
    }
  }
  if (h) {
    h->idle = false;
    h->out = *out;
    set_blocked(out, LVD_BLOCKED_IN_CALL);
  } else if (rt->helpers) { /* all are busy: the first free one takes it */
    enqueue(rt, out);
    set_blocked(out, LVD_BLOCKED_IN_QUEUE);
  } else {
    status = lvd_limit("the system gives no more threads: ulimit -u, kernel.threads-max");
  }
  lvd_os_unlock(&rt->pool_lock);
  if (h) {
    lvd_store_release_u32(&h->work, 1);
    lvd_os_wake(&h->work);
  }
  return status;
}

/* ---- waiters ---------------------------------------------------------------------------- */

/* Withdraws a request that has not begun. False: it has begun. */
static bool take_back(lvd_runtime *rt, lvd_blocking_request *out) {
  lvd_os_lock(&rt->pool_lock);
  bool listed = out->listed;
  if (listed) {
    lvd_blocking_request **at = out->call ? &rt->calls_first : watches_of(rt, out->fd),
                         *before = NULL;
    for (; *at != out; at = &(*at)->next) before = *at;
    if (out->call && rt->calls_last == out) rt->calls_last = before;
    (void)unlist(at, NULL);
  }
  lvd_os_unlock(&rt->pool_lock);
  return listed;
}

static void interrupt_call(lvd_runtime *rt, const lvd_entity *entity) {
  lvd_os_lock(&rt->pool_lock);
  for (lvd_helper *h = rt->helpers; h; h = h->next)
    if (h->out.entity == entity) lvd_os_thread_interrupt(h->thread);
  lvd_os_unlock(&rt->pool_lock);
}

/* A call must return before its stack may be freed. A cancelled one is interrupted repeatedly,
 * since an interruption may arrive just before the system call. */
static lvd_status wait_for_call(lvd_fiber *f, lvd_blocking_request *out) {
  enum { RETRY_NS = 10 * 1000000 };
  lvd_runtime *rt = f->entity.app->rt;
  const lvd_wait_item want = {.event = &f->unblocked};
  uint32_t which;
  lvd_status status = lvd_fiber_wait(f, &want, 1, -1, &which);
  if (status != LVD_OK && take_back(rt, out)) return status;
  f->uninterruptible = true;
  while (!lvd_event_is_set(&f->unblocked)) {
    interrupt_call(rt, &f->entity);
    lvd_fiber_wait(f, &want, 1, RETRY_NS, &which);
  }
  f->uninterruptible = false;
  lvd_fiber_wait_uninterruptible(f, &f->unblocked);
  return LVD_OK;
}

static lvd_status fiber_calls(lvd_fiber *f, lvd_blocking_request *out) {
  lvd_app *app = f->entity.app;
  /* The application counts as live until the call has returned. */
  lvd_add_relaxed_u32(&app->calls_out, 1);
  lvd_add_relaxed_u32(&app->live, 1);
  lvd_status status = send_out(app->rt, out);
  if (status == LVD_OK) status = wait_for_call(f, out);
  lvd_add_relaxed_u32(&app->live, UINT32_MAX);
  lvd_call_returned(&f->entity);
  return status;
}

static lvd_status actor_calls(lvd_worker *w, lvd_entity *e, lvd_blocking_request *out) {
  lvd_app *app = e->app;
  lvd_actor_begin_call(e);
  lvd_status status = send_out(app->rt, out);
  if (status == LVD_OK) {
    lvd_stack_suspend(w, e);
  } else {
    lvd_add_relaxed_u32(&app->live, UINT32_MAX);
    lvd_call_returned(e);
  }
  return status;
}

/* LVD_E_STATE: the caller cannot wait. */
static lvd_status call_out(lvd_blocking_request *out) {
  LVD_NO_ABANDON;
  lvd_worker *w = lvd_this_worker();
  lvd_entity *e = w ? w->current : NULL;
  out->entity = e;
  if (e && e->is_fiber) return fiber_calls((lvd_fiber *)e, out);
  if (e && e->stack) return actor_calls(w, e, out);
  return LVD_E_STATE;
}

lvd_status lvd_run_blocking(void (*call)(void *), void *argument) {
  if (!call) return LVD_E_ARGUMENT;
  lvd_blocking_request out = {.call = call, .argument = argument};
  const lvd_worker *w = lvd_this_worker();
  if (w && w->current && (w->current->is_fiber || w->current->stack)) return call_out(&out);
  call(argument);
  return LVD_OK;
}

/* ---- descriptors -------------------------------------------------------------------------- */

static lvd_status wait_fd(int fd, bool to_write, bool input) {
  lvd_status status = LVD_OK;
  while (status == LVD_OK && !lvd_os_poll(fd, to_write, 0)) {
    lvd_blocking_request out = {.fd = fd, .to_write = to_write, .input = input};
    if ((status = call_out(&out)) != LVD_E_STATE) continue;
    status = LVD_OK;
    lvd_os_poll(fd, to_write, -1);
  }
  return status;
}

lvd_status lvd_wait_readable(int fd) { return wait_fd(fd, false, false); }

lvd_status lvd_wait_input_restartable(int fd) {
  const lvd_worker *w = lvd_this_worker();
  lvd_entity *e = w ? w->current : NULL;
  if (!e) return wait_fd(fd, false, false);
  if (e->is_fiber) return lvd_app_is_draining(e->app) ? LVD_E_EOF : wait_fd(fd, false, true);
  e->in_input_wait = true;
  bool may_be_left = lvd_restarts(e) || (e->actor.in_guard && e->actor.cls->inputs == 0);
  lvd_status status = wait_fd(fd, false, may_be_left);
  e->in_input_wait = false;
  if (status == LVD_E_EOF) lvd_native_end(); /* nothing of this firing has been done yet */
  return status;
}

lvd_status lvd_wait_writable(int fd) { return wait_fd(fd, true, false); }

/* ---- fd watches ---------------------------------------------------------------------------- */

static uint64_t firings(const lvd_actor *a) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < a->cls->actions; i++) sum += a->fired[i];
  return sum;
}

/* True: it is watched already. The number may denote another descriptor by now, so that is
 * registered again. */
static bool is_watched(lvd_runtime *rt, const lvd_entity *e, int fd) {
  if (!lvd_has_fd_watches(e)) return false;
  lvd_os_lock(&rt->pool_lock);
  lvd_blocking_request *o = lvd_load_relaxed_ptr(&e->fd_watches);
  while (o && o->fd != fd) o = o->other;
  if (o) o->fired = firings(&e->actor);
  if (o) watch_again(rt, fd);
  lvd_os_unlock(&rt->pool_lock);
  return o;
}

bool lvd_poll_readable(int fd) {
  LVD_NO_ABANDON;
  if (lvd_os_poll(fd, false, 0)) return true;
  const lvd_worker *w = lvd_this_worker();
  lvd_entity *e = w ? w->current : NULL;
  if (!e || e->is_fiber || is_watched(e->app->rt, e, fd)) return false;
  lvd_app *app = e->app;
  lvd_blocking_request *watch_request = calloc(1, sizeof *watch_request);
  if (!watch_request) return true; /* the read that follows will block by itself */
  *watch_request =
      (lvd_blocking_request){.entity = e, .fd = fd, .is_watch = true, .fired = firings(&e->actor)};
  lvd_add_relaxed_u32(&app->calls_out, 1);
  lvd_add_relaxed_u32(&app->live, 1);
  if (watch(app->rt, watch_request) == LVD_OK) return false;
  lvd_add_relaxed_u32(&app->live, UINT32_MAX); /* its worker keeps it live */
  lvd_call_uncount(app);
  free(watch_request);
  return true;
}

/* Withdraws the fd watches registered when the actor had fired less than `fired` times. */
static void withdraw_before(lvd_entity *e, uint64_t fired) {
  lvd_app *app = e->app;
  lvd_runtime *rt = app->rt;
  lvd_blocking_request *list = NULL, *next;
  lvd_os_lock(&rt->pool_lock);
  for (lvd_blocking_request *o = lvd_load_relaxed_ptr(&e->fd_watches); o; o = next) {
    next = o->other;
    if (o->fired >= fired) continue;
    lvd_blocking_request **at = watches_of(rt, o->fd);
    while (*at != o) at = &(*at)->next;
    list = unlist(at, list);
  }
  lvd_os_unlock(&rt->pool_lock);
  for (; list; list = next) {
    next = list->next;
    free(list);
    lvd_add_relaxed_u32(&app->live, UINT32_MAX); /* its worker keeps it live */
    lvd_call_uncount(app);
  }
}

void lvd_fd_watches_withdraw(lvd_entity *e) { withdraw_before(e, UINT64_MAX); }
void lvd_fd_watches_keep_last(lvd_entity *e) { withdraw_before(e, firings(&e->actor)); }

/* ---- the end ------------------------------------------------------------------------------ */

static void interrupt_calls(lvd_app *app) {
  lvd_runtime *rt = app->rt;
  lvd_os_lock(&rt->pool_lock);
  for (lvd_helper *h = rt->helpers; h; h = h->next)
    if (h->out.entity && h->out.entity->app == app) lvd_os_thread_interrupt(h->thread);
  lvd_blocking_request *out = rt->calls_first, *next, *list = NULL;
  /* An actor's call that has not begun is withdrawn. */
  for (rt->calls_first = NULL; out; out = next) {
    next = out->next;
    if (out->entity->app == app && !out->entity->is_fiber)
      list = unlist(&out, list);
    else
      enqueue(rt, out);
  }
  for (uint32_t i = 0; i < LVD_WATCHED; i++)
    for (lvd_blocking_request **at = &rt->watched[i]; *at;) {
      if ((*at)->entity->app == app)
        list = unlist(at, list);
      else
        at = &(*at)->next;
    }
  lvd_os_unlock(&rt->pool_lock);
  give_all_back(list);
  lvd_actor_timers_recall(app);
}

void lvd_inputs_end(lvd_app *app) {
  lvd_runtime *rt = app->rt;
  lvd_blocking_request *list = NULL;
  lvd_os_lock(&rt->pool_lock);
  for (uint32_t i = 0; i < LVD_WATCHED; i++)
    for (lvd_blocking_request **at = &rt->watched[i]; *at;) {
      if ((*at)->input && (*at)->entity->app == app)
        list = unlist(at, list);
      else
        at = &(*at)->next;
    }
  lvd_os_unlock(&rt->pool_lock);
  give_all_back(list);
}

void lvd_calls_recall(lvd_app *app) {
  uint32_t out;
  while ((out = lvd_load_acquire_u32(&app->calls_out)) != 0) {
    interrupt_calls(app);
    lvd_fibers_wake(app); /* calls that its actors have forked */
    /* ns; an interruption may arrive just before the system call */
    lvd_os_wait(&app->calls_out, out, 10 * 1000000);
    if (lvd_load_relaxed_u32(&app->calls_out) == out) lvd_hooks.app.reaper_spawn_backup(app->rt);
  }
}

void lvd_blocking_end(lvd_runtime *rt) {
  if (rt->poller_thread) {
    lvd_os_poller_wake(rt->poller);
    lvd_os_thread_join(rt->poller_thread);
  }
  if (rt->poller) lvd_os_poller_close(rt->poller);
  for (lvd_helper *h = rt->helpers, *next; h; h = next) {
    next = h->next;
    lvd_store_release_u32(&h->work, 2);
    lvd_os_wake(&h->work);
    lvd_os_thread_join(h->thread);
    free(h);
  }
}
