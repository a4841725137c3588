/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fork: a call that another worker may steal while the caller continues. At the join the caller
 * makes the call itself, as a direct call, if it was not stolen (fork-join with work stealing).
 *
 * There are three ways to use it: write `y = f(x) !! { ... }` and compile with `levada cc`, the
 * translator; write the macros below by hand; or call lvd_for and lvd_reduce for loops.
 *
 * A fork is a slot of a DEQUE: an array of cache lines that belongs to the stack that forks. The
 * owner pushes and joins at its head; thieves steal the oldest slot at its tail. Slots from `split`
 * on are private to the owner, so neither a fork nor a join needs a fence or an atomic
 * read-modify-write: a fork compares the head with `limit`, a join compares it with `floor`. A
 * thief requests work through the same words: it sets limit to 0, and floor to the end of memory.
 * So the checks for room, for a public slot and for a request are one load and one comparison. The
 * rest, which is rare, is in the library (runtime/src/fork/deque.c).
 *
 * ---- use by hand ------------------------------------------------------------------------------
 *
 *   static int fib(int n);
 *   LVD_FORKABLE(int, fib, int)         // once, after the declaration: result, name, parameters
 *
 *   static int fib(int n) {
 *     if (n < 2) return n;
 *     LVD_FORK(first, fib, n - 1);      // from here on another worker may steal fib(n - 1)
 *     int second = fib(n - 2);
 *     return LVD_JOIN(first, fib) + second;  // calls it now, or waits for the thief
 *   }
 *
 * Every fork is joined exactly once, in the function that made it, in reverse order, on every path.
 * LVD_FORKABLE_VOID(name, parameters...) is for functions without a result. At most eight
 * parameters. Results and arguments may have any copyable type (an array is passed as a pointer);
 * in C++ they are copied as bytes: pass a pointer to an object with constructors of its own. The
 * function must not be left between fork and join by longjmp, pthread_exit, cancellation of the
 * thread or, in C++, an exception. Signal handlers must not fork.
 *
 * No set-up is needed: the first fork starts the workers, and they end with the program. Forks in a
 * fiber, a remote procedure or an actor's native run on the existing workers. A stolen call runs on
 * a fiber, and may wait like any fiber. Its stack is as large as the largest of any thread that has
 * forked, from 8 MiB to 1 GiB, so a call that fits there directly also fits when stolen.
 *
 * ---- output of the translator -----------------------------------------------------------------
 *
 * At file scope, before the function, for `f(x, y) !! {...}` with f: R (A, B), the first in `g`:
 *
 *   typedef union lvd_fork_g_1 {
 *     struct { A lvd_a0; B lvd_a1; } lvd_in; R lvd_out;            // no `lvd_out`: void
 *   } lvd_fork_g_1;
 *   static void lvd_run_g_1(lvd_fork *lvd_slot) {
 *     lvd_fork_g_1 *lvd_r = LVD_FORK_RECORD(lvd_slot, lvd_fork_g_1);
 *     lvd_r->lvd_out = f(lvd_r->lvd_in.lvd_a0, lvd_r->lvd_in.lvd_a1);
 *   }
 *
 * (Types without top-level qualifiers. A call through a pointer: the pointer is one more member of
 * `lvd_in`. A call without arguments: `char lvd_none` in `lvd_in`, set to 0.) All names written
 * into the user's text begin with lvd_, so that the user's macros cannot collide with them. At the
 * place itself, for `v = f(x, y) !! { block }`, number 7 of the file:
 *
 *   {
 *     lvd_fork_g_1 lvd_r7;
 *     lvd_fork *lvd_h7;
 *     lvd_r7.lvd_in.lvd_a0 = x;                   // arguments in order; may fork themselves
 *     lvd_r7.lvd_in.lvd_a1 = y;
 *     LVD_FORK_PUSH(lvd_h7, lvd_fork_g_1, lvd_r7, lvd_run_g_1);
 *     { block }
 *     if (LVD_LIKELY(lvd_fork_pop(lvd_h7)))       // not stolen
 *       v = f(lvd_r7.lvd_in.lvd_a0, lvd_r7.lvd_in.lvd_a1); // by name: the compiler may inline it
 *     else if (lvd_fork_join_slow(lvd_h7))      // not stolen, by the slow path: the call is
 *       v = f(lvd_r7.lvd_in.lvd_a0, lvd_r7.lvd_in.lvd_a1); // written twice for better code above
 *     else
 *       v = LVD_FORK_OUT(lvd_h7, lvd_fork_g_1, lvd_r7)->lvd_out; // stolen, and complete
 *   }
 *
 *   f(x) !! {}            the same without `v =`; void: `else` and LVD_FORK_OUT are omitted
 *   T v = f(x) !! {}      T v; before the braces (if v is const: through a variable that is not)
 *   a[i++] += f(x) !! {}  T *lvd_p7 = &a[i++]; before the push, *lvd_p7 += in all branches
 *   return f(x) !! {}     the result into a variable in all branches, then return it
 *   operand               the same as an expression, `({ ... })`; if other operands can observe
 *                         the order of evaluation, each part is a step of its own: the operands
 *                         left of the fork, the fork, the rest
 *   leaving the block     first the value of `return` into a variable, then the joins of the forks
 *                         that the jump leaves, then the jump. The call of f is still made (it may
 *                         have side effects)
 *   names                 if f or a type is shadowed in the block: through a function lvd_call_g_1,
 *                         or a typedef, placed before g
 *   lvd_stolen()          in a function that uses it, after each join: lvd_stolen_set(0) after the
 *                         direct calls, lvd_stolen_set(1) after the stolen one
 *
 * Between LVD_FORK_PUSH and lvd_fork_pop no jump may lead in or out. `lvd_h7` and `lvd_r7` are
 * locals that live until the join. The address of the record is taken only if the record is larger
 * than the room of a slot, so a small one needs no memory.
 *
 * Freestanding except for the functions it calls; C17 and C++17 with the extensions of gcc and
 * clang. */
#ifndef LVD_FORK_H
#define LVD_FORK_H

#include <levada/atomic.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LVD_FORK_ROOM = 48 }; /* bytes of a slot for arguments and result */

/* One slot, one cache line. */
typedef struct lvd_fork {
  void (*run)(struct lvd_fork *slot); /* makes the call for a thief */
  lvd_a64 state;                      /* 0 unless stolen (deque.c) */
  LVD_ALIGNED(16) unsigned char record[LVD_FORK_ROOM];
} LVD_ALIGNED(64) lvd_fork;

/* A thread's view of the deque of its current stack; a fiber that has forked has its own. Aligned
 * to 64 bytes, since the loader provides no more for a library loaded at run time. */
typedef struct lvd_fork_thread {
  LVD_ALIGNED(64) lvd_fork *head; /* the next slot */
  uint32_t stolen;                /* result of lvd_stolen */
  /* Thieves write the next two; they are two cache lines away from the owner's. */
  LVD_ALIGNED(64) unsigned char padding[64];
  LVD_ALIGNED(64) lvd_aptr limit; /* end of the slots; 0: work is requested, or no deque yet */
  lvd_aptr floor;                 /* first private slot; end of memory: work is requested */
} lvd_fork_thread;

/* Initial-exec TLS: its offset from the thread pointer is a constant of the program. Where the
 * thread pointer is a segment register (x86-64), that offset is all that a compiler can keep
 * across a wait, after which a fiber may be on another thread; elsewhere the thread pointer is
 * read each time. The model checker, which runs all its threads on one system thread, uses a call
 * instead. */
#ifdef LVD_FORK_THREAD
lvd_fork_thread *LVD_FORK_THREAD;
#define lvd_forks (*LVD_FORK_THREAD)
#else
extern LVD_API __thread lvd_fork_thread lvd_forks_here __attribute__((tls_model("initial-exec")));
#if defined __SANITIZE_THREAD__
#define LVD_FORK_WATCHED 1
#elif defined __has_feature /* clang's equivalent */
#if __has_feature(thread_sanitizer)
#define LVD_FORK_WATCHED 1
#endif
#endif
#if defined __aarch64__ || defined __riscv || defined LVD_FORK_WATCHED
static inline __attribute__((always_inline)) lvd_fork_thread *lvd_forks_now(void) {
  char *thread;
  uintptr_t distance;
#ifdef __aarch64__
  __asm__ volatile("mrs %0, tpidr_el0" : "=r"(thread));
  __asm__("adrp %0, :gottprel:lvd_forks_here\n\tldr %0, [%0, #:gottprel_lo12:lvd_forks_here]"
          : "=r"(distance));
#elif defined __x86_64__ /* the sanitizer instruments an address */
  __asm__ volatile("movq %%fs:0, %0" : "=r"(thread));
  __asm__("movq lvd_forks_here@gottpoff(%%rip), %0" : "=r"(distance));
#else
  __asm__ volatile("mv %0, tp" : "=r"(thread));
  __asm__("la.tls.ie %0, lvd_forks_here" : "=r"(distance));
#endif
  return (lvd_fork_thread *)(void *)(thread + distance);
}
#define lvd_forks (*lvd_forks_now())
#else
#define lvd_forks lvd_forks_here
#endif
#endif

/* Slow path of a fork: no deque yet, no room, or work is requested. `bytes` is the content of the
 * slot's record, `size` its length in bytes. Returns the slot to join. */
LVD_API LVD_COLD lvd_fork *lvd_fork_slow(void (*run)(lvd_fork *), const void *bytes, size_t size);
/* Slow path of a join: the slot is public or stolen, or work is requested. True: not stolen. */
LVD_API LVD_COLD bool lvd_fork_join_slow_lib(lvd_fork *slot);

/* Clang keeps values that live across a call in callee-saved registers, which the function then
 * saves at entry even on paths without a fork. So with clang these two use a calling convention
 * that preserves nearly all registers: fib is 25 % faster with clang 14. Through pointers, since
 * the loader's lazy binding at the first call does not support that convention. */
#if defined __clang__ && defined __x86_64__ && !defined LVD_FORK_THREAD
typedef struct lvd_fork_slow_fns {
  lvd_fork *(*fork)(void (*run)(lvd_fork *), const void *bytes, size_t size)
      __attribute__((preserve_most));
  bool (*join)(lvd_fork *slot) __attribute__((preserve_most));
} lvd_fork_slow_fns;
extern LVD_API const lvd_fork_slow_fns lvd_fork_slow_preserve_most;
#define LVD_FORK_SLOW      lvd_fork_slow_preserve_most.fork
#define LVD_FORK_JOIN_SLOW lvd_fork_slow_preserve_most.join
#else
#define LVD_FORK_SLOW      lvd_fork_slow
#define LVD_FORK_JOIN_SLOW lvd_fork_join_slow_lib
#endif

/* Does a record fit in its slot? Otherwise the slot holds its address. A constant expression. */
#define LVD_FORK_FITS(T) (sizeof(T) <= LVD_FORK_ROOM && __alignof__(T) <= 16)

/* Parts of the macros. They are functions, so that the macros name no members: a user's macro could
 * have a member's name. */
static inline lvd_fork *lvd_fork_head(void) { return lvd_forks.head; }
static inline bool lvd_fork_open(const lvd_fork *h) {
  return (const void *)h < lvd_load_relaxed_ptr(&lvd_forks.limit);
}
static inline void *lvd_fork_bytes(lvd_fork *h) { return h->record; }
static inline void lvd_fork_begin(lvd_fork *h, void (*run)(lvd_fork *)) { h->run = run; }
static inline void lvd_fork_pushed(lvd_fork *h) { lvd_forks.head = h + 1; }
static inline lvd_fork *lvd_fork_pushed_slow(void (*run)(lvd_fork *), const void *bytes,
                                             size_t size) {
  return LVD_FORK_SLOW(run, bytes, size);
}

/* The record of a slot, for the function that runs it. */
#define LVD_FORK_RECORD(slot, T)                                                                   \
  (LVD_FORK_FITS(T) ? (T *)lvd_fork_bytes(slot) : *(T **)lvd_fork_bytes(slot))

/* Makes a fork of record `r`, a variable of type T with `lvd_in` filled in, and sets `h`, the
 * lvd_fork * to join it with. */
#define LVD_FORK_PUSH(h, T, r, thunk)                                                              \
  do {                                                                                             \
    (h) = lvd_fork_head();                                                                         \
    if (LVD_LIKELY(lvd_fork_open(h))) {                                                            \
      lvd_fork_begin((h), (thunk));                                                                \
      if (LVD_FORK_FITS(T))                                                                        \
        ((T *)lvd_fork_bytes(h))->lvd_in = (r).lvd_in;                                             \
      else                                                                                         \
        *(T **)lvd_fork_bytes(h) = &(r);                                                           \
      lvd_fork_pushed(h);                                                                          \
    } else if (LVD_FORK_FITS(T)) {                                                                 \
      __typeof__((r).lvd_in) lvd_copy_ = (r).lvd_in;                                               \
      (h) = lvd_fork_pushed_slow((thunk), &lvd_copy_, sizeof lvd_copy_);                           \
    } else {                                                                                       \
      T *lvd_at_ = &(r);                                                                           \
      (h) = lvd_fork_pushed_slow((thunk), &lvd_at_, sizeof lvd_at_);                               \
    }                                                                                              \
  } while (0)

/* Takes back the last fork of this stack that is not joined yet. True: it was not stolen, and the
 * caller makes the call. False: it may have been stolen; call lvd_fork_join_slow. */
static inline bool lvd_fork_pop(lvd_fork *h) {
  if (LVD_UNLIKELY((void *)h < lvd_load_relaxed_ptr(&lvd_forks.floor))) return false;
  lvd_forks.head = h;
  return true;
}

/* Slow path of lvd_fork_pop. True: not stolen. It stores the head that the library has already
 * set, so that the compiler sees the value and need not load it again on any path of a loop of
 * forks. Always inline, since gcc considers the path cold. */
static inline __attribute__((always_inline)) bool lvd_fork_join_slow(lvd_fork *h) {
  bool ours = LVD_FORK_JOIN_SLOW(h);
  lvd_forks.head = h;
  return ours;
}

/* Fast and slow path. True: not stolen; the caller makes the call, or something else instead.
 * False: it was stolen, and is complete (or cancelled). */
static inline bool lvd_fork_join(lvd_fork *h) { return lvd_fork_pop(h) || lvd_fork_join_slow(h); }

/* The record with the result of a stolen call. Valid until this stack forks again. */
#define LVD_FORK_OUT(h, T, r) (LVD_FORK_FITS(T) ? (T *)lvd_fork_bytes(h) : &(r))

/* Was the call last joined on this thread stolen by another worker? If not, a scan or reduction
 * can skip its second pass. Set by LVD_JOIN, and by translated functions that use it. */
static inline bool lvd_stolen(void) { return lvd_forks.stolen != 0; }
static inline void lvd_stolen_set(bool stolen) { lvd_forks.stolen = stolen; }

/* Does another worker request work now? A loop can then fork half of what is left. */
static inline bool lvd_fork_wanted(void) {
  return (void *)lvd_forks.head >= lvd_load_relaxed_ptr(&lvd_forks.limit);
}

/* ------------------------------------------------------------------------------------------ */
/* Cancellation                                                                               */
/* ------------------------------------------------------------------------------------------ */

/* Where a cancellation scope starts in the deque. Internal. */
typedef struct lvd_scope_mark {
  lvd_a32 first;  /* slot of the deque */
  lvd_aptr scope; /* valid while a slot from `first` on is open */
} lvd_scope_mark;

/* A cancellation scope: all forks made between lvd_cancel_begin and lvd_cancel_end, and,
 * recursively, by those. Calls not started when lvd_cancel is called are skipped; their results
 * are indeterminate. Running calls can poll lvd_cancelled. Scopes nest like forks, to any depth.
 * Each begin needs an end, whatever status it returned. The caller owns the memory. */
typedef struct lvd_cancel_scope {
  lvd_a32 cancelled;
  lvd_fork *slot;
  struct lvd_cancel_scope *outer; /* the enclosing scope, perhaps of another stack */
  struct lvd_cancel_scope *below; /* the enclosing scope on this stack, or null */
  lvd_scope_mark inner;           /* the scope inside it on this stack */
} lvd_cancel_scope;

/* Begins a scope. LVD_E_LIMIT, LVD_E_MEMORY: this stack has no deque, so its forks are direct
 * calls, which are made even if the scope is cancelled. */
LVD_API lvd_status lvd_cancel_begin(lvd_cancel_scope *scope);
/* Ends the innermost scope, by the function that began it, after all forks in it were joined. */
LVD_API void lvd_cancel_end(lvd_cancel_scope *scope);
/* Cancels a scope. From any thread, between its begin and its end. */
LVD_API void lvd_cancel(lvd_cancel_scope *scope);
/* True if the innermost scope of the caller, or one enclosing it, is cancelled. */
LVD_API bool lvd_cancelled(void);

/* ------------------------------------------------------------------------------------------ */
/* Ranges                                                                                     */
/* ------------------------------------------------------------------------------------------ */

/* Calls body(context, from, to) for disjoint half-open pieces [from, to) that cover [begin, end),
 * in any order and concurrently, and returns when all calls have returned. A range is split only
 * when a worker requests work, and the number of iterations between two checks is adapted by
 * measuring time: so no grain size has to be chosen. */
LVD_API void lvd_for(size_t begin, size_t end, void (*body)(void *context, size_t from, size_t to),
                     void *context);

/* A reduction. A result has `size` bytes and is copied as bytes. `combine` must be associative but
 * need not be commutative: the left operand always precedes the right one. */
typedef struct lvd_reduction {
  size_t size;                                /* of a result, bytes */
  void (*empty)(void *context, void *result); /* sets *result to the neutral element */
  /* accumulates the elements [from, to) into *result */
  void (*add)(void *context, size_t from, size_t to, void *result);
  /* left = left combined with right */
  void (*combine)(void *context, void *left, const void *right);
  void *context;
} lvd_reduction;

/* Reduces [begin, end) into *result, which the caller owns. A result of more than 256 bytes needs
 * memory for each part that is split off; if there is none, the range is not split further. */
LVD_API void lvd_reduce(size_t begin, size_t end, const lvd_reduction *reduction, void *result);

/* ------------------------------------------------------------------------------------------ */
/* The workers of a program that only forks                                                   */
/* ------------------------------------------------------------------------------------------ */

/* Sets the number of workers that the first fork of a program without a runtime starts; 0 (the
 * default): as lvd_runtime_create chooses it. The environment variable LEVADA_WORKERS does the
 * same. LVD_E_STATE: the workers have already been started. */
LVD_API lvd_status lvd_fork_workers(uint32_t workers);

typedef struct lvd_fork_counters {
  uint64_t stolen; /* calls stolen by another worker */
  /* of those: stolen by a worker that waited for the thief, from that thief (leapfrogging) */
  uint64_t leapfrogged;
  uint64_t steal_requests; /* times a thief requested work */
  uint64_t published;      /* times an owner made forks public */
  uint64_t full;           /* forks made as direct calls because the deque was full */
  uint64_t waits;          /* joins that had to suspend or sleep */
  uint64_t woken;          /* sleeping workers woken by forks */
} lvd_fork_counters;

/* Totals of the whole process since its start. */
LVD_API void lvd_fork_counters_read(lvd_fork_counters *out);

/* ------------------------------------------------------------------------------------------ */
/* The macros for use by hand                                                                 */
/* ------------------------------------------------------------------------------------------ */

#define LVD_CAT_(a, b)                                 a##b
#define LVD_CAT(a, b)                                  LVD_CAT_(a, b)
#define LVD_FIRST_(name, ...)                          name
#define LVD_NTH_(name, a, b, c, d, e, f, g, h, n, ...) n
/* Number of parameters after the name. */
#define LVD_PARAMETERS_(...) LVD_NTH_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)

#define LVD_FIELDS_0(name)                         char lvd_none;
#define LVD_FIELDS_1(name, A)                      A lvd_a;
#define LVD_FIELDS_2(name, A, B)                   LVD_FIELDS_1(name, A) B lvd_b;
#define LVD_FIELDS_3(name, A, B, C)                LVD_FIELDS_2(name, A, B) C lvd_c;
#define LVD_FIELDS_4(name, A, B, C, D)             LVD_FIELDS_3(name, A, B, C) D lvd_d;
#define LVD_FIELDS_5(name, A, B, C, D, E)          LVD_FIELDS_4(name, A, B, C, D) E lvd_e;
#define LVD_FIELDS_6(name, A, B, C, D, E, F)       LVD_FIELDS_5(name, A, B, C, D, E) F lvd_f;
#define LVD_FIELDS_7(name, A, B, C, D, E, F, G)    LVD_FIELDS_6(name, A, B, C, D, E, F) G lvd_g;
#define LVD_FIELDS_8(name, A, B, C, D, E, F, G, H) LVD_FIELDS_7(name, A, B, C, D, E, F, G) H lvd_h;
#define LVD_TAKES_0(name)                          __typeof__(name) *lvd_call
#define LVD_TAKES_1(name, A)                       LVD_TAKES_0(name), A lvd_a
#define LVD_TAKES_2(name, A, B)                    LVD_TAKES_1(name, A), B lvd_b
#define LVD_TAKES_3(name, A, B, C)                 LVD_TAKES_2(name, A, B), C lvd_c
#define LVD_TAKES_4(name, A, B, C, D)              LVD_TAKES_3(name, A, B, C), D lvd_d
#define LVD_TAKES_5(name, A, B, C, D, E)           LVD_TAKES_4(name, A, B, C, D), E lvd_e
#define LVD_TAKES_6(name, A, B, C, D, E, F)        LVD_TAKES_5(name, A, B, C, D, E), F lvd_f
#define LVD_TAKES_7(name, A, B, C, D, E, F, G)     LVD_TAKES_6(name, A, B, C, D, E, F), G lvd_g
#define LVD_TAKES_8(name, A, B, C, D, E, F, G, H)  LVD_TAKES_7(name, A, B, C, D, E, F, G), H lvd_h
#define LVD_SETS_0                                 lvd_r.lvd_in.lvd_none = 0;
#define LVD_SETS_1                                 lvd_r.lvd_in.lvd_a = lvd_a;
#define LVD_SETS_2                                 LVD_SETS_1 lvd_r.lvd_in.lvd_b = lvd_b;
#define LVD_SETS_3                                 LVD_SETS_2 lvd_r.lvd_in.lvd_c = lvd_c;
#define LVD_SETS_4                                 LVD_SETS_3 lvd_r.lvd_in.lvd_d = lvd_d;
#define LVD_SETS_5                                 LVD_SETS_4 lvd_r.lvd_in.lvd_e = lvd_e;
#define LVD_SETS_6                                 LVD_SETS_5 lvd_r.lvd_in.lvd_f = lvd_f;
#define LVD_SETS_7                                 LVD_SETS_6 lvd_r.lvd_in.lvd_g = lvd_g;
#define LVD_SETS_8                                 LVD_SETS_7 lvd_r.lvd_in.lvd_h = lvd_h;
#define LVD_GIVES_0(r)
#define LVD_GIVES_1(r) (r).lvd_in.lvd_a
#define LVD_GIVES_2(r) LVD_GIVES_1(r), (r).lvd_in.lvd_b
#define LVD_GIVES_3(r) LVD_GIVES_2(r), (r).lvd_in.lvd_c
#define LVD_GIVES_4(r) LVD_GIVES_3(r), (r).lvd_in.lvd_d
#define LVD_GIVES_5(r) LVD_GIVES_4(r), (r).lvd_in.lvd_e
#define LVD_GIVES_6(r) LVD_GIVES_5(r), (r).lvd_in.lvd_f
#define LVD_GIVES_7(r) LVD_GIVES_6(r), (r).lvd_in.lvd_g
#define LVD_GIVES_8(r) LVD_GIVES_7(r), (r).lvd_in.lvd_h

#define LVD_ALWAYS_ static inline __attribute__((always_inline, unused))

#define LVD_FORKABLE_(n, name, RESULT, OUT, KEEP, BACK, ...)                                       \
  typedef union lvd_record_##name {                                                                \
    struct {                                                                                       \
      LVD_CAT(LVD_FIELDS_, n)(__VA_ARGS__)                                                         \
    } lvd_in;                                                                                      \
    OUT                                                                                            \
  } lvd_record_##name;                                                                             \
  LVD_STATIC_ASSERT(sizeof(lvd_record_##name) <= LVD_FRAME_MAX,                                    \
                    "the arguments and the result of a forked call lie in the caller's frame, "    \
                    "which may be 4096 bytes at most: pass what is larger by its address");        \
  __attribute__((unused)) static void lvd_run_##name(lvd_fork *lvd_slot) {                         \
    lvd_record_##name *lvd_r = LVD_FORK_RECORD(lvd_slot, lvd_record_##name);                       \
    (void)lvd_r;                                                                                   \
    KEEP name(LVD_CAT(LVD_GIVES_, n)(*lvd_r));                                                     \
  }                                                                                                \
  LVD_ALWAYS_ lvd_record_##name lvd_args_##name(LVD_CAT(LVD_TAKES_, n)(__VA_ARGS__)) {             \
    lvd_record_##name lvd_r;                                                                       \
    (void)lvd_call;                                                                                \
    LVD_CAT(LVD_SETS_, n)                                                                          \
    return lvd_r;                                                                                  \
  }                                                                                                \
  LVD_ALWAYS_ RESULT lvd_join_##name(lvd_fork *lvd_slot, lvd_record_##name *lvd_r) {               \
    (void)lvd_r;                                                                                   \
    if (LVD_LIKELY(lvd_fork_pop(lvd_slot))) {                                                      \
      BACK(RESULT, name(LVD_CAT(LVD_GIVES_, n)(*lvd_r)));                                          \
    } else if (lvd_fork_join_slow(lvd_slot)) {                                                     \
      BACK(RESULT, name(LVD_CAT(LVD_GIVES_, n)(*lvd_r)));                                          \
    } else {                                                                                       \
      BACK##_OUT(LVD_FORK_OUT(lvd_slot, lvd_record_##name, *lvd_r)->lvd_out);                      \
    }                                                                                              \
  }

#define LVD_BACK_VALUE(RESULT, call)                                                               \
  RESULT lvd_value_ = call;                                                                        \
  lvd_stolen_set(false);                                                                           \
  return lvd_value_
#define LVD_BACK_VALUE_OUT(out)                                                                    \
  lvd_stolen_set(true);                                                                            \
  return out
#define LVD_BACK_VOID(RESULT, call)                                                                \
  call;                                                                                            \
  lvd_stolen_set(false)
#define LVD_BACK_VOID_OUT(out) lvd_stolen_set(true)

/* LVD_FORKABLE(result, name, parameters...): makes the function forkable, at file scope. */
#define LVD_FORKABLE(RESULT, ...)                                                                  \
  LVD_FORKABLE_N_(LVD_PARAMETERS_(__VA_ARGS__), LVD_FIRST_(__VA_ARGS__, 0), RESULT,                \
                  RESULT lvd_out;                                                                  \
                  , lvd_r->lvd_out =, LVD_BACK_VALUE, __VA_ARGS__)
/* LVD_FORKABLE_VOID(name, parameters...): the same for a function without a result. */
#define LVD_FORKABLE_VOID(...)                                                                     \
  LVD_FORKABLE_N_(LVD_PARAMETERS_(__VA_ARGS__), LVD_FIRST_(__VA_ARGS__, 0), void, , ,              \
                  LVD_BACK_VOID, __VA_ARGS__)
#define LVD_FORKABLE_N_(n, name, ...) LVD_FORKABLE_(n, name, __VA_ARGS__)

/* LVD_FORK(handle, name, arguments...): declares `handle` and forks a call. */
#define LVD_FORK(handle, ...)              LVD_FORK_NAMED_(handle, LVD_FIRST_(__VA_ARGS__, 0), __VA_ARGS__)
#define LVD_FORK_NAMED_(handle, name, ...) LVD_FORK_(handle, name, __VA_ARGS__)
#define LVD_FORK_(handle, name, ...)                                                               \
  lvd_record_##name handle##_record_ = lvd_args_##name(__VA_ARGS__);                               \
  lvd_fork *handle;                                                                                \
  LVD_FORK_PUSH(handle, lvd_record_##name, handle##_record_, lvd_run_##name)

/* Joins the call; its value is the result. */
#define LVD_JOIN(handle, name) lvd_join_##name((handle), &handle##_record_)

#ifdef __cplusplus
}
#endif
#endif
