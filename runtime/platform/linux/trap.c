/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Traps on Linux: signals that the code a worker runs brings upon itself, and a clock of the
 * worker's own CPU time, which costs an idle worker nothing. */
#include "../exceptions.h"
#include "../platform.h"
#include "syscall.h"

#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { HANDLER_STACK = 64 * 1024 };

/* What a compiler makes of __builtin_trap is an illegal instruction on x86-64, and a breakpoint on
 * aarch64 and riscv64. A debugger sees its own breakpoints before us. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
enum { FAULTS = sizeof faults / sizeof *faults };
static struct sigaction before[FAULTS];
static pthread_once_t installed = PTHREAD_ONCE_INIT;

static _Thread_local struct {
  lvd_os_trap_handler *handler;
  bool active, clock;
  enum { NO_ALARM, HAS_ALARM, FOUND_NO_TIMER } alarms;
  lvd_sys_timer timer, alarm;
  void (*interjected)(void);
  lvd_os_step_handler *step;
  bool waits; /* a call that goes on is waited for, and does not end early */
  uint32_t steps;
  stack_t stack;
} traps;

/* ---- where an instruction lies ------------------------------------------------------------ */

/* The code of the libraries that have locks of the whole process. */
enum { PARTS = 16 };
static struct { uintptr_t from, to; } system_code[PARTS];
static uint32_t system_parts;

/* What the program itself is linked with statically is its own. */
static int note_library(struct dl_phdr_info *info, size_t size, void *count) {
  const uintptr_t known[] = {(uintptr_t)stdout, (uintptr_t)malloc, lvd_sys_auxiliary(AT_BASE)};
  bool has = false, program = (*(uint32_t *)count)++ == 0;
  (void)size;
  for (uint32_t i = 0; i < 2 * (uint32_t)info->dlpi_phnum; i++) { /* all of it, then its code */
    const ElfW(Phdr) *part = &info->dlpi_phdr[i % info->dlpi_phnum];
    uintptr_t from = info->dlpi_addr + part->p_vaddr, to = from + part->p_memsz;
    if (part->p_type != PT_LOAD) continue;
    if (i < info->dlpi_phnum)
      for (uint32_t k = 0; k < sizeof known / sizeof *known; k++)
        has |= known[k] >= from && known[k] < to;
    else if (has && !program && part->p_flags & PF_X && system_parts < PARTS) {
      system_code[system_parts].from = from;
      system_code[system_parts++].to = to;
    }
  }
  return 0;
}

bool lvd_os_in_system_library(const void *at) {
  for (uint32_t i = 0; i < system_parts; i++)
    if ((uintptr_t)at >= system_code[i].from && (uintptr_t)at < system_code[i].to) return true;
  return false;
}

static const void *instruction_of(const ucontext_t *context) {
#if defined __x86_64__
  return (const void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
  return (const void *)context->uc_mcontext.pc;
#elif defined __riscv
  return (const void *)context->uc_mcontext.__gregs[REG_PC];
#else
  return (void)context, NULL;
#endif
}

static const void *stack_of(const ucontext_t *context) {
#if defined __x86_64__
  return (const void *)context->uc_mcontext.gregs[REG_RSP];
#elif defined __aarch64__
  return (const void *)context->uc_mcontext.sp;
#elif defined __riscv
  return (const void *)context->uc_mcontext.__gregs[REG_SP];
#else
  return (void)context, NULL;
#endif
}

void lvd_os_fatal_message(const char *text) {
  ssize_t written = lvd_sys_write(STDERR_FILENO, text, strlen(text));
  (void)written; /* there is nobody else to tell */
}

/* ---- signals ------------------------------------------------------------------------------ */

static int tick_signal(void) { return SIGRTMIN + 3; }
static int interjection(void) { return SIGRTMIN + 5; }

/* The other clock; told from the first one by whose timer it is. */
static _Thread_local struct {
  void (*tick)(void *);
  void *argument;
  lvd_sys_timer timer, once;
} second;

/* On the stack that is interrupted: all that it had in registers lies there meanwhile. Where a signal of
 * somebody else came at that very moment, that is the handlers' own, on which the next one begins: then not now. */
static void on_interjection(int number) {
  (void)number;
  int error = errno;
  uintptr_t here = (uintptr_t)__builtin_frame_address(0), handlers = (uintptr_t)traps.stack.ss_sp;
  void (*call)(void) = traps.interjected;
  traps.interjected = NULL;
  if (call && here - handlers >= HANDLER_STACK) call();
  errno = error;
}

void lvd_os_inject_call(void (*call)(void)) {
  bool comes = traps.interjected != NULL;
  traps.interjected = call;
  /* It comes when the handler of the tick returns, with the mask that was before; once, or each would have a frame on
   * the stack. */
  if (comes) return;
  long sent = lvd_sys_tgkill(lvd_sys_getpid(), lvd_sys_gettid(), interjection());
  if (sent != 0) traps.interjected = NULL; /* too many signals wait: with the next tick */
}

void lvd_os_single_step(lvd_os_step_handler *step) {
  traps.step = step;
  traps.waits = false;
}

void lvd_os_single_step_after_syscall(lvd_os_step_handler *step) {
  traps.step = step;
  traps.waits = true;
}

#if defined __x86_64__
/* The processor traps after each instruction while this flag is set; a handler begins without it. Where the
 * signal of that trap is kept back, it would end the process: a mask changes by calls of the system alone, and so
 * none is made meanwhile. What is in a library for long is let go. */
enum { TRACE_FLAG = 0x100, STEPS = 10000, CALL_SIZE = 2 };

static bool is_call(const ucontext_t *context) {
  const unsigned char *next = instruction_of(context);
  return (next[0] == 0x0F && next[1] == 0x05) || (next[0] == 0xCD && next[1] == 0x80);
}

/* Of those that go on after a signal, the ones that wait for others, for whoever calls them to take EINTR for an
 * answer. Who waits for a lock in memory (futex) tries again; a semaphore's wait fails. */
static bool may_end_early(greg_t call) {
  const greg_t all[] = {SYS_read,    SYS_readv,    SYS_write,   SYS_writev,   SYS_open,
                        SYS_openat,  SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto,
                        SYS_sendmsg, SYS_accept,   SYS_accept4, SYS_connect,  SYS_wait4,
                        SYS_waitid,  SYS_flock,    SYS_fcntl,   SYS_futex};
  for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i] == call) return true;
  return false;
}

static void begin_trace(ucontext_t *context) {
  greg_t *registers = context->uc_mcontext.gregs;
  bool goes_on = is_call(context);
  if (sigismember(&context->uc_sigmask, SIGTRAP) ||
      (goes_on && !may_end_early(registers[REG_RAX]))) {
    traps.step = NULL;
    registers[REG_EFL] &= ~(greg_t)TRACE_FLAG;
    return;
  }
  if (goes_on && !traps.waits) {
    registers[REG_RIP] += CALL_SIZE;
    registers[REG_RAX] = -EINTR;
  }
  traps.steps = 0;
  registers[REG_EFL] |= TRACE_FLAG;
}

/* False: the trap is none of ours. */
static bool trace(const siginfo_t *info, ucontext_t *context) {
  lvd_os_step_handler *step = traps.step;
  if (!step || info->si_code != TRAP_TRACE) return false;
  traps.step = NULL; /* it may jump away */
  if (traps.steps++ < STEPS && !is_call(context) &&
      step(lvd_os_self(), stack_of(context), instruction_of(context)))
    traps.step = step;
  else
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRACE_FLAG;
  return true;
}
#else
static void begin_trace(ucontext_t *context) {
  (void)context;
  traps.step = NULL;
}
static bool trace(const siginfo_t *info, ucontext_t *context) {
  return (void)info, (void)context, false;
}
#endif

/* What is traced already goes on as it does, unless the handler jumps away, or ends the call that was waited for. */
static void tell(lvd_os_trap trap, ucontext_t *context) {
  lvd_os_step_handler *traced = traps.step;
  bool waits = traps.waits;
  traps.step = NULL;
  traps.handler(lvd_os_self(), trap, stack_of(context), instruction_of(context));
  if (traps.step && (!traced || (waits && !traps.waits))) {
    begin_trace(context);
  } else if (traced) {
    traps.step = traced;
    traps.waits = waits;
  }
}

static void on_signal(int number, siginfo_t *info, void *context) {
  if (number == tick_signal()) {
    int error = errno; /* of what is interrupted */
    if (info->si_code == SI_TKILL) {
      if (traps.active) tell(LVD_TRAP_SIGNAL, context);
    } else if (info->si_value.sival_ptr == &second) {
      if (second.tick) second.tick(second.argument);
    } else if (traps.active) {
      bool alarm = info->si_value.sival_ptr == &traps.alarm;
      tell(alarm ? LVD_TRAP_ALARM : LVD_TRAP_TICK, context);
    }
    errno = error;
    return;
  }
  if (number == SIGTRAP && trace(info, context)) return;
  bool sent = number == SIGABRT && (info->si_code != SI_TKILL || info->si_pid != lvd_sys_getpid());
  if (traps.active && !sent) { /* by another process: what runs here has nothing to do with it */
    bool illegal = number == SIGILL || number == SIGTRAP;
    lvd_os_trap trap = number == SIGFPE    ? LVD_TRAP_ARITHMETIC
                       : number == SIGABRT ? LVD_TRAP_ABORT
                       : illegal           ? LVD_TRAP_ILLEGAL
                                           : LVD_TRAP_MEMORY;
    traps.handler(lvd_os_self(), trap, info->si_addr, instruction_of(context));
  }
  /* Not ours: as if we had never been here. */
  for (int i = 0; i < FAULTS; i++)
    if (faults[i] == number) {
      if (before[i].sa_flags & SA_SIGINFO)
        before[i].sa_sigaction(number, info, context);
      else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN)
        before[i].sa_handler(number);
      else {
        sigaction(number, &before[i], NULL); /* the instruction traps again, for good */
        /* But some processors are past a breakpoint, and an abort is no instruction. */
        if (number == SIGTRAP || number == SIGABRT) raise(number);
      }
    }
}

/* What a tick's handler keeps back. Clocks of one thread are due together, since the system looks at them when it
 * ticks itself: the second of two handlers at once would have interrupted the first one, and not what runs here. */
static void put_ticks(sigset_t *set) {
  sigemptyset(set);
  sigaddset(set, tick_signal());
  sigaddset(set, interjection());
}

static void install(void) {
  struct sigaction action;
  uint32_t count = 0;
  dl_iterate_phdr(note_library, &count);
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  /* NODEFER: the handler may jump away, and the signal must come again the next time. */
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < FAULTS; i++) {
    /* A step may interject, too; and no tick comes between it and what it has seen. */
    if (faults[i] == SIGTRAP) put_ticks(&action.sa_mask);
    sigaction(faults[i], &action, &before[i]);
    sigemptyset(&action.sa_mask);
  }
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  put_ticks(&action.sa_mask);
  sigaction(tick_signal(), &action, NULL);
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_NODEFER;
  action.sa_handler = on_interjection;
  sigaction(interjection(), &action, NULL);
}

/* A stack of its own for the handler, with a guard below. */
static void *make_stack(size_t guard) {
  unsigned char *base = lvd_sys_mmap(NULL, guard + HANDLER_STACK, PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return NULL;
  if (lvd_sys_mprotect(base + guard, HANDLER_STACK, PROT_READ | PROT_WRITE) == 0)
    return base + guard;
  lvd_sys_munmap(base, guard + HANDLER_STACK);
  return NULL;
}

static void free_stack(size_t guard) {
  lvd_sys_munmap((unsigned char *)traps.stack.ss_sp - guard, guard + HANDLER_STACK);
}

static size_t page(void) { return lvd_sys_page_size(); }

/* Its ticks come with `whose`, to the calling thread. */
static bool make_timer(clockid_t clock, void *whose, lvd_sys_timer *timer) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = tick_signal();
  event.sigev_notify_thread_id = lvd_sys_gettid();
  event.sigev_value.sival_ptr = whose;
  return lvd_sys_timer_create(clock, &event, timer) == 0;
}

/* Of the calling thread's CPU time. */
static bool start_clock(int64_t every_ns, void *whose, lvd_sys_timer *timer) {
  struct itimerspec every = {{0, every_ns}, {0, every_ns}};
  if (!make_timer(CLOCK_THREAD_CPUTIME_ID, whose, timer)) return false;
  if (lvd_sys_timer_settime(*timer, &every) == 0) return true;
  lvd_sys_timer_delete(*timer);
  return false;
}

bool lvd_os_tick_timer_start(void (*tick)(void *), void *argument, int64_t every_ns) {
  lvd_os_traps_prepare();
  if (!make_timer(CLOCK_MONOTONIC, &second, &second.once)) return false;
  second.tick = tick;
  second.argument = argument;
  if (start_clock(every_ns, &second, &second.timer)) return true;
  second.tick = NULL;
  lvd_sys_timer_delete(second.once);
  return false;
}

void lvd_os_tick_timer_once(int64_t after_ns) {
  struct itimerspec once = {{0, 0}, {0, after_ns}};
  if (second.tick) lvd_sys_timer_settime(second.once, &once);
}

void lvd_os_tick_timer_stop(void) {
  lvd_sys_timer_delete(second.timer);
  lvd_sys_timer_delete(second.once);
  second.tick = NULL;
}

void lvd_os_traps_prepare(void) { pthread_once(&installed, install); }

lvd_status lvd_os_traps_begin(lvd_os_trap_handler *handler, bool ticks) {
  traps.handler = handler;
  lvd_os_traps_prepare();
  traps.stack.ss_size = HANDLER_STACK;
  traps.stack.ss_sp = make_stack(page());
  if (!traps.stack.ss_sp) return LVD_E_MEMORY;
  if (sigaltstack(&traps.stack, NULL) != 0) {
    free_stack(page());
    return LVD_E_SYSTEM;
  }
  traps.active = true;
  if (ticks) {
    traps.clock = start_clock(LVD_TICK_MS * 1000000, &traps, &traps.timer);
    if (traps.clock) return LVD_OK;
    lvd_os_traps_end();
    return LVD_E_SYSTEM;
  }
  return LVD_OK;
}

void lvd_os_alarm(int64_t after_ns) {
  struct itimerspec once = {.it_value = {after_ns / 1000000000, after_ns % 1000000000}};
  if (traps.alarms == NO_ALARM)
    traps.alarms =
        make_timer(CLOCK_MONOTONIC, &traps.alarm, &traps.alarm) ? HAS_ALARM : FOUND_NO_TIMER;
  if (traps.alarms == HAS_ALARM) lvd_sys_timer_settime(traps.alarm, &once);
}

void lvd_os_traps_end(void) {
  if (!traps.active) return;
  if (traps.clock) lvd_sys_timer_delete(traps.timer);
  if (traps.alarms == HAS_ALARM) lvd_sys_timer_delete(traps.alarm);
  traps.alarms = NO_ALARM;
  traps.clock = false;
  traps.active = false;
  stack_t off = {.ss_flags = SS_DISABLE};
  sigaltstack(&off, NULL);
  free_stack(page());
}

void lvd_os_thread_signal(uint32_t number) {
  lvd_sys_tgkill(lvd_sys_getpid(), (pid_t)number, tick_signal());
}

struct lvd_os_escape {
  jmp_buf to;
};

size_t lvd_os_escape_size(void) { return sizeof(lvd_os_escape); }

bool lvd_os_try(lvd_os_escape *escape, void (*body)(void *), void *argument) {
  if (_setjmp(escape->to) != 0) {
    sigset_t kept_back; /* out of a tick's handler, perhaps */
    put_ticks(&kept_back);
    /* Both were for what has been left; one may be on its way still. */
    traps.interjected = NULL;
    traps.step = NULL;
    pthread_sigmask(SIG_UNBLOCK, &kept_back, NULL);
    if (lvd_os_has_exceptions()) (void)lvd_os_exceptions_save(); /* of what was abandoned */
    return false;
  }
  body(argument);
  return true;
}

void lvd_os_jump(lvd_os_escape *escape) { _longjmp(escape->to, 1); }
