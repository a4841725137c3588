/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The machine-dependent part of the loader for QEMU's `virt` machine, 64 and 32 bits. A fault of a
 * program traps here, is reported, and the next image can be loaded.
 *
 * The doorbell is the serial port: a byte is a signal, in either direction. The timer is the
 * watchdog. */
#include "../loader.h"
#include "machine.h"

enum { UART = 0x10000000, PLIC = 0x0c000000, CLINT = 0x02000000, UART_IRQ = 10 };
enum { MIE_TIMER = 1 << 7, MIE_EXTERNAL = 1 << 11, MSTATUS_MIE = 1 << 3, TICK_NS = 100 };
enum { LOOK_NS = 20000 };
enum { CAUSE_TIMER = 7, CAUSE_EXTERNAL = 11 };

LVD_NORETURN void lvd_loader_again(void);
LVD_NORETURN void lvd_loader_begin(void);
void lvd_trap(uintptr_t cause, uintptr_t pc, uintptr_t value);

static lvd_loader loader;
static volatile bool rung;
static const char *volatile watched;
static volatile uint64_t watch_until, wake_at, timer_at;

static inline volatile uint8_t *byte_at(uintptr_t a) { return (volatile uint8_t *)a; }
static inline volatile uint32_t *word_at(uintptr_t a) { return (volatile uint32_t *)a; }

/* ---- the board ------------------------------------------------------------------------------- */

/* By rdtime: the timer's register is behind a bus, and under an emulator each access is a call. */
static uint64_t now(void) {
#if __riscv_xlen == 64
  uint64_t ticks;
  __asm__ volatile("rdtime %0" : "=r"(ticks));
  return ticks;
#else
  uint32_t low, high, again;
  do __asm__ volatile("rdtimeh %0\n rdtime %1\n rdtimeh %2" : "=r"(high), "=r"(low), "=r"(again));
  while (high != again);
  return (uint64_t)high << 32 | low;
#endif
}
static uint64_t now_ns(void) { return now() * TICK_NS; }

static void set_timer(uint64_t at) {
  timer_at = at;
#if __riscv_xlen == 64
  *(volatile uint64_t *)(uintptr_t)(CLINT + 0x4000) = at;
#else
  *word_at(CLINT + 0x4004) = UINT32_MAX; /* so that it does not fire between the two stores */
  *word_at(CLINT + 0x4000) = (uint32_t)at;
  *word_at(CLINT + 0x4004) = (uint32_t)(at >> 32);
#endif
}

/* Fires at `at` or earlier, and is then set again: not for each task. */
static void wants_timer(uint64_t at) {
  if (at < timer_at) set_timer(at);
}

static void ring(void) { *byte_at(UART) = '!'; }

static void watch(const char *procedure) {
  watched = procedure;
  watch_until =
      procedure && loader.shape.watch_ms ? now() + loader.shape.watch_ms * UINT64_C(10000) : 0;
  if (watch_until) wants_timer(watch_until);
}

/* A pending interrupt ends wfi even while interrupts are disabled, so none is lost in between. */
static void sleep_until(uint64_t until_ns) {
  __asm__ volatile("csrc mstatus, %0" : : "r"(MSTATUS_MIE) : "memory");
  wake_at = until_ns / TICK_NS;
  if (wake_at) wants_timer(wake_at);
  if (!rung && !(wake_at && now() >= wake_at)) __asm__ volatile("wfi" : : : "memory");
  __asm__ volatile("csrs mstatus, %0" : : "r"(MSTATUS_MIE) : "memory");
  rung = false;
  wake_at = 0;
}

static const lvd_remote_hal board = {
    .version = LVD_REMOTE_VERSION,
    .window = (lvd_window *)(uintptr_t)LVD_VIRT_WINDOW,
    .size = LVD_WINDOW_BYTES_MAX, /* the size in its header has been checked */
    .ring = ring,
    .sleep = sleep_until,
    .now_ns = now_ns,
    .watch = watch};

static void begin_interrupts(void) {
  *byte_at(UART + 1) = 1;                   /* interrupt on received data */
  *byte_at(UART + 2) = 1;                   /* enable the FIFO */
  *word_at(PLIC + 4 * UART_IRQ) = 1;        /* a priority above the threshold */
  *word_at(PLIC + 0x2000) = 1u << UART_IRQ; /* for hart 0 in machine mode */
  *word_at(PLIC + 0x200000) = 0;            /* which is the threshold */
  set_timer(UINT64_MAX);
  __asm__ volatile("csrw mie, %0" : : "r"(MIE_TIMER | MIE_EXTERNAL) : "memory");
  __asm__ volatile("csrs mstatus, %0" : : "r"(MSTATUS_MIE) : "memory");
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Ends what was running. */
static LVD_NORETURN void give_up(enum lvd_remote_state state, uint64_t cause, uint64_t pc,
                                 uint64_t value) {
  const lvd_remote_trap trap = {cause, pc, value, watched};
  lvd_loader_give_up(&loader, state, &trap);
  lvd_loader_again();
}

void lvd_trap(uintptr_t cause, uintptr_t pc, uintptr_t value) {
  if (!(cause >> (__riscv_xlen - 1))) give_up(LVD_REMOTE_FAILED, cause, pc, value);
  cause &= 0xff;
  if (cause == CAUSE_EXTERNAL) {
    uint32_t irq = *word_at(PLIC + 0x200004);
    while (*byte_at(UART + 5) & 1) (void)*byte_at(UART);
    rung = true;
    if (irq) *word_at(PLIC + 0x200004) = irq;
    if (lvd_loader_rung(&loader)) give_up(LVD_REMOTE_STOPPED, 0, pc, 0);
  } else if (cause == CAUSE_TIMER) {
    uint64_t t = now();
    if (watch_until && t >= watch_until) give_up(LVD_REMOTE_HUNG, 0, pc, 0);
    if (wake_at && t >= wake_at) wake_at = 0;
    uint64_t at = watch_until ? watch_until : UINT64_MAX;
    set_timer(wake_at && wake_at < at ? wake_at : at);
  }
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void follow(void) { __asm__ volatile("fence.i" : : : "memory"); }

/* Also called after a program was given up; initialization may be repeated. */
void lvd_loader_begin(void) {
  loader.board = &board;
  loader.low = LVD_VIRT_PROGRAM;
  loader.high = LVD_VIRT_WINDOW;
  loader.look_ns = LOOK_NS;
  loader.follow = follow;
  loader.running = false;
  watched = (const char *)0;
  watch_until = wake_at = 0;
  begin_interrupts();
  lvd_loader_serve(&loader);
}
