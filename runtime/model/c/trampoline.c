/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The other side of -fsanitize=thread: what the compiler calls for every atomic operation, fence
 * and plain access of the code under test, and the port's calls, handed to the checker with the
 * caller's address. This file itself is compiled without instrumentation. */
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

/* The checker's side (src/shadow.rs). */
typedef struct model_calls {
  u64 (*load)(const void *p, u32 bytes, int order, const void *pc);
  void (*store)(void *p, u32 bytes, u64 value, int order, const void *pc);
  u64 (*rmw)(void *p, u32 bytes, u32 op, u64 value, int order, const void *pc);
  u32 (*cas)(void *p, u32 bytes, u64 *expected, u64 value, int order, int failure, const void *pc);
  void (*fence)(int order, const void *pc);
  void (*light)(const void *pc);
  void (*plain)(const void *p, size_t n, u32 write, const void *pc);
  void (*barrier)(const void *pc);
  void (*wait)(void *p, u32 expected, u32 timed, const void *pc);
  void (*wake)(void *p, const void *pc);
  void (*relax)(void);
  void (*ring)(u32 bell, const void *pc);
  void (*sleep)(u32 bell);
  void *(*self)(void);
  void (*set_self)(void *self);
  void (*freed)(void *p, size_t size);
  void (*guard)(void (*entry)(void *), void *argument);
  void (*landed)(void);
  u32 (*number)(void);
  void (*late)(void);
} model_calls;

static model_calls calls;

/* The globals of the sources under test (src/library.rs), and what they were when they were loaded.
 */
extern char __start_model_globals[] __attribute__((weak, visibility("hidden")));
extern char __stop_model_globals[] __attribute__((weak, visibility("hidden")));
static void *at_first;

static size_t globals_size(void) { return (size_t)(__stop_model_globals - __start_model_globals); }
void model_bind(const model_calls *c) {
  calls = *c;
  at_first =
      mmap(NULL, globals_size() + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(at_first, __start_model_globals, globals_size());
}
void *model_globals_reset(size_t *size) {
  *size = globals_size();
  return memcpy(__start_model_globals, at_first, *size);
}

#define PC __builtin_return_address(0)

void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}

#define PLAIN(n)                                                                                   \
  void __tsan_read##n(void *p) { calls.plain(p, n, 0, PC); }                                       \
  void __tsan_write##n(void *p) { calls.plain(p, n, 1, PC); }                                      \
  void __tsan_unaligned_read##n(void *p) { calls.plain(p, n, 0, PC); }                             \
  void __tsan_unaligned_write##n(void *p) { calls.plain(p, n, 1, PC); }                            \
  void __tsan_volatile_read##n(void *p) { calls.plain(p, n, 0, PC); }                              \
  void __tsan_volatile_write##n(void *p) { calls.plain(p, n, 1, PC); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
void __tsan_read_range(void *p, size_t n) { calls.plain(p, n, 0, PC); }
void __tsan_write_range(void *p, size_t n) { calls.plain(p, n, 1, PC); }

/* The operations of read-modify-write, in the order that shadow.rs numbers them. */
#define RMW(b, name, op)                                                                           \
  u##b __tsan_atomic##b##_##name(u##b *p, u##b v, int order) {                                     \
    return (u##b)calls.rmw(p, b / 8, op, v, order, PC);                                            \
  }
#define ATOMIC(b)                                                                                  \
  u##b __tsan_atomic##b##_load(const u##b *p, int order) {                                         \
    return (u##b)calls.load(p, b / 8, order, PC);                                                  \
  }                                                                                                \
  void __tsan_atomic##b##_store(u##b *p, u##b v, int order) {                                      \
    calls.store(p, b / 8, v, order, PC);                                                           \
  }                                                                                                \
  RMW(b, exchange, 0)                                                                              \
  RMW(b, fetch_add, 1)                                                                             \
  RMW(b, fetch_sub, 2)                                                                             \
  RMW(b, fetch_and, 3)                                                                             \
  RMW(b, fetch_or, 4)                                                                              \
  RMW(b, fetch_xor, 5)                                                                             \
  int __tsan_atomic##b##_compare_exchange_strong(u##b *p, u##b *expected, u##b v, int order,       \
                                                 int failure) {                                    \
    u64 e = *expected;                                                                             \
    u32 done = calls.cas(p, b / 8, &e, v, order, failure, PC);                                     \
    *expected = (u##b)e;                                                                           \
    return (int)done;                                                                              \
  }                                                                                                \
  int __tsan_atomic##b##_compare_exchange_weak(u##b *p, u##b *expected, u##b v, int order,         \
                                               int failure) {                                      \
    u64 e = *expected;                                                                             \
    u32 done = calls.cas(p, b / 8, &e, v, order, failure, PC);                                     \
    *expected = (u##b)e;                                                                           \
    return (int)done;                                                                              \
  }                                                                                                \
  u##b __tsan_atomic##b##_compare_exchange_val(u##b *p, u##b expected, u##b v, int order,          \
                                               int failure) {                                      \
    u64 e = expected;                                                                              \
    calls.cas(p, b / 8, &e, v, order, failure, PC);                                                \
    return (u##b)e;                                                                                \
  }
ATOMIC(32)
ATOMIC(64)

void __tsan_atomic_thread_fence(int order) { calls.fence(order, PC); }
/* The compiler's barrier is the cheap half of an asymmetric pair; lvd_os_barrier is the other. */
void __tsan_atomic_signal_fence(int order) { (void)order, calls.light(PC); }

/* ---- the port ------------------------------------------------------------------------------ */

void lvd_os_barrier(void) { calls.barrier(PC); }
void lvd_os_wait(void *word, uint32_t expected, int64_t timeout_ns) {
  calls.wait(word, expected, timeout_ns >= 0, PC);
}
void lvd_os_wake(void *word) { calls.wake(word, PC); }
void lvd_os_relax(void) { calls.relax(); }
void *lvd_os_self(void) { return calls.self(); }
void lvd_os_set_self(void *self) { calls.set_self(self); }

/* Time stands still until a check says how late it is; then all sleeps with a timeout end. */
static u64 late_ns;
uint64_t lvd_os_now_ns(void) { return late_ns; }
__attribute__((weak)) uint64_t lvd_os_ticks(void) { return late_ns; }
void model_late(u32 ns) {
  late_ns = ns;
  if (ns) calls.late();
}
uint64_t lvd_os_ticks_to_ns(uint64_t ticks) { return ticks; }
uint64_t lvd_os_ns_to_ticks(uint64_t ns) { return ns; }

/* Nothing traps; what is tried is done, or abandoned where it asks for that. */
enum { THREADS = 8 };
static jmp_buf escapes[THREADS];
void lvd_os_traps_prepare(void) {}
int lvd_os_traps_begin(void *handler, int ticks) { return (void)handler, (void)ticks, 0; }
void lvd_os_traps_end(void) {}
_Bool lvd_os_try(void *escape, void (*body)(void *), void *argument) {
  (void)escape;
  if (_setjmp(escapes[calls.number()])) return 0;
  body(argument);
  return 1;
}
void lvd_os_jump(void *escape) {
  (void)escape;
  _longjmp(escapes[calls.number()], 1);
}
__attribute__((weak)) const unsigned char *lvd_os_stack_low(size_t *size) {
  return (void)size, NULL;
}
/* No thread ends before the check does. */
__attribute__((weak)) void lvd_os_at_thread_exit(int what, void (*end)(void *), void *argument) {
  (void)what, (void)end, (void)argument;
}
u32 model_number(void) { return calls.number(); }
__attribute__((weak)) void lvd_trap(void *self, int trap, const void *address, const void *at) {
  (void)self, (void)trap, (void)address, (void)at;
}

/* ---- memory that is watched has been freed --------------------------------------------------- */

void model_freed(void *p, size_t size) { calls.freed(p, size); }

/* ---- fibers: a panic ends one, and goes on where its worker goes on -------------------------- */

void model_guard(void (*entry)(void *), void *argument) { calls.guard(entry, argument); }
void model_landed(void) { calls.landed(); }

/* ---- a bell, which the waiters of a check ring ---------------------------------------------- */

void model_ring(uint32_t bell) { calls.ring(bell, PC); }
void model_sleep(uint32_t bell) { calls.sleep(bell); }
