/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reading domains on Linux without joining: their names, and their files as far as readable.
 * Reading takes no memory for holes, which a mapping would; and what has been read does not
 * change. */
#include "../domain.h"
#include "syscall.h"

lvd_status lvd_os_directory_list(int directory, void (*each)(void *what, const char *name),
                                 void *what) {
  int fd = lvd_sys_openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return LVD_E_SYSTEM;
  bool all = lvd_sys_list(fd, each, what);
  lvd_sys_close(fd);
  return all ? LVD_OK : LVD_E_SYSTEM;
}

lvd_status lvd_os_file_find(int directory, const char *name, int *file) {
  int fd = lvd_sys_openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return LVD_E_NOT_FOUND;
  if (lvd_os_is_trusted(directory, fd, S_IFREG)) {
    *file = fd;
    return LVD_OK;
  }
  lvd_sys_close(fd);
  return LVD_E_NOT_FOUND;
}

bool lvd_os_file_read(int file, size_t at, void *to, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = lvd_sys_pread(file, (char *)to + done, size - done, (off_t)(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

bool lvd_os_file_write(int file, size_t at, const void *from, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = lvd_sys_pwrite(file, (const char *)from + done, size - done, (off_t)(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}
