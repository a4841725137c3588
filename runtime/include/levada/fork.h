/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fork: a call that another worker may take while the caller goes on, and that the caller makes
 * itself, directly, if nobody has.
 *
 * A fork is a slot of a DEQUE: an array of cache lines that belongs to the stack that forks. The
 * owner pushes and joins at its head; thieves take the oldest at its tail. Slots from `split` on are
 * the owner's alone, which is why neither a fork nor a join has a fence or an atomic
 * read-modify-write: a fork compares the head with `limit`, a join compares it with `floor`. Limit
 * is also how a thief asks for work (it becomes 0), floor too (it becomes the end of memory): so
 * whether there is room, whether the slot is public and whether somebody wants work are one load and
 * one comparison. All else is in fork.c, and seldom.
 *
 * ---- by hand ----------------------------------------------------------------------------------
 *
 *   static int fib(int n);
 *   LVD_FORKABLE(int, fib, int)         // once, after the declaration: result, name, parameters
 *
 *   static int fib(int n) {
 *     if (n < 2) return n;
 *     LVD_FORK(first, fib, n - 1);      // from here on fib(n - 1) may be taken by another worker
 *     int second = fib(n - 2);
 *     return LVD_JOIN(first, fib) + second;  // calls it now, or waits for who has taken it
 *   }
 *
 * Every fork is joined exactly once, in the function that made it, the last one first, on every way
 * out. LVD_FORKABLE_VOID(name, parameters...) is for functions without a result; up to eight
 * parameters; results and arguments of any type that can be copied (an array is its pointer), in C++
 * as bytes: hand over a pointer to what has constructors of its own. The
 * function must not be left between fork and join by longjmp, by pthread_exit, by cancellation of
 * the thread or, in C++, by an exception. Signal handlers must not fork.
 *
 * A program needs nothing else: the first fork starts the workers, and they end with the program.
 * Forks in a fiber, a remote procedure or an actor's native run on the workers that are there.
 * A taken call runs on a fiber, and may wait as any. Its stack is as large as the largest of a thread
 * that has forked, from 8 MiB to 1 GiB: what could be called directly has room there, too.
 *
 * ---- what the translator emits ----------------------------------------------------------------
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
 * (The types without their own qualifiers. Through a pointer: `lvd_in` has it, as one more member. A
 * call without arguments: `char lvd_none` in `lvd_in`, set to 0.) All that is written into the user's
 * text begins with lvd_, so that no macro of his stands in its way. At the place itself, for
 * `v = f(x, y) !! { block }`, number 7 of the file:
 *
 *   {
 *     lvd_fork_g_1 lvd_r7;
 *     lvd_fork *lvd_h7;
 *     lvd_r7.lvd_in.lvd_a0 = x;                   // arguments in order; may fork themselves
 *     lvd_r7.lvd_in.lvd_a1 = y;
 *     LVD_FORK_PUSH(lvd_h7, lvd_fork_g_1, lvd_r7, lvd_run_g_1);
 *     { block }
 *     if (LVD_LIKELY(lvd_fork_pop(lvd_h7)))       // nobody has it, and it is ours again
 *       v = f(lvd_r7.lvd_in.lvd_a0, lvd_r7.lvd_in.lvd_a1); // by name: the compiler may inline it
 *     else if (lvd_fork_join_seldom(lvd_h7))      // ours after a closer look: written twice, since
 *       v = f(lvd_r7.lvd_in.lvd_a0, lvd_r7.lvd_in.lvd_a1); // compilers then make the first much better
 *     else
 *       v = LVD_FORK_OUT(lvd_h7, lvd_fork_g_1, lvd_r7)->lvd_out; // taken, and done
 *   }
 *
 *   f(x) !! {}            the same without `v =`; void: `else` and LVD_FORK_OUT left out
 *   T v = f(x) !! {}      T v; before the braces (an initialised const: through a variable without)
 *   a[i++] += f(x) !! {}  T *lvd_p7 = &a[i++]; before the push, *lvd_p7 += in all branches
 *   return f(x) !! {}     into a variable in all branches, then return it
 *   operand               the same as an expression, `({ ... })`; where the other operands can tell the
 *                         order, each becomes a step: what stands left of the fork, the fork, the rest
 *   leaving the block     the value of `return` into a variable, the joins of the forks that are left,
 *                         then the jump. The result of f is computed all the same (it may have effects)
 *   names                 where f or a type is something else in the block: through a function
 *                         lvd_call_g_1, or a typedef, that stand before g
 *   lvd_stolen()          in a function whose text has it, after each join: lvd_stolen_set(0) behind
 *                         the direct calls, lvd_stolen_set(1) behind the taken one
 *
 * Between LVD_FORK_PUSH and lvd_fork_pop nothing may jump in or out. `lvd_h7` and `lvd_r7` are locals
 * that live until the join. The record's address is not taken unless the record is larger than a slot has room
 * for: so it costs no memory when it is small.
 *
 * Freestanding but for what it calls; C17 and C++17 with the extensions of gcc and clang. */
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
  lvd_a64 state;                      /* 0 unless it was taken (fork.c) */
  LVD_ALIGNED(16) unsigned char record[LVD_FORK_ROOM];
} LVD_ALIGNED(64) lvd_fork;

/* What a thread knows of the deque it is on; a fiber that has forked brings its own. Aligned to 64
 * bytes and no more: a library that is loaded while the program runs gets no more from the loader. */
typedef struct lvd_fork_thread {
  LVD_ALIGNED(64) lvd_fork *head; /* the next slot */
  uint32_t stolen;                /* lvd_stolen */
  /* Thieves write these two, two lines further on. */
  LVD_ALIGNED(64) unsigned char apart[64];
  LVD_ALIGNED(64) lvd_aptr limit; /* end of the slots; 0: work is wanted, or no deque yet */
  lvd_aptr floor;                 /* the first slot that is not public; the end of memory: work is
                                     wanted */
} lvd_fork_thread;

/* Initial-exec: its distance from the thread's pointer is a constant of the program. Where that
 * pointer is a segment (x86-64), this is all that a compiler can carry over a wait, after which a
 * fiber may be on another thread; elsewhere the pointer is read anew each time. The model checker,
 * whose threads are all one of the system, has a call in its place. */
#ifdef LVD_FORK_THREAD
lvd_fork_thread *LVD_FORK_THREAD;
#define lvd_forks (*LVD_FORK_THREAD)
#else
extern LVD_API __thread lvd_fork_thread lvd_forks_here __attribute__((tls_model("initial-exec")));
#if defined __SANITIZE_THREAD__
#define LVD_FORK_WATCHED 1
#elif defined __has_feature /* clang's way to say the same */
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
#elif defined __x86_64__ /* what the sanitizer watches is an address */
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

/* The seldom half of a fork: no deque yet, no room, or somebody wants work. `bytes` is what belongs
 * into the slot's record. Returns the slot to join. */
LVD_API LVD_COLD lvd_fork *lvd_fork_seldom(void (*run)(lvd_fork *), const void *bytes, size_t size);
/* The seldom half of a join: the slot is public, or taken, or somebody wants work. */
LVD_API LVD_COLD bool lvd_fork_settle(lvd_fork *slot);

/* Clang keeps what lives across a call in registers that it then saves when the function begins,
 * also where it makes no fork. So it calls these two by a convention that leaves it all others:
 * a fib of clang 14 is a quarter faster. By pointers, since the loader, which finds a function at
 * its first call, does not know that convention. */
#if defined __clang__ && defined __x86_64__ && !defined LVD_FORK_THREAD
typedef struct lvd_fork_seldoms {
  lvd_fork *(*fork)(void (*run)(lvd_fork *), const void *bytes, size_t size)
      __attribute__((preserve_most));
  bool (*settle)(lvd_fork *slot) __attribute__((preserve_most));
} lvd_fork_seldoms;
extern LVD_API const lvd_fork_seldoms lvd_fork_keeping;
#define LVD_FORK_SELDOM lvd_fork_keeping.fork
#define LVD_FORK_SETTLE lvd_fork_keeping.settle
#else
#define LVD_FORK_SELDOM lvd_fork_seldom
#define LVD_FORK_SETTLE lvd_fork_settle
#endif

/* Does a record lie in its slot? Else the slot has its address. A constant. */
#define LVD_FORK_FITS(T) (sizeof(T) <= LVD_FORK_ROOM && __alignof__(T) <= 16)

/* What the macros are made of, so that they name no members: a macro of the user may be called as one. */
static inline lvd_fork *lvd_fork_head(void) { return lvd_forks.head; }
static inline bool lvd_fork_open(const lvd_fork *h) {
  return (const void *)h < lvd_load_relaxed_ptr(&lvd_forks.limit);
}
static inline void *lvd_fork_bytes(lvd_fork *h) { return h->record; }
static inline void lvd_fork_begin(lvd_fork *h, void (*run)(lvd_fork *)) { h->run = run; }
static inline void lvd_fork_pushed(lvd_fork *h) { lvd_forks.head = h + 1; }
static inline lvd_fork *lvd_fork_pushed_seldom(void (*run)(lvd_fork *), const void *bytes,
                                               size_t size) {
  return LVD_FORK_SELDOM(run, bytes, size);
}

/* The record of a slot, for who runs it. */
#define LVD_FORK_RECORD(slot, T)                                                                   \
  (LVD_FORK_FITS(T) ? (T *)lvd_fork_bytes(slot) : *(T **)lvd_fork_bytes(slot))

/* Makes a fork of record `r`, a variable of type T whose `lvd_in` is filled, and sets `h`, an
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
      (h) = lvd_fork_pushed_seldom((thunk), &lvd_copy_, sizeof lvd_copy_);                         \
    } else {                                                                                       \
      T *lvd_at_ = &(r);                                                                           \
      (h) = lvd_fork_pushed_seldom((thunk), &lvd_at_, sizeof lvd_at_);                             \
    }                                                                                              \
  } while (0)

/* Takes back the last fork that was made on this stack and is not joined yet. False: only
 * lvd_fork_join_seldom knows. */
static inline bool lvd_fork_pop(lvd_fork *h) {
  if (LVD_UNLIKELY((void *)h < lvd_load_relaxed_ptr(&lvd_forks.floor))) return false;
  lvd_forks.head = h;
  return true;
}

/* What only that knows. True: ours. The head is where the library has left it: a compiler that sees
 * it need not load it again, whichever way a loop of forks goes round. That is why gcc, which finds
 * it seldom, is made to see it. */
static inline __attribute__((always_inline)) bool lvd_fork_join_seldom(lvd_fork *h) {
  bool ours = LVD_FORK_SETTLE(h);
  lvd_forks.head = h;
  return ours;
}

/* Both. True: nobody has taken it, and the caller makes the call, or something else in its place.
 * False: it was taken, and is done (or cancelled). */
static inline bool lvd_fork_join(lvd_fork *h) { return lvd_fork_pop(h) || lvd_fork_join_seldom(h); }

/* Where the result of a taken call is, until the next fork. */
#define LVD_FORK_OUT(h, T, r) (LVD_FORK_FITS(T) ? (T *)lvd_fork_bytes(h) : &(r))

/* Was the call that was joined last on this thread taken by another worker? So that a scan or a
 * reduction can skip its second pass. LVD_JOIN keeps it, and translated functions that ask. */
static inline bool lvd_stolen(void) { return lvd_forks.stolen != 0; }
static inline void lvd_stolen_set(bool stolen) { lvd_forks.stolen = stolen; }

/* Does another worker want work now? Who loops can fork half of what is left. */
static inline bool lvd_fork_wanted(void) {
  return (void *)lvd_forks.head >= lvd_load_relaxed_ptr(&lvd_forks.limit);
}

/* ------------------------------------------------------------------------------------------ */
/* Cancelling                                                                                 */
/* ------------------------------------------------------------------------------------------ */

/* Where a scope begins; the library's. */
typedef struct lvd_scope_mark {
  lvd_a32 first;  /* slot of the deque */
  lvd_aptr scope; /* as long as a slot from `first` on is open */
} lvd_scope_mark;

/* A piece of work that can be cancelled: all forks made between lvd_cancel_begin and lvd_cancel_end,
 * and by them. Calls that have not started when lvd_cancel is called are not made; their results
 * are indeterminate. Calls that run can ask lvd_cancelled. begin and end nest, as forks do, and as
 * deep as you like; end belongs to each begin, whatever that returned. */
typedef struct lvd_cancel_scope {
  lvd_a32 cancelled;
  lvd_fork *slot;
  struct lvd_cancel_scope *outer; /* the one around it, perhaps of another stack ... */
  struct lvd_cancel_scope *below; /* ... and the one around it on this stack; or null */
  lvd_scope_mark inner;           /* the one inside it on this stack */
} lvd_cancel_scope;

/* LVD_E_LIMIT, LVD_E_MEMORY: there is no deque for this stack, so its forks are plain calls, and are
 * made though they are cancelled. */
LVD_API lvd_status lvd_cancel_begin(lvd_cancel_scope *scope);
LVD_API void lvd_cancel_end(lvd_cancel_scope *scope);
LVD_API void lvd_cancel(lvd_cancel_scope *scope); /* by anybody, while the scope lives */
LVD_API bool lvd_cancelled(void); /* the innermost scope that we are in, or one around it */

/* ------------------------------------------------------------------------------------------ */
/* Ranges                                                                                     */
/* ------------------------------------------------------------------------------------------ */

/* Calls body(context, from, to) for pieces that make up begin ... end, each once, in any order and
 * at the same time. A range is split only when a worker wants work, and the size of the pieces
 * between two looks is found by time: so nobody has to choose a grain. */
LVD_API void lvd_for(size_t begin, size_t end, void (*body)(void *context, size_t from, size_t to),
                     void *context);

/* What a reduction does. `size` bytes are a result; it is copied as bytes. The combination has to be
 * associative; it need not be commutative: left is always what comes first. */
typedef struct lvd_reduction {
  size_t size;
  void (*empty)(void *context, void *result);                       /* sets it to nothing */
  void (*add)(void *context, size_t from, size_t to, void *result); /* adds from ... to */
  void (*combine)(void *context, void *left, const void *right);    /* left = left and right */
  void *context;
} lvd_reduction;

/* Results of more than 256 bytes need memory for each part that is split off; without it the range
 * is split no further. */
LVD_API void lvd_reduce(size_t begin, size_t end, const lvd_reduction *reduction, void *result);

/* ------------------------------------------------------------------------------------------ */
/* The workers of a program that only forks                                                   */
/* ------------------------------------------------------------------------------------------ */

/* How many workers the first fork of a program that has made no runtime starts; 0, the usual: as
 * lvd_runtime_create does. The environment's LEVADA_WORKERS does the same from outside. LVD_E_STATE:
 * they have been started. */
LVD_API lvd_status lvd_fork_workers(uint32_t workers);

typedef struct lvd_fork_counters {
  uint64_t stolen; /* calls taken by another worker */
  uint64_t leapt;  /* of those: taken back from the thief by who waited for him */
  uint64_t asked;  /* times a thief has asked for work */
  uint64_t shared; /* times an owner has made forks public */
  uint64_t full;   /* forks that found their deque full, and were called directly */
  uint64_t waits;  /* joins that had to suspend or sleep */
  uint64_t woken;  /* sleeping workers that forks have woken */
} lvd_fork_counters;

/* Of the whole process, so far. */
LVD_API void lvd_fork_counters_read(lvd_fork_counters *out);

/* ------------------------------------------------------------------------------------------ */
/* The macros for use by hand                                                                 */
/* ------------------------------------------------------------------------------------------ */

#define LVD_CAT_(a, b)                                 a##b
#define LVD_CAT(a, b)                                  LVD_CAT_(a, b)
#define LVD_FIRST_(name, ...)                          name
#define LVD_NTH_(name, a, b, c, d, e, f, g, h, n, ...) n
/* How many parameters come after the name. */
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
    } else if (lvd_fork_join_seldom(lvd_slot)) {                                                   \
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

/* Result, name, parameters. */
#define LVD_FORKABLE(RESULT, ...)                                                                  \
  LVD_FORKABLE_N_(LVD_PARAMETERS_(__VA_ARGS__), LVD_FIRST_(__VA_ARGS__, 0), RESULT,                \
                  RESULT lvd_out;                                                                  \
                  , lvd_r->lvd_out =, LVD_BACK_VALUE, __VA_ARGS__)
/* Name, parameters. */
#define LVD_FORKABLE_VOID(...)                                                                     \
  LVD_FORKABLE_N_(LVD_PARAMETERS_(__VA_ARGS__), LVD_FIRST_(__VA_ARGS__, 0), void, , ,              \
                  LVD_BACK_VOID, __VA_ARGS__)
#define LVD_FORKABLE_N_(n, name, ...) LVD_FORKABLE_(n, name, __VA_ARGS__)

/* Declares `handle` and forks a call: the handle, the name, the arguments. */
#define LVD_FORK(handle, ...)              LVD_FORK_NAMED_(handle, LVD_FIRST_(__VA_ARGS__, 0), __VA_ARGS__)
#define LVD_FORK_NAMED_(handle, name, ...) LVD_FORK_(handle, name, __VA_ARGS__)
#define LVD_FORK_(handle, name, ...)                                                               \
  lvd_record_##name handle##_record_ = lvd_args_##name(__VA_ARGS__);                               \
  lvd_fork *handle;                                                                                \
  LVD_FORK_PUSH(handle, lvd_record_##name, handle##_record_, lvd_run_##name)

/* Joins it; has the value of the call. */
#define LVD_JOIN(handle, name) lvd_join_##name((handle), &handle##_record_)

#ifdef __cplusplus
}
#endif
#endif
