/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Domains on Linux from outside: their names, and their files as far as one may read them. Reading a
 * file takes no memory where it has holes, which a mapping would; and what was read does not change. */
#include "domain.h"

#include "descriptor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

lvd_status lvd_port_names_list(int directory, void (*each)(void *what, const char *name),
                               void *what) {
  int fd = lvd_port_descriptor(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  if (!dir) {
    if (fd >= 0) close(fd);
    return LVD_E_SYSTEM;
  }
  for (const struct dirent *e; (e = readdir(dir));) each(what, e->d_name);
  closedir(dir);
  return LVD_OK;
}

lvd_status lvd_port_file_find(int directory, const char *name, int *file) {
  int fd =
      lvd_port_descriptor(openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (fd < 0) return LVD_E_UNKNOWN;
  if (lvd_port_is_ours(directory, fd, S_IFREG)) {
    *file = fd;
    return LVD_OK;
  }
  close(fd);
  return LVD_E_UNKNOWN;
}

bool lvd_port_file_read(int file, size_t at, void *to, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = pread(file, (char *)to + done, size - done, (off_t)(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

bool lvd_port_file_write(int file, size_t at, const void *from, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = pwrite(file, (const char *)from + done, size - done, (off_t)(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}
