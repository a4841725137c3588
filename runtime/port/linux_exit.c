/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The end of the process, with the status that it is to have. */
#include "process.h"

#include <stdlib.h>
#include <string.h>

static void (*at_end)(int status);

#ifdef __GLIBC__
/* As on_exit, under a name that no program has: the C library calls it with the status. */
extern int __cxa_atexit(void (*call)(void *), void *argument, void *object);

static void end(void *unused, int status) {
  (void)unused;
  at_end(status);
}

void lvd_port_at_exit(void (*call)(int status)) {
  void (*with_status)(void *, int) = end;
  void (*as_declared)(void *);
  at_end = call;
  memcpy(&as_declared, &with_status, sizeof as_declared);
  __cxa_atexit(as_declared, NULL, NULL);
}
#else
/* No library function tells the status. */
void lvd_port_at_exit(void (*call)(int status)) { at_end = call; }
#endif
