/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of networks that take and give complex samples, many at a time. */
#include "numbers.h"

/* Where the numbers end within a block, zeros fill it: those that are there must come out, too. The
 * actor ends where a block would have none. */
static void take(int index, float *buffer, int32_t offset, int32_t length) {
  for (int32_t i = 0; i < length; i++) {
    double number = i ? 0 : number_in(index);
    if (i) next_number(index, &number);
    buffer[offset + i] = (float)number;
  }
}

static void give(int index, const float *buffer, int32_t length) {
  for (int32_t i = 0; i < length; i++) fprintf(output(index), "%f\n", (double)buffer[i]);
}

void source_init(void) {}

void source_read_i(float *buffer, int32_t offset, int32_t length) {
  take(0, buffer, offset, length);
}

void source_read_q(float *buffer, int32_t offset, int32_t length) {
  take(1, buffer, offset, length);
}

void sink_init(void) {}

void sink_consume_i(const float *buffer, int32_t length) { give(0, buffer, length); }

void sink_consume_q(const float *buffer, int32_t length) { give(1, buffer, length); }
