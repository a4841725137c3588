/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Platform layer: every call that the runtime makes to an operating system, and nothing else.
 *
 * Another system, a simulation or the model checker provides another implementation of these
 * functions. Unless noted, a negative timeout means no limit. */
#ifndef LVD_PLATFORM_H
#define LVD_PLATFORM_H

#include <levada/atomic.h>

/* ---- waiting --------------------------------------------------------------------------------- */

/* Sleeps while *word == expected, for at most `timeout_ns`. May return early. */
void lvd_os_wait(lvd_a32 *word, uint32_t expected, int64_t timeout_ns);
/* Wakes all threads that sleep on `word`. */
void lvd_os_wake(lvd_a32 *word);
/* The same for a word in memory that several processes share. */
void lvd_os_wait_shared(lvd_a32 *word, uint32_t expected, int64_t timeout_ns);
void lvd_os_wake_shared(lvd_a32 *word);
/* True: `fd` can be read (or written) without blocking, or is at its end, or has an error. Waits
 * for that for at most `timeout_ns`, rounded up to milliseconds; may return early. */
bool lvd_os_poll(int fd, bool to_write, int64_t timeout_ns);
/* A poller: one thread waits for many descriptors. A watched descriptor is reported once, with the
 * directions that are ready. Watching it again replaces the directions. */
typedef struct lvd_os_poller lvd_os_poller;
typedef struct lvd_os_ready_fd {
  int fd; /* negative: lvd_os_poller_wake was called */
  bool to_read, to_write;
} lvd_os_ready_fd;
lvd_status lvd_os_poller_open(lvd_os_poller **out);
void lvd_os_poller_close(lvd_os_poller *p);
/* Callable by any thread. False: the descriptor cannot be waited for, or a system limit is
 * reached. */
bool lvd_os_poller_watch(lvd_os_poller *p, int fd, bool to_read, bool to_write);
/* Returns the number of entries of ready[most] that were filled; may be 0. */
uint32_t lvd_os_poller_wait(lvd_os_poller *p, lvd_os_ready_fd *ready, uint32_t most);
void lvd_os_poller_wake(lvd_os_poller *p);

/* The pause of a spin loop. */
void lvd_os_relax(void);

/* ---- membarrier ------------------------------------------------------------------------------ */

/* Prepares lvd_os_barrier. False: it is not available, and [light] barriers must be real fences. */
bool lvd_os_barrier_prepare(void);
/* Every thread of the process executes a full fence between the call and the return. */
void lvd_os_barrier(void);

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t lvd_os_now_ns(void); /* monotonic clock */
/* A cheap monotonic counter, and conversions of differences to and from nanoseconds. */
uint64_t lvd_os_ticks(void);
uint64_t lvd_os_ticks_to_ns(uint64_t ticks);
uint64_t lvd_os_ns_to_ticks(uint64_t ns);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Zeroed memory, aligned to LVD_CACHE_LINE; null: no memory. */
void *lvd_os_alloc(size_t size);
void lvd_os_free(void *p, size_t size);

/* Ring sizes must be multiples of this. */
size_t lvd_os_ring_granularity(void);

/* Rings: `count` rings of `size[i]` bytes, each mapped twice in a row, at the addresses ring[i].
 * All are freed together by lvd_os_rings_free. LVD_E_MEMORY, or LVD_E_LIMIT if the process has
 * reached the system's number of mappings. */
typedef struct lvd_os_rings {
  void *base;
  size_t size;
} lvd_os_rings;
lvd_status lvd_os_rings_alloc(lvd_os_rings *rings, uint32_t count, const size_t *size, void **ring);
void lvd_os_rings_free(lvd_os_rings *rings);

/* Stacks: `count` stacks of `size` bytes (a multiple of pages), each above a guard of `guard`
 * bytes, from *out on. An access to a guard is a trap (LVD_TRAP_MEMORY). LVD_E_MEMORY,
 * LVD_E_MAPPINGS. */
size_t lvd_os_guard_size(void);
lvd_status lvd_os_stacks_alloc(uint32_t count, size_t size, size_t guard, void **out);
void lvd_os_stacks_free(void *base, size_t size);
/* Gives the memory of an unused stack back to the system, except for the `keep` bytes at its
 * top. */
void lvd_os_stack_shrink(void *low, size_t size, size_t keep);

/* ---- cores and threads ----------------------------------------------------------------------- */

/* Stores the numbers of at most `max` usable cores, ascending; returns how many there are. */
uint32_t lvd_os_usable_cpus(int32_t *cpu, uint32_t max);
/* All cores that the machine can ever have are numbered below this. */
uint32_t lvd_os_core_limit(void);
/* Whole cores that the CPU quota of the container allows; 0: no quota. `root` is the mount point of
 * the control groups; null: the usual one. */
uint32_t lvd_os_cpu_quota(const char *root);

typedef struct lvd_os_thread lvd_os_thread;
/* Starts a thread pinned to `cpu`; negative: not pinned. */
lvd_status lvd_os_thread_start(lvd_os_thread **out, int32_t cpu, const char *name,
                               void (*body)(void *), void *argument);
void lvd_os_thread_join(lvd_os_thread *thread);
/* lvd_os_thread_interrupt ends a system call of the thread early (EINTR), if the thread has allowed
 * that. It has no effect on a call that begins later. */
void lvd_os_thread_set_interruptible(void);
void lvd_os_thread_interrupt(lvd_os_thread *thread);
/* Gives the calling thread priority over others on its core: a real-time class, or else a better
 * nice value. False: the system allows neither. */
bool lvd_os_thread_raise_priority(void);
/* Gives the calling thread real-time priority over all threads of the normal class; threads of
 * equal priority share the core round-robin. Threads and processes that it starts are of the normal
 * class. False: not allowed. */
bool lvd_os_thread_set_realtime(uint32_t priority);
/* True: lvd_os_thread_set_realtime succeeds in this process. */
bool lvd_os_realtime_allowed(uint32_t priority);

/* The calling thread's ID in the system, never 0; and the name of a living thread of this process:
 * "main" for the first one, and the ID in digits for a thread without a name of its own. */
uint32_t lvd_os_thread_id(void);
void lvd_os_thread_name(uint32_t id, char *name, size_t size);
/* True: the thread (of this process, or of any) is blocked in the system, or does not exist. A
 * thread that runs, waits for a core, or has been stopped is not blocked. Async-signal-safe. The
 * second takes longer the more threads that process has. */
bool lvd_os_thread_is_blocked(uint32_t id);
bool lvd_os_any_thread_is_blocked(uint32_t id);

/* CPU time of the calling thread; its number of voluntary context switches; and the run delay of a
 * thread of this process (time in which it was runnable but had no core), UINT64_MAX if unknown.
 * Async-signal-safe. */
uint64_t lvd_os_thread_cpu_ns(void);
uint64_t lvd_os_thread_voluntary_switches(void);
uint64_t lvd_os_thread_run_delay_ns(uint32_t id);

/* The core on which the caller runs; negative: unknown. */
int32_t lvd_os_current_cpu(void);
/* Moves the calling thread to a core that it may use. Its affinity does not change.
 * Async-signal-safe. */
void lvd_os_thread_migrate(int32_t cpu);
/* The lowest address of the calling thread's stack, and its size. */
const unsigned char *lvd_os_stack_low(size_t *size);
/* The CPU-time clock of the calling thread, readable by other threads; reads 0 after the thread has
 * ended. */
int lvd_os_thread_cpu_clock(void);
uint64_t lvd_os_cpu_clock_ns(int clock);
/* end(argument) is called when the calling thread exits, once per hook, in this order. A later call
 * for the same hook replaces it. With a null argument nothing is called. */
typedef enum lvd_os_exit_hook {
  LVD_EXIT_HOOK_WORKER,
  LVD_EXIT_HOOK_FORKS,
  LVD_EXIT_HOOK_NUMBERS,
  LVD_EXIT_HOOK_STREAMS,
  LVD_EXIT_HOOK_CALLS,
  LVD_EXIT_HOOKS
} lvd_os_exit_hook;
void lvd_os_at_thread_exit(lvd_os_exit_hook hook, void (*end)(void *), void *argument);
/* end() is called when the first thread of the process exits before the process does. No effect if
 * the caller is another thread. */
void lvd_os_at_main_thread_exit(void (*end)(void));
/* The number of living threads of the process that lvd_os_thread_start has not started. UINT32_MAX:
 * unknown. */
uint32_t lvd_os_other_thread_count(void);
void lvd_os_sleep(int64_t ns);               /* may return early */
void lvd_os_sleep_uninterrupted(int64_t ns); /* restarted after a signal */
/* Called from a constructor: the shared library that contains the caller, if any, is never
 * unloaded. */
void lvd_os_pin_library(void);
/* A private copy of a shared object, with variables of its own. Its constructors run in the calling
 * thread. LVD_E_ARGUMENT: no such object; LVD_E_LIMIT: it cannot be copied; LVD_E_MEMORY; `why`
 * (may be null) then has a sentence. */
typedef struct lvd_os_object lvd_os_object;
lvd_status lvd_os_object_open(const char *path, lvd_os_object **out, char *why, size_t size);
/* Null: no symbol of that name. */
void *lvd_os_object_symbol(lvd_os_object *o, const char *name);
void lvd_os_object_close(lvd_os_object *o);
/* The address range of its instructions; from = to: unknown. */
void lvd_os_object_code_range(const lvd_os_object *o, uintptr_t *from, uintptr_t *to);
/* Handlers of a system fork: `before` and `parent` are called in the thread that forks, `child` in
 * the child process, which has no other threads. */
void lvd_os_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void));

/* A hint: prefetches the cache line at `at` for writing. */
static inline void lvd_os_prefetch_write(const void *at) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
  __builtin_prefetch(at, 1);
#endif
}

/* The runtime's pointer for the calling thread: its worker, or null. This is a function, so that no
 * caller keeps the address of the thread-local word across a stack switch, after which it may run
 * on another thread. */
void *lvd_os_self(void);
void lvd_os_set_self(void *self);
/* The same inline, for uses without a stack switch in between. */
#ifndef LVD_OS_SELF /* the model checker runs all its threads on one system thread */
extern _Thread_local void *lvd_os_self_word
    __attribute__((visibility("hidden"), tls_model("initial-exec")));
#define LVD_OS_SELF lvd_os_self_word
#endif
static inline void *lvd_os_self_until_switch(void) { return LVD_OS_SELF; }

/* ---- mutexes, for slow paths (loading, unloading) -------------------------------------------- */

typedef struct lvd_os_mutex {
  lvd_a32 word;
} lvd_os_mutex;
void lvd_os_lock(lvd_os_mutex *m);
bool lvd_os_try_lock(lvd_os_mutex *m);
void lvd_os_unlock(lvd_os_mutex *m);

/* ---- traps: faults of the code that a worker runs, and timers -------------------------------- */

typedef enum lvd_os_trap {
  LVD_TRAP_MEMORY,
  LVD_TRAP_ARITHMETIC,
  LVD_TRAP_ILLEGAL,
  LVD_TRAP_ABORT, /* the thread called abort; it may hold any lock, and the process ends */
  LVD_TRAP_TICK,  /* LVD_TICK_MS of CPU time of this thread have passed since the last one */
  LVD_TRAP_ALARM, /* lvd_os_alarm */
  LVD_TRAP_SIGNAL /* lvd_os_thread_signal */
} lvd_os_trap;
#define LVD_TICK_MS 4 /* CPU-time clocks of many systems have no finer resolution */

/* Called on the thread that trapped, with its `self`, in signal context. It may call lvd_os_jump.
 * If it returns, the thread continues after a tick of any kind; a fault is handled as without this
 * layer. No tick interrupts the handler of another. `address` is what could not be accessed and
 * `at` the instruction that did; for a tick, the stack pointer and the next instruction. */
typedef void lvd_os_trap_handler(void *self, lvd_os_trap trap, const void *address, const void *at);

/* In signal context: is the instruction in the C library, the allocator or the dynamic loader,
 * which hold locks of the whole process? In a statically linked program this is unknown: false. */
bool lvd_os_in_system_library(const void *at);
/* In the handler of a tick, or of a step (lvd_os_single_step) that then returns false: `call` is
 * called after the handler has returned, on the interrupted stack, as if the interrupted code had
 * called it. It may switch to another stack, and return much later. */
void lvd_os_inject_call(void (*call)(void));
/* In signal context: writes to the standard error. */
void lvd_os_fatal_message(const char *text);

/* Does the one-time work of lvd_os_traps_begin before any thread needs it. That work takes a lock
 * of the dynamic loader, which would remain locked in the child if the process forked meanwhile. */
void lvd_os_traps_prepare(void);
/* Called by each thread that runs foreign code: catches its traps, on a signal stack of its own.
 * `ticks`: also starts the CPU-time timer. */
lvd_status lvd_os_traps_begin(lvd_os_trap_handler *handler, bool ticks);
void lvd_os_traps_end(void);

/* Causes LVD_TRAP_ALARM in the calling thread, which catches its traps, after `after_ns`; replaces
 * a pending alarm; 0: only cancels. The alarm may be late, may not occur if the system is short of
 * timers, and may occur in spite of a cancel at the last moment. Interrupted system calls are
 * restarted if the system can (SA_RESTART). */
void lvd_os_alarm(int64_t after_ns);
/* Causes LVD_TRAP_SIGNAL in a living thread that catches its traps. Interrupted system calls are
 * restarted if the system can (SA_RESTART). */
void lvd_os_thread_signal(uint32_t id);

/* In the handler of LVD_TRAP_SIGNAL, or of a tick that did not interrupt another handler: ends an
 * interrupted system call early (EINTR), also one that would be restarted. From then on step(self,
 * stack pointer, instruction) is called before each instruction of the thread, in signal context,
 * until it jumps away or returns false, or the next instruction is another system call, or some
 * thousand instructions have passed. No effect on processors other than x86-64, or while the thread
 * is already being stepped. */
typedef bool lvd_os_step_handler(void *self, const void *sp, const void *at);
void lvd_os_single_step(lvd_os_step_handler *step);
/* The same, but a system call that would be restarted is, and stepping begins when it returns. */
void lvd_os_single_step_after_syscall(lvd_os_step_handler *step);

/* A tick timer, for any thread: calls tick(argument) in the calling thread, in signal context, at
 * least `every_ns` of its CPU time apart. Interrupted system calls are restarted if the system can
 * (SA_RESTART). False: no timer is left. */
bool lvd_os_tick_timer_start(void (*tick)(void *argument), void *argument, int64_t every_ns);
/* Adds one tick after `after_ns` of real time, less than a second; replaces a pending one.
 * Async-signal-safe. */
void lvd_os_tick_timer_once(int64_t after_ns);
void lvd_os_tick_timer_stop(void); /* of the calling thread */

/* Calls body(argument). False: lvd_os_jump on the same thread has abandoned it. */
typedef struct lvd_os_escape lvd_os_escape;
size_t lvd_os_escape_size(void);
bool lvd_os_try(lvd_os_escape *escape, void (*body)(void *), void *argument);
LVD_NORETURN void lvd_os_jump(lvd_os_escape *escape);

#endif
