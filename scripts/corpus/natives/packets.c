/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of networks that read packets as text: how long one is, then its bytes. */
#include "numbers.h"

void source_init(void) {}

/* 1, which is no size of a packet, where there is none any more. */
int32_t source_sizeOfFile(void) {
  double size;
  return next_number(0, &size) ? (int32_t)size : 1;
}

uint8_t source_readByte(void) { return (uint8_t)number_in(0); }

void throw_away(int32_t value) { fprintf(output(0), "%d\n", value); }

void print_cyclecount(void) {}
