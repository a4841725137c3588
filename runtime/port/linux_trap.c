/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Traps on Linux: signals that the code a worker runs brings upon itself, and a clock of the
 * worker's own CPU time, which costs an idle worker nothing. */
#include "exceptions.h"
#include "port.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { HANDLER_STACK = 64 * 1024 };

/* What a compiler makes of __builtin_trap is an illegal instruction on x86-64, and a breakpoint on
 * aarch64 and riscv64. A debugger sees its own breakpoints before us. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
enum { FAULTS = sizeof faults / sizeof *faults };
static struct sigaction before[FAULTS];
static pthread_once_t installed = PTHREAD_ONCE_INIT;

static _Thread_local struct {
  lvd_port_trap_handler *handler;
  bool active, clock;
  timer_t timer;
  stack_t stack;
} traps;

static int tick_signal(void) { return SIGRTMIN + 3; }

static void on_signal(int number, siginfo_t *info, void *context) {
  if (number == tick_signal()) {
    if (traps.active) traps.handler(lvd_port_self(), LVD_TRAP_TICK, NULL);
    return;
  }
  if (traps.active) {
    bool illegal = number == SIGILL || number == SIGTRAP;
    lvd_port_trap trap = number == SIGFPE ? LVD_TRAP_ARITHMETIC
                         : illegal        ? LVD_TRAP_ILLEGAL
                                          : LVD_TRAP_MEMORY;
    traps.handler(lvd_port_self(), trap, info->si_addr);
  }
  /* Not ours: as if we had never been here. */
  for (int i = 0; i < FAULTS; i++)
    if (faults[i] == number) {
      if (before[i].sa_flags & SA_SIGINFO)
        before[i].sa_sigaction(number, info, context);
      else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN)
        before[i].sa_handler(number);
      else {
        sigaction(number, &before[i], NULL);  /* the instruction traps again, for good */
        if (number == SIGTRAP) raise(number); /* but some processors are past a breakpoint */
      }
    }
}

static void install(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  /* NODEFER: the handler may jump away, and the signal must come again the next time. */
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < FAULTS; i++) sigaction(faults[i], &action, &before[i]);
  action.sa_flags |= SA_RESTART;
  sigaction(tick_signal(), &action, NULL);
}

lvd_status lvd_port_traps_begin(lvd_port_trap_handler *handler, bool ticks) {
  traps.handler = handler;
  pthread_once(&installed, install);
  traps.stack.ss_size = HANDLER_STACK;
  traps.stack.ss_sp = malloc(HANDLER_STACK);
  if (!traps.stack.ss_sp) return LVD_E_MEMORY;
  if (sigaltstack(&traps.stack, NULL) != 0) {
    free(traps.stack.ss_sp);
    return LVD_E_SYSTEM;
  }
  traps.active = true;
  if (ticks) {
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = tick_signal();
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    struct itimerspec every = {{0, LVD_TICK_MS * 1000000}, {0, LVD_TICK_MS * 1000000}};
    traps.clock = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &traps.timer) == 0;
    if (traps.clock && timer_settime(traps.timer, 0, &every, NULL) == 0) return LVD_OK;
    lvd_port_traps_end();
    return LVD_E_SYSTEM;
  }
  return LVD_OK;
}

void lvd_port_traps_end(void) {
  if (!traps.active) return;
  if (traps.clock) timer_delete(traps.timer);
  traps.clock = false;
  traps.active = false;
  stack_t off = {.ss_flags = SS_DISABLE};
  sigaltstack(&off, NULL);
  free(traps.stack.ss_sp);
}

struct lvd_port_escape {
  jmp_buf to;
};

size_t lvd_port_escape_size(void) { return sizeof(lvd_port_escape); }

bool lvd_port_try(lvd_port_escape *escape, void (*body)(void *), void *argument) {
  if (_setjmp(escape->to) != 0) {
    if (lvd_port_has_exceptions()) (void)lvd_port_exceptions_take(); /* of what was abandoned */
    return false;
  }
  body(argument);
  return true;
}

void lvd_port_jump(lvd_port_escape *escape) { _longjmp(escape->to, 1); }
