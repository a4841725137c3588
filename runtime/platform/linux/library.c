/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Pinning: a shared library that is, or contains, the runtime stays loaded when it is closed, since
 * threads that have forked call into it when they exit, workers run in it, and it handles faults.
 *
 * By weak references: older systems have these functions in a library of their own, and a static
 * program has none and cannot unload anything. */
#include "../platform.h"
#include "syscall.h"

#include <dlfcn.h>
#include <link.h>

#pragma weak dladdr
#pragma weak dlopen
#pragma weak dlerror

static const char here;

void lvd_os_pin_library(void) {
  Dl_info library;
  if (!dladdr || !dlopen || !dlerror || !dladdr(&here, &library)) return;
  /* The program's header table is near its start. */
  uintptr_t program = lvd_sys_auxiliary(AT_PHDR), base = (uintptr_t)library.dli_fbase;
  if (program >= base && program - base < 4096) return;
  if (!dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) (void)dlerror();
}
