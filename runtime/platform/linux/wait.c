/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Futex waits, membarriers and clocks on Linux. */
#include "../platform.h"
#include "syscall.h"

#include <linux/futex.h>
#include <linux/membarrier.h>

#if defined(__SANITIZE_THREAD__)
#define LVD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LVD_TSAN 1
#endif
#endif

static void futex_wait(lvd_a32 *word, int how, uint32_t expected, int64_t timeout_ns) {
  struct timespec t, *limit = NULL;
  if (timeout_ns >= 0) {
    t.tv_sec = timeout_ns / 1000000000;
    t.tv_nsec = timeout_ns % 1000000000;
    limit = &t;
  }
  LVD_SYS(SYS_futex, &word->word, how, expected, limit, NULL, 0);
}

void lvd_os_wait(lvd_a32 *word, uint32_t expected, int64_t timeout_ns) {
  futex_wait(word, FUTEX_WAIT_PRIVATE, expected, timeout_ns);
}
void lvd_os_wait_shared(lvd_a32 *word, uint32_t expected, int64_t timeout_ns) {
  futex_wait(word, FUTEX_WAIT, expected, timeout_ns);
}

void lvd_os_wake(lvd_a32 *word) {
  LVD_SYS(SYS_futex, &word->word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
void lvd_os_wake_shared(lvd_a32 *word) {
  LVD_SYS(SYS_futex, &word->word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

bool lvd_os_poll(int fd, bool to_write, int64_t timeout_ns) {
  const int64_t ms_max = 60000;
  int64_t ms = timeout_ns < 0 ? -1 : (timeout_ns + 999999) / 1000000;
  struct pollfd p = {.fd = fd, .events = to_write ? POLLOUT : POLLIN};
  return lvd_sys_poll(&p, 1, (int)(ms < ms_max ? ms : ms_max)) > 0;
}

void lvd_os_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory"); /* yield is a no-op on most cores; isb pauses briefly */
#elif defined(__riscv)
  __asm__ volatile(".insn i 0x0F, 0, x0, x0, 0x010" ::
                       : "memory"); /* pause; a no-op where it is unknown */
#else
  __asm__ volatile("" ::: "memory");
#endif
}

bool lvd_os_barrier_prepare(void) {
#ifdef LVD_TSAN
  return false; /* the sanitizer does not know membarrier */
#else
  long has = LVD_SYS(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (has < 0 || !(has & MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return false;
  return LVD_SYS(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
}

void lvd_os_barrier(void) {
  /* If the membarrier is not available, the other side's [light] barrier is a fence, and so is
   * this. */
  lvd_fence_seq_cst();
  LVD_SYS(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

uint64_t lvd_os_now_ns(void) {
  struct timespec t;
  lvd_sys_clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t lvd_os_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t t;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
  return t;
#else
  return lvd_os_now_ns();           /* on riscv64, rdtime needs permission; the vDSO has it */
#endif
}

/* Nanoseconds per tick, a 32.32 fixed-point number; measured once, over two milliseconds. */
static lvd_a64 ns_per_tick;

#if defined(__x86_64__)
/* Reads both clocks at the same time: of several tries it takes the one with the least time in
 * between, since an interruption would be measured, too. */
static void read_both(uint64_t *ns, uint64_t *ticks) {
  uint64_t least = UINT64_MAX;
  *ns = *ticks = 0;
  for (int i = 0; i < 16; i++) {
    uint64_t before = lvd_os_now_ns(), t = lvd_os_ticks(), after = lvd_os_now_ns();
    if (after - before >= least) continue;
    least = after - before;
    *ns = before + least / 2;
    *ticks = t;
  }
}
#endif

static uint64_t calibrate(void) {
#if defined(__x86_64__)
  uint64_t n0, t0, n1, t1;
  read_both(&n0, &t0);
  do {
    read_both(&n1, &t1);
  } while (n1 - n0 < 2000000);
  return t1 == t0 ? (uint64_t)1 << 32
                  : (uint64_t)(((unsigned __int128)(n1 - n0) << 32) / (t1 - t0));
#elif defined(__aarch64__)
  uint64_t hz;
  __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
  return hz ? (uint64_t)(((unsigned __int128)1000000000u << 32) / hz) : (uint64_t)1 << 32;
#else
  return (uint64_t)1 << 32;
#endif
}

uint64_t lvd_os_ticks_to_ns(uint64_t ticks) {
  uint64_t f = lvd_load_relaxed_u64(&ns_per_tick);
  if (f == 0) lvd_store_relaxed_u64(&ns_per_tick, f = calibrate());
  return (uint64_t)(((unsigned __int128)ticks * f) >> 32);
}

uint64_t lvd_os_ns_to_ticks(uint64_t ns) {
  uint64_t f = lvd_load_relaxed_u64(&ns_per_tick);
  if (f == 0) lvd_store_relaxed_u64(&ns_per_tick, f = calibrate());
  ns += ns >> 12; /* the error of the measurement: a timeout must not expire early */
  unsigned __int128 ticks = ((unsigned __int128)ns << 32) / f;
  return ticks > UINT64_MAX / 2 ? UINT64_MAX / 2 : (uint64_t)ticks;
}
