/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program that ends in the middle of its work leaves memory, which the leak checker is not to
 * report. For one file of a program: it defines the checker's hook. */
#ifndef LVD_TEST_LEAVES_MEMORY_H
#define LVD_TEST_LEAVES_MEMORY_H

static int leaves_memory_now;

static inline void leaves_memory(void) { leaves_memory_now = 1; }

#ifdef __SANITIZE_ADDRESS__
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return leaves_memory_now; }
#endif

#endif
