/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Port: every call to an operating system that the runtime makes, and nothing else.
 *
 * Another system, a simulation or the model checker is another set of these functions. */
#ifndef LVD_PORT_H
#define LVD_PORT_H

#include <levada/atomic.h>

/* ---- waiting ------------------------------------------------------------------------------ */

/* Sleeps while *word == expected, at most `timeout_ns` (negative: for ever). May return early. */
void lvd_port_wait(lvd_a32 *word, uint32_t expected, int64_t timeout_ns);
/* Wakes all that sleep on `word`. */
void lvd_port_wake(lvd_a32 *word);
/* The same where `word` may lie in memory that several processes share. */
void lvd_port_wait_shared(lvd_a32 *word, uint32_t expected, int64_t timeout_ns);
void lvd_port_wake_shared(lvd_a32 *word);
/* Can `fd` be read (or written) without waiting, or has it an end or an error to tell? Waits for that
 * at most `timeout_ms` (negative: for ever; may return early). */
bool lvd_port_poll(int fd, bool to_write, int timeout_ms);
/* One thread that waits for many descriptors. What is watched is reported once, with the direction
 * that is ready; watched again, in other directions perhaps, it takes the place of before. */
typedef struct lvd_port_poller lvd_port_poller;
typedef struct lvd_port_ready {
  int fd; /* negative: the bell has been rung */
  bool to_read, to_write;
} lvd_port_ready;
lvd_status lvd_port_poller_open(lvd_port_poller **out);
void lvd_port_poller_close(lvd_port_poller *p);
/* From any thread. False: there is nothing to wait for with this one; or the system has a limit. */
bool lvd_port_poller_watch(lvd_port_poller *p, int fd, bool to_read, bool to_write);
/* How many of ready[most] were filled; it may be none. */
uint32_t lvd_port_poller_wait(lvd_port_poller *p, lvd_port_ready *ready, uint32_t most);
void lvd_port_poller_ring(lvd_port_poller *p);

/* A moment of a spinning loop. */
void lvd_port_relax(void);

/* ---- the barrier of the side that goes to sleep ------------------------------------------- */

/* Prepares lvd_port_barrier; false: there is none, and [light] barriers must be real fences. */
bool lvd_port_barrier_prepare(void);
/* Every thread of the process executes a full fence, or has since this was called. */
void lvd_port_barrier(void);

/* ---- time --------------------------------------------------------------------------------- */

uint64_t lvd_port_ns(void); /* monotonic */
/* A cheap counter, and what it is in nanoseconds (of a difference). */
uint64_t lvd_port_ticks(void);
uint64_t lvd_port_ticks_to_ns(uint64_t ticks);
uint64_t lvd_port_ns_to_ticks(uint64_t ns);

/* ---- memory ------------------------------------------------------------------------------- */

/* Zeroed memory, aligned to LVD_LINE; null if there is none. */
void *lvd_port_alloc(size_t size);
void lvd_port_free(void *p, size_t size);

/* The multiple that ring sizes must be of. */
size_t lvd_port_ring_unit(void);

/* Rings: `count` rings of `size[i]` bytes (multiples of the unit), each mapped twice in a row, their
 * addresses in `ring[i]`. All are given back together with lvd_port_rings_free. LVD_E_MEMORY, or
 * LVD_E_LIMIT when the system's number of mappings per process is reached. */
typedef struct lvd_port_rings {
  void *base;
  size_t size;
} lvd_port_rings;
lvd_status lvd_port_rings_alloc(lvd_port_rings *rings, uint32_t count, const size_t *size,
                                void **ring);
void lvd_port_rings_free(lvd_port_rings *rings);

/* Stacks: `count` of `size` bytes (multiples of pages), each behind its guard, at *out. Touching
 * the `guard` bytes below any is a trap (LVD_TRAP_MEMORY). LVD_E_MEMORY, LVD_E_MAPPINGS. */
size_t lvd_port_guard_size(void);
lvd_status lvd_port_stacks_alloc(uint32_t count, size_t size, size_t guard, void **out);
void lvd_port_stacks_free(void *base, size_t size);
/* Of a stack that nobody is on: what lies deeper than `keep` bytes is no memory any more, if it was. */
void lvd_port_stack_shrink(void *low, size_t size, size_t keep);

/* ---- cores and threads -------------------------------------------------------------------- */

/* The cores this process may use, at most `max`, in order; returns how many there are. */
uint32_t lvd_port_cpus(int32_t *cpu, uint32_t max);
/* The cores that the machine may ever have: their numbers are below this. */
uint32_t lvd_port_cores(void);
/* Whole cores that the container's CPU quota pays for; 0: no quota. `root` is where the control
 * groups are mounted, null for the usual place. */
uint32_t lvd_port_quota(const char *root);

typedef struct lvd_port_thread lvd_port_thread;
/* Starts a thread pinned to `cpu` (negative: not pinned). */
lvd_status lvd_port_thread_start(lvd_port_thread **out, int32_t cpu, const char *name,
                                 void (*body)(void *), void *argument);
void lvd_port_thread_join(lvd_port_thread *thread);
/* Makes a system call that the thread, which has said that it may be so treated, is in return early
 * (EINTR), once: one that is about to begin does not hear of it. */
void lvd_port_thread_interruptible(void);
void lvd_port_thread_interrupt(lvd_port_thread *thread);
/* The calling thread goes before others of its core: in a real-time class, or else with a better nice
 * value; false: the system allows neither. */
bool lvd_port_thread_urgent(void);
/* The calling thread goes before all of the usual class, and takes turns with those of its own priority; what it
 * starts, threads and processes, is of the usual class. False: the system does not allow it. */
bool lvd_port_thread_realtime(uint32_t priority);
/* May threads of this process have that? */
bool lvd_port_realtime_allowed(uint32_t priority);

/* The calling thread's number for the system, which is not 0; and, of a living thread of this process, its
 * name: "main" for the first one, and the number in digits for one without a name of its own. */
uint32_t lvd_port_thread_number(void);
void lvd_port_thread_name(uint32_t number, char *name, size_t size);
/* Does the thread of that number, of this process, sleep, or not exist? One that runs, waits for a core or
 * was stopped does not. In any context. The same of any process, which takes the longer the more threads that has. */
bool lvd_port_thread_waits(uint32_t number);
bool lvd_port_any_thread_waits(uint32_t number);

/* The CPU time of the calling thread; how often it has slept in the system; how long one of the process was ready and
 * other threads had its core, or UINT64_MAX if the system does not say that. In any context. */
uint64_t lvd_port_thread_cpu_ns(void);
uint64_t lvd_port_thread_sleeps(void);
uint64_t lvd_port_thread_delay_ns(uint32_t number);

/* The core that the caller is on now; negative: it is not known. */
int32_t lvd_port_cpu(void);
/* Brings the calling thread to a core, if it may be there; where else it may be stays as it is. May be
 * called in a signal's handler. */
void lvd_port_thread_come(int32_t cpu);
/* The lowest address of the calling thread's stack; its size. */
const unsigned char *lvd_port_stack_low(size_t *size);
/* The clock of the CPU time of the calling thread, for others to read; 0 once it has ended. */
int lvd_port_thread_clock(void);
uint64_t lvd_port_clock_ns(int clock);
/* end(argument) is called when the calling thread ends, one for each of these, in this order; a later
 * call replaces it. An argument of null: nothing is called. */
typedef enum lvd_port_ends {
  LVD_ENDS_WORKER,
  LVD_ENDS_FORKS,
  LVD_ENDS_NUMBERS,
  LVD_ENDS_STREAMS,
  LVD_ENDS_CALLS,
  LVD_ENDS
} lvd_port_ends;
void lvd_port_at_thread_end(lvd_port_ends what, void (*end)(void *), void *argument);
/* end() is called when the first thread of the process ends before the process does, if the caller is
 * that thread. */
void lvd_port_at_main_end(void (*end)(void));
/* The threads of the process that live and that lvd_port_thread_start has not started. More than
 * there can be: it is not known. */
uint32_t lvd_port_other_threads(void);
void lvd_port_sleep(int64_t ns);       /* may return early */
void lvd_port_sleep_whole(int64_t ns); /* a signal does not shorten it */
/* Called from a constructor: the library that this is in, if it is one, is not unloaded. */
void lvd_port_stay_loaded(void);
/* A copy of a shared object, with variables of its own; its constructors run in the caller.
 * LVD_E_ARGUMENT: there is no such object, LVD_E_LIMIT: it cannot be copied, LVD_E_MEMORY; `why`
 * (may be null) then has a sentence. */
typedef struct lvd_port_object lvd_port_object;
lvd_status lvd_port_object_open(const char *path, lvd_port_object **out, char *why, size_t size);
/* Null: it has none of that name. */
void *lvd_port_object_symbol(lvd_port_object *o, const char *name);
void lvd_port_object_close(lvd_port_object *o);
/* Where its instructions lie; from = to: nobody knows. */
void lvd_port_object_code(const lvd_port_object *o, uintptr_t *from, uintptr_t *to);
/* When the system makes a second process of this one: `before` is called in the thread that asks for
 * it, then `parent` in it and `child` in the other, which has no other threads. */
void lvd_port_at_fork(void (*before)(void), void (*parent)(void), void (*child)(void));

/* Asks for the cache line at `at`, to be written soon; a hint. */
static inline void lvd_port_expect(const void *at) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
  __builtin_prefetch(at, 1);
#endif
}

/* What this thread is to the runtime: its worker, or null. A call, so that nobody keeps the address of
 * the thread's word over a switch of stacks, after which the thread may be another one. */
void *lvd_port_self(void);
void lvd_port_set_self(void *self);
/* The same without the call, where no switch comes between this and the last use of it. */
#ifndef LVD_PORT_SELF /* the checker's threads are all one of the system */
extern _Thread_local void *lvd_port_self_word
    __attribute__((visibility("hidden"), tls_model("initial-exec")));
#define LVD_PORT_SELF lvd_port_self_word
#endif
static inline void *lvd_port_self_until_switch(void) { return LVD_PORT_SELF; }

/* ---- locks of the slow paths (loading, unloading) ----------------------------------------- */

typedef struct lvd_port_mutex {
  lvd_a32 word;
} lvd_port_mutex;
void lvd_port_lock(lvd_port_mutex *m);
bool lvd_port_try_lock(lvd_port_mutex *m);
void lvd_port_unlock(lvd_port_mutex *m);

/* ---- traps: faults of the code a worker runs, and its time -------------------------------- */

typedef enum lvd_port_trap {
  LVD_TRAP_MEMORY,
  LVD_TRAP_ARITHMETIC,
  LVD_TRAP_ILLEGAL,
  LVD_TRAP_ABORT, /* the thread itself called abort; it may be in anything, and the process ends */
  LVD_TRAP_TICK,  /* another LVD_TICK_MS of CPU time of this thread have passed */
  LVD_TRAP_ALARM, /* lvd_port_alarm */
  LVD_TRAP_ASLEEP /* lvd_port_thread_tick */
} lvd_port_trap;
#define LVD_TICK_MS 4 /* many systems' clocks of CPU time tick no sooner */

/* Called on the thread that trapped, with its `self`, in signal context. It may lvd_port_jump. When
 * it returns, a tick, of any kind, goes on and a fault takes the way it would have taken without us. No tick
 * interrupts the handler of another. `address` is
 * what could not be touched, `at` the instruction that did; for a tick the stack pointer, and the
 * instruction that is next. */
typedef void lvd_port_trap_handler(void *self, lvd_port_trap trap, const void *address,
                                   const void *at);

/* In signal context: is the instruction one of the C library's, of the allocator's or of the loader's,
 * who have locks of the whole process? In a program that is linked statically as a whole that is not
 * known: no. */
bool lvd_port_in_system_library(const void *at);
/* In the handler of a tick, or a step (lvd_port_trace) that then says false: when it has returned, `call` is called on the stack that it has interrupted,
 * as if what ran there had called it; it may switch to another stack, and come back much later. */
void lvd_port_interject(void (*call)(void));
/* In signal context: writes to the standard error. */
void lvd_port_last_words(const char *text);

/* What the first of these threads would do for all, before there are any: it takes a lock of the loader's, which
 * nobody gives back in a child of a system fork that happens meanwhile. */
void lvd_port_traps_prepare(void);
/* Once for each thread that runs foreign code: catches its traps, with a stack of its own to handle
 * them on; `ticks`: start the clock of CPU time. */
lvd_status lvd_port_traps_begin(lvd_port_trap_handler *handler, bool ticks);
void lvd_port_traps_end(void);

/* Makes a trap LVD_TRAP_ALARM in the calling thread, which catches its traps, when so much time has passed, instead of one
 * that was to come; 0: makes none. It may come late, where the system is short of timers not at all, and when it was
 * just to come all the same. Calls of the system that it interrupts go on, as far as the system lets them (SA_RESTART). */
void lvd_port_alarm(int64_t after_ns);
/* Makes a trap LVD_TRAP_ASLEEP in the thread of that number, which lives and catches its traps, wherever it
 * is. Calls of the system that it interrupts go on as far as the system lets them (SA_RESTART). */
void lvd_port_thread_tick(uint32_t number);

/* In the handler of a trap LVD_TRAP_ASLEEP, or of a tick that did not interrupt another handler: a call of the system
 * that waits ends early (EINTR), also one that would go on, and from there on step(self, stack pointer, instruction)
 * is called before each instruction of the thread, in signal context, until it jumps away or says false, or the next
 * is another call of the system, or for some thousand of them. Does nothing on processors other than x86-64, and where
 * the thread is traced already. */
typedef bool lvd_port_step(void *self, const void *sp, const void *at);
void lvd_port_trace(lvd_port_step *step);
/* The same, but a call of the system that would go on does, and is followed from where it returns. */
void lvd_port_trace_after(lvd_port_step *step);

/* Another clock, of any thread: calls tick(argument) on the calling thread, in signal context, whenever
 * another `every_ns` of its CPU time have passed, or later. Calls of the system that it interrupts go on, as
 * far as the system lets them (SA_RESTART). False: there is none to be had. */
bool lvd_port_clock_begin(void (*tick)(void *argument), void *argument, int64_t every_ns);
/* Of the calling thread, too, less than a second: one tick more when so much time has passed, whether it
 * computed or not; instead of one that was to come. May be called in signal context. */
void lvd_port_clock_once(int64_t after_ns);
void lvd_port_clock_end(void); /* of the calling thread */

/* Calls body(argument). lvd_port_jump on the same thread abandons it: then false. */
typedef struct lvd_port_escape lvd_port_escape;
size_t lvd_port_escape_size(void);
bool lvd_port_try(lvd_port_escape *escape, void (*body)(void *), void *argument);
LVD_NORETURN void lvd_port_jump(lvd_port_escape *escape);

#endif
