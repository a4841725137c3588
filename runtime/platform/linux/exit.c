/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Observing and changing the exit status of the process. */
#include "../process.h"

#include <stdlib.h>
#include <string.h>

#if defined __SANITIZE_THREAD__
/* This sanitizer calls a handler of __cxa_atexit as one of atexit: without argument and status. */
static void end(int status, void *argument) {
  void (*call)(int);
  memcpy(&call, &argument, sizeof call);
  call(status);
}

void lvd_os_at_exit(void (*call)(int status)) {
  void *argument;
  memcpy(&argument, &call, sizeof argument);
  on_exit(end, argument);
}
#elif defined __GLIBC__
/* Like on_exit, under a name that no program defines: the C library passes the exit status. */
extern int __cxa_atexit(void (*call)(void *), void *argument, void *object);

static void end(void *argument, int status) {
  void (*call)(int);
  memcpy(&call, &argument, sizeof call);
  call(status);
}

void lvd_os_at_exit(void (*call)(int status)) {
  void (*with_status)(void *, int) = end;
  void (*as_declared)(void *);
  void *argument;
  memcpy(&as_declared, &with_status, sizeof as_declared);
  memcpy(&argument, &call, sizeof argument);
  __cxa_atexit(as_declared, argument, NULL);
}
#else
/* No library function tells the status. */
void lvd_os_at_exit(void (*call)(int status)) { (void)call; }
#endif

void lvd_os_at_quick_exit(void (*call)(void)) { at_quick_exit(call); }
