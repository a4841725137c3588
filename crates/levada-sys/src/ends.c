/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What code calls that ends a process, puts another program into its place, or sends it a signal: an executable that
 * shows these functions to what it loads (--export-dynamic-symbol) is told of each call, before they do what those of
 * the C library do. Without levada_ends_watch no code is told. The C library itself does not call these, so what
 * `system` and `posix_spawn` do in their children is not told. */
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

/* What is called: `ends` is EXITS or EXITS_AT_ONCE with the status as `value`, SENDS with the signal, SETS with the
 * signal of a timer (CLEARS: the timer is cancelled), STARTS where a process is started, or REPLACES where an exec is
 * to replace this process: true is returned if that is refused. */
enum { EXITS, EXITS_AT_ONCE, SENDS, SETS, CLEARS, STARTS, REPLACES };
typedef bool told(int ends, int value, const void *caller);

void levada_ends_watch(told *tell);

static _Atomic(told *) watch;

void levada_ends_watch(told *tell) { atomic_store(&watch, tell); }

#define CALLER __builtin_return_address(0)

static bool tell(int ends, int value, const void *caller) {
  told *to = atomic_load(&watch);
  return to && to(ends, value, caller);
}

/* Those of the C library, which is behind this executable. They are looked up before there are threads: a child that
 * was just forked must not wait for the loader. */
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

/* Other constructors may come first. */
#define REAL(name) (real.name ? real.name : (look_up(), real.name))

/* Ends this process, and tells of it to no code. */
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

/* ---- by its number --------------------------------------------------------------------------- */

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

/* ---- clocks ---------------------------------------------------------------------------------- */

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

/* ---- another program in the place of this one ------------------------------------------------ */

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

/* How many arguments there are, with the null pointer at their end. */
static size_t count_of(const char *first, va_list list) {
  size_t count = 1;
  for (const char *next = first; next; next = va_arg(list, const char *)) count++;
  return count;
}

static void list_of(char **argv, size_t count, const char *first, va_list list) {
  argv[0] = (char *)first;
  for (size_t i = 1; i < count; i++) argv[i] = va_arg(list, char *);
}

/* What an array of so many would need may be more than a stack has: so it is with the C library's. */
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
