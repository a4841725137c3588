/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Processes on Linux: sealed memfds, socket pairs, pidfds.
 *
 * Processes signal each other with sockets instead of eventfds: O_NONBLOCK of an eventfd can be
 * changed by either side, and the other side may misbehave, whereas MSG_DONTWAIT applies to the
 * single call. */
#include "../process.h"
#include "syscall.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

/* Their public names are weak aliases in the C library, which a program may replace. */
extern char **__environ;
extern char *__progname;

enum { POLL_MS = 20 }; /* milliseconds between polls of a process that has no pidfd */

int32_t lvd_os_process_self(void) { return (int32_t)lvd_sys_getpid(); }

/* ---- processes ------------------------------------------------------------------------------- */

bool lvd_os_process_is_self(const char *program) {
  struct lvd_sys_statx a, b;
  if (!strchr(program, '/') && strcmp(program, __progname) == 0) return true;
  return *program && lvd_sys_stat(AT_FDCWD, program, &a) == 0 &&
         lvd_sys_stat(AT_FDCWD, "/proc/self/exe", &b) == 0 && a.stx_ino == b.stx_ino &&
         a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor;
}

static int open_pidfd(pid_t id) { return lvd_sys_pidfd_open(id); }

/* The environment with one more variable; null: no memory. */
static char **environment_with(char *variable, size_t name_length) {
  size_t n = 0, kept = 0;
  while (__environ && __environ[n]) n++;
  char **out = calloc(n + 2, sizeof *out);
  if (!out) return NULL;
  for (size_t i = 0; i < n; i++)
    if (strncmp(__environ[i], variable, name_length + 1) != 0) out[kept++] = __environ[i];
  out[kept] = variable;
  return out;
}

void lvd_os_unset_variable(const char *name) {
  size_t length = strlen(name);
  char **kept = __environ;
  for (char **at = __environ; at && *at; at++)
    if (strncmp(*at, name, length) != 0 || (*at)[length] != '=') *kept++ = *at;
  if (kept) *kept = NULL;
}

/* State for starting a program. Until it executes the program, the child may share its parent's
 * memory, and the parent waits: so the child makes system calls only, and runs no signal
 * handlers. */
typedef struct start {
  const char *program, *path; /* where it is searched; null: nowhere else */
  char **argument, **environment;
  const int *keep;
  uint32_t count;
  int error;
  char file[4096];
  _Alignas(16) unsigned char stack[16384];
} start;

static void execute(start *s, const char *file) {
  long error =
      -lvd_sys_enter(SYS_execve, (long)file, (long)s->argument, (long)s->environment, 0, 0, 0);
  /* EACCES is more informative than the absence of a later candidate. */
  if (s->error != EACCES) s->error = (int)error;
}

/* Resets signals that have a handler to their default action, as execve would. */
static void reset_handlers(void) {
  enum {
    SIGNALS = 64,
    SET = SIGNALS / 8,
    HANDLER = 0,
    WORDS = 8
  }; /* layout of the kernel's struct sigaction */
  for (int i = 1; i <= SIGNALS; i++) {
    unsigned long current[WORDS] = {0}, default_action[WORDS] = {0};
    if (lvd_sys_enter(SYS_rt_sigaction, i, 0, (long)current, SET, 0, 0) == 0 &&
        current[HANDLER] != (unsigned long)SIG_DFL && current[HANDLER] != (unsigned long)SIG_IGN)
      lvd_sys_enter(SYS_rt_sigaction, i, (long)default_action, 0, SET, 0, 0);
  }
}

static void child(start *s) {
  uint64_t none = 0;
  reset_handlers();
  /* A standard stream that is closed here fails in the child, too, and its number is not reused
   * (like gnulib's stdopen). */
  for (int i = 0; i <= STDERR_FILENO; i++)
    if (lvd_sys_enter(SYS_fcntl, i, F_GETFD, 0, 0, 0, 0) < 0)
      lvd_sys_enter(SYS_openat, AT_FDCWD, (long)"/dev/null", i ? O_RDONLY : O_WRONLY, 0, 0, 0);
  for (uint32_t i = 0; i < s->count; i++) lvd_sys_enter(SYS_fcntl, s->keep[i], F_SETFD, 0, 0, 0, 0);
  lvd_sys_enter(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof none, 0, 0);
  if (!s->path) execute(s, s->program);
  size_t length = strlen(s->program) + 1;
  for (const char *at = s->path, *end; at; at = *end ? end + 1 : NULL) {
    size_t n = strcspn(at, ":");
    end = at + n;
    if (n + 1 + length > sizeof s->file) continue;
    memcpy(s->file, at, n);
    s->file[n] = '/';
    /* an empty entry is the current directory */
    memcpy(s->file + n + (n != 0), s->program, length);
    execute(s, s->file);
  }
  lvd_sys_enter(SYS_exit_group, 127, 0, 0, 0, 0, 0);
}

/* Starts a process that calls child(s); returns its ID once it has executed the program or has
 * ended; or -errno. If memory is shared (CLONE_VM), the child runs on a stack of its own. Under a
 * sanitizer, which tracks each stack, and on other processors, memory is copied, which takes
 * longer. */
static long start_process(start *s) {
#if defined(LVD_SYS_OWN_ENTRY) && !defined(LVD_SYS_SANITIZED)
  const long how = CLONE_VM | CLONE_VFORK | SIGCHLD;
  unsigned char *top = s->stack + sizeof s->stack;
#if defined(__x86_64__)
  long id;
  register void (*call)(start *) __asm__("r12") = child;
  register start *argument __asm__("r13") = s;
  register long parent_thread __asm__("r10") = 0;
  __asm__ volatile("syscall\n\t"
                   "test %%rax, %%rax\n\t"
                   "jnz 1f\n\t"
                   "xor %%ebp, %%ebp\n\t"
                   "mov %%r13, %%rdi\n\t"
                   "call *%%r12\n\t"
                   "hlt\n"
                   "1:"
                   : "=a"(id)
                   : "a"((long)SYS_clone), "D"(how), "S"(top), "d"(0l), "r"(parent_thread),
                     "r"(call), "r"(argument)
                   : "rcx", "r8", "r9", "r11", "memory", "cc");
  return id;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = SYS_clone;
  register long x0 __asm__("x0") = how;
  register unsigned char *x1 __asm__("x1") = top;
  register long x2 __asm__("x2") = 0, x3 __asm__("x3") = 0, x4 __asm__("x4") = 0;
  register void (*call)(start *) __asm__("x9") = child;
  register start *argument __asm__("x10") = s;
  __asm__ volatile("svc 0\n\t"
                   "cbnz x0, 1f\n\t"
                   "mov x29, xzr\n\t"
                   "mov x0, x10\n\t"
                   "blr x9\n\t"
                   "brk 0\n"
                   "1:"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(call), "r"(argument)
                   : "memory", "cc");
  return x0;
#else
  register long a7 __asm__("a7") = SYS_clone;
  register long a0 __asm__("a0") = how;
  register unsigned char *a1 __asm__("a1") = top;
  register long a2 __asm__("a2") = 0, a3 __asm__("a3") = 0, a4 __asm__("a4") = 0;
  register void (*call)(start *) __asm__("t3") = child;
  register start *argument __asm__("t4") = s;
  __asm__ volatile("ecall\n\t"
                   "bnez a0, 1f\n\t"
                   "mv s0, zero\n\t"
                   "mv a0, t4\n\t"
                   "jalr t3\n\t"
                   "ebreak\n"
                   "1:"
                   : "+r"(a0)
                   : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(call), "r"(argument)
                   : "memory");
  return a0;
#endif
#else
  long id = lvd_sys_enter(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0);
  if (id == 0) child(s);
  return id;
#endif
}

/* 0, or an error number. `s` is shared with the child even if other memory is not. */
static int spawn(pid_t *id, const char *program, char **argument, char **environment,
                 const int *keep, uint32_t count) {
  sigset_t all, before;
  start *s =
      lvd_sys_mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED) return ENOMEM;
  s->program = program;
  s->argument = argument;
  s->environment = environment;
  s->keep = keep;
  s->count = count;
  if (!strchr(program, '/')) {
    s->path = getenv("PATH");
    if (!s->path) s->path = "/bin:/usr/bin";
  }
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  long started = start_process(s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  int error = started < 0 ? (int)-started : s->error;
  if (started > 0 && error) {
    int how;
    while (lvd_sys_waitpid((pid_t)started, &how, 0) < 0 && errno == EINTR) {
    }
  }
  lvd_sys_munmap(s, sizeof *s);
  *id = (pid_t)started;
  return error;
}

lvd_status lvd_os_process_start(lvd_os_process *p, const char *program, const char *const *argument,
                                const char *name, const char *value, const int *keep,
                                uint32_t count) {
  size_t arguments = 0;
  while (argument && argument[arguments]) arguments++;
  char **argv = calloc(arguments + 2, sizeof *argv);
  char *variable = name ? malloc(strlen(name) + strlen(value) + 2) : NULL;
  char **environment = name ? NULL : __environ;
  lvd_status status = LVD_E_MEMORY;
  if (argv && variable) {
    sprintf(variable, "%s=%s", name, value);
    environment = environment_with(variable, strlen(name));
  }
  if (argv && environment) {
    argv[0] = (char *)(uintptr_t)program;
    for (size_t i = 0; i < arguments; i++) argv[i + 1] = (char *)(uintptr_t)argument[i];
    pid_t id;
    int error = spawn(&id, program, argv, environment, keep, count);
    status = error == 0                            ? LVD_OK
             : error == ENOENT || error == ENOTDIR ? LVD_E_NOT_FOUND
             : error == ENOMEM                     ? LVD_E_MEMORY
                                                   : LVD_E_SYSTEM;
    if (error == 0) *p = (lvd_os_process){.id = (int32_t)id, .pidfd = open_pidfd(id)};
  }
  free(argv);
  free(variable);
  if (name) free(environment);
  return status;
}

bool lvd_os_file_is_readable(const char *name) { return *name && lvd_sys_access(name, R_OK) == 0; }

lvd_status lvd_os_file_read_start(const char *name, void *to, size_t room, size_t *size) {
  int fd = lvd_sys_open(name, O_RDONLY | O_CLOEXEC);
  ssize_t n = 1;
  *size = 0;
  if (fd < 0) return LVD_E_NOT_FOUND;
  while (*size < room && n > 0) {
    n = lvd_sys_read(fd, (char *)to + *size, room - *size);
    if (n > 0) *size += (size_t)n;
    if (n < 0 && errno == EINTR) n = 1;
  }
  lvd_sys_close(fd);
  return n < 0 ? LVD_E_SYSTEM : LVD_OK;
}

bool lvd_os_file_is_special(const char *name) {
  struct lvd_sys_statx s;
  return *name && lvd_sys_stat(AT_FDCWD, name, &s) == 0 && !S_ISREG(s.stx_mode);
}

bool lvd_os_program_exists(const char *program) {
  if (strchr(program, '/')) return lvd_sys_access(program, X_OK) == 0;
  const char *path = getenv("PATH");
  if (!path) path = "/bin:/usr/bin";
  for (size_t n; *path; path += n + (path[n] == ':')) {
    char file[4096];
    n = strcspn(path, ":");
    int size = snprintf(file, sizeof file, "%.*s/%s", (int)n, path, program);
    if (size > 0 && (size_t)size < sizeof file && lvd_sys_access(file, X_OK) == 0) return true;
  }
  return false;
}

lvd_status lvd_os_process_parent(lvd_os_process *p, int32_t id) {
  *p = (lvd_os_process){.id = id, .pidfd = open_pidfd((pid_t)id), .parent = true};
  /* It was still the parent after the pidfd was opened, so the pidfd refers to it. */
  if (lvd_sys_getppid() == (pid_t)id) return LVD_OK;
  lvd_os_process_close(p);
  return LVD_E_PEER_GONE;
}

bool lvd_os_process_has_exited(lvd_os_process *p) {
  if (p->parent) return lvd_sys_getppid() != (pid_t)p->id;
  int how;
  pid_t id = lvd_sys_waitpid((pid_t)p->id, &how, WNOHANG);
  if (id == (pid_t)p->id) p->how = how;
  p->how_is_known = id == (pid_t)p->id;
  return p->how_is_known || (id < 0 && errno == ECHILD);
}

static const char *signal_name(int number) {
  static const struct {
    int number;
    const char *name;
  } all[] = {{SIGABRT, "SIGABRT"}, {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},  {SIGFPE, "SIGFPE"},
             {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"},  {SIGKILL, "SIGKILL"},
             {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},   {SIGHUP, "SIGHUP"},  {SIGPIPE, "SIGPIPE"},
             {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGALRM, "SIGALRM"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].number == number) return all[i].name;
  return "unknown";
}

bool lvd_os_process_crashed(const lvd_os_process *p) {
  static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (p->how_is_known && WIFSIGNALED(p->how) && WTERMSIG(p->how) == faults[i]) return true;
  return false;
}

size_t lvd_os_process_exit_text(const lvd_os_process *p, char *text, size_t size) {
  int n = 0;
  if (p->how_is_known && WIFSIGNALED(p->how))
    n = snprintf(text, size, "it was ended by signal %d (%s)", WTERMSIG(p->how),
                 signal_name(WTERMSIG(p->how)));
  else if (p->how_is_known)
    n = snprintf(text, size, "it exited with status %d", WEXITSTATUS(p->how));
  return n > 0 ? (size_t)n : 0;
}

void lvd_os_process_kill(const lvd_os_process *p) {
  lvd_sys_kill((pid_t)p->id, p->needs_sigterm ? SIGTERM : SIGKILL);
}

void lvd_os_process_exit(void) {
  /* not _exit, in which a sanitizer would wait for threads that do not end */
  for (;;) LVD_SYS(SYS_exit_group, 1);
}

void lvd_os_process_close(lvd_os_process *p) {
  if (p->pidfd >= 0) lvd_sys_close(p->pidfd);
  p->pidfd = -1;
}

/* ---- waking another process, or a thread of this one ----------------------------------------- */

lvd_status lvd_os_socketpair(int socket[2], bool stream) {
  int type = stream ? SOCK_STREAM : SOCK_DGRAM;
  return lvd_sys_socketpair(AF_UNIX, type | SOCK_CLOEXEC, socket) == 0 ? LVD_OK : LVD_E_SYSTEM;
}

void lvd_os_socket_signal(int socket) {
  /* If the buffer is full, enough signals are pending. If there is no receiver, its exit is noticed
   * otherwise. */
  ssize_t n = lvd_sys_send(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)n;
}

lvd_status lvd_os_eventfd_create(int *eventfd) {
  *eventfd = lvd_sys_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return *eventfd < 0 ? LVD_E_SYSTEM : LVD_OK;
}

void lvd_os_eventfd_signal(int eventfd) {
  ssize_t n = lvd_sys_write(eventfd, &(uint64_t){1}, sizeof(uint64_t));
  (void)n;
}

void lvd_os_eventfd_clear(int eventfd) {
  uint64_t count;
  ssize_t n = lvd_sys_read(eventfd, &count, sizeof count);
  (void)n;
}

void lvd_os_signal_wait(int socket, int eventfd, const lvd_os_process *p, int64_t timeout_ns) {
  struct pollfd fd[3] = {{.fd = socket, .events = POLLIN},
                         {.fd = eventfd, .events = POLLIN},
                         {.fd = p->pidfd, .events = POLLIN}}; /* negative descriptors are ignored */
  int ms = timeout_ns < 0                          ? -1
           : timeout_ns > (int64_t)60000 * 1000000 ? 60000
                                                   : (int)((timeout_ns + 999999) / 1000000);
  if (p->pidfd < 0 && (ms < 0 || ms > POLL_MS)) ms = POLL_MS;
  if (lvd_sys_poll(fd, 3, ms) <= 0) return;
  char byte[16];
  uint64_t count;
  ssize_t n = 0;
  /* Reads a bounded number of signals: a process that signals without end must not keep the caller
   * here. */
  for (int i = 0; i < 16 && fd[0].revents & POLLIN && n >= 0; i++)
    n = lvd_sys_recv(socket, byte, sizeof byte, MSG_DONTWAIT);
  /* No process holds the other end of the stream: its holder is exiting, or is polled for. */
  bool hung_up = n == 0 && fd[0].revents & POLLHUP;
  if (fd[1].revents & POLLIN)
    n = lvd_sys_read(eventfd, &count, sizeof count);
  else if (hung_up)
    lvd_sys_poll(fd + 1, 2, POLL_MS);
}

long lvd_os_socket_receive(int socket, char *bytes, size_t room, uint64_t timeout_ns) {
  struct pollfd fd = {.fd = socket, .events = POLLIN};
  uint64_t ms = timeout_ns / 1000000 + 1;
  if (lvd_sys_poll(&fd, 1, ms > 60000 ? 60000 : (int)ms) <= 0) return -1;
  ssize_t n = lvd_sys_recv(socket, bytes, room, MSG_DONTWAIT);
  /* A process that exits with unread data leaves an error (ECONNRESET) instead of the end of the
   * stream. */
  return n < 0 && errno != EINTR && errno != EAGAIN ? 0 : (long)n;
}

void lvd_os_socket_shutdown(int socket) { lvd_sys_shutdown(socket, SHUT_WR); }

void lvd_os_close(int descriptor) {
  if (descriptor >= 0) lvd_sys_close(descriptor);
}

void lvd_os_set_close_on_exec(int descriptor) { lvd_sys_fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

/* ---- shared memory --------------------------------------------------------------------------- */

lvd_status lvd_os_shared_create(size_t size, int *memory) {
  int fd = lvd_sys_memfd_create("levada-unit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return LVD_E_SYSTEM;
  if (lvd_sys_ftruncate(fd, (off_t)size) != 0 ||
      lvd_sys_fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    lvd_sys_close(fd);
    return LVD_E_SYSTEM;
  }
  *memory = fd;
  return LVD_OK;
}

lvd_status lvd_os_shared_size(int memory, size_t *size) {
  struct lvd_sys_statx s;
  if (lvd_sys_stat(memory, "", &s) != 0) return LVD_E_SYSTEM;
  *size = s.stx_size;
  return LVD_OK;
}

lvd_status lvd_os_shared_commit(int memory, size_t offset, size_t size) {
  int result;
  do result = lvd_sys_fallocate(memory, 0, (off_t)offset, (off_t)size);
  while (result != 0 && errno == EINTR); /* interrupted by a signal */
  /* A file system without this call allocates memory at the first access. */
  return result == 0 || errno == EOPNOTSUPP || errno == ENOSYS ? LVD_OK : LVD_E_MEMORY;
}

void lvd_os_shared_decommit(int memory, size_t offset, size_t size) {
  int n = lvd_sys_fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                            (off_t)size);
  (void)n;
}

void *lvd_os_shared_map_at(void *p, int memory, size_t offset, size_t head, size_t ring) {
  size_t all = head + 2 * ring;
  unsigned char *base =
      p ? p
        : lvd_sys_mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return NULL;
  const int how = PROT_READ | PROT_WRITE, fixed = MAP_SHARED | MAP_FIXED;
  if (lvd_sys_mmap(base, head + ring, how, fixed, memory, (off_t)offset) == MAP_FAILED ||
      (ring && lvd_sys_mmap(base + head + ring, ring, how, fixed, memory, (off_t)(offset + head)) ==
                   MAP_FAILED)) {
    if (!p) lvd_sys_munmap(base, all);
    return NULL;
  }
  return base;
}

void *lvd_os_shared_map(int memory, size_t offset, size_t head, size_t ring) {
  return lvd_os_shared_map_at(NULL, memory, offset, head, ring);
}

bool lvd_os_replace_mapping(void *p, void *own, size_t size) {
  return lvd_sys_mremap(own, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p;
}

void lvd_os_shared_unmap(void *p, size_t head, size_t ring) {
  if (p) lvd_sys_munmap(p, head + 2 * ring);
}
