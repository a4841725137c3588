/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What code calls that ends a process, or sends it a signal: an executable that shows these functions to what it loads
 * (--export-dynamic-symbol) is told who calls them, before they do what those of the C library do. Without
 * levada_ends_watch nobody is told. The C library itself does not call these. */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Who is told: `ends` is EXITS or EXITS_AT_ONCE with the status as `value`, or SENDS with the signal. */
enum { EXITS, EXITS_AT_ONCE, SENDS };
typedef void told(int ends, int value, const void *caller);

void levada_ends_watch(told *tell);

static _Atomic(told *) watch;

void levada_ends_watch(told *tell) { atomic_store(&watch, tell); }

#define CALLER __builtin_return_address(0)

static void tell(int ends, int value, const void *caller) {
  told *to = atomic_load(&watch);
  if (to) to(ends, value, caller);
}

/* That of the C library, which is behind this executable. */
static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

_Noreturn void exit(int status) {
  union {
    void *found;
    void (*call)(int);
  } real = {next("exit")};
  tell(EXITS, status, CALLER);
  if (real.call) real.call(status);
  for (;;) syscall(SYS_exit_group, status);
}

_Noreturn void quick_exit(int status) {
  union {
    void *found;
    void (*call)(int);
  } real = {next("quick_exit")};
  tell(EXITS_AT_ONCE, status, CALLER);
  if (real.call) real.call(status);
  for (;;) syscall(SYS_exit_group, status);
}

_Noreturn void _exit(int status) {
  tell(EXITS_AT_ONCE, status, CALLER);
  for (;;) syscall(SYS_exit_group, status);
}

_Noreturn void _Exit(int status) {
  tell(EXITS_AT_ONCE, status, CALLER);
  for (;;) syscall(SYS_exit_group, status);
}

_Noreturn void abort(void) {
  union {
    void *found;
    void (*call)(void);
  } real = {next("abort")};
  tell(SENDS, SIGABRT, CALLER);
  if (real.call) real.call();
  for (;;) syscall(SYS_exit_group, 127);
}

int raise(int signal) {
  union {
    void *found;
    int (*call)(int);
  } real = {next("raise")};
  tell(SENDS, signal, CALLER);
  return real.call ? real.call(signal) : -1;
}

int pthread_kill(pthread_t thread, int signal) {
  union {
    void *found;
    int (*call)(pthread_t, int);
  } real = {next("pthread_kill")};
  tell(SENDS, signal, CALLER);
  return real.call ? real.call(thread, signal) : -1;
}

int kill(pid_t process, int signal) {
  pid_t own = getpid();
  bool to_own = process == own || process == 0 || process == -1 || process == -getpgrp();
  if (to_own && signal) tell(SENDS, signal, CALLER);
  return (int)syscall(SYS_kill, process, signal);
}
