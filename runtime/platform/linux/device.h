/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What uio.c and remoteproc.c have in common: the memory, and reading the kernel's files below
 * LEVADA_SYSFS and LEVADA_DEV (/sys and /dev, where they are not set). */
#ifndef LVD_PLATFORM_LINUX_DEVICE_H
#define LVD_PLATFORM_LINUX_DEVICE_H

#include "../device.h"

/* The memory of a UIO device, or a part of /dev/mem. */
typedef struct lvd_uio {
  lvd_os_device device; /* first */
  int node;
  bool maps_whole; /* UIO's way (uio.c) */
  uint64_t from;
  uint64_t address; /* of its beginning, as the kernel says it */
  bool has_bell;    /* a register rings the far side; else it looks by itself */
  uint64_t bell;
  uint32_t value;
} lvd_uio;

void *lvd_uio_map(const lvd_os_device *device, size_t offset, size_t head, size_t ring);

/* Whom to tell why not. */
typedef struct lvd_device_why {
  char *text;
  size_t size;
  lvd_status *status;
} lvd_device_why;

/* Says so; returns null, which is also no. */
void *lvd_device_say(lvd_device_why *why, lvd_status status, const char *format, ...)
    LVD_PRINTF(3, 4);
const char *lvd_device_root(const char *variable, const char *usual);
bool lvd_device_read(const char *path, char *line, size_t size); /* its first line */
bool lvd_device_number(const char **at, uint64_t *out);
int lvd_device_node(lvd_device_why *why, const char *name); /* opened; negative */

#endif
