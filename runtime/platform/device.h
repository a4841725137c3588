/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Port: memory that is there already and that a device of the kernel's gives out: for windows to
 * processors that this system does not run (uio.c, remoteproc.c). It is neither made nor
 * given back, and it may be no memory to the kernel: everything of it is mapped, nothing read from it. */
#ifndef LVD_PLATFORM_DEVICE_H
#define LVD_PLATFORM_DEVICE_H

#include "process.h"

typedef struct lvd_os_device lvd_os_device;

struct lvd_os_device {
  size_t size;
  /* As lvd_os_shared_map; unmapped by lvd_os_shared_unmap. */
  void *(*map)(const lvd_os_device *device, size_t offset, size_t head, size_t ring);
  /* Starts who keeps it: a process of this system that hands on rings of that wire, and whose end is the
   * far side's. LVD_E_UNKNOWN: there is no such keeper. */
  lvd_status (*keep)(lvd_os_device *device, const char *keeper, int wire, lvd_os_process *peer);
  void (*close)(lvd_os_device *device);
  bool fresh; /* what lies in it is nobody's */
};

/* Null, and why in `text`, and *status. `name`: what stands between "uio:" and the image, `uio0` or
 * `mem@ADDRESS+SIZE`; behind a comma each `bell=MAP+OFFSET=VALUE`, `fresh`. */
lvd_os_device *lvd_os_uio_open(const char *name, char *text, size_t size, lvd_status *status);
/* `remoteproc0,memory=...` (as above, with no comma in it); behind commas `firmware=FILE`, `rpmsg=rpmsgN`, `ctrl=N`,
 * `to=ENDPOINT`, `fresh`. Starts the processor, unless it runs. */
lvd_os_device *lvd_os_remoteproc_open(const char *name, char *text, size_t size, int64_t limit_ns,
                                      lvd_status *status);

#endif
