/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Steal: which threads fork, which workers steal from them, and how these sleep and are woken.
 *
 * A worker that has nothing ready takes the oldest public fork of any deque and runs it on a fiber
 * of its own, so that it may wait. If nothing is public it asks, looks around for a while, and
 * sleeps. Before that it asks everybody once more, and counts as a sleeper: the next fork anywhere
 * is then a seldom one, becomes public, and wakes it. That costs the forks of a busy program
 * nothing.
 *
 * A thread of the program that forks takes the PLACE of the worker whose core it is on: that worker
 * abstains while the thread computes, or there would be more threads than cores. While the thread
 * waits, the worker has its core back.
 *
 * Pairs of orders
 *   sleep: sleepers + 1, [fence], look at ends <> share: ends, [fence], load sleepers      (D3)
 *   sleep: waiting (inbox), [fence], load fork_sleeps <> wake: fork_sleeps 0, [fence], load waiting
 *   abstain: fork_sleeps, [fence], look at the thread <> leave, wait: lender or sleeps, [fence],
 *                                                          load fork_sleeps
 *   enlist: the deque, store_release deques -> look: load_acquire deques
 *   prepare: forks and forkers of a runtime, store_release rt->forks -> a worker begins: load_acquire
 *   begin: a forker, store_release thread of a deque, cas_release lender -> ask, abstain: load_acquire
 * Need none: other readers of rt->forks, who have begun; the application of a call, which was opened
 * before that was forked. */
#include "fork.h"

#include <stdlib.h>
#include <string.h>

#include "fiber.h"

enum {
  AWAKE = 0,
  SLEEPS = 1,   /* and would steal */
  ABSTAINS = 2, /* a thread of the program has its place */
  COMES = 3,    /* woken by a fork, and not there yet */
  CHECK_NS = 1000000,
  RECHECK_NS = 4000000,
  SPARE_MOST = 8
};

/* Of the process; all under the lock. */
static struct {
  lvd_port_mutex lock;
  lvd_runtime *runtimes; /* all that live, the oldest first */
  lvd_forker *forkers;
  lvd_aptr spare; /* deques of no runtime */
  lvd_a32 at_fork;
} all;

#ifdef LVD_FORK_SELF /* the checker's threads are all one of the system (levada/fork.h) */
lvd_forker **LVD_FORK_SELF;
#define self (*LVD_FORK_SELF)
#else
static _Thread_local lvd_forker *self;
#endif

/* ---- deques ------------------------------------------------------------------------------- */

static lvd_deque *new_deque(void) {
  lvd_deque *d = lvd_port_alloc(sizeof *d);
  if (d) lvd_event_init(&d->joined);
  return d;
}

static bool enlist(lvd_fork_set *forks, lvd_deque *d) {
  uint32_t n = lvd_load_relaxed_u32(&forks->deques);
  if (n == LVD_DEQUES) return false;
  lvd_store_relaxed_ptr(&forks->deque[n], d);
  lvd_store_release_u32(&forks->deques, n + 1);
  return true;
}

/* So many there are, and each is as it was made. */
static uint32_t deques_of(const lvd_fork_set *forks) {
  return lvd_load_acquire_u32(&forks->deques);
}
static lvd_deque *deque_of(const lvd_fork_set *forks, uint32_t i) {
  return lvd_load_relaxed_ptr(&forks->deque[i]);
}

/* Under the lock. */
static lvd_deque *take_from(lvd_aptr *list) {
  lvd_deque *d = lvd_load_relaxed_ptr(list);
  if (d) lvd_store_relaxed_ptr(list, d->next);
  return d;
}
static void give_back(lvd_aptr *list, lvd_deque *d) {
  lvd_store_relaxed_ptr(&d->thread, NULL);
  d->next = lvd_load_relaxed_ptr(list);
  lvd_store_relaxed_ptr(list, d);
}

/* One that lies ready, or a new one; null: there are no more. Under the lock. */
static lvd_deque *some_deque(lvd_fork_set *forks) {
  lvd_deque *d = take_from(&forks->spare);
  if (d) return d;
  d = take_from(&all.spare);
  if (!d) d = new_deque();
  if (!d || enlist(forks, d)) return d;
  give_back(&all.spare, d);
  return NULL;
}

static lvd_deque *find_deque(lvd_fork_set *forks) {
  if (!lvd_load_relaxed_ptr(&forks->spare) && lvd_load_relaxed_u32(&forks->deques) == LVD_DEQUES)
    return NULL; /* without the lock, since each fork may ask */
  lvd_port_lock(&all.lock);
  lvd_deque *d = some_deque(forks);
  lvd_port_unlock(&all.lock);
  return d;
}

/* Where the deques of a thread go that it has no use for. Under the lock. */
static lvd_aptr *spare_of(lvd_forker *f) {
  return lvd_load_relaxed_u32(&f->gone) ? &all.spare : &f->forks->spare;
}

/* `d` is empty, and nobody's. A few stay here, the others are for whoever has none. */
static void keep(lvd_forker *f, lvd_deque *d) {
  if (f->spares == SPARE_MOST) {
    lvd_port_lock(&all.lock);
    give_back(spare_of(f), d);
    lvd_port_unlock(&all.lock);
    return;
  }
  lvd_store_relaxed_ptr(&d->thread, NULL);
  d->next = f->spare;
  f->spare = d;
  f->spares++;
}

/* The thread goes on with deque `d`, whose head is `head`; null: with none. */
static void take_up(lvd_forker *f, lvd_deque *d, lvd_fork *head) {
  lvd_store_relaxed_ptr(&f->deque, d);
  lvd_forks.head = d ? head : LVD_NO_SLOT;
  /* The first fork is a seldom one: it looks around for who wants it. */
  lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
  lvd_store_relaxed_ptr(&lvd_forks.floor, d ? &d->slot[d->split] : NULL);
  if (!d) return;
  lvd_store_relaxed_u32(&d->asked, 1);
  lvd_store_release_ptr(&d->thread, f);
}

static void take_up_empty(lvd_forker *f) {
  lvd_deque *d = f->spare;
  if (d) {
    f->spare = d->next;
    f->spares--;
  } else {
    d = find_deque(f->forks);
  }
  if (d) {
    d->split = 0;
    lvd_store_relaxed_u64(&d->ends, 0);
    lvd_store_relaxed_u32(&d->outermost.first, LVD_NO_SCOPE);
    d->innermost = NULL;
  }
  take_up(f, d, d ? d->slot : NULL);
  if (f->worker) f->worker->fork_base = lvd_forks.head;
}

lvd_deque *lvd_forker_deque(lvd_forker *f) {
  if (LVD_UNLIKELY(!lvd_load_relaxed_ptr(&f->deque))) take_up_empty(f);
  return lvd_load_relaxed_ptr(&f->deque);
}

void lvd_forker_without(lvd_forker *f) {
  lvd_deque *d = lvd_load_relaxed_ptr(&f->deque);
  if (d) keep(f, d);
  take_up(f, NULL, NULL);
  if (f->worker) f->worker->fork_base = LVD_NO_SLOT;
}

/* Has the thread forks open on its deque? */
static bool is_open(const lvd_forker *f) {
  const lvd_deque *d = lvd_load_relaxed_ptr(&f->deque);
  return d && lvd_forks.head != d->slot;
}

/* ---- threads that fork -------------------------------------------------------------------- */

/* Wakes `w` if it sleeps; what runs there goes on. */
static void nudge(lvd_worker *w) {
  uint32_t sleep;
  if (!lvd_inbox_asleep(&w->inbox, &sleep)) return;
  lvd_port_wake(&w->inbox.waiting);
  lvd_inbox_woken(&w->inbox, sleep);
}

/* A worker that abstains looks again whether it has to. */
static bool stir(lvd_worker *w) {
  uint32_t abstains = ABSTAINS;
  lvd_fence_seq_cst();
  if (lvd_load_relaxed_u32(&w->fork_sleeps) != ABSTAINS ||
      !lvd_cas_relaxed_u32(&w->fork_sleeps, &abstains, AWAKE))
    return false;
  nudge(w);
  return true;
}

static void leave_place(lvd_forker *f) {
  if (f->place == LVD_NOWHERE) return;
  lvd_worker *w = &f->forks->rt->worker[f->place];
  lvd_lease_leave(&f->leased);
  lvd_store_relaxed_ptr(&w->lender, NULL);
  f->place = LVD_NOWHERE;
  stir(w);
}

/* What `w` does is something else now. */
static void set_sleeps(lvd_fork_set *forks, lvd_worker *w, uint32_t sleeps) {
  uint32_t was = lvd_exchange_relaxed_u32(&w->fork_sleeps, sleeps);
  if (was == SLEEPS) lvd_add_relaxed_u32(&forks->sleepers, UINT32_MAX);
  if (was == COMES) lvd_add_relaxed_u32(&forks->coming, UINT32_MAX);
}

/* `w` has lent its place, and need not wake to see it. */
static void abstain_asleep(lvd_fork_set *forks, lvd_worker *w) { set_sleeps(forks, w, ABSTAINS); }

static bool take_place(lvd_forker *f, lvd_worker *w) {
  void *none = NULL;
  if (!lvd_load_relaxed_u32(&w->given) || !lvd_cas_release_ptr(&w->lender, &none, f)) return false;
  leave_place(f);
  f->place = w->index;
  abstain_asleep(f->forks, w);
  lvd_lease_enter(&f->leased, w->cpu);
  return true;
}

/* A thread of the program is somewhere else now, perhaps. */
static void look_for_place(lvd_forker *f) {
  lvd_runtime *rt = f->forks->rt;
  if (f->place != LVD_NOWHERE && f->leased.counted) return; /* the lease is that core's */
  int32_t cpu = lvd_port_cpu();
  if (f->place != LVD_NOWHERE && (rt->worker[f->place].cpu < 0 || rt->worker[f->place].cpu == cpu))
    return;
  for (uint32_t i = 0; i < rt->workers; i++)
    if (rt->worker[i].cpu == cpu && take_place(f, &rt->worker[i])) return;
  for (uint32_t i = 0; f->place == LVD_NOWHERE && i < rt->workers; i++)
    take_place(f, &rt->worker[i]);
}

static lvd_forker *new_forker(void) {
  lvd_forker *f = all.forkers;
  while (f && f->taken) f = f->next;
  if (!f && (f = lvd_port_alloc(sizeof *f))) {
    f->next = all.forkers;
    all.forkers = f;
  }
  if (f) f->taken = true;
  return f;
}

/* `f` is somebody else's from now on, and its spare deques are on `list`. Under the lock. */
static void free_forker(lvd_forker *f, lvd_aptr *list) {
  for (lvd_deque *d; (d = f->spare);) {
    f->spare = d->next;
    give_back(list, d);
  }
  f->spares = 0;
  if (f->worker) f->worker->forker = NULL;
  f->reserve = NULL; /* its runtime is about to free it */
  f->taken = false;
}

/* The thread ends: nobody tells it anything any more. */
static void end_forker(void *argument) {
  lvd_forker *f = argument;
  lvd_port_lock(&all.lock);
  lvd_port_lock(&f->lock);
  f->thread = NULL;
  lvd_port_unlock(&f->lock);
  lvd_deque *d = lvd_load_relaxed_ptr(&f->deque);
  if (!lvd_load_relaxed_u32(&f->gone)) leave_place(f);
  lvd_lease_end(&f->leased);
  lvd_aptr *list = spare_of(f);
  if (d) give_back(list, d);
  lvd_store_relaxed_ptr(&f->deque, NULL);
  free_forker(f, list);
  self = NULL;
  lvd_forks.head = NULL;
  lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
  lvd_store_relaxed_ptr(&lvd_forks.floor, NULL);
  lvd_port_unlock(&all.lock);
}

/* Who has taken one of its forks writes to a stack that is about to go. */
static void thread_ends(void *argument) {
  if (is_open(argument)) {
    lvd_port_last_words(
        "levada: a thread ended amid its forks (pthread_exit, or pthread_cancel), which "
        "must be joined first; the process ends\n");
    abort();
  }
  end_forker(argument);
}

/* ---- the runtime -------------------------------------------------------------------------- */

/* Under the lock. */
static lvd_runtime *some_runtime(void) {
  if (all.runtimes) return all.runtimes;
  lvd_port_unlock(&all.lock); /* it enlists itself */
  lvd_own_start();
  lvd_port_lock(&all.lock);
  return all.runtimes;
}

bool lvd_forks_open_here(void) {
  return self && !lvd_load_relaxed_u32(&self->gone) && is_open(self);
}

bool lvd_forks_alone(void) {
  lvd_port_lock(&all.lock);
  bool alone = !all.runtimes || !all.runtimes->next_runtime;
  lvd_port_unlock(&all.lock);
  return alone;
}

/* Under the lock: nobody who forks for the first time finds it. */
static void delist(lvd_runtime *rt) {
  lvd_runtime **at = &all.runtimes;
  while (*at && *at != rt) at = &(*at)->next_runtime;
  if (*at) *at = rt->next_runtime;
}

bool lvd_forks_close(lvd_runtime *rt) {
  lvd_port_lock(&all.lock);
  bool closed = true;
  for (const lvd_forker *f = all.forkers; f; f = f->next)
    if (f->taken && !f->worker && f != self && f->forks->rt == rt) closed = false;
  if (closed) delist(rt);
  lvd_port_unlock(&all.lock);
  return closed;
}

void lvd_forks_runtime_begins(lvd_runtime *rt) {
  lvd_port_lock(&all.lock);
  lvd_runtime **at = &all.runtimes;
  while (*at) at = &(*at)->next_runtime;
  *at = rt;
  lvd_port_unlock(&all.lock);
}

/* Its workers run still; no thread of the program is in a fork. */
void lvd_forks_runtime_ends(lvd_runtime *rt) {
  if (self && self->forks->rt == rt) lvd_lease_end(&self->leased);
  lvd_port_lock(&all.lock);
  delist(rt);
  for (lvd_forker *f = all.forkers; f; f = f->next) {
    if (!f->taken || f->worker || !f->forks || f->forks->rt != rt) continue;
    lvd_port_lock(&f->lock);
    lvd_store_relaxed_u32(&f->gone, 1);
    if (f->thread) lvd_store_relaxed_ptr(&f->thread->limit, NULL);
    lvd_port_unlock(&f->lock);
  }
  lvd_port_unlock(&all.lock);
}

/* Its workers have ended. */
void lvd_forks_free(lvd_runtime *rt) {
  lvd_fork_set *forks = lvd_load_relaxed_ptr(&rt->forks);
  if (!forks) return;
  lvd_port_lock(&all.lock);
  for (uint32_t i = 0; i < rt->workers; i++) /* which have not begun */
    if (rt->worker[i].forker) free_forker(rt->worker[i].forker, &all.spare);
  for (lvd_deque *d; (d = take_from(&forks->spare));) give_back(&all.spare, d);
  lvd_port_unlock(&all.lock);
  lvd_port_free(forks, sizeof *forks);
}

/* The application of calls that threads of the program have forked. Not on a worker: its locks may wait for one. */
static bool open_app(lvd_fork_set *forks) {
  static const lvd_app_options options = {.name = "forks"};
  lvd_app *app;
  lvd_port_lock(&forks->opening);
  if (!lvd_load_relaxed_ptr(&forks->app) && lvd_app_open(forks->rt, &options, &app) == LVD_OK)
    lvd_store_relaxed_ptr(&forks->app, app);
  bool opened = lvd_load_relaxed_ptr(&forks->app);
  lvd_port_unlock(&forks->opening);
  return opened;
}

/* What its thread could have called directly is to have room where it is taken. */
static void expect_stack(lvd_fork_set *forks, size_t size) {
  enum { GUARD_MOST = 64 * 1024 }; /* the system counts it or not */
  uint32_t size_log2 = lvd_load_relaxed_u32(&forks->stack_log2);
  while (size_log2 < LVD_STACK_LARGEST && ((size_t)1 << size_log2) + GUARD_MOST < size) size_log2++;
  lvd_store_relaxed_u32(&forks->stack_log2, size_log2);
}

/* Whose it is: `w`, or a thread of the program. Under the lock. */
static void give_forker(lvd_forker *f, lvd_worker *w, lvd_fork_set *forks) {
  f->worker = w;
  f->forks = forks;
  f->place = LVD_NOWHERE;
  lvd_store_relaxed_u32(&f->gone, 0);
  lvd_store_relaxed_u32(&f->sleeps, 0);
  if (w) w->forker = f;
}

/* What a worker begins with, without the lock: it may begin on the core of a thread that computes, and
 * come no further for long, while others want the lock. Under it. */
static void prepare(lvd_fork_set *forks, lvd_worker *w) {
  lvd_forker *f = new_forker();
  if (!f) return;
  give_forker(f, w, forks);
  if ((f->spare = some_deque(forks))) {
    f->spare->next = NULL;
    f->spares = 1;
  }
}

/* Under the lock. */
static lvd_fork_set *forks_of(lvd_runtime *rt) {
  lvd_fork_set *forks = lvd_load_relaxed_ptr(&rt->forks);
  if (forks || !(forks = lvd_port_alloc(sizeof *forks))) return forks;
  forks->rt = rt;
  lvd_store_relaxed_u32(&forks->stack_log2, LVD_STACK_MOST);
  for (uint32_t i = 0; i < rt->workers; i++) prepare(forks, &rt->worker[i]);
  lvd_store_release_ptr(&rt->forks, forks);
  return forks;
}

/* Of the thread that it is on. */
static void start_forker(lvd_forker *f) {
  size_t size = 0;
  f->low = lvd_port_stack_low(&size);
  if (!f->worker) expect_stack(f->forks, size);
  lvd_store_relaxed_u32(&f->clock, (uint32_t)lvd_port_thread_clock());
  f->random = (uint64_t)(uintptr_t)f ^ lvd_port_ticks() ^ 1;
  lvd_port_lock(&f->lock);
  f->thread = &lvd_forks;
  lvd_port_unlock(&f->lock);
  self = f;
}

/* ---- a second process ---------------------------------------------------------------------- */

static void before_fork(void) {
  lvd_own_before_fork();
  lvd_port_lock(&all.lock);
}

static void after_fork(void) {
  lvd_port_unlock(&all.lock);
  lvd_own_after_fork();
}

/* It has no workers until it forks, and ends without those of the other. What is open here and was
 * taken there has been taken from it for good. */
static void child_begins(void) {
  lvd_leases_child_begins();
  all.runtimes = NULL;
  all.forkers = NULL; /* their threads are gone, perhaps with their locks in hand */
  if (self) {
    lvd_port_at_thread_end(LVD_ENDS_FORKS, thread_ends,
                           NULL); /* who told it something is gone, its lock in hand */
    if (!is_open(self)) {
      self = NULL;
      lvd_forks.head = NULL;
      lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
      lvd_store_relaxed_ptr(&lvd_forks.floor, NULL);
    } else {
      self->lock = (lvd_port_mutex){0};
      self->leased = (lvd_leased){0};
      self->next = NULL;
      all.forkers = self;
    }
  }
  lvd_port_unlock(&all.lock);
  lvd_own_child_begins();
}

/* Who sleeps does not count as one who would steal yet. Only the worker whose place was taken sleeps on:
 * at real-time priority it would push the thread, if that may move, from its core onto that of a worker
 * that steals, whose call would then wait until the thread does. */
static void nudge_others(lvd_runtime *rt, uint32_t place) {
  for (uint32_t i = 0; i < rt->workers; i++)
    if (i != place) nudge(&rt->worker[i]);
}

/* A thread of the program; or a worker, if nobody has forked yet. */
static lvd_forker *begin_unprepared(lvd_worker *w) {
  if (!lvd_load_relaxed_u32(&all.at_fork) && !lvd_exchange_relaxed_u32(&all.at_fork, 1))
    lvd_port_at_fork(before_fork, after_fork, child_begins);
  lvd_port_lock(&all.lock);
  lvd_runtime *rt = w ? w->rt : some_runtime();
  bool first = rt && !lvd_load_relaxed_ptr(&rt->forks);
  lvd_fork_set *forks = rt ? forks_of(rt) : NULL;
  lvd_forker *f = w ? w->forker : NULL;
  if (forks && !f && (f = new_forker())) give_forker(f, w, forks);
  if (f) start_forker(f);
  lvd_port_unlock(&all.lock);
  if (f && !w) look_for_place(f);
  if (first && forks) nudge_others(rt, f ? f->place : LVD_NOWHERE);
  return f;
}

/* The thread forks, or steals, for the first time, or its runtime is gone. */
static LVD_COLD lvd_forker *begin(void) {
  lvd_worker *w = lvd_this_worker();
  if (self) { /* gone: nobody steals from it, but what is open is to be joined */
    if (is_open(self)) return self;
    end_forker(self);
  } else if (lvd_forks.head) {
    return NULL; /* there was no memory, and forks are open that were never made */
  }
  lvd_forker *f = w && lvd_load_acquire_ptr(&w->rt->forks) ? w->forker : NULL;
  if (f)
    start_forker(f);
  else
    f = begin_unprepared(w);
  if (!f) return NULL;
  if (!w && !open_app(f->forks)) { /* nobody could take a call */
    end_forker(f);
    return NULL;
  }
  take_up_empty(f);
  if (!w) lvd_port_at_thread_end(LVD_ENDS_FORKS, thread_ends, f);
  return f;
}

lvd_forker *lvd_forker_self(void) {
  lvd_forker *f = self;
  return f && !lvd_load_relaxed_u32(&f->gone) ? f : begin();
}

/* The worker's thread ends. */
void lvd_forks_worker_ends(void) {
  if (self) end_forker(self);
}

/* ---- fibers with open forks --------------------------------------------------------------- */

void lvd_forks_leave(lvd_worker *w, lvd_fiber *fiber) {
  lvd_forker *f = self;
  lvd_deque *d = lvd_load_relaxed_ptr(&f->deque);
  if (!d) return;                  /* without a deque it has none open, just counts as if */
  if (lvd_forks.head == d->slot) { /* a taken call that leaves without one open: the deque stays */
    w->fork_base = d->slot;
    if (!fiber->ended) lvd_fork_unsay(fiber->taken, d);
    return;
  }
  d->head = lvd_forks.head;
  lvd_store_relaxed_ptr(&d->thread, NULL);
  lvd_deque_publish_all(d, d->head, f);
  fiber->forks = d;
  take_up_empty(f);
  lvd_forks_wake(f);
}

bool lvd_forks_set_aside(lvd_worker *w, lvd_fiber *fiber) {
  lvd_forker *f = self;
  lvd_deque *d = f ? lvd_load_relaxed_ptr(&f->deque) : NULL;
  (void)w;
  if (!d) return false;
  d->head = lvd_forks.head;
  lvd_store_relaxed_ptr(&d->thread, NULL);
  fiber->forks = d;
  take_up_empty(f);
  return true;
}

/* It may have looked where its next fork goes, and found nowhere. */
void lvd_forks_set_back_without(void) {
  if (self) lvd_forker_without(self);
}

void lvd_forks_enter(lvd_worker *w, lvd_fiber *fiber) {
  lvd_forker *f = self;
  lvd_deque *d = fiber->forks, *old = lvd_load_relaxed_ptr(&f->deque);
  fiber->forks = NULL;
  if (old) keep(f, old);
  take_up(f, d, d->head);
  w->fork_base = fiber->taken ? NULL : d->slot;
}

/* All that ran on this stack, one call on top of the other, was abandoned with it. */
static void fail_all(const lvd_fork_set *forks, const lvd_deque *here) {
  uint32_t n = deques_of(forks);
  for (uint32_t i = 0; i < n; i++) lvd_deque_fail(deque_of(forks, i), here);
}

/* Nobody knows any more who will come to its stack; nobody steals from it, and who has is told to
 * end, since his application does. */
void lvd_forks_forsake(lvd_app *app, lvd_fiber *fiber) {
  enum { AGAIN_NS = 1000000 };
  lvd_deque *d = fiber->forks;
  lvd_fork_set *forks = lvd_load_relaxed_ptr(&app->rt->forks);
  fail_all(forks, d); /* it may have helped those whom it waits for */
  while (!lvd_deque_abandon(d)) {
    lvd_fibers_wake(app);
    uint32_t fibers = lvd_load_relaxed_u32(&app->fibers);
    lvd_port_wait(&app->fibers, fibers, AGAIN_NS);
  }
  fiber->forks = NULL;
  lvd_port_lock(&all.lock);
  give_back(&forks->spare, d);
  lvd_port_unlock(&all.lock);
}

/* What `w` ran was abandoned, a fiber, or an actor on `fiber` (null: on the worker's own stack),
 * perhaps with forks open. */
void lvd_forks_abandon(lvd_worker *w, lvd_fiber *fiber) {
  lvd_forker *f = self;
  lvd_deque *d = f ? lvd_load_relaxed_ptr(&f->deque) : NULL;
  if (fiber && fiber->taken) { /* without a deque, or with one that it has left, nobody finds it */
    if (d) lvd_fork_unsay(fiber->taken, d);
    lvd_fork_fail(fiber->taken, fiber->taken_from);
  }
  if (d && lvd_forks.head != w->fork_base) {
    bool idle;
    fail_all(f->forks, d);
    /* Whoever works for it may still write to its stack, if that is the worker's own. */
    while (!(idle = lvd_deque_abandon(d)) && !fiber) lvd_port_relax();
    if (idle)
      keep(f, d);
    else
      fiber->kept = true;
    take_up_empty(f);
  }
}

/* ---- stealing ----------------------------------------------------------------------------- */

static void taken_main(void *argument) {
  lvd_fiber *fiber = argument;
  lvd_forker *f = lvd_forker_self();
  f->worker->fork_base = NULL; /* it does not leave without being noticed */
  lvd_fork_run(fiber->taken, fiber->taken_from, lvd_load_relaxed_ptr(&f->deque));
}

/* Is a stack ready here, for a call to be taken? Without one it is not: its owner can make it as well. */
static bool has_stack(lvd_forker *f) {
  uint32_t size_log2 = lvd_load_relaxed_u32(&f->forks->stack_log2);
  if (LVD_LIKELY(f->reserve && f->reserve->size_log2 >= size_log2)) return true;
  if (f->reserve) lvd_fiber_put_back(f->forks->rt, f->reserve);
  f->reserve = NULL;
  return lvd_fiber_take(f->forks->rt, size_log2, &f->reserve) == LVD_OK;
}

/* The call of `slot`, just taken from `d`, is ready here as a fiber. */
static void make_fiber(lvd_forker *f, lvd_fork *slot, lvd_deque *d) {
  lvd_app *app = lvd_load_relaxed_ptr(&d->app);
  lvd_fiber *fiber = f->reserve;
  f->reserve = NULL;
  bool bare = !app;
  if (bare) app = lvd_load_relaxed_ptr(&f->forks->app);
  lvd_fiber_ready(f->worker, fiber, app, lvd_load_relaxed_u32(&d->level), taken_main);
  fiber->bare = bare;
  fiber->taken = slot;
  fiber->taken_from = d;
}

/* On this stack, for one more call. */
static bool has_room(const lvd_forker *f) {
  const unsigned char *here = __builtin_frame_address(0), *low = f->low;
  size_t least = 256 * 1024;
  const lvd_entity *e = f->worker ? f->worker->current : NULL;
  const lvd_fiber *fiber = !e ? NULL : e->is_fiber ? (const lvd_fiber *)e : e->stack;
  if (fiber) {
    low = fiber->low + fiber->guard;
    least = ((size_t)1 << fiber->size_log2) / 2;
  }
  return (size_t)(here - low) > least;
}

static bool makes_fibers(const lvd_forker *f) {
  return f->worker && f->worker->index < f->worker->rt->workers;
}

bool lvd_fork_may_leap(lvd_forker *f) { return has_room(f) && (!makes_fibers(f) || has_stack(f)); }

void lvd_fork_pass(lvd_forker *f, lvd_fork *slot, lvd_deque *from) {
  if (makes_fibers(f))
    make_fiber(f, slot, from);
  else
    lvd_fork_run(slot, from, lvd_load_relaxed_ptr(&f->deque));
}

static bool steal(lvd_worker *w, lvd_forker *f, lvd_deque *d) {
  if (!lvd_deque_has(d) || !has_stack(f)) return false;
  /* Until there is a fiber, nothing else keeps the application from its end: the stack that has
   * forked may have been abandoned. */
  lvd_worker_turns(w, LVD_ANY_APP(w));
  lvd_fork *slot = lvd_deque_take(d);
  if (slot) {
    lvd_count(&f->stolen, 1);
    make_fiber(f, slot, d);
  }
  lvd_worker_turns(w, NULL);
  return slot != NULL;
}

/* Has it just forked? Then it computes, however long it has rested before. */
static bool has_forked(const lvd_forker *f) {
  return lvd_port_ticks_to_ns(lvd_port_ticks() - lvd_load_relaxed_u64(&f->shares)) < CHECK_NS;
}

/* Does a thread of the program compute in the place of `w`? Measured now and then. */
static bool abstains(lvd_worker *w) {
  lvd_forker *lender = lvd_load_acquire_ptr(&w->lender);
  if (!lender || lvd_load_relaxed_u32(&lender->sleeps)) {
    w->lender_seen = NULL;
    return false;
  }
  uint64_t now = lvd_port_ns();
  if (lender != w->lender_seen || has_forked(lender)) {
    w->lender_seen = lender;
    w->lender_computes = true;
  } else if (now - w->lender_looked < CHECK_NS) {
    return w->lender_computes;
  } else {
    uint64_t cpu = lvd_port_clock_ns((int)lvd_load_relaxed_u32(&lender->clock));
    w->lender_computes = (cpu - w->lender_cpu) * 2 > now - w->lender_looked;
  }
  w->lender_looked = now;
  w->lender_cpu = lvd_port_clock_ns((int)lvd_load_relaxed_u32(&lender->clock));
  return w->lender_computes;
}

static lvd_fork_set *forks_to_look_at(const lvd_worker *w) {
  lvd_fork_set *forks = lvd_load_relaxed_ptr(&w->rt->forks);
  return forks && w->index < w->rt->workers && lvd_load_relaxed_u32(&w->given) ? forks : NULL;
}

static bool look(lvd_worker *w, lvd_forker *f) {
  lvd_fork_set *forks = f->forks;
  uint32_t n = deques_of(forks);
  if (!n) return false;
  f->random = f->random * 6364136223846793005u + 1442695040888963407u;
  uint32_t from = (uint32_t)(f->random >> 33) % n;
  for (uint32_t i = 0; i < n; i++)
    if (steal(w, f, deque_of(forks, (from + i) % n))) return true;
  for (uint32_t i = 0; i < n; i++) {
    lvd_deque *d = deque_of(forks, i);
    if (d != lvd_load_relaxed_ptr(&f->deque)) lvd_deque_ask(d, f);
  }
  return false;
}

/* It has looked, or will not. */
static void is_there(lvd_worker *w) {
  if (LVD_UNLIKELY(lvd_load_relaxed_u32(&w->fork_sleeps) == COMES))
    set_sleeps(lvd_load_relaxed_ptr(&w->rt->forks), w, AWAKE);
}

bool lvd_forks_look(lvd_worker *w) {
  lvd_forker *f = forks_to_look_at(w) && !abstains(w) ? lvd_forker_self() : NULL;
  bool found = f && look(w, f);
  is_there(w);
  return found;
}

bool lvd_forks_sleep(lvd_worker *w, int64_t *most) {
  is_there(w);
  lvd_fork_set *forks = forks_to_look_at(w);
  if (!forks) return false;
  lvd_forker *f = lvd_forker_self();
  if (!f) return false;
  if (abstains(w)) {
    lvd_store_relaxed_u32(&w->fork_sleeps, ABSTAINS);
    lvd_fence_seq_cst();
    if (!abstains(w)) { /* the thread has just gone, or waits */
      lvd_store_relaxed_u32(&w->fork_sleeps, AWAKE);
      return look(w, f);
    }
    for (uint32_t i = 0, n = deques_of(forks); i < n; i++)
      if (lvd_deque_has(deque_of(forks, i))) *most = RECHECK_NS;
    return false;
  }
  lvd_store_relaxed_u32(&w->fork_sleeps, SLEEPS);
  lvd_add_relaxed_u32(&forks->sleepers, 1);
  lvd_fence_seq_cst();
  if (!look(w, f)) return false;
  lvd_forks_awake(w);
  return true;
}

bool lvd_forks_may_sleep(const lvd_worker *w) {
  uint32_t sleeps = lvd_load_relaxed_u32(&w->fork_sleeps);
  return !forks_to_look_at(w) || sleeps == SLEEPS || sleeps == ABSTAINS;
}

void lvd_forks_awake(lvd_worker *w) {
  uint32_t sleeps = lvd_load_relaxed_u32(&w->fork_sleeps);
  if (sleeps == AWAKE || sleeps == COMES) return;
  set_sleeps(lvd_load_relaxed_ptr(&w->rt->forks), w, AWAKE);
}

/* All that sleep abstain. Now and then one of them has to look whether its thread still computes. */
static void stir_one(lvd_fork_set *forks) {
  uint64_t now = lvd_port_ticks(), last = lvd_load_relaxed_u64(&forks->stirred);
  if (lvd_port_ticks_to_ns(now - last) < RECHECK_NS) return;
  lvd_store_relaxed_u64(&forks->stirred, now);
  for (uint32_t i = 0; i < forks->rt->workers; i++)
    if (stir(&forks->rt->worker[i])) return;
}

/* If it sleeps, and would steal. `more` do, perhaps. */
static bool wake(lvd_fork_set *forks, lvd_worker *w, bool *more) {
  uint32_t sleeps = SLEEPS;
  if (lvd_load_relaxed_u32(&w->fork_sleeps) != SLEEPS ||
      !lvd_cas_relaxed_u32(&w->fork_sleeps, &sleeps, COMES))
    return false;
  lvd_add_relaxed_u32(&forks->coming, 1);
  *more = lvd_add_relaxed_u32(&forks->sleepers, UINT32_MAX) > 1;
  nudge(w);
  return true;
}

bool lvd_forks_wake(lvd_forker *by) {
  if (lvd_load_relaxed_u32(&by->gone)) return false;
  lvd_fork_set *forks = by->forks;
  lvd_runtime *rt = forks->rt;
  lvd_fence_seq_cst();
  if (!by->worker) look_for_place(by);
  /* The worker that lent its place fell asleep as one who would steal; not while this thread computes. */
  if (by->place != LVD_NOWHERE &&
      lvd_load_relaxed_u32(&rt->worker[by->place].fork_sleeps) == SLEEPS)
    abstain_asleep(forks, &rt->worker[by->place]);
  if (!lvd_load_relaxed_u32(&forks->sleepers)) {
    stir_one(forks);
    return false;
  }
  bool more = false;
  for (uint32_t i = 0; i < rt->workers; i++)
    if (wake(forks, &rt->worker[i], &more)) {
      lvd_count(&by->woken, 1);
      return more;
    }
  return false;
}

void lvd_fork_wait(lvd_forker *f, lvd_deque *d) {
  lvd_fiber *fiber = lvd_fiber_self();
  if (fiber) {
    lvd_app *app = fiber->entity.app;
    lvd_add_relaxed_u32(&app->live, 1); /* who has taken the call will end it */
    lvd_fiber_wait_through(fiber, &d->joined);
    lvd_add_relaxed_u32(&app->live, UINT32_MAX);
    return;
  }
  lvd_worker *w = f->worker;
  if (w && w->current && w->current->stack) {
    lvd_actor_leaves(w, w->current);
    return;
  }
  lvd_store_relaxed_u32(&f->sleeps, 1);
  if (f->place != LVD_NOWHERE && !lvd_load_relaxed_u32(&f->gone)) {
    stir(&f->forks->rt->worker[f->place]);
  }
  lvd_lease_leave(&f->leased);
  lvd_event_wait(&d->joined, NULL, -1);
  if (f->place != LVD_NOWHERE) lvd_lease_enter(&f->leased, f->leased.cpu);
  lvd_store_relaxed_u32(&f->sleeps, 0);
}

/* He cannot go on before he is told: so what `d` says of him is so. */
void lvd_fork_tell(lvd_deque *d) {
  lvd_entity *actor = lvd_load_relaxed_ptr(&d->actor);
  if (actor)
    lvd_call_give_back(actor);
  else
    lvd_event_set(&d->joined, 1);
}

void lvd_forkers_stir(void) {
  lvd_port_lock(&all.lock);
  for (lvd_forker *f = all.forkers; f; f = f->next) {
    lvd_port_lock(&f->lock);
    if (f->thread) lvd_store_relaxed_ptr(&f->thread->floor, (void *)UINTPTR_MAX);
    lvd_port_unlock(&f->lock);
  }
  lvd_port_unlock(&all.lock);
}

/* ---- counters ----------------------------------------------------------------------------- */

void lvd_fork_counters_read(lvd_fork_counters *out) {
  memset(out, 0, sizeof *out);
  lvd_port_lock(&all.lock);
  for (lvd_forker *f = all.forkers; f; f = f->next) {
    out->stolen += lvd_load_relaxed_u64(&f->stolen);
    out->leapt += lvd_load_relaxed_u64(&f->leapt);
    out->asked += lvd_load_relaxed_u64(&f->asked);
    out->shared += lvd_load_relaxed_u64(&f->shared);
    out->full += lvd_load_relaxed_u64(&f->full);
    out->waits += lvd_load_relaxed_u64(&f->waits);
    out->woken += lvd_load_relaxed_u64(&f->woken);
  }
  lvd_port_unlock(&all.lock);
}
