/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The part of <stdlib.h> that the conformance program uses without a C library; conform_remote.c
 * defines it. */
#ifndef LVD_TEST_REMOTE_STDLIB_H
#define LVD_TEST_REMOTE_STDLIB_H

#include <stddef.h>

void *malloc(size_t size);
void free(void *at);

#endif
