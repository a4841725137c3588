/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Procedures that every kind of unit has in the tests: of this process, of another one, and of a
 * remote processor without a C library. */
#ifndef LVD_TEST_PROCEDURES_H
#define LVD_TEST_PROCEDURES_H

#include <levada/call.h>
#include <string.h>

/* Twice a number of 32 bits. */
static lvd_status twice(lvd_call_frame *f) {
  uint32_t x;
  if (f->argument_size != sizeof x) return LVD_E_ARGUMENT;
  memcpy(&x, f->argument, sizeof x);
  x *= 2;
  memcpy(f->result, &x, sizeof x);
  f->result_size = sizeof x;
  return LVD_OK;
}
LVD_PROCEDURE(twice)

/* Reverses the bytes. */
static lvd_status backwards(lvd_call_frame *f) {
  const unsigned char *from = f->argument;
  unsigned char *to = f->result;
  if (f->argument_size > f->result_room) return LVD_E_LIMIT;
  for (size_t i = 0; i < f->argument_size; i++) to[i] = from[f->argument_size - 1 - i];
  f->result_size = f->argument_size;
  return LVD_OK;
}
LVD_PROCEDURE(backwards)

/* Claims that its result is larger than its buffer. */
static lvd_status overstates(lvd_call_frame *f) {
  f->result_size = f->result_room + 1000;
  return f->argument_size ? LVD_E_NOT_FOUND : LVD_OK;
}
LVD_PROCEDURE(overstates)

#endif
