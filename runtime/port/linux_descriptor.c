/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int lvd_port_descriptor(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
  close(fd);
  errno = error;
  return above;
}

FILE *lvd_port_file_read_open(const char *path) {
  int fd = lvd_port_descriptor(open(path, O_RDONLY | O_CLOEXEC));
  FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
  if (fd >= 0 && !file) {
    int error = errno;
    close(fd);
    errno = error;
  }
  return file;
}
