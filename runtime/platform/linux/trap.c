/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Traps on Linux: signals that the code of a worker causes, and a timer of the worker's CPU time,
 * which costs an idle worker nothing. */
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

enum { HANDLER_STACK_BYTES = 64 * 1024 };

/* __builtin_trap is an illegal instruction on x86-64, and a breakpoint on aarch64 and riscv64. A
 * debugger sees its own breakpoints first. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
enum { FAULTS = sizeof faults / sizeof *faults };
static struct sigaction before[FAULTS];
static pthread_once_t installed = PTHREAD_ONCE_INIT;

static _Thread_local struct {
  lvd_os_trap_handler *handler;
  bool active, clock;
  enum { NO_ALARM, HAS_ALARM, FOUND_NO_TIMER } alarms;
  lvd_sys_timer timer, alarm;
  void (*injected)(void);
  lvd_os_step_handler *step;
  bool await_syscall; /* an interrupted system call is restarted, and stepping begins after it */
  uint32_t steps;
  stack_t stack;
} traps;

/* ---- the code of system libraries ------------------------------------------------------------ */

/* Code ranges of the libraries that have process-wide locks. */
enum { SYSTEM_PARTS_MAX = 16 };
static struct { uintptr_t from, to; } system_code[SYSTEM_PARTS_MAX];
static uint32_t system_parts;

/* Libraries that are linked statically are part of the program's own code. */
static int note_library(struct dl_phdr_info *info, size_t size, void *count) {
  const uintptr_t known[] = {(uintptr_t)stdout, (uintptr_t)malloc, lvd_sys_auxiliary(AT_BASE)};
  bool has = false, program = (*(uint32_t *)count)++ == 0;
  (void)size;
  for (uint32_t i = 0; i < 2 * (uint32_t)info->dlpi_phnum;
       i++) { /* first all segments, then those with code */
    const ElfW(Phdr) *part = &info->dlpi_phdr[i % info->dlpi_phnum];
    uintptr_t from = info->dlpi_addr + part->p_vaddr, to = from + part->p_memsz;
    if (part->p_type != PT_LOAD) continue;
    if (i < info->dlpi_phnum)
      for (uint32_t k = 0; k < sizeof known / sizeof *known; k++)
        has |= known[k] >= from && known[k] < to;
    else if (has && !program && part->p_flags & PF_X && system_parts < SYSTEM_PARTS_MAX) {
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
  (void)written; /* the error cannot be reported */
}

/* ---- signals --------------------------------------------------------------------------------- */

static int tick_signal(void) { return SIGRTMIN + 3; }
static int inject_signal(void) { return SIGRTMIN + 5; }

/* The tick timer. Told apart from the CPU-time timer by the signal's value. */
static _Thread_local struct {
  void (*tick)(void *);
  void *argument;
  lvd_sys_timer timer, once;
} tick_timer;

/* Runs on the interrupted stack, on which the interrupted code's registers are saved. If another
 * signal arrived at that very moment, the interrupted stack is the signal stack, where the next
 * handler will begin: then nothing is called. */
static void on_injection(int number) {
  (void)number;
  int error = errno;
  uintptr_t here = (uintptr_t)__builtin_frame_address(0), handlers = (uintptr_t)traps.stack.ss_sp;
  void (*call)(void) = traps.injected;
  traps.injected = NULL;
  if (call && here - handlers >= HANDLER_STACK_BYTES) call();
  errno = error;
}

void lvd_os_inject_call(void (*call)(void)) {
  bool pending = traps.injected != NULL;
  traps.injected = call;
  /* The signal is delivered when the tick's handler returns, with the former mask. It is sent once,
   * since each delivery takes
   *    a frame on the stack. */
  if (pending) return;
  long sent = lvd_sys_tgkill(lvd_sys_getpid(), lvd_sys_gettid(), inject_signal());
  if (sent != 0) traps.injected = NULL; /* too many queued signals; the next tick tries again */
}

void lvd_os_single_step(lvd_os_step_handler *step) {
  traps.step = step;
  traps.await_syscall = false;
}

void lvd_os_single_step_after_syscall(lvd_os_step_handler *step) {
  traps.step = step;
  traps.await_syscall = true;
}

#if defined __x86_64__
/* With this flag set, the processor traps after each instruction; a handler begins without it. If
 * the trap's signal were blocked, the trap would end the process. Only system calls change the
 * signal mask, so stepping ends before any. It also ends after many instructions, as in a long
 * library call. */
enum { TRAP_FLAG = 0x100, STEPS_MAX = 10000, SYSCALL_SIZE = 2 };

static bool is_syscall(const ucontext_t *context) {
  const unsigned char *next = instruction_of(context);
  return (next[0] == 0x0F && next[1] == 0x05) || (next[0] == 0xCD && next[1] == 0x80);
}

/* System calls that are restarted after a signal and wait for others; their callers handle EINTR.
 * A futex wait of a lock tries again; one of a semaphore fails. */
static bool may_return_eintr(greg_t call) {
  const greg_t all[] = {SYS_read,    SYS_readv,    SYS_write,   SYS_writev,   SYS_open,
                        SYS_openat,  SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto,
                        SYS_sendmsg, SYS_accept,   SYS_accept4, SYS_connect,  SYS_wait4,
                        SYS_waitid,  SYS_flock,    SYS_fcntl,   SYS_futex};
  for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i] == call) return true;
  return false;
}

static void begin_stepping(ucontext_t *context) {
  greg_t *registers = context->uc_mcontext.gregs;
  bool restarts = is_syscall(context);
  if (sigismember(&context->uc_sigmask, SIGTRAP) ||
      (restarts && !may_return_eintr(registers[REG_RAX]))) {
    traps.step = NULL;
    registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    return;
  }
  if (restarts && !traps.await_syscall) {
    registers[REG_RIP] += SYSCALL_SIZE;
    registers[REG_RAX] = -EINTR;
  }
  traps.steps = 0;
  registers[REG_EFL] |= TRAP_FLAG;
}

/* False: the trap is not caused by stepping. */
static bool do_step(const siginfo_t *info, ucontext_t *context) {
  lvd_os_step_handler *step = traps.step;
  if (!step || info->si_code != TRAP_TRACE) return false;
  traps.step = NULL; /* the step handler may jump away */
  if (traps.steps++ < STEPS_MAX && !is_syscall(context) &&
      step(lvd_os_self(), stack_of(context), instruction_of(context)))
    traps.step = step;
  else
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
  return true;
}
#else
static void begin_stepping(ucontext_t *context) {
  (void)context;
  traps.step = NULL;
}
static bool do_step(const siginfo_t *info, ucontext_t *context) {
  return (void)info, (void)context, false;
}
#endif

/* Stepping that is already in progress continues, unless the handler jumps away or ends the system
 * call that was awaited. */
static void call_handler(lvd_os_trap trap, ucontext_t *context) {
  lvd_os_step_handler *traced = traps.step;
  bool await_syscall = traps.await_syscall;
  traps.step = NULL;
  traps.handler(lvd_os_self(), trap, stack_of(context), instruction_of(context));
  if (traps.step && (!traced || (await_syscall && !traps.await_syscall))) {
    begin_stepping(context);
  } else if (traced) {
    traps.step = traced;
    traps.await_syscall = await_syscall;
  }
}

static void on_signal(int number, siginfo_t *info, void *context) {
  if (number == tick_signal()) {
    int error = errno; /* of the interrupted code */
    if (info->si_code == SI_TKILL) {
      if (traps.active) call_handler(LVD_TRAP_SIGNAL, context);
    } else if (info->si_value.sival_ptr == &tick_timer) {
      if (tick_timer.tick) tick_timer.tick(tick_timer.argument);
    } else if (traps.active) {
      bool alarm = info->si_value.sival_ptr == &traps.alarm;
      call_handler(alarm ? LVD_TRAP_ALARM : LVD_TRAP_TICK, context);
    }
    errno = error;
    return;
  }
  if (number == SIGTRAP && do_step(info, context)) return;
  bool sent = number == SIGABRT && (info->si_code != SI_TKILL || info->si_pid != lvd_sys_getpid());
  /* false for a signal from another process, which the running code has not caused */
  if (traps.active && !sent) {
    bool illegal = number == SIGILL || number == SIGTRAP;
    lvd_os_trap trap = number == SIGFPE    ? LVD_TRAP_ARITHMETIC
                       : number == SIGABRT ? LVD_TRAP_ABORT
                       : illegal           ? LVD_TRAP_ILLEGAL
                                           : LVD_TRAP_MEMORY;
    traps.handler(lvd_os_self(), trap, info->si_addr, instruction_of(context));
  }
  /* Not handled: does what would have happened without this handler. */
  for (int i = 0; i < FAULTS; i++)
    if (faults[i] == number) {
      if (before[i].sa_flags & SA_SIGINFO)
        before[i].sa_sigaction(number, info, context);
      else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN)
        before[i].sa_handler(number);
      else {
        /* the instruction traps again, now with the default action */
        sigaction(number, &before[i], NULL);
        /* Some processors continue after a breakpoint, and abort() is no instruction. */
        if (number == SIGTRAP || number == SIGABRT) raise(number);
      }
    }
}

/* Signals blocked in a tick's handler. Timers of one thread often expire together, since the system
 * checks them at its own tick: a second handler would interrupt the first instead of the thread's
 * code. */
static void fill_tick_mask(sigset_t *set) {
  sigemptyset(set);
  sigaddset(set, tick_signal());
  sigaddset(set, inject_signal());
}

static void install(void) {
  struct sigaction action;
  uint32_t count = 0;
  dl_iterate_phdr(note_library, &count);
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  /* SA_NODEFER: the handler may jump away, and the signal must not remain blocked. */
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < FAULTS; i++) {
    /* A step handler may inject a call, too, and no tick may come between its check and the
     * injection. */
    if (faults[i] == SIGTRAP) fill_tick_mask(&action.sa_mask);
    sigaction(faults[i], &action, &before[i]);
    sigemptyset(&action.sa_mask);
  }
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  fill_tick_mask(&action.sa_mask);
  sigaction(tick_signal(), &action, NULL);
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_NODEFER;
  action.sa_handler = on_injection;
  sigaction(inject_signal(), &action, NULL);
}

/* A signal stack with a guard below it. */
static void *make_stack(size_t guard) {
  unsigned char *base = lvd_sys_mmap(NULL, guard + HANDLER_STACK_BYTES, PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return NULL;
  if (lvd_sys_mprotect(base + guard, HANDLER_STACK_BYTES, PROT_READ | PROT_WRITE) == 0)
    return base + guard;
  lvd_sys_munmap(base, guard + HANDLER_STACK_BYTES);
  return NULL;
}

static void free_stack(size_t guard) {
  lvd_sys_munmap((unsigned char *)traps.stack.ss_sp - guard, guard + HANDLER_STACK_BYTES);
}

static size_t page(void) { return lvd_sys_page_size(); }

/* Its signals go to the calling thread, with the value `value`. */
static bool make_timer(clockid_t clock, void *value, lvd_sys_timer *timer) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = tick_signal();
  event.sigev_notify_thread_id = lvd_sys_gettid();
  event.sigev_value.sival_ptr = value;
  return lvd_sys_timer_create(clock, &event, timer) == 0;
}

/* Measures the calling thread's CPU time. */
static bool start_cpu_timer(int64_t every_ns, void *value, lvd_sys_timer *timer) {
  struct itimerspec every = {{0, every_ns}, {0, every_ns}};
  if (!make_timer(CLOCK_THREAD_CPUTIME_ID, value, timer)) return false;
  if (lvd_sys_timer_settime(*timer, &every) == 0) return true;
  lvd_sys_timer_delete(*timer);
  return false;
}

bool lvd_os_tick_timer_start(void (*tick)(void *), void *argument, int64_t every_ns) {
  lvd_os_traps_prepare();
  if (!make_timer(CLOCK_MONOTONIC, &tick_timer, &tick_timer.once)) return false;
  tick_timer.tick = tick;
  tick_timer.argument = argument;
  if (start_cpu_timer(every_ns, &tick_timer, &tick_timer.timer)) return true;
  tick_timer.tick = NULL;
  lvd_sys_timer_delete(tick_timer.once);
  return false;
}

void lvd_os_tick_timer_once(int64_t after_ns) {
  struct itimerspec once = {{0, 0}, {0, after_ns}};
  if (tick_timer.tick) lvd_sys_timer_settime(tick_timer.once, &once);
}

void lvd_os_tick_timer_stop(void) {
  lvd_sys_timer_delete(tick_timer.timer);
  lvd_sys_timer_delete(tick_timer.once);
  tick_timer.tick = NULL;
}

void lvd_os_traps_prepare(void) { pthread_once(&installed, install); }

lvd_status lvd_os_traps_begin(lvd_os_trap_handler *handler, bool ticks) {
  traps.handler = handler;
  lvd_os_traps_prepare();
  traps.stack.ss_size = HANDLER_STACK_BYTES;
  traps.stack.ss_sp = make_stack(page());
  if (!traps.stack.ss_sp) return LVD_E_MEMORY;
  if (sigaltstack(&traps.stack, NULL) != 0) {
    free_stack(page());
    return LVD_E_SYSTEM;
  }
  traps.active = true;
  if (ticks) {
    traps.clock = start_cpu_timer(LVD_TICK_MS * 1000000, &traps, &traps.timer);
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

void lvd_os_thread_signal(uint32_t id) {
  lvd_sys_tgkill(lvd_sys_getpid(), (pid_t)id, tick_signal());
}

struct lvd_os_escape {
  jmp_buf to;
};

size_t lvd_os_escape_size(void) { return sizeof(lvd_os_escape); }

bool lvd_os_try(lvd_os_escape *escape, void (*body)(void *), void *argument) {
  if (_setjmp(escape->to) != 0) {
    sigset_t tick_mask; /* the jump may have left a tick's handler */
    fill_tick_mask(&tick_mask);
    /* Both belong to the abandoned code; a signal may still be pending. */
    traps.injected = NULL;
    traps.step = NULL;
    pthread_sigmask(SIG_UNBLOCK, &tick_mask, NULL);
    if (lvd_os_has_exceptions()) (void)lvd_os_exceptions_save(); /* of the abandoned code */
    return false;
  }
  body(argument);
  return true;
}

void lvd_os_jump(lvd_os_escape *escape) { _longjmp(escape->to, 1); }
