/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Forks on the runtime's own workers: stealing, sleeping and waking, abandoned and cancelled forks.
 * The threads of a check are one thread of the system, so what is thread-local in the product is
 * kept here for each thread of the check, by its number. */
#include <stdlib.h>

#include "src/fork/fork.h"
#include "src/stream/stream.h"
#include "world.h"

enum { THREADS = 5, CALLS = 5 };

typedef struct model_thread {
  lvd_fork_thread here;
  lvd_fork_state *forker;
  void (*end)(void *);
  void *argument;
} model_thread;

typedef struct model_forks {
  model_thread thread[THREADS];
  lvd_fork *slot[CALLS];
  uint32_t before[CALLS], after[CALLS];
  uint32_t made[CALLS];
  lvd_cancel_scope scope;
  lvd_a32 cancelled;
} model_forks;

static model_forks *forks;
static uint32_t acting;      /* before the threads begin, the first one acts for each in turn */
static int32_t cpu[THREADS]; /* the core of a thread of the program */
/* By bit, calls that fork the next one and want it made elsewhere, on a worker; that set the event
 * of their number; that are abandoned. */
static uint32_t nests, sets, fails;

uint32_t model_number(void);
static uint32_t number(void) { return acting ? acting : model_number(); }
lvd_fork_thread *model_fork_thread(void) { return &forks->thread[number()].here; }
lvd_fork_state **model_fork_self(void) { return &forks->thread[number()].forker; }

/* ---- the port ------------------------------------------------------------------------------ */

int32_t lvd_os_current_cpu(void) { return cpu[number()]; }
const unsigned char *lvd_os_stack_low(size_t *size) { return (void)size, NULL; }
int lvd_os_thread_cpu_clock(void) { return 1; }
uint64_t lvd_os_cpu_clock_ns(int clock) { return (void)clock, 0; }
void lvd_os_at_thread_exit(lvd_os_exit_hook what, void (*end)(void *), void *argument) {
  if (what != LVD_EXIT_HOOK_FORKS) return;
  forks->thread[number()].end = end;
  forks->thread[number()].argument = argument;
}

void lvd_os_at_fork(void (*before)(void), void (*after)(void), void (*in_child)(void)) {
  (void)before, (void)after, (void)in_child;
}

/* What threads of the program fork is the world's application, too. */
lvd_status lvd_app_load(lvd_runtime *rt, const lvd_network *net, const lvd_app_options *options,
                        lvd_app **out, char *diagnostic, size_t size) {
  (void)rt, (void)net, (void)options, (void)diagnostic, (void)size;
  *out = &model_the_world->app;
  lvd_store_relaxed_u32(&(*out)->phase, LVD_PHASE_LOADED);
  return LVD_OK;
}

/* No program here ends before its forks are joined. */
void lvd_forced_exit_check(lvd_worker *w) { (void)w; }

/* The clock advances by more than any polling time at each call: a waiter polls once, then sleeps.
 */
static uint64_t now;
uint64_t lvd_os_ticks(void) { return now += 1000000; }

/* ---- calls --------------------------------------------------------------------------------- */

static uint32_t call(uint32_t n);
LVD_FORKABLE(uint32_t, call, uint32_t)
/* Races with nothing if it is made once, after what was done before its fork. */
static uint32_t call(uint32_t n) {
  lvd_event *event = model_the_world->event;
  forks->made[n]++;
  forks->after[n] = forks->before[n] + 1;
  if (sets & 1u << n) lvd_event_set(&event[n % EVENTS], 7 + n);
  if (fails & 1u << n) lvd_os_jump(((lvd_worker *)lvd_os_self())->escape);
  if (!(nests & 1u << n) || !lvd_os_self()) return 100 + n;
  forks->before[n + 1] = 10 + n + 1;
  LVD_FORK(f, call, n + 1);
  if (lvd_event_wait(&event[(n + 1) % EVENTS], NULL, -1) != LVD_OK) return 0;
  return LVD_JOIN(f, call) - 1;
}

static uint32_t forks_call(uint32_t n) {
  forks->before[n] = 10 + n;
  lvd_record_call r = lvd_args_call(call, n);
  LVD_FORK_PUSH(forks->slot[n], lvd_record_call, r, lvd_run_call);
  return LVD_OK;
}
/* What the call gave, wherever it was made. */
static uint32_t joins_call(uint32_t n) {
  lvd_record_call r = lvd_args_call(call, n);
  uint32_t result = lvd_join_call(forks->slot[n], &r);
  return forks->made[n] == 1 && forks->after[n] == 11 + n ? result : 0;
}

/* ---- fibers -------------------------------------------------------------------------------- */

/* Waits with a fork open, for a word of the program's. */
static uint32_t forks_and_waits(model_world *m) {
  forks_call(0);
  lvd_status status = lvd_event_wait(&m->event[1], NULL, -1);
  if (joins_call(0) != 100) m->wrong++;
  return status;
}
/* The fork is on the fiber's own stack, and so is what it leaves. */
static uint32_t forks_and_joins(model_world *m) {
  forks_call(0);
  if (joins_call(0) != 100) m->wrong++;
  return LVD_OK;
}
static uint32_t forks_and_fails(model_world *m) {
  forks_call(0);
  (void)m;
  lvd_os_jump(((lvd_worker *)lvd_os_self())->escape);
}

uint32_t (*const model_role[])(model_world *) = {forks_and_waits, forks_and_joins, forks_and_fails};

/* ---- what a check does --------------------------------------------------------------------- */

void model_begin(model_world *m) {
  forks = lvd_os_alloc(sizeof *forks);
  acting = nests = sets = fails = 0;
  now = 0;
  for (uint32_t i = 0; i < THREADS; i++) cpu[i] = (int32_t)i;
  lvd_forks_runtime_begins(&m->rt);
}

/* Thread `n` has forked before: it is a worker, or (LVD_NOWHERE) one of the program's on core `at`.
 */
void model_has_forked(model_world *m, uint32_t n, uint32_t worker, uint32_t at) {
  acting = n;
  cpu[n] = (int32_t)at;
  lvd_worker *w = worker == LVD_NOWHERE ? NULL : &m->worker[worker];
  lvd_os_set_self(w);
  if (!lvd_fork_state_self()) abort();
  if (w) lvd_forks_after_sleep(w);
  lvd_os_set_self(NULL);
  acting = 0;
}
void model_calls(uint32_t that_nest, uint32_t that_set, uint32_t that_fail) {
  nests = that_nest;
  sets = that_set;
  fails = that_fail;
}

void model_fork(uint32_t n) { forks_call(n); }
uint32_t model_join_call(uint32_t n) { return joins_call(n); }
/* The thread ends, as far as forks are concerned. */
void model_thread_ends(void) {
  model_thread *t = &forks->thread[number()];
  t->end(t->argument);
}
/* A thief, thread `n`, asks this thread for work. */
void model_ask(uint32_t n) {
  lvd_deque_ask(lvd_load_relaxed_ptr(&forks->thread[number()].forker->deque),
                forks->thread[n].forker);
}

/* The thread that has joined the fiber uses its stack again, if it may be reused. */
void model_use_again(model_world *m, uint32_t fiber) {
  if (!m->fiber[fiber]->not_reusable) forks->before[0] = forks->after[0] = 0;
}

void model_scope_begin(void) { lvd_cancel_begin(&forks->scope); }
void model_scope_end(void) { lvd_cancel_end(&forks->scope); }
/* Afterwards no call of the scope begins in a thread that has seen `cancelled`. */
void model_scope_cancel(void) {
  lvd_cancel(&forks->scope);
  lvd_store_release_u32(&forks->cancelled, 1);
}
uint32_t model_is_cancelled(void) { return lvd_load_acquire_u32(&forks->cancelled); }
uint32_t model_made(uint32_t n) { return forks->made[n]; }

static void visit(void *context, size_t from, size_t to) {
  (void)context;
  for (size_t i = from; i < to; i++) forks->made[i]++;
}
void model_each(uint32_t n) { lvd_for(0, n, visit, NULL); }

static void empty(void *context, void *result) { (void)context, *(uint32_t *)result = 0; }
static void add(void *context, size_t from, size_t to, void *result) {
  visit(context, from, to);
  for (size_t i = from; i < to; i++) *(uint32_t *)result += 1u << i;
}
static void combine(void *context, void *left, const void *right) {
  (void)context, *(uint32_t *)left += *(const uint32_t *)right;
}
uint32_t model_reduce(uint32_t n) {
  static const lvd_reduction sum = {sizeof(uint32_t), empty, add, combine, NULL};
  uint32_t result;
  lvd_reduce(0, n, &sum, &result);
  return result;
}

/* Creates a runtime for a program that has none (fork_runtime.c); here the world is one. */
void lvd_fork_runtime_start(void) {}
void lvd_fork_runtime_before_fork(void) {}
void lvd_fork_runtime_after_fork(void) {}
void lvd_fork_runtime_child_begins(void) {}
