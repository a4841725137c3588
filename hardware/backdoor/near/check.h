/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Checks and output of the near side. */
#ifndef LVD_BACKDOOR_CHECK_H
#define LVD_BACKDOOR_CHECK_H

#include <stdbool.h>
#include <stdint.h>

void print(const char *text);
void print_number(uint32_t value, uint32_t width); /* right-aligned in `width` characters */
void print_ratio(uint32_t hundredths);
void check(const char *what, bool good);
bool check_all(void); /* prints the totals; returns whether all checks passed */

void check_faults(void);   /* faults.c */
void measure_bridge(void); /* measure.c */
void measure_benchmarks(void);

#endif
