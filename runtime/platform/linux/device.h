/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shared by uio.c and remoteproc.c: mapping the device's memory, and reading the kernel's files
 * below LEVADA_SYSFS and LEVADA_DEV (default: /sys and /dev). */
#ifndef LVD_PLATFORM_LINUX_DEVICE_H
#define LVD_PLATFORM_LINUX_DEVICE_H

#include "../device.h"

/* A UIO device, or a range of /dev/mem. */
typedef struct lvd_uio {
  lvd_os_device device; /* first */
  int node;
  bool maps_whole; /* a mapping of it begins at offset 0 (uio.c) */
  uint64_t from;
  uint64_t address;  /* physical, as the kernel tells it */
  bool has_doorbell; /* a register signals the remote processor; else that polls */
  uint64_t doorbell;
  uint32_t value;
} lvd_uio;

void *lvd_uio_map(const lvd_os_device *device, size_t offset, size_t head, size_t ring);

/* Where an error is reported. */
typedef struct lvd_device_error {
  char *text;
  size_t size;
  lvd_status *status;
} lvd_device_error;

/* Stores status and text; returns null, which is also false. */
void *lvd_device_fail(lvd_device_error *why, lvd_status status, const char *format, ...)
    LVD_PRINTF(3, 4);
const char *lvd_device_root(const char *variable, const char *usual);
bool lvd_device_read(const char *path, char *line, size_t size); /* its first line */
bool lvd_device_number(const char **at, uint64_t *out);
int lvd_device_node(lvd_device_error *why, const char *name); /* opens it; negative: failed */

#endif
