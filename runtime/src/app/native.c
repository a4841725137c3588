/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions for natives: their application, its options, and persistent data that a new version of
 * the application can inherit; progress and output limits. */
#include "../sched/no_abandon.h"
#include "../sched/sched.h"

#include <stdlib.h>
#include <string.h>

lvd_app *lvd_current_app(void) {
  const lvd_worker *w = lvd_this_worker();
  return w && w->current ? w->current->app : NULL;
}

const void *lvd_current_actor(void) {
  lvd_worker *w = lvd_this_worker();
  return w && w->current && !w->current->is_fiber ? w->current : NULL;
}

const char *lvd_app_option(lvd_app *app, const char *name) {
  for (uint32_t i = 0; app && name && i < app->options; i++)
    if (strcmp(app->option[i].name, name) == 0) return app->option[i].value;
  return NULL;
}

/* Under the lock. Returns null if there is none. */
static lvd_app_block *find(lvd_app *app, const char *name, const void *key, size_t size) {
  for (lvd_app_block *b = app->blocks; b; b = b->next)
    if (b->key == key) return b;
  for (lvd_app_block *b = app->blocks; name && b; b = b->next)
    if (!b->key && strcmp(b->name, name) == 0 && b->size == size) return b;
  return NULL;
}

static lvd_app_block *make(size_t size) {
  lvd_app_block *b = calloc(1, sizeof *b);
  if (b && !(b->data = calloc(1, size ? size : 1))) {
    free(b);
    return NULL;
  }
  return b;
}

/* Natives ask for the same block for each element. The worker caches the last answer until the
 * application ends: only then is a block passed on, and the next application has another serial. */
static void *cached_data(const lvd_worker *w, const lvd_app *app, const void *key) {
  bool same = w && w->rt == app->rt && w->asked.serial == app->serial && w->asked.key == key;
  return same ? w->asked.data : NULL;
}

void *lvd_app_persistent_data(lvd_app *app, const char *name, const void *key, size_t size,
                              void (*end)(void *, lvd_status)) {
  if (!app) return NULL;
  void *data = cached_data(lvd_this_worker(), app, key);
  if (data) return data;
  LVD_NO_ABANDON;
  lvd_os_lock(&app->blocks_lock);
  lvd_app_block *b = find(app, name, key, size);
  if (!b && (b = make(size))) {
    b->next = app->blocks;
    app->blocks = b;
  }
  if (b && b->key != key) {
    b->key = key;
    b->name = name;
    b->size = size;
    b->end = end;
  }
  lvd_os_unlock(&app->blocks_lock);
  if (!b) return NULL;
  lvd_worker *w = lvd_this_worker();
  if (w && w->rt == app->rt) {
    w->asked.serial = app->serial;
    w->asked.key = key;
    w->asked.data = b->data;
  }
  return b->data;
}

void *lvd_app_data(lvd_app *app, const void *key, size_t size, void (*end)(void *, lvd_status)) {
  return lvd_app_persistent_data(app, NULL, key, size, end);
}

lvd_status lvd_app_set_data_successor(lvd_app *app, lvd_app *old) {
  LVD_NO_ABANDON;
  if (!old || app == old) return LVD_E_ARGUMENT;
  lvd_os_lock(&old->blocks_lock);
  lvd_store_relaxed_ptr(&old->data_successor, app);
  lvd_os_unlock(&old->blocks_lock);
  if (app) lvd_store_relaxed_u32(&app->inherits, 1);
  return LVD_OK;
}

bool lvd_app_has_unclaimed_data(lvd_app *app) {
  LVD_NO_ABANDON;
  bool left = false;
  lvd_os_lock(&app->blocks_lock);
  for (const lvd_app_block *b = app->blocks; b; b = b->next) left |= !b->key;
  lvd_os_unlock(&app->blocks_lock);
  return left;
}

/* A token bucket kept as a time: each byte takes its part of a second, and at most a second is
 * saved up. A caller that must wait waits EXTRA_NS longer, so as not to wait for each line. */
void lvd_app_throttle_output(lvd_app *app, size_t bytes) {
  enum { SECOND_NS = 1000000000, EXTRA_NS = 10000000 };
  uint64_t rate = app ? app->rt->options.output_bytes_per_s : 0;
  if (!rate) return;
  uint64_t now = lvd_os_now_ns(), least = now > SECOND_NS ? now - SECOND_NS : 0;
  uint64_t was = lvd_load_relaxed_u64(&app->prints_until), until;
  do until = (was > least ? was : least) + (uint64_t)bytes * SECOND_NS / rate;
  while (!lvd_cas_relaxed_u64(&app->prints_until, &was, until));
  if (until > now) lvd_wait_until((int64_t)(until + EXTRA_NS));
}

void lvd_app_progress(lvd_app *app, const char *unit, uint64_t done) {
  if (!app) return;
  lvd_store_relaxed_u64(&app->progress, done);
  lvd_store_release_ptr(&app->progress_unit, (void *)(uintptr_t)unit);
}

void lvd_app_input_progress(lvd_app *app, uint64_t done_bytes, uint64_t total_bytes) {
  if (!app) return;
  lvd_store_relaxed_u64(&app->input_done_bytes, done_bytes);
  lvd_store_relaxed_u64(&app->input_total_bytes, total_bytes);
}

uint64_t lvd_app_get_input_progress(lvd_app *app, uint64_t *total_bytes) {
  if (total_bytes) *total_bytes = lvd_load_relaxed_u64(&app->input_total_bytes);
  return lvd_load_relaxed_u64(&app->input_done_bytes);
}

uint64_t lvd_app_get_progress(lvd_app *app, const char **unit) {
  const char *u = lvd_load_acquire_ptr(&app->progress_unit);
  if (unit) *unit = u;
  return lvd_load_relaxed_u64(&app->progress);
}
