/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs nodes of the conformance program on a remote processor. LEVADA_CONFORM_UNIT is the unit's
 * name; its program is conform_remote.c with the cases. */
#include "../../mcapi/conformance/conformance.h"

#include <levada/levada.h>
#include <levada/mcapi_window.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform_said.h"

/* Used by the thread that waits for the unit and by the one that kills it. */
static atomic_int process;
static atomic_bool killed;

static int fails_at(const char *what, lvd_status status) {
  fprintf(stderr, "# %s: %s (%s)\n", what, lvd_status_name(status), lvd_window_error_text());
  return 0;
}

void conform_kill_elsewhere(void) {
  killed = true;
  kill(process, SIGKILL);
}

/* True: the remote side waits for a reply. */
static int repeat(said *e) {
  e->text[sizeof e->text - 1] = 0;
  s = e->status;
  switch (e->what) {
  case SAID_CALLED:
    called(e->text);
    return 0;
  case SAID_IS_SO:
    is_so(e->one != 0, e->text, (int)e->line);
    return 0;
  case SAID_SAYS:
    says(e->text, e->one, (int)e->line);
    return 0;
  case SAID_SAYS_EITHER:
    says_either(e->text, e->one, e->other, (int)e->line);
    return 0;
  case SAID_FAILS:
    fails(e->text, (int)e->line);
    return 0;
  case SAID_CHOICE:
    choice(e->text, e->one);
    return 0;
  case SAID_CHOICE_NUMBER:
    choice_number(e->text, (unsigned long)e->number);
    return 0;
  case SAID_MEET:
    meet();
    return 1;
  case SAID_NAP:
    nap((int)e->number);
    return 1;
  default:
    give_up();
    return 0;
  }
}

int conform_elsewhere(const char *name, int one) {
  const char *where = getenv("LEVADA_CONFORM_UNIT");
  const lvd_runtime_options ro = {.workers = 2};
  lvd_runtime *rt;
  lvd_app *app;
  lvd_unit *u;
  lvd_stream *in, *go;
  lvd_mcapi_remote *far;
  said_case c = {.domain = domain, .one = (uint32_t)one};
  said e;
  bool returned = false;
  if (!where) {
    fputs("LEVADA_CONFORM_UNIT: where is elsewhere?\n", stderr);
    return 0;
  }
  strncpy(c.name, name, sizeof c.name - 1);
  lvd_status status = lvd_runtime_create(&ro, &rt);
  if (status == LVD_OK) status = lvd_app_open(rt, NULL, &app);
  if (status == LVD_OK) status = lvd_unit_load(app, where, NULL, &u);
  if (status != LVD_OK) return fails_at(where, status);
  process = lvd_unit_process(u);
  lvd_stream_options o = {.name = "said", .elem_size = sizeof(said), .threshold = 1};
  status = lvd_stream_open(u, &o, &in);
  o = (lvd_stream_options){.name = "go", .elem_size = sizeof(uint32_t), .threshold = 1};
  if (status == LVD_OK) status = lvd_stream_open(u, &o, &go);
  if (status == LVD_OK) status = lvd_mcapi_remote_start(app, u, "conform", &c, sizeof c, &far);
  if (status != LVD_OK) return fails_at(name, status);
  while (lvd_stream_get(in, &e, sizeof e) == LVD_OK) {
    lvd_stream_pop(in);
    if (!repeat(&e)) continue;
    lvd_stream_put(go, &(uint32_t){1}, sizeof(uint32_t));
    lvd_stream_flush(go);
  }
  status = lvd_mcapi_remote_wait(far, -1, &returned);
  if (status != (killed ? LVD_E_PEER_GONE : LVD_OK)) return fails_at(name, status);
  lvd_stream_destroy(in);
  lvd_stream_destroy(go);
  status = lvd_unit_unload(u);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
  return status == LVD_OK ? 1 : fails_at(name, status);
}
