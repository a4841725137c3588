/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Processes on Linux: a sealed memfd, a pair of sockets, a descriptor for the process itself.
 *
 * Bells are sockets, not eventfds, since whether those block is for both sides to say, and the other
 * side may be mad: a send that must not block says so itself. */
#include "process.h"

#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { LOOK_MS = 20 }; /* how often we look after a process that has no descriptor */

int32_t lvd_port_process_self(void) { return (int32_t)getpid(); }

/* ---- processes ---------------------------------------------------------------------------- */

bool lvd_port_process_is_self(const char *program) {
  struct stat a, b;
  if (!strchr(program, '/') && strcmp(program, program_invocation_short_name) == 0) return true;
  return stat(program, &a) == 0 && stat("/proc/self/exe", &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

static int handle_of(pid_t id) {
  long fd = syscall(SYS_pidfd_open, id, 0); /* Linux 5.3; it closes on exec */
  return fd < 0 ? -1 : lvd_port_descriptor((int)fd);
}

/* environ with one more; null: no memory. */
static char **environment_with(char *variable, size_t name_length) {
  size_t n = 0, kept = 0;
  while (environ[n]) n++;
  char **out = calloc(n + 2, sizeof *out);
  if (!out) return NULL;
  for (size_t i = 0; i < n; i++)
    if (strncmp(environ[i], variable, name_length + 1) != 0) out[kept++] = environ[i];
  out[kept] = variable;
  return out;
}

lvd_status lvd_port_process_start(lvd_port_process *p, const char *program,
                                  const char *const *argument, const char *name, const char *value,
                                  const int *keep, uint32_t count) {
  size_t arguments = 0;
  while (argument && argument[arguments]) arguments++;
  char **argv = calloc(arguments + 2, sizeof *argv);
  char *variable = name ? malloc(strlen(name) + strlen(value) + 2) : NULL;
  char **environment = name ? NULL : environ;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  lvd_status status = LVD_E_MEMORY;
  if (argv && variable) {
    sprintf(variable, "%s=%s", name, value);
    environment = environment_with(variable, strlen(name));
  }
  if (argv && environment && posix_spawn_file_actions_init(&actions) == 0) {
    if (posix_spawnattr_init(&attributes) == 0) {
      sigset_t none;
      sigemptyset(&none);
      posix_spawnattr_setsigmask(&attributes, &none);
      posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
      argv[0] = (char *)(uintptr_t)program;
      for (size_t i = 0; i < arguments; i++) argv[i + 1] = (char *)(uintptr_t)argument[i];
      /* A standard stream that is closed here fails there, too, and its number is no other file's (gnulib's stdopen). */
      for (int i = 0; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0)
          posix_spawn_file_actions_addopen(&actions, i, "/dev/null", i ? O_RDONLY : O_WRONLY, 0);
      /* Onto itself: it stays open in the child, and in no other that is started meanwhile. */
      for (uint32_t i = 0; i < count; i++)
        posix_spawn_file_actions_adddup2(&actions, keep[i], keep[i]);
      pid_t id;
      int error = posix_spawnp(&id, program, &actions, &attributes, argv, environment);
      status = error == 0                            ? LVD_OK
               : error == ENOENT || error == ENOTDIR ? LVD_E_UNKNOWN
               : error == ENOMEM                     ? LVD_E_MEMORY
                                                     : LVD_E_SYSTEM;
      if (error == 0) *p = (lvd_port_process){(int32_t)id, handle_of(id), false, false};
      posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
  }
  free(argv);
  free(variable);
  if (name) free(environment);
  return status;
}

bool lvd_port_file_is_special(const char *name) {
  struct stat s;
  return stat(name, &s) == 0 && !S_ISREG(s.st_mode);
}

bool lvd_port_program_is_there(const char *program) {
  if (strchr(program, '/')) return access(program, X_OK) == 0;
  const char *path = getenv("PATH");
  if (!path) path = "/bin:/usr/bin";
  for (size_t n; *path; path += n + (path[n] == ':')) {
    char file[4096];
    n = strcspn(path, ":");
    int size = snprintf(file, sizeof file, "%.*s/%s", (int)n, path, program);
    if (size > 0 && (size_t)size < sizeof file && access(file, X_OK) == 0) return true;
  }
  return false;
}

lvd_status lvd_port_process_parent(lvd_port_process *p, int32_t id) {
  *p = (lvd_port_process){id, handle_of((pid_t)id), true, false};
  /* If it was still there after we had the descriptor, then it is the right one's. */
  if (getppid() == (pid_t)id) return LVD_OK;
  lvd_port_process_close(p);
  return LVD_E_PEER;
}

bool lvd_port_process_gone(const lvd_port_process *p) {
  if (p->parent) return getppid() != (pid_t)p->id;
  int how;
  pid_t id = waitpid((pid_t)p->id, &how, WNOHANG);
  return id == (pid_t)p->id || (id < 0 && errno == ECHILD);
}

void lvd_port_process_kill(const lvd_port_process *p) {
  kill((pid_t)p->id, p->asked ? SIGTERM : SIGKILL);
}

void lvd_port_process_exit(void) {
  syscall(SYS_exit_group, 1); /* not _exit, in which a sanitizer would wait for what does not end */
  _exit(1);
}

void lvd_port_process_close(lvd_port_process *p) {
  if (p->handle >= 0) close(p->handle);
  p->handle = -1;
}

/* ---- bells -------------------------------------------------------------------------------- */

lvd_status lvd_port_bells_make(int bell[2], bool wire) {
  int type = wire ? SOCK_STREAM : SOCK_DGRAM;
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, bell) != 0) return LVD_E_SYSTEM;
  for (int i = 0; i < 2; i++) bell[i] = lvd_port_descriptor(bell[i]);
  if (bell[0] >= 0 && bell[1] >= 0) return LVD_OK;
  for (int i = 0; i < 2; i++) lvd_port_close(bell[i]);
  return LVD_E_SYSTEM;
}

void lvd_port_bell_ring(int bell) {
  /* Full: it has been rung often enough. Nobody there: it has been seen, or will be. */
  ssize_t n = send(bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)n;
}

lvd_status lvd_port_own_bell_make(int *bell) {
  *bell = lvd_port_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return *bell < 0 ? LVD_E_SYSTEM : LVD_OK;
}

void lvd_port_own_bell_ring(int bell) {
  ssize_t n = write(bell, &(uint64_t){1}, sizeof(uint64_t));
  (void)n;
}

void lvd_port_own_bell_silence(int bell) {
  uint64_t count;
  ssize_t n = read(bell, &count, sizeof count);
  (void)n;
}

void lvd_port_bell_wait(int bell, int own, const lvd_port_process *p, int64_t timeout_ns) {
  struct pollfd fd[3] = {{.fd = bell, .events = POLLIN},
                         {.fd = own, .events = POLLIN},
                         {.fd = p->handle, .events = POLLIN}}; /* negative ones are passed over */
  int ms = timeout_ns < 0                          ? -1
           : timeout_ns > (int64_t)60000 * 1000000 ? 60000
                                                   : (int)((timeout_ns + 999999) / 1000000);
  if (p->handle < 0 && (ms < 0 || ms > LOOK_MS)) ms = LOOK_MS;
  if (poll(fd, 3, ms) <= 0) return;
  char byte[16];
  uint64_t count;
  ssize_t n = 0;
  /* A few, and not all: whoever rings without end must not keep us here. */
  for (int i = 0; i < 16 && fd[0].revents & POLLIN && n >= 0; i++)
    n = recv(bell, byte, sizeof byte, MSG_DONTWAIT);
  /* A wire that nobody holds any more: its holder is about to be gone, or else we look at times. */
  bool cut = n == 0 && fd[0].revents & POLLHUP;
  if (fd[1].revents & POLLIN)
    n = read(own, &count, sizeof count);
  else if (cut)
    poll(fd + 1, 2, LOOK_MS);
}

long lvd_port_wire_hear(int wire, char *bytes, size_t room, uint64_t timeout_ns) {
  struct pollfd fd = {.fd = wire, .events = POLLIN};
  uint64_t ms = timeout_ns / 1000000 + 1;
  if (poll(&fd, 1, ms > 60000 ? 60000 : (int)ms) <= 0) return -1;
  ssize_t n = recv(wire, bytes, room, MSG_DONTWAIT);
  /* Who dies with something unread leaves an error here, and not an end. */
  return n < 0 && errno != EINTR && errno != EAGAIN ? 0 : (long)n;
}

void lvd_port_wire_end(int wire) { shutdown(wire, SHUT_WR); }

void lvd_port_close(int descriptor) {
  if (descriptor >= 0) close(descriptor);
}

void lvd_port_keep_private(int descriptor) { fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

/* ---- shared memory ------------------------------------------------------------------------ */

lvd_status lvd_port_shared_make(size_t size, int *memory) {
  int fd = lvd_port_descriptor(memfd_create("levada-unit", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd < 0) return LVD_E_SYSTEM;
  if (ftruncate(fd, (off_t)size) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    close(fd);
    return LVD_E_SYSTEM;
  }
  *memory = fd;
  return LVD_OK;
}

lvd_status lvd_port_shared_size(int memory, size_t *size) {
  struct stat s;
  if (fstat(memory, &s) != 0 || s.st_size < 0) return LVD_E_SYSTEM;
  *size = (size_t)s.st_size;
  return LVD_OK;
}

lvd_status lvd_port_shared_claim(int memory, size_t offset, size_t size) {
  int result;
  do result = fallocate(memory, 0, (off_t)offset, (off_t)size);
  while (result != 0 && errno == EINTR); /* a signal has come meanwhile */
  /* Where there is no such call, memory comes when it is touched, as everywhere. */
  return result == 0 || errno == EOPNOTSUPP || errno == ENOSYS ? LVD_OK : LVD_E_MEMORY;
}

void lvd_port_shared_release(int memory, size_t offset, size_t size) {
  int n = fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
  (void)n;
}

void *lvd_port_shared_map(int memory, size_t offset, size_t head, size_t ring) {
  size_t all = head + 2 * ring;
  unsigned char *base =
      mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return NULL;
  const int how = PROT_READ | PROT_WRITE, fixed = MAP_SHARED | MAP_FIXED;
  if (mmap(base, head + ring, how, fixed, memory, (off_t)offset) == MAP_FAILED ||
      (ring &&
       mmap(base + head + ring, ring, how, fixed, memory, (off_t)(offset + head)) == MAP_FAILED)) {
    munmap(base, all);
    return NULL;
  }
  return base;
}

void lvd_port_shared_unmap(void *p, size_t head, size_t ring) {
  if (p) munmap(p, head + 2 * ring);
}
