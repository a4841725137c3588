/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A shared library on Linux that has the runtime in it, or is it, stays loaded when it is closed:
 * threads that have forked call us when they end, workers run, faults come here.
 *
 * By weak references, since older systems have these functions in a library of their own, and a static
 * program has none: it cannot be unloaded. */
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
  /* The program's own table is near its beginning. */
  uintptr_t program = lvd_sys_auxiliary(AT_PHDR), base = (uintptr_t)library.dli_fbase;
  if (program >= base && program - base < 4096) return;
  if (!dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) (void)dlerror();
}
