/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The program that the window tests run on the remote side: correct procedures, and faulty ones. */
#include <levada/process.h>
#include <levada/srpc.h>
#include <string.h>

#include "../support/procedures.h"

/* Floating point on a switched stack, if the processor has it. */
#if !defined(__riscv) || defined(__riscv_flen)
static lvd_status child_root(lvd_call_frame *f) {
  double x, r = 1;
  memcpy(&x, f->argument, 8);
  for (int i = 0; i < 60; i++) r = (r + x / r) / 2;
  memcpy(f->result, &r, 8);
  f->result_size = 8;
  return LVD_OK;
}
LVD_PROCEDURE(child_root)
#endif

/* 64-bit integers on a smaller processor: division, multiplication, shifts, signed and unsigned. */
static lvd_status child_wide(lvd_call_frame *f) {
  uint64_t x[2], y[8];
  if (f->argument_size != sizeof x || f->result_room < sizeof y) return LVD_E_ARGUMENT;
  memcpy(x, f->argument, sizeof x);
  int by = (int)(x[1] & 63);
  int64_t a = (int64_t)x[0], b = (int64_t)x[1];
  y[0] = x[0] / x[1];
  y[1] = x[0] % x[1];
  y[2] = (uint64_t)(a / b);
  y[3] = (uint64_t)(a % b);
  y[4] = x[0] << by;
  y[5] = x[0] >> by;
  y[6] = (uint64_t)(a >> by);
  y[7] = (uint64_t)(__builtin_clzll(x[0] | 1) + __builtin_ctzll(x[0] | UINT64_C(1) << 63));
  memcpy(f->result, y, sizeof y);
  f->result_size = sizeof y;
  return LVD_OK;
}
LVD_PROCEDURE(child_wide)

static lvd_status child_illegal(lvd_call_frame *f) {
  (void)f;
#ifdef __riscv
  __asm__ volatile(".word 0");
#else
  __builtin_trap();
#endif
  return LVD_OK;
}
LVD_PROCEDURE(child_illegal)

/* An address without memory. */
#if UINTPTR_MAX == UINT32_MAX
#define NOWHERE 0x01800000
#else
#define NOWHERE 0x40000000000
#endif
static lvd_status child_wild(lvd_call_frame *f) {
  (void)f;
  *(volatile uint32_t *)(uintptr_t)NOWHERE = 1;
  return LVD_OK;
}
LVD_PROCEDURE(child_wild)

static lvd_status child_jumps(lvd_call_frame *f) {
  (void)f;
  ((void (*)(void))(uintptr_t)NOWHERE)();
  return LVD_OK;
}
LVD_PROCEDURE(child_jumps)

static lvd_status child_hangs(lvd_call_frame *f) {
  for (;;) __asm__ volatile("" : : "r"(f) : "memory");
  return LVD_OK;
}
LVD_PROCEDURE(child_hangs)

/* Overwrites all memory shared with the host, from its argument on. */
static lvd_status child_scribbles(lvd_call_frame *f) {
  uint64_t seed;
  memcpy(&seed, f->argument, 8);
  uint32_t *at = (uint32_t *)(uintptr_t)(f->argument_size == 16 ? 0x81000000 : 0x81101000);
  for (int i = 0; i < 20000; i++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    at[i] = (uint32_t)seed;
  }
  return LVD_OK;
}
LVD_PROCEDURE(child_scribbles)

/* From "in" to "out", each incremented, until the end. */
static lvd_status child_plus_one(lvd_call_frame *f) {
  (void)f;
  lvd_stream *in, *out;
  lvd_stream_options o = {.name = "in", .elem_size = 4};
  lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &in);
  o.name = "out";
  if (status == LVD_OK) status = lvd_stream_open(lvd_unit_parent(), &o, &out);
  if (status != LVD_OK) return status;
  for (uint32_t x; (status = lvd_stream_get(in, &x, 4)) == LVD_OK;) {
    x++;
    lvd_stream_pop(in);
    if ((status = lvd_stream_put(out, &x, 4)) != LVD_OK) break;
    lvd_stream_push(out);
  }
  lvd_stream_destroy(in);
  lvd_stream_destroy(out);
  return status == LVD_E_EOF ? LVD_OK : status;
}
LVD_PROCEDURE(child_plus_one)

/* Pushes one element, writes the rest, and never pushes it. */
static lvd_status child_leaves_much(lvd_call_frame *f) {
  (void)f;
  lvd_stream *much;
  const lvd_stream_options o = {.name = "much", .elem_size = 4, .capacity = 1000};
  uint32_t x = 1;
  void *at;
  lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &much);
  if (status == LVD_OK) status = lvd_stream_put(much, &x, 4);
  if (status != LVD_OK) return status;
  lvd_stream_flush(much);
  status = lvd_stream_put_span(much, 900, &at);
  if (status == LVD_OK) memset(at, 0x77, 900 * 4);
  lvd_stream_destroy(much);
  return status;
}
LVD_PROCEDURE(child_leaves_much)

/* Fails, and leaves its stream to be closed. */
static lvd_status child_gives_up(lvd_call_frame *f) {
  (void)f;
  lvd_stream *out;
  const lvd_stream_options o = {.name = "out", .elem_size = 4};
  uint32_t x = 1;
  lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &out);
  if (status == LVD_OK) status = lvd_stream_put(out, &x, 4);
  if (status != LVD_OK) return status;
  lvd_stream_flush(out);
  return LVD_E_CORRUPT;
}
LVD_PROCEDURE(child_gives_up)

/* The sum of what arrives in "sum". */
static lvd_status child_sums(lvd_call_frame *f) {
  lvd_stream *in;
  const lvd_stream_options o = {.name = "sum", .elem_size = 4, .capacity = 1000};
  uint32_t sum = 0;
  lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &in);
  if (status != LVD_OK) return status;
  for (uint32_t x; (status = lvd_stream_get(in, &x, 4)) == LVD_OK; lvd_stream_pop(in)) sum += x;
  lvd_stream_destroy(in);
  memcpy(f->result, &sum, sizeof sum);
  f->result_size = sizeof sum;
  return status == LVD_E_EOF ? LVD_OK : status;
}
LVD_PROCEDURE(child_sums)

/* Each number negated, with the SRPC interface: from stream 1 to 2. */
static void far_negate(void) {
  stream_create(1);
  stream_create(2);
  for (int x; stream_get(1, x) == LVD_OK;) {
    stream_pop(1);
    x = -x;
    if (stream_put(2, x) != LVD_OK) break;
    stream_push(2);
  }
}
PB_PROCEDURE(far_negate)

/* Puts into a stream that it has not created, and elements of another size into another. */
static void far_misuses(void) {
  uint64_t wide = 0;
  stream_put(77, wide);
  stream_create(1);
  stream_get(1, wide);
}
PB_PROCEDURE(far_misuses)
