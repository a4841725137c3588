/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Simulated device files of the kernel. A node is a packet socket, on which board.c acts as the
 * kernel for reads and writes. What a socket cannot do is done here, in the programs that link this
 * file: opening connects, and mapping maps the file that stands for the memory, by the rules of
 * UIO: the offset is a map's number, and a mapping is no longer than the map. */
#include <errno.h>
#include <fcntl.h>
#include <linux/rpmsg.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

int open(const char *path, int flags, ...) {
  struct stat s;
  va_list more;
  va_start(more, flags);
  int mode = va_arg(more, int);
  va_end(more);
  if (stat(path, &s) != 0 || !S_ISSOCK(s.st_mode))
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, flags & O_CREAT ? mode : 0);
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
  close(fd);
  errno = ENODEV;
  return -1;
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
  struct sockaddr_un peer = {0};
  socklen_t size = sizeof peer;
  if (fd < 0 || getpeername(fd, (struct sockaddr *)&peer, &size) != 0 ||
      peer.sun_family != AF_UNIX || size <= offsetof(struct sockaddr_un, sun_path))
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
  char file[sizeof peer.sun_path + 24];
  struct stat s;
  snprintf(file, sizeof file, "%.*s.map%lld", (int)sizeof peer.sun_path, peer.sun_path,
           (long long)offset / sysconf(_SC_PAGESIZE));
  int memory = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
  void *p = MAP_FAILED;
  errno = EINVAL;
  if (memory >= 0 && fstat(memory, &s) == 0 && length <= (size_t)s.st_size)
    p = (void *)syscall(SYS_mmap, at, length, protection, flags, memory, (off_t)0);
  int kept = errno;
  if (memory >= 0) close(memory);
  errno = kept;
  return p;
}

/* A request to a control node is sent as a packet, and the reply is a number. */
int ioctl(int fd, unsigned long request, ...) {
  va_list more;
  va_start(more, request);
  void *argument = va_arg(more, void *);
  va_end(more);
  int answer = 0;
  if (request == RPMSG_CREATE_EPT_IOCTL) {
    if (send(fd, argument, sizeof(struct rpmsg_endpoint_info), MSG_NOSIGNAL) < 0 ||
        recv(fd, &answer, sizeof answer, 0) != sizeof answer)
      answer = ENODEV;
    errno = answer;
    return answer ? -1 : 0;
  }
  if (request == RPMSG_DESTROY_EPT_IOCTL) return shutdown(fd, SHUT_RDWR);
  return (int)syscall(SYS_ioctl, fd, request, argument);
}
