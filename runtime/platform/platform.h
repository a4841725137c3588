/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Port: every call to an operating system that the runtime makes, and nothing else.
 *
 * Another system, a simulation or the model checker is another set of these functions. */
#ifndef LVD_PLATFORM_H
#define LVD_PLATFORM_H

#include <levada/atomic.h>

/* ---- waiting ------------------------------------------------------------------------------ */

/* Sleeps while *word == expected, at most `timeout_ns` (negative: for ever). May return early. */
void lvd_os_wait(lvd_a32 *word, uint32_t expected, int64_t timeout_ns);
/* Wakes all that sleep on `word`. */
void lvd_os_wake(lvd_a32 *word);
/* The same where `word` may lie in memory that several processes share. */
void lvd_os_wait_shared(lvd_a32 *word, uint32_t expected, int64_t timeout_ns);
void lvd_os_wake_shared(lvd_a32 *word);
/* Can `fd` be read (or written) without waiting, or has it an end or an error to tell? Waits for that
 * at most `timeout_ms` (negative: for ever; may return early). */
bool lvd_os_poll(int fd, bool to_write, int timeout_ms);
/* One thread that waits for many descriptors. What is watched is reported once, with the direction
 * that is ready; watched again, in other directions perhaps, it takes the place of before. */
typedef struct lvd_os_poller lvd_os_poller;
typedef struct lvd_os_ready_fd {
  int fd; /* negative: the bell has been rung */
  bool to_read, to_write;
} lvd_os_ready_fd;
lvd_status lvd_os_poller_open(lvd_os_poller **out);
void lvd_os_poller_close(lvd_os_poller *p);
/* From any thread. False: there is nothing to wait for with this one; or the system has a limit. */
bool lvd_os_poller_watch(lvd_os_poller *p, int fd, bool to_read, bool to_write);
/* How many of ready[most] were filled; it may be none. */
uint32_t lvd_os_poller_wait(lvd_os_poller *p, lvd_os_ready_fd *ready, uint32_t most);
void lvd_os_poller_wake(lvd_os_poller *p);

/* A moment of a spinning loop. */
void lvd_os_relax(void);

/* ---- the barrier of the side that goes to sleep ------------------------------------------- */

/* Prepares lvd_os_barrier; false: there is none, and [light] barriers must be real fences. */
bool lvd_os_barrier_prepare(void);
/* Every thread of the process executes a full fence, or has since this was called. */
void lvd_os_barrier(void);

/* ---- time --------------------------------------------------------------------------------- */

uint64_t lvd_os_now_ns(void); /* monotonic */
/* A cheap counter, and what it is in nanoseconds (of a difference). */
uint64_t lvd_os_ticks(void);
uint64_t lvd_os_ticks_to_ns(uint64_t ticks);
uint64_t lvd_os_ns_to_ticks(uint64_t ns);

/* ---- memory ------------------------------------------------------------------------------- */

/* Zeroed memory, aligned to LVD_LINE; null if there is none. */
void *lvd_os_alloc(size_t size);
void lvd_os_free(void *p, size_t size);

/* The multiple that ring sizes must be of. */
size_t lvd_os_ring_granularity(void);

/* Rings: `count` rings of `size[i]` bytes (multiples of the unit), each mapped twice in a row, their
 * addresses in `ring[i]`. All are given back together with lvd_os_rings_free. LVD_E_MEMORY, or
 * LVD_E_LIMIT when the system's number of mappings per process is reached. */
typedef struct lvd_os_rings {
  void *base;
  size_t size;
} lvd_os_rings;
lvd_status lvd_os_rings_alloc(lvd_os_rings *rings, uint32_t count, const size_t *size, void **ring);
void lvd_os_rings_free(lvd_os_rings *rings);

/* Stacks: `count` of `size` bytes (multiples of pages), each behind its guard, at *out. Touching
 * the `guard` bytes below any is a trap (LVD_TRAP_MEMORY). LVD_E_MEMORY, LVD_E_MAPPINGS. */
size_t lvd_os_guard_size(void);
lvd_status lvd_os_stacks_alloc(uint32_t count, size_t size, size_t guard, void **out);
void lvd_os_stacks_free(void *base, size_t size);
/* Of a stack that nobody is on: what lies deeper than `keep` bytes is no memory any more, if it was. */
void lvd_os_stack_shrink(void *low, size_t size, size_t keep);

/* ---- cores and threads -------------------------------------------------------------------- */

/* The cores this process may use, at most `max`, in order; returns how many there are. */
uint32_t lvd_os_usable_cpus(int32_t *cpu, uint32_t max);
/* The cores that the machine may ever have: their numbers are below this. */
uint32_t lvd_os_core_limit(void);
/* Whole cores that the container's CPU quota pays for; 0: no quota. `root` is where the control
 * groups are mounted, null for the usual place. */
uint32_t lvd_os_cpu_quota(const char *root);

typedef struct lvd_os_thread lvd_os_thread;
/* Starts a thread pinned to `cpu` (negative: not pinned). */
lvd_status lvd_os_thread_start(lvd_os_thread **out, int32_t cpu, const char *name,
                               void (*body)(void *), void *argument);
void lvd_os_thread_join(lvd_os_thread *thread);
/* Makes a system call that the thread, which has said that it may be so treated, is in return early
 * (EINTR), once: one that is about to begin does not hear of it. */
void lvd_os_thread_set_interruptible(void);
void lvd_os_thread_interrupt(lvd_os_thread *thread);
/* The calling thread goes before others of its core: in a real-time class, or else with a better nice
 * value; false: the system allows neither. */
bool lvd_os_thread_raise_priority(void);
/* The calling thread goes before all of the usual class, and takes turns with those of its own priority; what it
 * starts, threads and processes, is of the usual class. False: the system does not allow it. */
bool lvd_os_thread_set_realtime(uint32_t priority);
/* May threads of this process have that? */
bool lvd_os_realtime_allowed(uint32_t priority);

/* The calling thread's number for the system, which is not 0; and, of a living thread of this process, its
 * name: "main" for the first one, and the number in digits for one without a name of its own. */
uint32_t lvd_os_thread_id(void);
void lvd_os_thread_name(uint32_t number, char *name, size_t size);
/* Does the thread of that number, of this process, sleep, or not exist? One that runs, waits for a core or
 * was stopped does not. In any context. The same of any process, which takes the longer the more threads that has. */
bool lvd_os_thread_is_blocked(uint32_t number);
bool lvd_os_any_thread_is_blocked(uint32_t number);

/* The CPU time of the calling thread; how often it has slept in the system; how long one of the process was ready and
 * other threads had its core, or UINT64_MAX if the system does not say that. In any context. */
uint64_t lvd_os_thread_cpu_ns(void);
uint64_t lvd_os_thread_voluntary_switches(void);
uint64_t lvd_os_thread_run_delay_ns(uint32_t number);

/* The core that the caller is on now; negative: it is not known. */
int32_t lvd_os_current_cpu(void);
/* Brings the calling thread to a core, if it may be there; where else it may be stays as it is. May be
 * called in a signal's handler. */
void lvd_os_thread_migrate(int32_t cpu);
/* The lowest address of the calling thread's stack; its size. */
const unsigned char *lvd_os_stack_low(size_t *size);
/* The clock of the CPU time of the calling thread, for others to read; 0 once it has ended. */
int lvd_os_thread_cpu_clock(void);
uint64_t lvd_os_cpu_clock_ns(int clock);
/* end(argument) is called when the calling thread ends, one for each of these, in this order; a later
 * call replaces it. An argument of null: nothing is called. */
typedef enum lvd_os_exit_hook {
  LVD_EXIT_HOOK_WORKER,
  LVD_EXIT_HOOK_FORKS,
  LVD_EXIT_HOOK_NUMBERS,
  LVD_EXIT_HOOK_STREAMS,
  LVD_EXIT_HOOK_CALLS,
  LVD_EXIT_HOOKS
} lvd_os_exit_hook;
void lvd_os_at_thread_exit(lvd_os_exit_hook what, void (*end)(void *), void *argument);
/* end() is called when the first thread of the process ends before the process does, if the caller is
 * that thread. */
void lvd_os_at_main_thread_exit(void (*end)(void));
/* The threads of the process that live and that lvd_os_thread_start has not started. More than
 * there can be: it is not known. */
uint32_t lvd_os_other_thread_count(void);
void lvd_os_sleep(int64_t ns);               /* may return early */
void lvd_os_sleep_uninterrupted(int64_t ns); /* a signal does not shorten it */
/* Called from a constructor: the library that this is in, if it is one, is not unloaded. */
void lvd_os_pin_library(void);
/* A copy of a shared object, with variables of its own; its constructors run in the caller.
 * LVD_E_ARGUMENT: there is no such object, LVD_E_LIMIT: it cannot be copied, LVD_E_MEMORY; `why`
 * (may be null) then has a sentence. */
typedef struct lvd_os_object lvd_os_object;
lvd_status lvd_os_object_open(const char *path, lvd_os_object **out, char *why, size_t size);
/* Null: it has none of that name. */
void *lvd_os_object_symbol(lvd_os_object *o, const char *name);
void lvd_os_object_close(lvd_os_object *o);
/* Where its instructions lie; from = to: nobody knows. */
void lvd_os_object_code_range(const lvd_os_object *o, uintptr_t *from, uintptr_t *to);
/* When the system makes a second process of this one: `before` is called in the thread that asks for
 * it, then `parent` in it and `child` in the other, which has no other threads. */
void lvd_os_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void));

/* Asks for the cache line at `at`, to be written soon; a hint. */
static inline void lvd_os_prefetch_write(const void *at) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
  __builtin_prefetch(at, 1);
#endif
}

/* What this thread is to the runtime: its worker, or null. A call, so that nobody keeps the address of
 * the thread's word over a switch of stacks, after which the thread may be another one. */
void *lvd_os_self(void);
void lvd_os_set_self(void *self);
/* The same without the call, where no switch comes between this and the last use of it. */
#ifndef LVD_OS_SELF /* the checker's threads are all one of the system */
extern _Thread_local void *lvd_os_self_word
    __attribute__((visibility("hidden"), tls_model("initial-exec")));
#define LVD_OS_SELF lvd_os_self_word
#endif
static inline void *lvd_os_self_until_switch(void) { return LVD_OS_SELF; }

/* ---- locks of the slow paths (loading, unloading) ----------------------------------------- */

typedef struct lvd_os_mutex {
  lvd_a32 word;
} lvd_os_mutex;
void lvd_os_lock(lvd_os_mutex *m);
bool lvd_os_try_lock(lvd_os_mutex *m);
void lvd_os_unlock(lvd_os_mutex *m);

/* ---- traps: faults of the code a worker runs, and its time -------------------------------- */

typedef enum lvd_os_trap {
  LVD_TRAP_MEMORY,
  LVD_TRAP_ARITHMETIC,
  LVD_TRAP_ILLEGAL,
  LVD_TRAP_ABORT, /* the thread itself called abort; it may be in anything, and the process ends */
  LVD_TRAP_TICK,  /* another LVD_TICK_MS of CPU time of this thread have passed */
  LVD_TRAP_ALARM, /* lvd_os_alarm */
  LVD_TRAP_SIGNAL /* lvd_os_thread_signal */
} lvd_os_trap;
#define LVD_TICK_MS 4 /* many systems' clocks of CPU time tick no sooner */

/* Called on the thread that trapped, with its `self`, in signal context. It may lvd_os_jump. When
 * it returns, a tick, of any kind, goes on and a fault takes the way it would have taken without us. No tick
 * interrupts the handler of another. `address` is
 * what could not be touched, `at` the instruction that did; for a tick the stack pointer, and the
 * instruction that is next. */
typedef void lvd_os_trap_handler(void *self, lvd_os_trap trap, const void *address, const void *at);

/* In signal context: is the instruction one of the C library's, of the allocator's or of the loader's,
 * who have locks of the whole process? In a program that is linked statically as a whole that is not
 * known: no. */
bool lvd_os_in_system_library(const void *at);
/* In the handler of a tick, or a step (lvd_os_single_step) that then says false: when it has returned, `call` is called on the stack that it has interrupted,
 * as if what ran there had called it; it may switch to another stack, and come back much later. */
void lvd_os_inject_call(void (*call)(void));
/* In signal context: writes to the standard error. */
void lvd_os_fatal_message(const char *text);

/* What the first of these threads would do for all, before there are any: it takes a lock of the loader's, which
 * nobody gives back in a child of a system fork that happens meanwhile. */
void lvd_os_traps_prepare(void);
/* Once for each thread that runs foreign code: catches its traps, with a stack of its own to handle
 * them on; `ticks`: start the clock of CPU time. */
lvd_status lvd_os_traps_begin(lvd_os_trap_handler *handler, bool ticks);
void lvd_os_traps_end(void);

/* Makes a trap LVD_TRAP_ALARM in the calling thread, which catches its traps, when so much time has passed, instead of one
 * that was to come; 0: makes none. It may come late, where the system is short of timers not at all, and when it was
 * just to come all the same. Calls of the system that it interrupts go on, as far as the system lets them (SA_RESTART). */
void lvd_os_alarm(int64_t after_ns);
/* Makes a trap LVD_TRAP_SIGNAL in the thread of that number, which lives and catches its traps, wherever it
 * is. Calls of the system that it interrupts go on as far as the system lets them (SA_RESTART). */
void lvd_os_thread_signal(uint32_t number);

/* In the handler of a trap LVD_TRAP_SIGNAL, or of a tick that did not interrupt another handler: a call of the system
 * that waits ends early (EINTR), also one that would go on, and from there on step(self, stack pointer, instruction)
 * is called before each instruction of the thread, in signal context, until it jumps away or says false, or the next
 * is another call of the system, or for some thousand of them. Does nothing on processors other than x86-64, and where
 * the thread is traced already. */
typedef bool lvd_os_step_handler(void *self, const void *sp, const void *at);
void lvd_os_single_step(lvd_os_step_handler *step);
/* The same, but a call of the system that would go on does, and is followed from where it returns. */
void lvd_os_single_step_after_syscall(lvd_os_step_handler *step);

/* Another clock, of any thread: calls tick(argument) on the calling thread, in signal context, whenever
 * another `every_ns` of its CPU time have passed, or later. Calls of the system that it interrupts go on, as
 * far as the system lets them (SA_RESTART). False: there is none to be had. */
bool lvd_os_tick_timer_start(void (*tick)(void *argument), void *argument, int64_t every_ns);
/* Of the calling thread, too, less than a second: one tick more when so much time has passed, whether it
 * computed or not; instead of one that was to come. May be called in signal context. */
void lvd_os_tick_timer_once(int64_t after_ns);
void lvd_os_tick_timer_stop(void); /* of the calling thread */

/* Calls body(argument). lvd_os_jump on the same thread abandons it: then false. */
typedef struct lvd_os_escape lvd_os_escape;
size_t lvd_os_escape_size(void);
bool lvd_os_try(lvd_os_escape *escape, void (*body)(void *), void *argument);
LVD_NORETURN void lvd_os_jump(lvd_os_escape *escape);

#endif
