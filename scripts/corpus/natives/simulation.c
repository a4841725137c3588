/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of networks that were made for a simulated processor: it counts cycles, which there are
 * none of here, and sums up what it would show. */
#include <stdint.h>
#include <stdio.h>

void print_cyclecount(void) {}

void throw_away(int32_t value) { (void)value; }

void display_checksum(int32_t sum) { printf("checksum %d\n", (int)sum); }

/* As many as there are. */
int32_t display_getnbframes(void) { return -1; }
