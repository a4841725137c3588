/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of networks that take and give complex samples, one by one: two inputs, two outputs. */
#include "numbers.h"

void source_init(void) {}

float source_read_i(void) { return (float)number_in(0); }

float source_read_q(void) { return (float)number_in(1); }

void sink_init(void) {}

void sink_consume_i(float value) { fprintf(output(0), "%f\n", (double)value); }

void sink_consume_q(float value) { fprintf(output(1), "%f\n", (double)value); }
