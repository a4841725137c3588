/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of networks with numbered sources of whole numbers and one sink. */
#include "numbers.h"

void native_source_init(int32_t index) { (void)index; }

int32_t native_source_produce(int32_t index) { return (int32_t)number_in(index); }

void native_sink_init(void) {}

/* The reference output has samples of 16 bits. */
void native_sink_consume(int32_t sample) { fprintf(output(0), "%d\n", (int16_t)sample); }
