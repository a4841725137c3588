/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Domains on Linux: files in a directory below /dev/shm, record locks, pipes with names, descriptors
 * of processes. */
#include "domain.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { NAMES = 8, MOST = 256 };

/* ---- names -------------------------------------------------------------------------------- */

static bool is_ours(int fd, mode_t kind) {
  struct stat s;
  return fstat(fd, &s) == 0 && (s.st_mode & S_IFMT) == kind && s.st_uid == geteuid() &&
         (s.st_mode & 077) == 0;
}

/* /dev/shm is everybody's: somebody else may sit on our name. Then there is a next one, and whatever
 * is ours already comes before what could be made. */
lvd_status lvd_port_names_open(int *directory) {
  char path[64];
  for (int make = 0; make < 2; make++)
    for (int i = 0; i < NAMES; i++) {
      snprintf(path, sizeof path, "/dev/shm/levada-%u.%d", (unsigned)geteuid(), i);
      if (make && mkdir(path, 0700) != 0 && errno != EEXIST) return LVD_E_SYSTEM;
      int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (fd >= 0 && is_ours(fd, S_IFDIR)) {
        *directory = fd;
        return LVD_OK;
      }
      if (fd >= 0) close(fd);
    }
  return LVD_E_SYSTEM;
}

void lvd_port_name_remove(int directory, const char *name) {
  if (unlinkat(directory, name, 0) != 0 && errno == EISDIR) unlinkat(directory, name, AT_REMOVEDIR);
}

lvd_status lvd_port_file_open(int directory, const char *name, int *file) {
  for (int i = 0; i < NAMES; i++) {
    int fd = openat(directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd >= 0 && is_ours(fd, S_IFREG)) {
      *file = fd;
      return LVD_OK;
    }
    if (fd >= 0) close(fd);
    lvd_port_name_remove(directory, name);
  }
  return LVD_E_SYSTEM;
}

bool lvd_port_file_removed(int file) {
  struct stat s;
  return fstat(file, &s) != 0 || s.st_nlink == 0;
}

lvd_status lvd_port_file_clear(int file, size_t size) {
  return ftruncate(file, 0) == 0 && ftruncate(file, (off_t)size) == 0 ? LVD_OK : LVD_E_SYSTEM;
}

/* ---- locks -------------------------------------------------------------------------------- */

static struct flock range(short type, uint32_t first, uint32_t count) {
  return (struct flock){
      .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)first, .l_len = (off_t)count};
}

bool lvd_port_locks_take(int file, uint32_t number, bool wait) {
  struct flock l = range(F_WRLCK, number, 1);
  int result;
  do result = fcntl(file, wait ? F_SETLKW : F_SETLK, &l);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

void lvd_port_locks_drop(int file, uint32_t number) {
  struct flock l = range(F_UNLCK, number, 1);
  fcntl(file, F_SETLK, &l);
}

bool lvd_port_locks_held(int file, uint32_t first, uint32_t count) {
  struct flock l = range(F_WRLCK, first, count);
  return fcntl(file, F_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* ---- bells -------------------------------------------------------------------------------- */

/* Open for writing, too: so it never ends, and never keeps who opens it waiting. */
lvd_status lvd_port_named_bell_make(int directory, const char *name, int *bell) {
  lvd_port_name_remove(directory, name);
  if (mkfifoat(directory, name, 0600) != 0) return LVD_E_SYSTEM;
  int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0 && is_ours(fd, S_IFIFO)) {
    *bell = fd;
    return LVD_OK;
  }
  if (fd >= 0) close(fd);
  return LVD_E_SYSTEM;
}

int lvd_port_named_bell_find(int directory, const char *name) {
  /* For writing only it could be a signal to write to what nobody listens at. */
  int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0 && is_ours(fd, S_IFIFO)) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

void lvd_port_named_bell_ring(int bell) {
  ssize_t n = write(bell, "", 1); /* full: it has been rung often enough */
  (void)n;
}

/* ---- news of others ------------------------------------------------------------------------- */

int lvd_port_process_watch(int32_t id) {
  long fd = syscall(SYS_pidfd_open, (pid_t)id, 0); /* Linux 5.3; it closes on exec */
  return fd < 0 ? -1 : (int)fd;
}

void lvd_port_listen(const int *descriptor, bool *ready, uint32_t count, int64_t timeout_ns) {
  struct pollfd fd[MOST];
  for (uint32_t i = 0; i < count; i++) {
    fd[i] = (struct pollfd){.fd = descriptor[i], .events = POLLIN};
    ready[i] = false;
  }
  int ms = timeout_ns < 0 ? -1 : (int)((timeout_ns + 999999) / 1000000);
  if (poll(fd, count, ms) <= 0) return;
  for (uint32_t i = 0; i < count; i++) ready[i] = (fd[i].revents & (POLLIN | POLLERR)) != 0;
  char bytes[64];
  ssize_t n = ready[0] ? read(descriptor[0], bytes, sizeof bytes) : 0;
  (void)n;
}

bool lvd_port_domain_barrier_prepare(void) {
#if defined(__SANITIZE_THREAD__)
  return false; /* it knows nothing of membarrier */
#else
  long has = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0); /* Linux 4.16 */
  if (has < 0 || !(has & MEMBARRIER_CMD_GLOBAL_EXPEDITED)) return false;
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
#endif
}

void lvd_port_domain_barrier(void) {
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

void lvd_port_signals_keep_out(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
}
