/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Parallel loops, reductions and cancellation, on top of forks.
 *
 * A range is processed in pieces of some microseconds. Between two pieces the loop checks, by one
 * comparison, whether a thief requests work; if so, and if the rest is long enough, it forks the
 * farther half. So a range of which no thief wants a part is a plain loop (lazy splitting:
 * Tzannes, Caragea, Barua and Vishkin, 2010).
 *
 * A cancellation scope is a mark: it covers slots of the deque from `first` on. It occupies a
 * slot, with an empty call that may be stolen, so that the deque stays with the stack as long as
 * the scope is open. The deque has the mark of the outermost scope, and each scope, on its
 * owner's stack, that of the next inner one. To find the scope of slot i a thief goes inwards:
 * scopes with first <= i do not change while the slot is not joined, and a scope further in has
 * first > i, which the thief reads without accessing the scope itself.
 *
 * Pairs of orders
 *   cancel: cancelled, [fence], floor <> serve: floor, [fence], load cancelled
 *   begin: mark (before the fork is shared: deque.c, share) -> taken: load of the mark */
#include "../stream/stream.h"
#include "fork.h"

#include <stdlib.h>
#include <string.h>

/* ---- cancelling --------------------------------------------------------------------------- */

static bool is_cancelled(const lvd_cancel_scope *s) {
  for (; s; s = s->outer)
    if (lvd_load_relaxed_u32(&s->cancelled)) return true;
  return false;
}

lvd_cancel_scope *lvd_deque_scope(const lvd_deque *d, uint32_t i) {
  lvd_cancel_scope *scope = NULL;
  for (const lvd_scope_mark *m = &d->outermost; lvd_load_relaxed_u32(&m->first) <= i;) {
    scope = lvd_load_relaxed_ptr(&m->scope);
    m = &scope->inner;
  }
  return scope;
}

bool lvd_deque_cancelled(const lvd_deque *d) { return is_cancelled(d->innermost); }

static void nothing(lvd_fork *slot) { (void)slot; }

static lvd_deque *deque_here(void) {
  lvd_fork_state *f = lvd_fork_state_self();
  return f ? lvd_load_relaxed_ptr(&f->deque) : NULL;
}

lvd_status lvd_cancel_begin(lvd_cancel_scope *scope) {
  lvd_store_relaxed_u32(&scope->cancelled, 0);
  return lvd_scope_enter(scope, NULL);
}

static lvd_scope_mark *mark_of(lvd_deque *d, lvd_cancel_scope *scope) {
  return scope->below ? &scope->below->inner : &d->outermost;
}

/* `outer`: the enclosing scope, if it is not the innermost of this stack. */
lvd_status lvd_scope_enter(lvd_cancel_scope *scope, lvd_cancel_scope *outer) {
  lvd_fork_state *f = lvd_fork_state_self();
  lvd_deque *d = f ? lvd_fork_state_deque(f) : NULL;
  scope->below = d ? d->innermost : NULL;
  scope->outer = outer ? outer : scope->below;
  scope->slot = LVD_NO_SLOT;
  if (!f) return LVD_E_MEMORY;
  if (!d) return lvd_limit("forks are open on as many stacks of fibers as a runtime has deques");
  lvd_store_relaxed_u32(&scope->inner.first, LVD_NO_SCOPE);
  lvd_scope_mark *mark = mark_of(d, scope);
  lvd_store_relaxed_ptr(&mark->scope, scope);
  lvd_store_relaxed_u32(&mark->first, (uint32_t)(lvd_forks.head - d->slot));
  d->innermost = scope;
  scope->slot = lvd_fork_slow(nothing, NULL, 0);
  return LVD_OK;
}

void lvd_cancel_end(lvd_cancel_scope *scope) {
  lvd_fork_join(scope->slot);
  if (scope->slot == LVD_NO_SLOT) return;
  lvd_deque *d = deque_here();
  lvd_store_relaxed_u32(&mark_of(d, scope)->first, LVD_NO_SCOPE);
  d->innermost = scope->below;
}

void lvd_cancel(lvd_cancel_scope *scope) {
  lvd_store_relaxed_u32(&scope->cancelled, 1);
  lvd_fence_seq_cst();
  lvd_fork_states_wake();
}

bool lvd_cancelled(void) {
  lvd_deque *d = deque_here();
  return d && lvd_deque_cancelled(d);
}

/* ---- ranges ------------------------------------------------------------------------------- */

enum {
  PIECE_NS = 5000, /* minimum duration of a piece; at most four times that */
  WORTH_NS = 20000 /* minimum duration of the rest for a fork */
};

typedef struct loop {
  void (*body)(void *context, size_t from, size_t to);
  const lvd_reduction *reduction; /* null: a plain loop */
  void *context;
  uint64_t piece_ticks, worth_ticks;
} loop;

typedef union half {
  struct {
    const loop *l;
    size_t from, to, size;
    void *result;
  } lvd_in;
} half;

static void go_through(const loop *l, size_t from, size_t to, size_t size, void *result);

static void run_half(lvd_fork *slot) {
  half *r = LVD_FORK_RECORD(slot, half);
  const lvd_reduction *reduction = r->lvd_in.l->reduction;
  if (reduction) reduction->empty(reduction->context, r->lvd_in.result);
  go_through(r->lvd_in.l, r->lvd_in.from, r->lvd_in.to, r->lvd_in.size, r->lvd_in.result);
}

static size_t lines_of(size_t size) {
  return (size + LVD_CACHE_LINE - 1) / LVD_CACHE_LINE * LVD_CACHE_LINE;
}

/* Forks the farther half and processes the nearer one. False: out of memory. */
static bool split(const loop *l, size_t from, size_t to, size_t size, void *result) {
  LVD_ALIGNED(LVD_CACHE_LINE)
  unsigned char room[256]; /* for the partial result, aligned for vectors */
  const lvd_reduction *reduction = l->reduction;
  void *other = room, *more = NULL;
  if (reduction && reduction->size > sizeof room &&
      !(other = more = aligned_alloc(LVD_CACHE_LINE, lines_of(reduction->size))))
    return false;
  size_t middle = from + (to - from) / 2;
  half r = {{l, middle, to, size, other}};
  lvd_fork *slot;
  LVD_FORK_PUSH(slot, half, r, run_half);
  go_through(l, from, middle, size, result);
  if (lvd_fork_join(slot)) /* not stolen: continue with the same result */
    go_through(l, middle, to, size, result);
  else if (reduction && !lvd_cancelled())
    reduction->combine(reduction->context, result, other);
  free(more);
  return true;
}

/* `size`: the present estimate of a piece's size in items. */
static void go_through(const loop *l, size_t from, size_t to, size_t size, void *result) {
  uint64_t before = lvd_os_ticks(), item = 0; /* ticks per item in the last piece */
  while (from < to && !lvd_cancelled()) {
    if (item && to - from > 1 && lvd_fork_wanted() && (to - from) * item >= l->worth_ticks &&
        split(l, from, to, size, result))
      return;
    size_t n = to - from < size ? to - from : size;
    if (l->reduction)
      l->reduction->add(l->context, from, from + n, result);
    else
      l->body(l->context, from, from + n);
    from += n;
    uint64_t now = lvd_os_ticks(), took = now - before;
    before = now;
    item = took / n + 1;
    if (took < l->piece_ticks && n == size)
      size *= 2;
    else if (took > 4 * l->piece_ticks && size > 1)
      size /= 2;
  }
}

static void begin(loop *l, size_t from, size_t to, void *result) {
  l->piece_ticks = lvd_os_ns_to_ticks(PIECE_NS);
  l->worth_ticks = lvd_os_ns_to_ticks(WORTH_NS);
  go_through(l, from, to, 1, result);
}

void lvd_for(size_t begin_, size_t end, void (*body)(void *context, size_t from, size_t to),
             void *context) {
  loop l = {.body = body, .context = context};
  begin(&l, begin_, end, NULL);
}

void lvd_reduce(size_t begin_, size_t end, const lvd_reduction *reduction, void *result) {
  loop l = {.reduction = reduction, .context = reduction->context};
  reduction->empty(reduction->context, result);
  begin(&l, begin_, end, result);
}
