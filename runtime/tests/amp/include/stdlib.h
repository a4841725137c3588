/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the conformance program uses of <stdlib.h>, where there is no C library; conform_remote.c has it. */
#ifndef LVD_TEST_FAR_STDLIB_H
#define LVD_TEST_FAR_STDLIB_H

#include <stddef.h>

void *malloc(size_t size);
void free(void *at);

#endif
