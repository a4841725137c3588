/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Platform layer: existing memory that a kernel device provides, for windows to processors that
 * this system does not run (uio.c, remoteproc.c). It is neither created nor freed, and it may not
 * be normal memory to the kernel: all of it is mapped, and system calls do not access it. */
#ifndef LVD_PLATFORM_DEVICE_H
#define LVD_PLATFORM_DEVICE_H

#include "process.h"

typedef struct lvd_os_device lvd_os_device;

struct lvd_os_device {
  size_t size;
  /* Like lvd_os_shared_map; unmapped by lvd_os_shared_unmap. */
  void *(*map)(const lvd_os_device *device, size_t offset, size_t head, size_t ring);
  /* Starts the agent: a process of this system that forwards signals between `socket` and the
   * remote processor; its exit stands for the remote processor's. LVD_E_NOT_FOUND: there is no
   * such program. */
  lvd_status (*start_agent)(lvd_os_device *device, const char *agent, int socket,
                            lvd_os_process *peer);
  void (*close)(lvd_os_device *device);
  bool fresh; /* the memory holds no state of a program that is running */
};

/* Null: `text` and *status tell why. `name` is the part between "uio:" and the image: `uio0` or
 * `mem@ADDRESS+SIZE`, then options after commas: `bell=MAP+OFFSET=VALUE`, `fresh`. */
lvd_os_device *lvd_os_uio_open(const char *name, char *text, size_t size, lvd_status *status);
/* `remoteproc0,memory=...` (as above, without options), then options after commas: `firmware=FILE`,
 * `rpmsg=rpmsgN`, `ctrl=N`, `to=ENDPOINT`, `fresh`. Starts the processor unless it is running. */
lvd_os_device *lvd_os_remoteproc_open(const char *name, char *text, size_t size, int64_t timeout_ns,
                                      lvd_status *status);

#endif
