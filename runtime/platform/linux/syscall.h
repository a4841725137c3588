/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Linux system calls, made by the processor's own instruction.
 *
 * ISO C reserves to the program all names that are not its own. A program that defines `pipe` or
 * `read` replaces the C library's function, for the libraries it uses, too. So this layer calls no
 * such function: it uses ISO C, and names that begin with pthread_, sem_, sig, dl or an underscore.
 * Each function here behaves like the one of the same name: returns -1 and sets errno. None is a
 * cancellation point.
 *
 * On processors that are not listed below, the C library's syscall() is called, which a program can
 * replace.
 *
 * Sanitizers track changes of the address space by their own mmap and munmap, which are called if
 * they exist. The memory sanitizer is told what a system call writes. */
#ifndef LVD_LINUX_SYSCALL_H
#define LVD_LINUX_SYSCALL_H

#include <errno.h>
#include <fcntl.h>
#include <levada/base.h>

#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
_Static_assert(sizeof(long) == 8, "64-bit Linux: each argument of a system call is one word");

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define LVD_SYS_WROTE(at, size) __msan_unpoison(at, size)
#endif
#endif
#ifndef LVD_SYS_WROTE
#define LVD_SYS_WROTE(at, size) ((void)0)
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LVD_SYS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define LVD_SYS_SANITIZED 1
#endif
#endif

/* ---- the instruction ------------------------------------------------------------------------- */

/* The result, or -errno. */
#if defined(__x86_64__)
#define LVD_SYS_OWN_ENTRY 1
static inline long lvd_sys_enter(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__) || defined(__riscv)
#define LVD_SYS_OWN_ENTRY 1
#if defined(__aarch64__)
#define LVD_SYS_INSTRUCTION     "svc 0"
#define LVD_SYS_NUMBER_REGISTER "x8"
#define LVD_SYS_REGISTER(n)     "x" #n
#else
#define LVD_SYS_INSTRUCTION     "ecall"
#define LVD_SYS_NUMBER_REGISTER "a7"
#define LVD_SYS_REGISTER(n)     "a" #n
#endif
static inline long lvd_sys_enter(long number, long a, long b, long c, long d, long e, long f) {
  register long n __asm__(LVD_SYS_NUMBER_REGISTER) = number;
  register long r0 __asm__(LVD_SYS_REGISTER(0)) = a;
  register long r1 __asm__(LVD_SYS_REGISTER(1)) = b;
  register long r2 __asm__(LVD_SYS_REGISTER(2)) = c;
  register long r3 __asm__(LVD_SYS_REGISTER(3)) = d;
  register long r4 __asm__(LVD_SYS_REGISTER(4)) = e;
  register long r5 __asm__(LVD_SYS_REGISTER(5)) = f;
  __asm__ volatile(LVD_SYS_INSTRUCTION
                   : "+r"(r0)
                   : "r"(n), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5)
                   : "memory", "cc");
  return r0;
}
#else
static inline long lvd_sys_enter(long number, long a, long b, long c, long d, long e, long f) {
  long result = syscall(number, a, b, c, d, e, f);
  return result == -1 ? -(long)errno : result;
}
#endif

static inline long lvd_sys_result(long result) {
  if ((unsigned long)result <= -4096ul) return result;
  errno = (int)-result;
  return -1;
}

/* Missing arguments are zero. */
#define LVD_SYS_PICK(n, a, b, c, d, e, f, ...)                                                     \
  lvd_sys_result(lvd_sys_enter(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)))
#define LVD_SYS(...) LVD_SYS_PICK(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* ---- descriptors ----------------------------------------------------------------------------- */

/* As in levada/native.h, which is above the port. */
LVD_API void lvd_close_on_fork(int fd, bool on);

/* Every new descriptor passes through this function, since 0 to 2 are the program's standard
 * streams even while they are closed: the system assigns the lowest free number, and the program's
 * output would go into our file. Like gnulib's fd_safer. No system call assigns only numbers from 3
 * on, so the low number is in use for the moment between two system calls. The duplicate closes on
 * exec. Until it is closed, each descriptor is noted for lvd_close_on_fork. */
static inline int lvd_sys_descriptor(long fd) {
  enum { STANDARD = 3 };
  if (fd >= 0 && fd < STANDARD) {
    long other = LVD_SYS(SYS_fcntl, fd, F_DUPFD_CLOEXEC, STANDARD);
    int error = errno;
    LVD_SYS(SYS_close, fd);
    errno = error;
    fd = other;
  }
  if (fd >= 0) lvd_close_on_fork((int)fd, true);
  return (int)fd;
}
static inline int lvd_sys_close(int fd) {
  lvd_close_on_fork(fd, false); /* before the number is another file's */
  return (int)LVD_SYS(SYS_close, fd);
}

static inline int lvd_sys_openat(int directory, const char *path, int flags, mode_t mode) {
  return lvd_sys_descriptor(LVD_SYS(SYS_openat, directory, path, flags, mode));
}
static inline int lvd_sys_open(const char *path, int flags) {
  return lvd_sys_openat(AT_FDCWD, path, flags, 0);
}
static inline int lvd_sys_memfd_create(const char *name, unsigned flags) {
  return lvd_sys_descriptor(LVD_SYS(SYS_memfd_create, name, flags));
}
static inline int lvd_sys_eventfd(unsigned count, int flags) {
  return lvd_sys_descriptor(LVD_SYS(SYS_eventfd2, count, flags));
}
static inline int lvd_sys_epoll_create(int flags) {
  return lvd_sys_descriptor(LVD_SYS(SYS_epoll_create1, flags));
}
static inline int lvd_sys_pidfd_open(pid_t id) { /* Linux 5.3; closes on exec */
  return lvd_sys_descriptor(LVD_SYS(SYS_pidfd_open, id, 0));
}
static inline int lvd_sys_descriptors(int fd[2]) {
  fd[0] = lvd_sys_descriptor(fd[0]);
  fd[1] = lvd_sys_descriptor(fd[1]);
  if (fd[0] >= 0 && fd[1] >= 0) return 0;
  int error = errno;
  for (int i = 0; i < 2; i++)
    if (fd[i] >= 0) lvd_sys_close(fd[i]);
  errno = error;
  return -1;
}
static inline int lvd_sys_pipe(int fd[2], int flags) {
  if (LVD_SYS(SYS_pipe2, fd, flags) != 0) return -1;
  LVD_SYS_WROTE(fd, 2 * sizeof *fd);
  return lvd_sys_descriptors(fd);
}
static inline int lvd_sys_socketpair(int family, int type, int fd[2]) {
  if (LVD_SYS(SYS_socketpair, family, type, 0, fd) != 0) return -1;
  LVD_SYS_WROTE(fd, 2 * sizeof *fd);
  return lvd_sys_descriptors(fd);
}
/* The kernel's names lack the slash with which those of mq_open begin. */
static inline int lvd_sys_mq_open(const char *name, int flags, mode_t mode, struct mq_attr *shape) {
  return lvd_sys_descriptor(LVD_SYS(SYS_mq_open, name + 1, flags | O_CLOEXEC, mode, shape));
}

static inline ssize_t lvd_sys_read(int fd, void *to, size_t size) {
  long n = LVD_SYS(SYS_read, fd, to, size);
  if (n > 0) LVD_SYS_WROTE(to, (size_t)n);
  return n;
}
static inline ssize_t lvd_sys_write(int fd, const void *from, size_t size) {
  return LVD_SYS(SYS_write, fd, from, size);
}
static inline ssize_t lvd_sys_pread(int fd, void *to, size_t size, off_t at) {
  long n = LVD_SYS(SYS_pread64, fd, to, size, at);
  if (n > 0) LVD_SYS_WROTE(to, (size_t)n);
  return n;
}
static inline ssize_t lvd_sys_pwrite(int fd, const void *from, size_t size, off_t at) {
  return LVD_SYS(SYS_pwrite64, fd, from, size, at);
}
static inline ssize_t lvd_sys_sendfile(int to, int from, size_t size) {
  return LVD_SYS(SYS_sendfile, to, from, 0, size);
}
static inline ssize_t lvd_sys_send(int fd, const void *from, size_t size, int flags) {
  return LVD_SYS(SYS_sendto, fd, from, size, flags);
}
static inline ssize_t lvd_sys_recv(int fd, void *to, size_t size, int flags) {
  long n = LVD_SYS(SYS_recvfrom, fd, to, size, flags);
  if (n > 0) LVD_SYS_WROTE(to, (size_t)n);
  return n;
}
static inline int lvd_sys_shutdown(int fd, int how) { return (int)LVD_SYS(SYS_shutdown, fd, how); }
static inline int lvd_sys_fcntl(int fd, int command, long value) {
  return (int)LVD_SYS(SYS_fcntl, fd, command, value);
}
static inline int lvd_sys_fcntl_lock(int fd, int command, struct flock *lock) {
  int result = (int)LVD_SYS(SYS_fcntl, fd, command, lock);
  LVD_SYS_WROTE(lock, sizeof *lock);
  return result;
}
static inline int lvd_sys_ioctl(int fd, unsigned long request, void *argument) {
  return (int)LVD_SYS(SYS_ioctl, fd, request, argument);
}
static inline int lvd_sys_poll(struct pollfd *fd, size_t count, int timeout_ms) {
  struct timespec limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
  int n = (int)LVD_SYS(SYS_ppoll, fd, count, timeout_ms < 0 ? NULL : &limit);
  if (n >= 0) LVD_SYS_WROTE(fd, count * sizeof *fd);
  return n;
}
static inline int lvd_sys_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event) {
  return (int)LVD_SYS(SYS_epoll_ctl, epoll, what, fd, event);
}
static inline int lvd_sys_epoll_wait(int epoll, struct epoll_event *event, int most, int limit_ms) {
  int n = (int)LVD_SYS(SYS_epoll_pwait, epoll, event, most, limit_ms);
  if (n > 0) LVD_SYS_WROTE(event, (size_t)n * sizeof *event);
  return n;
}
static inline int lvd_sys_mq_unlink(const char *name) {
  return (int)LVD_SYS(SYS_mq_unlink, name + 1);
}
static inline int lvd_sys_mq_getattr(int queue, struct mq_attr *shape) {
  int result = (int)LVD_SYS(SYS_mq_getsetattr, queue, NULL, shape);
  LVD_SYS_WROTE(shape, sizeof *shape);
  return result;
}
static inline int lvd_sys_mq_send(int queue, const void *from, size_t size, unsigned priority) {
  return (int)LVD_SYS(SYS_mq_timedsend, queue, from, size, priority);
}
static inline ssize_t lvd_sys_mq_receive(int queue, void *to, size_t size, unsigned *priority) {
  long n = LVD_SYS(SYS_mq_timedreceive, queue, to, size, priority);
  if (n >= 0) LVD_SYS_WROTE(to, (size_t)n);
  LVD_SYS_WROTE(priority, sizeof *priority);
  return n;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The kernel's struct statx; C libraries have it since 2018 (glibc) and 2024 (musl). */
struct lvd_sys_statx {
  uint32_t stx_mask, stx_blksize;
  uint64_t stx_attributes;
  uint32_t stx_nlink, stx_uid, stx_gid;
  uint16_t stx_mode, unused;
  uint64_t stx_ino, stx_size, stx_blocks, stx_attributes_mask;
  uint64_t times[8];
  uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
  uint64_t later[14];
};
_Static_assert(sizeof(struct lvd_sys_statx) == 256 &&
                   offsetof(struct lvd_sys_statx, stx_dev_minor) == 140,
               "as the kernel writes it");

/* Of `path` relative to the descriptor; or, if `path` is empty, of the descriptor itself. */
static inline int lvd_sys_stat(int fd, const char *path, struct lvd_sys_statx *out) {
  enum { BASIC = 0x7ff }; /* STATX_BASIC_STATS */
  int flags = *path ? 0 : AT_EMPTY_PATH;
  int result = (int)LVD_SYS(SYS_statx, fd, path, flags, BASIC, out);
  LVD_SYS_WROTE(out, sizeof *out);
  return result;
}
static inline int lvd_sys_access(const char *path, int how) {
  return (int)LVD_SYS(SYS_faccessat, AT_FDCWD, path, how);
}
static inline int lvd_sys_ftruncate(int fd, off_t size) {
  return (int)LVD_SYS(SYS_ftruncate, fd, size);
}
static inline int lvd_sys_fallocate(int fd, int how, off_t at, off_t size) {
  return (int)LVD_SYS(SYS_fallocate, fd, how, at, size);
}
static inline int lvd_sys_fchmod(int fd, mode_t mode) { return (int)LVD_SYS(SYS_fchmod, fd, mode); }
static inline int lvd_sys_chmod(const char *path, mode_t mode) {
  return (int)LVD_SYS(SYS_fchmodat, AT_FDCWD, path, mode);
}
static inline int lvd_sys_chown(const char *path, uid_t user, gid_t group) {
  return (int)LVD_SYS(SYS_fchownat, AT_FDCWD, path, user, group);
}
static inline int lvd_sys_mkdir(const char *path, mode_t mode) {
  return (int)LVD_SYS(SYS_mkdirat, AT_FDCWD, path, mode);
}
static inline int lvd_sys_mkfifoat(int directory, const char *path, mode_t mode) {
  return (int)LVD_SYS(SYS_mknodat, directory, path, mode | S_IFIFO);
}
static inline int lvd_sys_unlinkat(int directory, const char *path, int flags) {
  return (int)LVD_SYS(SYS_unlinkat, directory, path, flags);
}
static inline int lvd_sys_rmdir(const char *path) {
  return lvd_sys_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}
static inline int lvd_sys_renameat(int from, const char *path, int to, const char *other,
                                   unsigned flags) {
  return (int)LVD_SYS(SYS_renameat2, from, path, to, other, flags);
}
/* Calls each(what, name) for every entry of a directory, including "." and "..". */
static inline bool lvd_sys_list(int directory, void (*each)(void *what, const char *name),
                                void *what) {
  struct entry { /* linux_dirent64 */
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
  };
  _Alignas(8) char some[2048];
  long n;
  while ((n = LVD_SYS(SYS_getdents64, directory, some, sizeof some)) > 0) {
    LVD_SYS_WROTE(some, (size_t)n);
    for (long at = 0; at < n;) {
      const struct entry *e = (const struct entry *)(some + at);
      at += e->size;
      each(what, e->name);
    }
  }
  return n == 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

extern void *__interceptor_mmap(void *, size_t, int, int, int, off_t) __attribute__((weak));
extern int __interceptor_munmap(void *, size_t) __attribute__((weak));

static inline void *lvd_sys_mmap(void *at, size_t size, int protection, int flags, int fd,
                                 off_t offset) {
  if (__interceptor_mmap) return __interceptor_mmap(at, size, protection, flags, fd, offset);
  return (void *)LVD_SYS(SYS_mmap, at, size, protection, flags, fd, offset);
}
static inline int lvd_sys_munmap(void *at, size_t size) {
  if (__interceptor_munmap) return __interceptor_munmap(at, size);
  return (int)LVD_SYS(SYS_munmap, at, size);
}
static inline void *lvd_sys_mremap(void *at, size_t size, size_t to, int flags, void *where) {
  return (void *)LVD_SYS(SYS_mremap, at, size, to, flags, where);
}
static inline int lvd_sys_mprotect(void *at, size_t size, int protection) {
  return (int)LVD_SYS(SYS_mprotect, at, size, protection);
}
static inline int lvd_sys_madvise(void *at, size_t size, int advice) {
  return (int)LVD_SYS(SYS_madvise, at, size, advice);
}
static inline int lvd_sys_mincore(void *at, size_t size, unsigned char *there) {
  int result = (int)LVD_SYS(SYS_mincore, at, size, there);
  LVD_SYS_WROTE(there, 1);
  return result;
}
size_t lvd_sys_page_size(void);

/* ---- processes and threads ------------------------------------------------------------------- */

static inline pid_t lvd_sys_getpid(void) { return (pid_t)LVD_SYS(SYS_getpid); }
static inline pid_t lvd_sys_getppid(void) { return (pid_t)LVD_SYS(SYS_getppid); }
static inline pid_t lvd_sys_gettid(void) { return (pid_t)LVD_SYS(SYS_gettid); }
static inline uid_t lvd_sys_geteuid(void) { return (uid_t)LVD_SYS(SYS_geteuid); }
static inline int lvd_sys_kill(pid_t id, int number) { return (int)LVD_SYS(SYS_kill, id, number); }
static inline int lvd_sys_tgkill(pid_t process, pid_t thread, int number) {
  return (int)LVD_SYS(SYS_tgkill, process, thread, number);
}
static inline pid_t lvd_sys_waitpid(pid_t id, int *how, int flags) {
  pid_t ended = (pid_t)LVD_SYS(SYS_wait4, id, how, flags);
  LVD_SYS_WROTE(how, sizeof *how);
  return ended;
}
static inline int lvd_sys_getrlimit(int what, struct rlimit *out) {
  int result = (int)LVD_SYS(SYS_prlimit64, 0, what, NULL, out);
  LVD_SYS_WROTE(out, sizeof *out);
  return result;
}
static inline int lvd_sys_setrlimit(int what, const struct rlimit *to) {
  return (int)LVD_SYS(SYS_prlimit64, 0, what, to);
}
static inline int lvd_sys_getrusage(int target, struct rusage *out) {
  int result = (int)LVD_SYS(SYS_getrusage, target, out);
  LVD_SYS_WROTE(out, sizeof *out);
  return result;
}
static inline int lvd_sys_setpriority(int what, id_t target, int nice) {
  return (int)LVD_SYS(SYS_setpriority, what, target, nice);
}
/* Of the calling thread. The kernel's mask may be shorter than `out`; the rest is cleared. */
static inline int lvd_sys_getaffinity(size_t size, cpu_set_t *out) {
  long n = LVD_SYS(SYS_sched_getaffinity, 0, size, out);
  if (n < 0) return -1;
  LVD_SYS_WROTE(out, (size_t)n);
  memset((char *)out + n, 0, size - (size_t)n);
  return 0;
}
static inline int lvd_sys_setaffinity(size_t size, const cpu_set_t *to) {
  return (int)LVD_SYS(SYS_sched_setaffinity, 0, size, to);
}
static inline int lvd_sys_setscheduler(int policy, const struct sched_param *p) {
  return (int)LVD_SYS(SYS_sched_setscheduler, 0, policy, p);
}
/* The core on which the caller runs; -1: unknown. */
int lvd_sys_getcpu(void);

/* ---- time ------------------------------------------------------------------------------------ */

/* By the vDSO, like the C library. */
int lvd_sys_clock_gettime(clockid_t clock, struct timespec *out);
/* `rest` may be null; the remaining time after a signal. */
static inline int lvd_sys_nanosleep(const struct timespec *time, struct timespec *rest) {
  int result = (int)LVD_SYS(SYS_nanosleep, time, rest);
  if (rest) LVD_SYS_WROTE(rest, sizeof *rest);
  return result;
}
typedef int lvd_sys_timer;
static inline int lvd_sys_timer_create(clockid_t clock, struct sigevent *event,
                                       lvd_sys_timer *out) {
  int result = (int)LVD_SYS(SYS_timer_create, clock, event, out);
  LVD_SYS_WROTE(out, sizeof *out);
  return result;
}
static inline int lvd_sys_timer_settime(lvd_sys_timer timer, const struct itimerspec *time) {
  return (int)LVD_SYS(SYS_timer_settime, timer, 0, time);
}
static inline int lvd_sys_timer_delete(lvd_sys_timer timer) {
  return (int)LVD_SYS(SYS_timer_delete, timer);
}

/* An entry of the auxiliary vector (getauxval); 0: not available. */
unsigned long lvd_sys_auxiliary(unsigned long type);

#endif
