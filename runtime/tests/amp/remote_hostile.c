/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program behind a window that claims to be an MCAPI node and violates the protocol in every way,
 * to test its agent. The argument tells how, with which seed, and in which domain. */
#include "../../mcapi/remote_node/remote_node.h"

#include <levada/process.h>
#include <levada/stream.h>
#include <string.h>

#include "remote_hostile.h"

static uint64_t seed;
static lvd_stream *calls, *answers;

static uint64_t any(void) {
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  return seed;
}

static void random_line(void *line) {
  for (size_t i = 0; i < RN_LINE_BYTES / 8; i++) {
    uint64_t word = any();
    memcpy((unsigned char *)line + 8 * i, &word, 8);
  }
}

static bool put_random(uint32_t lines) {
  unsigned char line[RN_LINE_BYTES];
  for (uint32_t i = 0; i < lines; i++) {
    random_line(line);
    if (lvd_stream_put(calls, line, RN_LINE_BYTES) != LVD_OK) return false;
  }
  lvd_stream_flush(calls);
  return true;
}

static bool put_head(const rn_head *h) {
  bool good = lvd_stream_put(calls, h, RN_LINE_BYTES) == LVD_OK;
  if (good) lvd_stream_flush(calls);
  return good;
}

static bool get_lines(uint32_t size) {
  unsigned char line[RN_LINE_BYTES];
  for (uint32_t i = 0; i < rn_lines(size); i++)
    if (lvd_stream_get(answers, line, RN_LINE_BYTES) != LVD_OK) return false;
  lvd_stream_pop(answers);
  return true;
}

/* Reads everything that arrives for a while. */
static bool get_answer(rn_head *h) {
  return lvd_stream_get(answers, h, RN_LINE_BYTES) == LVD_OK && get_lines(h->size);
}

/* Like a correct node, with its timeouts; the streams' own limits are for replies that do not
 * arrive. */
static lvd_status initialize(uint32_t domain) {
  rn_head h = {.what = RN_INITIALIZE, .word = {domain, 2}, .absent = RN_NO_ATTRIBUTES};
  lvd_status status;
  if (!put_head(&h)) return LVD_E_STOPPED;
  while ((status = lvd_stream_get(answers, &h, RN_LINE_BYTES)) == LVD_E_TIMEOUT) {
  }
  if (status != LVD_OK) return status;
  if (h.status != MCAPI_SUCCESS) return LVD_E_STATE;
  return get_lines(h.size) ? LVD_OK : LVD_E_TIMEOUT;
}

/* Valid calls with random arguments; small numbers are sometimes handles and requests. */
static void call_anything(void) {
  rn_head known = {0};
  for (int i = 0; i < 300; i++) {
    rn_head h;
    random_line(&h);
    h.what = (uint32_t)(RN_FINALIZE + any() % (RN_CANCEL - RN_FINALIZE + 3));
    if (h.what == RN_FINALIZE && any() % 8) h.what = RN_CREATE;
    h.size = any() % 4 ? (uint32_t)(any() % 300) : 0;
    h.full = any() % 4 ? h.size : (uint32_t)any();
    h.absent = any() % 4 ? 0 : (uint32_t)any();
    for (int k = 0; k < 9; k++) {
      uint64_t which = any() % 8;
      if (which < 2) h.word[k] = known.word[which];
      if (which == 2) h.word[k] = (uint32_t)known.value;
      if (which == 3) h.word[k] = (uint32_t)(any() % 5);
    }
    if (!put_head(&h) || !put_random(rn_lines(h.size)) || !get_answer(&h)) return;
    if (h.status == MCAPI_SUCCESS || h.status == MCAPI_PENDING) known = h;
  }
}

static void scribble(void) {
  uint32_t *at = (uint32_t *)(uintptr_t)0x81101000; /* shared with the host */
  for (int i = 0; i < 60000; i++) at[i] = (uint32_t)any();
}

static lvd_status levada_mcapi_node(lvd_call_frame *f) {
  rn_begin begin;
  hostile_way way;
  if (f->argument_size != sizeof begin + sizeof way) return LVD_E_ARGUMENT;
  memcpy(&begin, f->argument, sizeof begin);
  memcpy(&way, (const unsigned char *)f->argument + sizeof begin, sizeof way);
  seed = way.seed;
  char name[32];
  lvd_stream_options o = {.name = name,
                          .elem_size = RN_LINE_BYTES,
                          .capacity = RN_STREAM_LINES,
                          .threshold = 1,
                          .timeout_ns = 300000000};
  rn_name(name, RN_CALLS_NAME, begin.agent);
  lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &calls);
  rn_name(name, RN_REPLIES_NAME, begin.agent);
  if (status == LVD_OK) status = lvd_stream_open(lvd_unit_parent(), &o, &answers);
  if (status != LVD_OK) return status;
  rn_head h = {.what = RN_CREATE, .word = {9}};
  if (way.how != HOSTILE_NOISE) status = initialize(way.domain);
  if (status != LVD_OK) return status;
  switch (way.how) {
  case HOSTILE_NOISE:
    put_random(2000);
    break;
  case HOSTILE_CALLS:
    call_anything();
    break;
  case HOSTILE_LARGE:
    h.size = UINT32_MAX - 63;
    put_head(&h);
    get_answer(&h);
    break;
  case HOSTILE_CUT:
    h.what = RN_MESSAGE_SEND;
    h.size = 1000;
    put_head(&h);
    put_random(3);
    break;
  case HOSTILE_DEAF: /* more calls than there is room for replies, which are not read */
    for (int i = 0; i < 4 * RN_STREAM_LINES && put_head(&h); i++) {
    }
    break;
  case HOSTILE_SILENT:
    h.what = RN_GET;
    h.word[0] = way.domain;
    h.word[1] = 1;
    h.word[2] = 77;
    h.word[3] = MCAPI_TIMEOUT_INFINITE;
    put_head(&h);
    get_answer(&h);
    break;
  default:
    put_head(&h);
    scribble();
  }
  return LVD_OK;
}
LVD_PROCEDURE(levada_mcapi_node)
