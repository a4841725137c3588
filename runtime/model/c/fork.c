/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Threads with a deque each for the checker: the first forks, the others take from it. What
 * deque_pool.c and steal.c would find for them is found here by hand. */
#include "src/fork/fork.h"
#include "src/stream/stream.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, CALLS = 6 };

typedef struct model_thread {
  lvd_fork_thread here;
  lvd_fork_state f;
  lvd_deque d;
} model_thread;

typedef struct model_forks {
  model_thread thread[THREADS];
  lvd_fork *slot[CALLS]; /* the owner's */
  uint32_t before[CALLS], after[CALLS];
  uint32_t made[CALLS];
  uint32_t deep; /* this call forks the next one */
} model_forks;

static model_forks *world;
static lvd_runtime rt;
static lvd_fork_set set = {.rt = &rt};

static model_thread *me(void) { return lvd_os_self(); }
lvd_fork_thread *model_fork_thread(void) { return &me()->here; }

/* ---- what deque.c calls -------------------------------------------------------------------- */

lvd_fork_state *lvd_fork_state_self(void) { return &me()->f; }
lvd_deque *lvd_fork_state_deque(lvd_fork_state *f) { return lvd_load_relaxed_ptr(&f->deque); }
void lvd_fork_state_drop_deque(lvd_fork_state *f) { (void)f; }
bool lvd_forks_wake(lvd_fork_state *by) { return by == NULL; }
bool lvd_fork_may_leapfrog(lvd_fork_state *f) { return f != NULL; }
void lvd_forced_exit_check(lvd_worker *w) { (void)w; }
lvd_cancel_scope *lvd_deque_scope(const lvd_deque *d, uint32_t i) {
  (void)d, (void)i;
  return NULL;
}
bool lvd_deque_cancelled(const lvd_deque *d) { return d == NULL; }
lvd_status lvd_scope_enter(lvd_cancel_scope *scope, lvd_cancel_scope *outer) {
  (void)scope, (void)outer;
  return LVD_OK;
}
void lvd_cancel_end(lvd_cancel_scope *scope) { (void)scope; }
bool lvd_cancelled(void) { return false; }

/* An event as far as one waits and one tells. */
void lvd_fork_complete(lvd_deque *d) {
  lvd_exchange_release_u32(&d->joined.armed, 1);
  lvd_os_wake(&d->joined.armed);
}
void lvd_fork_pass(lvd_fork_state *f, lvd_fork *slot, lvd_deque *from) {
  lvd_fork_run(slot, from, lvd_load_relaxed_ptr(&f->deque));
}
void lvd_fork_wait(lvd_fork_state *f, lvd_deque *d) {
  (void)f;
  while (!lvd_exchange_acquire_u32(&d->joined.armed, 0)) lvd_os_wait(&d->joined.armed, 0, -1);
}

/* The clock advances by more than any polling time at each call: a waiter polls once, then sleeps.
 */
uint64_t lvd_os_ticks(void) {
  static uint64_t now;
  return now += 1000000;
}

/* ---- the program -------------------------------------------------------------------------- */

static uint32_t call(uint32_t n);
LVD_FORKABLE(uint32_t, call, uint32_t)
/* Races with nothing if it is made once, after what was done before its fork. */
static uint32_t call(uint32_t n) {
  world->made[n]++;
  world->after[n] = world->before[n] + 1;
  if (world->deep != n) return 100 + n;
  world->before[n + 1] = 20 + n;
  LVD_FORK(f, call, n + 1);
  return LVD_JOIN(f, call) + world->after[n + 1];
}

model_forks *model_make(uint32_t people, uint32_t asked, uint32_t deep) {
  size_t size = (sizeof *world + LVD_CACHE_LINE - 1) / LVD_CACHE_LINE * LVD_CACHE_LINE;
  world = memset(aligned_alloc(LVD_CACHE_LINE, size), 0, size);
  world->deep = deep;
  for (uint32_t i = 0; i < people; i++) {
    model_thread *p = &world->thread[i];
    p->here.head = p->d.slot;
    p->here.floor.word = p->d.slot;
    p->here.limit.word = asked ? NULL : &p->d.slot[LVD_DEQUE_SLOTS];
    p->d.asked.word = asked;
    p->d.thread.word = &p->f;
    p->f.deque.word = &p->d;
    p->f.thread = &p->here;
    p->f.forks = &set;
  }
  return world;
}
void model_free(model_forks *m) { free(m); }
size_t model_size(void) { return sizeof(model_forks); }
void model_be(model_forks *m, uint32_t i) { lvd_os_set_self(&m->thread[i]); }

void model_fork(model_forks *m, uint32_t n) {
  m->before[n] = 10 + n;
  lvd_record_call r = lvd_args_call(call, n);
  LVD_FORK_PUSH(m->slot[n], lvd_record_call, r, lvd_run_call);
}
/* What the call gave, wherever it was made. */
uint32_t model_join(model_forks *m, uint32_t n) {
  lvd_record_call r = lvd_args_call(call, n);
  uint32_t result = lvd_join_call(m->slot[n], &r);
  return m->made[n] == 1 && m->after[n] == 11 + n ? result : 0;
}
/* Takes one call and makes it, if one is public. */
uint32_t model_take(model_forks *m, uint32_t from) {
  lvd_deque *d = &m->thread[from].d;
  lvd_fork *slot = lvd_deque_take(d);
  if (slot) lvd_fork_run(slot, d, &me()->d);
  return slot != NULL;
}
/* If none is, asks. */
uint32_t model_steal(model_forks *m, uint32_t from) {
  if (model_take(m, from)) return 1;
  lvd_deque_ask(&m->thread[from].d, &me()->f);
  return 0;
}
/* Is there nothing that a thief could take? */
uint32_t model_private(model_forks *m) { return !lvd_deque_has(&m->thread[0].d); }
