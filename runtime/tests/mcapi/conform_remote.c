/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The cases of the conformance program on a remote processor: a procedure runs one of them as a
 * node. The results are sent to the host (conform_said.h), which counts them like its own. */
#include "../../mcapi/conformance/conformance.h"

#include <levada/process.h>
#include <levada/stream.h>
#include <stdlib.h>
#include <string.h>

#include "conform_said.h"

enum { MEMORY = 512 << 10, NAMES = 64 };

static lvd_stream *out, *go;

/* ---- results --------------------------------------------------------------------------------- */

static said about(enum said_what what, const char *text, int line) {
  said e = {.what = what, .status = s, .line = (uint32_t)line};
  size_t n = text ? strlen(text) : 0;
  if (n >= sizeof e.text) n = sizeof e.text - 1;
  memcpy(e.text, text, n);
  return e;
}

static void tell(const said *e) { lvd_stream_put(out, e, sizeof *e); }

static void tell_and_wait(const said *e) {
  uint32_t answer;
  tell(e);
  lvd_stream_flush(out);
  lvd_stream_get(go, &answer, sizeof answer);
  lvd_stream_pop(go);
}

/* Each name is sent once. */
void called(const char *name) {
  static const char *known[NAMES];
  int i = 0;
  while (i < NAMES && known[i] && known[i] != name) i++;
  if (i < NAMES && known[i]) return;
  if (i < NAMES) known[i] = name;
  said e = about(SAID_CALLED, name, 0);
  tell(&e);
}

void is_so(int so, const char *what, int line) {
  said e = about(SAID_IS_SO, what, line);
  e.one = so != 0;
  tell(&e);
}
void says(const char *what, mcapi_status_t expected, int line) {
  said e = about(SAID_SAYS, what, line);
  e.one = expected;
  tell(&e);
}
void says_either(const char *what, mcapi_status_t one, mcapi_status_t other, int line) {
  said e = about(SAID_SAYS_EITHER, what, line);
  e.one = one;
  e.other = other;
  tell(&e);
}
void fails(const char *what, int line) {
  said e = about(SAID_FAILS, what, line);
  tell(&e);
}
void choice(const char *question, mcapi_status_t chosen) {
  said e = about(SAID_CHOICE, question, 0);
  e.one = chosen;
  tell(&e);
}
void choice_number(const char *question, unsigned long chosen) {
  said e = about(SAID_CHOICE_NUMBER, question, 0);
  e.number = chosen;
  tell(&e);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The host exits, and the processor with it. */
void give_up(void) {
  said e = about(SAID_GIVE_UP, "", 0);
  for (;;) tell_and_wait(&e);
}

void meet(void) {
  said e = about(SAID_MEET, "", 0);
  tell_and_wait(&e);
}

void nap(int ms) {
  said e = about(SAID_NAP, "", 0);
  e.number = (uint64_t)ms;
  tell_and_wait(&e);
}

void kill_other(void) { give_up(); }

/* ---- memory ---------------------------------------------------------------------------------- */

static _Alignas(16) unsigned char memory[MEMORY];
static size_t used;

void *malloc(size_t size) {
  if (size > MEMORY - used) return NULL;
  void *at = memory + used;
  used += (size + 15) & ~(size_t)15;
  return at;
}
void free(void *at) { (void)at; } /* freed with the case */

/* ---- a case ---------------------------------------------------------------------------------- */

static lvd_status conform(lvd_call_frame *f) {
  said_case c;
  if (f->argument_size != sizeof c) return LVD_E_ARGUMENT;
  memcpy(&c, f->argument, sizeof c);
  c.name[sizeof c.name - 1] = 0;
  lvd_stream_options o = {.name = "said", .elem_size = sizeof(said), .threshold = 1};
  lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &out);
  o = (lvd_stream_options){.name = "go", .elem_size = sizeof(uint32_t), .threshold = 1};
  if (status == LVD_OK) status = lvd_stream_open(lvd_unit_parent(), &o, &go);
  if (status != LVD_OK) return status;
  domain = c.domain;
  used = 0;
  status = LVD_E_NOT_FOUND;
  for (int i = 0; conform_cases[i]; i++)
    for (const conform_case *k = conform_cases[i]; k->name; k++)
      if (strcmp(k->name, c.name) == 0) {
        void (*run)(void) = c.one ? k->one : k->two;
        run();
        status = LVD_OK;
      }
  lvd_stream_destroy(out);
  lvd_stream_destroy(go);
  return status;
}
LVD_PROCEDURE(conform)
