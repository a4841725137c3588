/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Pool of fibers: a fiber, its stack and its slot of the runtime's table are allocated
 * together and reused, so that starting a fiber takes a few stores. They stay mapped until the
 * runtime is destroyed: a late waker may write to one that has been reused.
 *
 * Deep pages of a large stack are returned to the system, or each stack would keep for good
 * what its deepest call needed once.
 *
 * Each worker has some free fibers of its own, without a lock; the rest is one pool under a
 * lock. */
#include "no_abandon.h"

#include <stdlib.h>

enum {
  CHUNK_FIBERS = 32,   /* fibers allocated at once */
  OWN_MAX = 256,       /* the most free fibers of one size that a worker keeps, ... */
  OWN_SHARE = 8,       /* ... and all workers together at most one of this number of slots */
  KEEP_BYTES = 1 << 20 /* bytes of a large stack that are kept once they were touched */
};

static uint32_t class_of(uint32_t size_log2) { return size_log2 - LVD_STACK_LEAST; }

/* A block of stacks. */
typedef struct chunk {
  struct chunk *next;
  void *base;
  size_t size;
  uint32_t count;
  lvd_fiber *fiber[CHUNK_FIBERS];
} chunk;

void lvd_fiber_pool_init(lvd_runtime *rt) {
  uint32_t share = rt->options.entities / OWN_SHARE / lvd_worker_total(rt);
  rt->own_stacks = share < OWN_MAX ? share : OWN_MAX;
}

static lvd_status make_chunk(lvd_runtime *rt, uint32_t size_log2) {
  size_t size = (size_t)1 << size_log2;
  uint32_t count = size_log2 > LVD_STACK_MOST ? 1 : size_log2 > 18 ? 4 : CHUNK_FIBERS;
  size_t guard = lvd_os_guard_size(), stride = guard + size;
  chunk *c = calloc(1, sizeof *c);
  if (!c) return LVD_E_MEMORY;
  lvd_status status = lvd_os_stacks_alloc(count, size, guard, &c->base);
  if (status != LVD_OK) {
    free(c);
    return status;
  }
  c->size = count * stride;
  for (uint32_t i = 0; i < count; i++) {
    unsigned char *low = (unsigned char *)c->base + i * stride;
    /* Not all at the same offset within a page, or they would compete for a few cache sets. */
    size_t end = stride - (i % 16) * LVD_CACHE_LINE;
    lvd_fiber *f =
        (lvd_fiber *)(void *)(low + (end - sizeof(lvd_fiber)) / LVD_CACHE_LINE * LVD_CACHE_LINE);
    uint32_t slot = lvd_slot_claim(rt->slot, rt->options.entities, rt->fiber_hint, 1);
    if (slot == rt->options.entities) break;
    rt->fiber_hint = (slot + 1) % rt->options.entities;
    f->low = low;
    f->size_log2 = size_log2;
    f->guard = (uint32_t)guard;
    f->floor = low + guard + LVD_NO_ABANDON_STACK;
    f->entity.slot = slot;
    f->entity.is_fiber = true;
    f->entity.waiter.wake = lvd_entity_wake;
    lvd_event_init(&f->done);
    f->done.wait_point.kind = LVD_SLEEPS_AT_END;
    lvd_event_init(&f->unblocked);
    lvd_store_relaxed_u32(&f->entity.state, LVD_FINISHED);
    rt->entity[slot] = &f->entity;
    f->next_spare = rt->spare[class_of(size_log2)];
    rt->spare[class_of(size_log2)] = f;
    c->fiber[c->count++] = f;
  }
  if (!c->count) {
    lvd_os_stacks_free(c->base, c->size);
    free(c);
    return lvd_limit("actors and fibers are as many as lvd_runtime_options.entities allows");
  }
  c->next = lvd_load_relaxed_ptr(&rt->fiber_chunks);
  lvd_store_release_ptr(&rt->fiber_chunks, c);
  return LVD_OK;
}

/* All slots belong to stacks, but free ones of another size exist: a larger one serves as well.
 * With the lock held. Null: none. */
static lvd_fiber *take_larger(lvd_runtime *rt, lvd_worker *w, uint32_t k) {
  while (++k < LVD_STACKS) {
    lvd_fiber **from = w && w->spare[k] ? &w->spare[k] : &rt->spare[k], *f = *from;
    if (!f) continue;
    if (from != &rt->spare[k]) w->spares[k]--;
    *from = f->next_spare;
    return f;
  }
  return NULL;
}

lvd_status lvd_fiber_take(lvd_runtime *rt, uint32_t size_log2, lvd_fiber **out) {
  uint32_t k = class_of(size_log2);
  lvd_worker *w = lvd_this_worker();
  if (w && w->rt != rt) w = NULL;
  if (!w || !w->spare[k]) {
    lvd_status status = LVD_OK;
    lvd_os_lock(&rt->pool_lock);
    if (!rt->spare[k]) status = make_chunk(rt, size_log2);
    lvd_fiber *f = rt->spare[k], *larger = NULL;
    if (status == LVD_E_LIMIT) larger = take_larger(rt, w, k);
    if (f) {
      if (w) { /* as many as there are, up to a chunk */
        lvd_fiber *last = f;
        for (uint32_t n = 1; n < CHUNK_FIBERS && n < rt->own_stacks && last->next_spare;
             n++, w->spares[k]++)
          last = last->next_spare;
        w->spares[k]++;
        rt->spare[k] = last->next_spare;
        last->next_spare = NULL;
        w->spare[k] = f;
      } else {
        rt->spare[k] = f->next_spare;
      }
    }
    lvd_os_unlock(&rt->pool_lock);
    *out = f ? f : larger;
    if (!*out) return status;
    if (!w || larger) return LVD_OK;
  }
  *out = w->spare[k];
  w->spare[k] = (*out)->next_spare;
  w->spares[k]--;
  return LVD_OK;
}

static void give_back(lvd_runtime *rt, uint32_t k, lvd_fiber *first, lvd_fiber *last) {
  lvd_os_lock(&rt->pool_lock);
  last->next_spare = rt->spare[k];
  rt->spare[k] = first;
  lvd_os_unlock(&rt->pool_lock);
}

void lvd_fiber_put_back(lvd_runtime *rt, lvd_fiber *f) {
  uint32_t k = class_of(f->size_log2);
  if (f->size_log2 >= LVD_STACK_MOST)
    lvd_os_stack_shrink(f->low + f->guard, (size_t)1 << f->size_log2, KEEP_BYTES);
  lvd_worker *w = lvd_this_worker();
  if (LVD_UNLIKELY(f->not_reusable)) return; /* until the runtime is destroyed */
  if (!w || w->rt != rt) {
    give_back(rt, k, f, f);
    return;
  }
  f->next_spare = w->spare[k];
  w->spare[k] = f;
  if (++w->spares[k] <= rt->own_stacks) return;
  uint32_t back = (rt->own_stacks + 1) / 2;
  if (back == 0) back = 1;
  lvd_fiber *first = w->spare[k], *last = first;
  for (uint32_t n = 1; n < back; n++) last = last->next_spare;
  w->spare[k] = last->next_spare;
  w->spares[k] -= back;
  give_back(rt, k, first, last);
}

LVD_RACY_READ void lvd_fibers_each(lvd_app *app, void (*visit)(lvd_entity *, void *),
                                   void *argument) {
  for (chunk *c = lvd_load_acquire_ptr(&app->rt->fiber_chunks); c; c = c->next)
    for (uint32_t i = 0; i < c->count; i++) {
      lvd_entity *e = &c->fiber[i]->entity;
      if (lvd_load_acquire_u32(&e->state) != LVD_FINISHED && e->app == app) visit(e, argument);
    }
}

void lvd_fiber_pool_free(lvd_runtime *rt) {
  for (chunk *c = lvd_load_relaxed_ptr(&rt->fiber_chunks), *next; c; c = next) {
    next = c->next;
    for (uint32_t i = 0; i < c->count; i++) lvd_os_context_free(&c->fiber[i]->context);
    lvd_os_stacks_free(c->base, c->size);
    free(c);
  }
}

/* Wakes a fiber when the reaper ends its application: its waits then return an error. */
static void wake_fiber(lvd_entity *e, void *unused) {
  (void)unused;
  lvd_entity_wake(&e->waiter);
}

void lvd_fibers_wake(lvd_app *app) { lvd_fibers_each(app, wake_fiber, NULL); }
