/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Interposes the functions of the C library that end the process, replace its program, or send it a signal, so that a
 * host can record which application called one. Each function here reports the call to the callback of
 * levada_ends_watch, if there is one, and then calls the C library's. The executable must export them
 * (--export-dynamic-symbol), so that code it loads resolves to them. Calls within the C library are not interposed:
 * what `system` and `posix_spawn` do in their children is not reported. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The kind of call, and what its `value` is; crash_record.rs has the same numbers. */
enum {
  EXITS,         /* exit; the status */
  EXITS_AT_ONCE, /* an exit without handlers; the status */
  SENDS,         /* a signal to this process; the signal */
  SETS,          /* a timer is set; the signal that it sends */
  CLEARS,        /* a timer is cancelled; its signal */
  STARTS,        /* a process is started; 0 */
  REPLACES       /* exec; 0 */
};

/* Called before the call of kind `kind` is done, by the thread that makes it; `caller` is the address to which it
 * returns. For REPLACES, true refuses the call: it fails with EPERM. Otherwise the result is ignored. Must be
 * async-signal-safe, since the calls can come from a signal handler or a child after fork. */
typedef bool call_observer(int kind, int value, const void *caller);

/* Sets the callback; null: none. */
void levada_ends_watch(call_observer *observer);

static _Atomic(call_observer *) current_observer;

void levada_ends_watch(call_observer *observer) { atomic_store(&current_observer, observer); }

#define CALLER __builtin_return_address(0)

static bool tell(int kind, int value, const void *caller) {
  call_observer *observer = atomic_load(&current_observer);
  return observer && observer(kind, value, caller);
}

/* The functions of the C library. They are looked up at load, before there are threads: dlsym takes a lock of the
 * loader, which another thread may hold when a child is forked. */
static struct {
  void (*exit)(int), (*quick_exit)(int), (*abort)(void);
  int (*raise)(int), (*pthread_kill)(pthread_t, int);
  long (*syscall)(long, ...);
  unsigned (*alarm)(unsigned), (*ualarm)(useconds_t, useconds_t);
  int (*setitimer)(int, const struct itimerval *, struct itimerval *);
  int (*timer_create)(clockid_t, struct sigevent *, timer_t *);
  pid_t (*fork)(void);
  int (*system)(const char *);
  FILE *(*popen)(const char *, const char *);
  int (*posix_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                     const posix_spawnattr_t *, char *const *, char *const *);
  int (*posix_spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                      const posix_spawnattr_t *, char *const *, char *const *);
  int (*execve)(const char *, char *const *, char *const *);
  int (*execvpe)(const char *, char *const *, char *const *);
  int (*fexecve)(int, char *const *, char *const *);
} real;

static void look_up(void) {
  struct {
    const char *name;
    void *to;
  } all[] = {
      {"exit", &real.exit},
      {"quick_exit", &real.quick_exit},
      {"abort", &real.abort},
      {"raise", &real.raise},
      {"pthread_kill", &real.pthread_kill},
      {"alarm", &real.alarm},
      {"ualarm", &real.ualarm},
      {"setitimer", &real.setitimer},
      {"timer_create", &real.timer_create},
      {"fork", &real.fork},
      {"system", &real.system},
      {"popen", &real.popen},
      {"posix_spawn", &real.posix_spawn},
      {"posix_spawnp", &real.posix_spawnp},
      {"execve", &real.execve},
      {"execvpe", &real.execvpe},
      {"fexecve", &real.fexecve},
      {"syscall", &real.syscall},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    *(void **)all[i].to = dlsym(RTLD_NEXT, all[i].name);
}

__attribute__((constructor)) static void begin(void) { look_up(); }

/* The constructor of another object may call a function before begin() has run. */
#define REAL(name) (real.name ? real.name : (look_up(), real.name))

/* Ends the process at once, without a report. */
_Noreturn void levada_ends_now(int status);
_Noreturn void levada_ends_now(int status) {
  for (;;) REAL(syscall)(SYS_exit_group, status);
}

_Noreturn void exit(int status) {
  tell(EXITS, status, CALLER);
  REAL(exit)(status);
  levada_ends_now(status);
}

_Noreturn void quick_exit(int status) {
  tell(EXITS_AT_ONCE, status, CALLER);
  REAL(quick_exit)(status);
  levada_ends_now(status);
}

_Noreturn void _exit(int status) {
  tell(EXITS_AT_ONCE, status, CALLER);
  levada_ends_now(status);
}

_Noreturn void _Exit(int status) {
  tell(EXITS_AT_ONCE, status, CALLER);
  levada_ends_now(status);
}

_Noreturn void abort(void) {
  tell(SENDS, SIGABRT, CALLER);
  REAL(abort)();
  levada_ends_now(127);
}

int raise(int signal) {
  tell(SENDS, signal, CALLER);
  return REAL(raise)(signal);
}

int pthread_kill(pthread_t thread, int signal) {
  tell(SENDS, signal, CALLER);
  return REAL(pthread_kill)(thread, signal);
}

static void tell_of_kill(pid_t process, int signal, const void *caller) {
  pid_t own = getpid();
  bool to_own = process == own || process == 0 || process == -1 || process == -getpgrp();
  if (to_own && signal) tell(SENDS, signal, caller);
}

int kill(pid_t process, int signal) {
  tell_of_kill(process, signal, CALLER);
  return (int)REAL(syscall)(SYS_kill, process, signal);
}

/* ---- syscall() ------------------------------------------------------------------------------- */

static bool refuse(const void *caller) {
  if (!tell(REPLACES, 0, caller)) return false;
  errno = EPERM;
  return true;
}

long syscall(long number, ...) {
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  switch (number) {
  case SYS_exit_group:
    tell(EXITS_AT_ONCE, (int)a[0], CALLER);
    break;
  case SYS_kill:
    tell_of_kill((pid_t)a[0], (int)a[1], CALLER);
    break;
  case SYS_tgkill:
    if ((pid_t)a[0] == getpid() && a[2]) tell(SENDS, (int)a[2], CALLER);
    break;
  case SYS_tkill:
    if (a[1]) tell(SENDS, (int)a[1], CALLER);
    break;
  case SYS_execve:
  case SYS_execveat:
    if (refuse(CALLER)) return -1;
    break;
  default:
    break;
  }
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- timers ---------------------------------------------------------------------------------- */

unsigned alarm(unsigned seconds) {
  tell(seconds ? SETS : CLEARS, SIGALRM, CALLER);
  return REAL(alarm)(seconds);
}

useconds_t ualarm(useconds_t first, useconds_t then) {
  tell(first ? SETS : CLEARS, SIGALRM, CALLER);
  return REAL(ualarm)(first, then);
}

int setitimer(__itimer_which_t which, const struct itimerval *set, struct itimerval *old) {
  int clock = (int)which;
  int signal = clock == ITIMER_REAL ? SIGALRM : clock == ITIMER_VIRTUAL ? SIGVTALRM : SIGPROF;
  if (set) {
    bool runs = set->it_value.tv_sec || set->it_value.tv_usec;
    tell(runs ? SETS : CLEARS, signal, CALLER);
  }
  return REAL(setitimer)(clock, set, old);
}

int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer) {
  if (!event) tell(SETS, SIGALRM, CALLER);
  if (event && event->sigev_notify != SIGEV_NONE && event->sigev_notify != SIGEV_THREAD)
    tell(SETS, event->sigev_signo, CALLER);
  return REAL(timer_create)(clock, event, timer);
}

/* ---- other processes ------------------------------------------------------------------------- */

pid_t fork(void) {
  tell(STARTS, 0, CALLER);
  return REAL(fork)();
}

int system(const char *command) {
  tell(STARTS, 0, CALLER);
  return REAL(system)(command);
}

FILE *popen(const char *command, const char *mode) {
  tell(STARTS, 0, CALLER);
  return REAL(popen)(command, mode);
}

int posix_spawn(pid_t *process, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
  tell(STARTS, 0, CALLER);
  return REAL(posix_spawn)(process, path, actions, attributes, argv, envp);
}

int posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
  tell(STARTS, 0, CALLER);
  return REAL(posix_spawnp)(process, file, actions, attributes, argv, envp);
}

/* ---- exec ------------------------------------------------------------------------------------ */

int execve(const char *path, char *const argv[], char *const envp[]) {
  return refuse(CALLER) ? -1 : REAL(execve)(path, argv, envp);
}
int execv(const char *path, char *const argv[]) {
  return refuse(CALLER) ? -1 : REAL(execve)(path, argv, environ);
}
int execvpe(const char *file, char *const argv[], char *const envp[]) {
  return refuse(CALLER) ? -1 : REAL(execvpe)(file, argv, envp);
}
int execvp(const char *file, char *const argv[]) {
  return refuse(CALLER) ? -1 : REAL(execvpe)(file, argv, environ);
}
int fexecve(int file, char *const argv[], char *const envp[]) {
  return refuse(CALLER) ? -1 : REAL(fexecve)(file, argv, envp);
}
int execveat(int directory, const char *path, char *const argv[], char *const envp[], int flags) {
  if (refuse(CALLER)) return -1;
  return (int)REAL(syscall)(SYS_execveat, directory, path, argv, envp, flags);
}

/* Number of arguments, including the null pointer at the end. */
static size_t count_of(const char *first, va_list list) {
  size_t count = 1;
  for (const char *next = first; next; next = va_arg(list, const char *)) count++;
  return count;
}

static void list_of(char **argv, size_t count, const char *first, va_list list) {
  argv[0] = (char *)first;
  for (size_t i = 1; i < count; i++) argv[i] = va_arg(list, char *);
}

/* Runs `call` with the variable arguments as the array `argv`. The array is on the stack, as in the C library, since
 * execl is async-signal-safe; too many arguments overflow the stack there, too. */
#define WITH_LIST(call)                                                                            \
  do {                                                                                             \
    if (refuse(CALLER)) return -1;                                                                 \
    va_list list;                                                                                  \
    va_start(list, first);                                                                         \
    size_t count = count_of(first, list);                                                          \
    va_end(list);                                                                                  \
    char *argv[count];                                                                             \
    va_start(list, first);                                                                         \
    list_of(argv, count, first, list);                                                             \
    int done = call;                                                                               \
    va_end(list);                                                                                  \
    return done;                                                                                   \
  } while (0)

int execl(const char *path, const char *first, ...) {
  WITH_LIST(REAL(execve)(path, argv, environ));
}
int execlp(const char *file, const char *first, ...) {
  WITH_LIST(REAL(execvpe)(file, argv, environ));
}
int execle(const char *path, const char *first, ...) {
  WITH_LIST(REAL(execve)(path, argv, va_arg(list, char *const *)));
}
