/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of networks with one source and one sink of real numbers. */
#include "numbers.h"

void native_source_init(void) {}

float native_source_produce_sf(void) { return (float)number_in(0); }

float native_source_produce_hf(void) { return (float)number_in(0); }

void native_sink_init(void) {}

void native_sink_consume_sf(float sample) { fprintf(output(0), "%.0f\n", (double)sample); }

void native_sink_consume_hf(float sample) { fprintf(output(0), "%.0f\n", (double)sample); }
