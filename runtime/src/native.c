/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What native functions may ask: their application, its options, their own data. */
#include "core.h"
#include "inside.h"

#include <stdlib.h>
#include <string.h>

lvd_app *lvd_current_app(void) {
  lvd_worker *w = lvd_this_worker();
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

void *lvd_app_data(lvd_app *app, const void *key, size_t size, void (*end)(void *, lvd_status)) {
  LVD_INSIDE;
  if (!app) return NULL;
  lvd_port_lock(&app->blocks_lock);
  lvd_app_block *b = app->blocks;
  while (b && b->key != key) b = b->next;
  if (!b && (b = calloc(1, sizeof *b))) {
    b->data = calloc(1, size ? size : 1);
    if (b->data) {
      b->key = key;
      b->size = size;
      b->end = end;
      b->next = app->blocks;
      app->blocks = b;
    } else {
      free(b);
      b = NULL;
    }
  }
  lvd_port_unlock(&app->blocks_lock);
  return b ? b->data : NULL;
}

void lvd_app_progress(lvd_app *app, const char *unit, uint64_t done) {
  if (!app) return;
  lvd_store_relaxed_u64(&app->progress, done);
  lvd_store_release_ptr(&app->progress_unit, (void *)(uintptr_t)unit);
}

uint64_t lvd_app_get_progress(lvd_app *app, const char **unit) {
  const char *u = lvd_load_acquire_ptr(&app->progress_unit);
  if (unit) *unit = u;
  return lvd_load_relaxed_u64(&app->progress);
}
