/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Domains on Linux: files in a directory below /dev/shm, record locks, FIFOs, pidfds. */
#include "../domain.h"
#include "../process.h"
#include "syscall.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum { DIRECTORY_NAMES = 64, OPEN_ATTEMPTS = 8, POLL_MAX = 256, RETRY_NS = 1000000 };

static void sleep_1_ms(void) { lvd_sys_nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL); }

/* ---- names ----------------------------------------------------------------------------------- */

/* Accessible by this user only; or by the members of the group only. */
static bool is_private(const struct lvd_sys_statx *s) {
  return s->stx_uid == lvd_sys_geteuid() && (s->stx_mode & 077) == 0;
}
static bool is_group_only(const struct lvd_sys_statx *s, int64_t group) {
  return s->stx_gid == (gid_t)group && (s->stx_mode & 067) == 060;
}
static bool is_directory(int fd, int64_t group) {
  struct lvd_sys_statx s;
  return lvd_sys_stat(fd, "", &s) == 0 && S_ISDIR(s.stx_mode) &&
         (group < 0 ? is_private(&s) : is_group_only(&s, group) && (s.stx_mode & 02070) == 02070);
}

/* A directory with a group's mode belongs to that group, and so do the files in it. */
bool lvd_os_directory_group(int directory, int64_t *group) {
  struct lvd_sys_statx d;
  bool shared = lvd_sys_stat(directory, "", &d) == 0 && (d.stx_mode & 02070) == 02070;
  *group = shared ? (int64_t)d.stx_gid : -1;
  return shared;
}
bool lvd_os_is_trusted(int directory, int fd, uint32_t kind) {
  struct lvd_sys_statx s;
  int64_t group;
  if (lvd_sys_stat(fd, "", &s) != 0 || (s.stx_mode & S_IFMT) != kind) return false;
  return lvd_os_directory_group(directory, &group) ? is_group_only(&s, group) : is_private(&s);
}

/* Sets the mode whatever the umask is. Fails for a file of another member, which sets it itself. */
static void set_group_mode(int directory, int fd) {
  int64_t group;
  int n = lvd_os_directory_group(directory, &group) ? lvd_sys_fchmod(fd, 0660) : 0;
  (void)n;
}

/* Parses /etc/group; its lines are NAME:PASSWORD:ID:MEMBERS. */
static bool parse_group(const char *line, const char *name, unsigned long *number) {
  size_t length = strlen(name);
  for (; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL) {
    if (strncmp(line, name, length) != 0 || line[length] != ':') continue;
    const char *at = strchr(line + length + 1, ':');
    char *end;
    if (!at) return false;
    *number = strtoul(at + 1, &end, 10);
    return end != at + 1;
  }
  return false;
}

lvd_status lvd_os_group_find(const char *name, int64_t *group) {
  enum { MOST_BYTES = 4 << 20 };
  char *end, *text = malloc(MOST_BYTES + 1);
  size_t size;
  unsigned long number;
  if (!text) return LVD_E_MEMORY;
  lvd_os_file_read_start("/etc/group", text, MOST_BYTES, &size);
  text[size] = 0;
  bool found = parse_group(text, name, &number);
  free(text);
  if (!found && *name >= '0' && *name <= '9') {
    number = strtoul(name, &end, 10);
    found = !*end;
  }
  if (!found || number >= UINT32_MAX) return LVD_E_NOT_FOUND;
  *group = (int64_t)number;
  return LVD_OK;
}

/* Created under a temporary name, so it is not visible before it has the group's mode. False:
 * failed. */
static bool create_group_directory(const char *path, int64_t group) {
  char new[96];
  snprintf(new, sizeof new, "%s.%u", path, (unsigned)lvd_sys_getpid());
  lvd_sys_rmdir(new);
  if (lvd_sys_mkdir(new, 0700) != 0) return false;
  bool made = lvd_sys_chown(new, (uid_t)-1, (gid_t)group) == 0 && lvd_sys_chmod(new, 02770) == 0;
  made = made && (lvd_sys_renameat(AT_FDCWD, new, AT_FDCWD, path, RENAME_NOREPLACE) == 0 ||
                  errno == EEXIST);
  lvd_sys_rmdir(new);
  return made;
}

/* Any user can create names in /dev/shm, so another user may occupy the first name. Then the next
 * one is tried. An existing directory of ours is preferred to creating one. */
static lvd_status open_directory(int64_t group, bool make, int *directory) {
  char path[64];
  for (int i = 0; i < DIRECTORY_NAMES; i++) {
    if (group < 0)
      snprintf(path, sizeof path, "/dev/shm/levada-%u.%d", (unsigned)lvd_sys_geteuid(), i);
    else
      snprintf(path, sizeof path, "/dev/shm/levada-g%u.%d", (unsigned)group, i);
    bool there = !make || (group < 0 ? lvd_sys_mkdir(path, 0700) == 0 || errno == EEXIST
                                     : create_group_directory(path, group));
    if (!there) return LVD_E_SYSTEM;
    int fd = lvd_sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && is_directory(fd, group)) {
      *directory = fd;
      return LVD_OK;
    }
    if (fd >= 0) lvd_sys_close(fd);
  }
  return LVD_E_SYSTEM;
}

lvd_status lvd_os_directory_find(int64_t group, int *directory) {
  return open_directory(group, false, directory) == LVD_OK ? LVD_OK : LVD_E_NOT_FOUND;
}

lvd_status lvd_os_directory_open(int64_t group, int *directory) {
  lvd_status status = open_directory(group, false, directory);
  return status == LVD_OK ? status : open_directory(group, true, directory);
}

/* A directory that is not empty is renamed. */
void lvd_os_directory_remove(int directory, const char *name) {
  char moved[96];
  if (lvd_sys_unlinkat(directory, name, 0) == 0 || errno != EISDIR) return;
  if (lvd_sys_unlinkat(directory, name, AT_REMOVEDIR) == 0) return;
  for (int i = 0; i < DIRECTORY_NAMES; i++) {
    snprintf(moved, sizeof moved, "left-%s.%d", name, i);
    if (lvd_sys_renameat(directory, name, directory, moved, 0) == 0) return;
  }
}

/* True: it cannot be opened because of its kind or owner, not because this process lacks
 * something. */
static bool is_wrong_kind(int error) {
  return error == ELOOP || error == EISDIR || error == ENXIO || error == ENODEV ||
         error == EACCES || error == EPERM || error == ETXTBSY;
}

lvd_status lvd_os_file_open(int directory, const char *name, int *file) {
  int64_t group;
  for (int i = 0; i < OPEN_ATTEMPTS; i++) {
    int fd = lvd_sys_openat(directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
                            0600);
    int error = errno;
    if (fd >= 0) set_group_mode(directory, fd);
    if (fd >= 0 && lvd_os_is_trusted(directory, fd, S_IFREG)) {
      *file = fd;
      return LVD_OK;
    }
    if (fd >= 0) lvd_sys_close(fd);
    if (fd < 0 && !is_wrong_kind(error)) return LVD_E_SYSTEM;
    /* The member that created it may be about to set its mode. */
    if (lvd_os_directory_group(directory, &group) && i < OPEN_ATTEMPTS - 2)
      sleep_1_ms();
    else
      lvd_os_directory_remove(directory, name);
  }
  return LVD_E_SYSTEM;
}

bool lvd_os_file_is_removed(int file) {
  struct lvd_sys_statx s;
  return lvd_sys_stat(file, "", &s) != 0 || s.stx_nlink == 0;
}

lvd_status lvd_os_file_clear(int file, size_t size) {
  /* Exceeding this limit raises a signal that ends the program. */
  struct rlimit most;
  if (lvd_sys_getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < size) return LVD_E_LIMIT;
  return lvd_sys_ftruncate(file, 0) == 0 && lvd_sys_ftruncate(file, (off_t)size) == 0
             ? LVD_OK
             : LVD_E_SYSTEM;
}

/* ---- locks ----------------------------------------------------------------------------------- */

static struct flock range(short type, uint32_t first, uint32_t count) {
  return (struct flock){
      .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)first, .l_len = (off_t)count};
}

bool lvd_os_file_lock_acquire(int file, uint32_t number, bool wait) {
  struct flock l = range(F_WRLCK, number, 1);
  while (lvd_sys_fcntl_lock(file, wait ? F_SETLKW : F_SETLK, &l) != 0) {
    if (errno == EINTR) continue;
    /* The system takes all threads of a process for one holder. So two processes, each with a
     * thread that waits for a lock of the other, look like a deadlock, and are none. ENOLCK: out of
     * memory, perhaps temporarily. */
    if (!wait || (errno != EDEADLK && errno != ENOLCK)) return false;
    sleep_1_ms();
  }
  return true;
}

void lvd_os_file_lock_release(int file, uint32_t number) {
  struct flock l = range(F_UNLCK, number, 1);
  lvd_sys_fcntl_lock(file, F_SETLK, &l);
}

bool lvd_os_file_lock_is_held(int file, uint32_t first, uint32_t count) {
  struct flock l = range(F_WRLCK, first, count);
  return lvd_sys_fcntl_lock(file, F_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

int32_t lvd_os_file_lock_holder(int file, uint32_t number) {
  struct flock l = range(F_WRLCK, number, 1);
  return lvd_sys_fcntl_lock(file, F_GETLK, &l) == 0 && l.l_type != F_UNLCK ? (int32_t)l.l_pid : 0;
}

/* ---- FIFOs ----------------------------------------------------------------------------------- */

/* Opened for writing, too, so it never reaches its end, and opening it does not block. */
lvd_status lvd_os_fifo_create(int directory, const char *name, int *fifo) {
  lvd_os_directory_remove(directory, name);
  if (lvd_sys_mkfifoat(directory, name, 0600) != 0) return LVD_E_SYSTEM;
  int fd = lvd_sys_openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd >= 0) set_group_mode(directory, fd);
  if (fd >= 0 && lvd_os_is_trusted(directory, fd, S_IFIFO)) {
    *fifo = fd;
    return LVD_OK;
  }
  if (fd >= 0) lvd_sys_close(fd);
  return LVD_E_SYSTEM;
}

int lvd_os_fifo_open(int directory, const char *name) {
  /* With a write-only descriptor, writing to a FIFO without a reader would raise SIGPIPE. */
  int fd = lvd_sys_openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd >= 0 && lvd_os_is_trusted(directory, fd, S_IFIFO)) return fd;
  if (fd >= 0) lvd_sys_close(fd);
  return -1;
}

void lvd_os_fifo_signal(int fifo) {
  ssize_t n = lvd_sys_write(fifo, "", 1); /* full: enough signals are pending */
  (void)n;
}

/* ---- exits of other processes ---------------------------------------------------------------- */

int lvd_os_process_exit_fd(int32_t id) { return id > 0 ? lvd_sys_pidfd_open((pid_t)id) : -1; }

void lvd_os_poll_many(const int *descriptor, bool *ready, uint32_t count, int64_t timeout_ns) {
  struct pollfd fd[POLL_MAX];
  for (uint32_t i = 0; i < count; i++) {
    fd[i] = (struct pollfd){.fd = descriptor[i], .events = POLLIN};
    ready[i] = false;
  }
  int ms = timeout_ns < 0 ? -1 : (int)((timeout_ns + 999999) / 1000000);
  if (lvd_sys_poll(fd, count, ms) <= 0) return;
  for (uint32_t i = 0; i < count; i++) ready[i] = (fd[i].revents & (POLLIN | POLLERR)) != 0;
  char bytes[64];
  ssize_t n = ready[0] ? lvd_sys_read(descriptor[0], bytes, sizeof bytes) : 0;
  (void)n;
}

bool lvd_os_global_barrier_prepare(void) {
#if defined(__SANITIZE_THREAD__)
  return false; /* the sanitizer does not know membarrier */
#else
  long has = LVD_SYS(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0); /* Linux 4.16 */
  if (has < 0 || !(has & MEMBARRIER_CMD_GLOBAL_EXPEDITED)) return false;
  return LVD_SYS(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
#endif
}

void lvd_os_global_barrier(void) { LVD_SYS(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

void lvd_os_block_signals(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
}
