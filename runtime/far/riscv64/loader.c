/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The resident loader: waits for an image in the window, checks its length and checksum, copies it to
 * where it is to lie, makes the instruction cache follow, runs it, and says how it went. What a
 * program does wrong ends here as a trap, is reported, and the next image may come.
 *
 * The doorbell is the serial port: a byte each way is a ring. The timer is the watchdog. */
#include <levada/window.h>

#include "machine.h"

enum { UART = 0x10000000, PLIC = 0x0c000000, CLINT = 0x02000000, UART_IRQ = 10 };
enum { MIE_TIMER = 1 << 7, MIE_EXTERNAL = 1 << 11, MSTATUS_MIE = 1 << 3, TICK_NS = 100 };
enum { CAUSE_TIMER = 7, CAUSE_EXTERNAL = 11 };

void *memcpy(void *restrict to, const void *restrict from, size_t n);
LVD_NORETURN void lvd_loader_again(void);
void lvd_loader(void);
void lvd_trap(uint64_t cause, uint64_t pc, uint64_t value);

static lvd_window *const window = (lvd_window *)(uintptr_t)LVD_VIRT_WINDOW;
static lvd_window_shape shape;
static volatile bool rung, running;
static const char *volatile watched;
static volatile uint64_t watch_until, wake_at;
static uint32_t done; /* the last command */

static inline volatile uint8_t *byte_at(uintptr_t a) { return (volatile uint8_t *)a; }
static inline volatile uint32_t *word_at(uintptr_t a) { return (volatile uint32_t *)a; }
static inline volatile uint64_t *long_at(uintptr_t a) { return (volatile uint64_t *)a; }

/* ---- the board ------------------------------------------------------------------------------- */

static uint64_t now(void) { return *long_at(CLINT + 0xbff8); }
static uint64_t now_ns(void) { return now() * TICK_NS; }

/* The earlier of the two that the timer is for. */
static void set_timer(void) {
  uint64_t at = watch_until;
  if (wake_at && (!at || wake_at < at)) at = wake_at;
  *long_at(CLINT + 0x4000) = at ? at : UINT64_MAX;
}

static void ring(void) { *byte_at(UART) = '!'; }

static void watch(const char *procedure) {
  watched = procedure;
  watch_until = procedure && shape.watch_ms ? now() + shape.watch_ms * UINT64_C(10000) : 0;
  set_timer();
}

/* An interrupt that is pending ends wfi even while none is taken: so none comes in between. */
static void sleep_until(uint64_t until_ns) {
  __asm__ volatile("csrc mstatus, %0" : : "r"(MSTATUS_MIE) : "memory");
  wake_at = until_ns / TICK_NS;
  set_timer();
  if (!rung && !(wake_at && now() >= wake_at)) __asm__ volatile("wfi" : : : "memory");
  __asm__ volatile("csrs mstatus, %0" : : "r"(MSTATUS_MIE) : "memory");
  rung = false;
  wake_at = 0;
  set_timer();
}

static const lvd_far_board board = {.version = LVD_FAR_VERSION,
                                    .window = window,
                                    .size = LVD_WINDOW_MOST, /* its header says; it was checked */
                                    .ring = ring,
                                    .sleep = sleep_until,
                                    .now_ns = now_ns,
                                    .watch = watch};

static void begin_interrupts(void) {
  *byte_at(UART + 1) = 1;                   /* received data */
  *byte_at(UART + 2) = 1;                   /* with its queue */
  *word_at(PLIC + 4 * UART_IRQ) = 1;        /* a priority above the threshold */
  *word_at(PLIC + 0x2000) = 1u << UART_IRQ; /* for hart 0 in machine mode */
  *word_at(PLIC + 0x200000) = 0;            /* which is the threshold */
  set_timer();
  __asm__ volatile("csrw mie, %0" : : "r"(MIE_TIMER | MIE_EXTERNAL) : "memory");
  __asm__ volatile("csrs mstatus, %0" : : "r"(MSTATUS_MIE) : "memory");
}

/* ---- reports --------------------------------------------------------------------------------- */

static void report(enum lvd_far_state state, uint32_t status) {
  window->status = status;
  lvd_store_release_u32(&window->state, state);
  lvd_fence_seq_cst();
  ring();
}

/* What ran is given up. */
static LVD_NORETURN void give_up(enum lvd_far_state state, uint64_t cause, uint64_t pc,
                                 uint64_t value) {
  const char *name = watched;
  window->cause = cause;
  window->pc = pc;
  window->value = value;
  size_t n = 0;
  for (; name && name[n] && n < sizeof window->procedure - 1; n++) window->procedure[n] = name[n];
  window->procedure[n] = 0;
  running = false;
  report(state, 0);
  lvd_loader_again();
}

void lvd_trap(uint64_t cause, uint64_t pc, uint64_t value) {
  if (!(cause >> 63)) give_up(LVD_FAR_FAILED, cause, pc, value);
  cause &= 0xff;
  if (cause == CAUSE_EXTERNAL) {
    uint32_t irq = *word_at(PLIC + 0x200004);
    while (*byte_at(UART + 5) & 1) (void)*byte_at(UART);
    rung = true;
    uint32_t asked = lvd_load_relaxed_u32(&window->asked);
    if (lvd_load_relaxed_u32(&window->alive) != asked) {
      lvd_store_relaxed_u32(&window->alive, asked);
      ring();
    }
    if (irq) *word_at(PLIC + 0x200004) = irq;
    uint32_t command = lvd_load_acquire_u32(&window->command);
    if (running && command != done && window->verb == LVD_WINDOW_STOP) {
      done = command;
      lvd_store_release_u32(&window->answered, done);
      give_up(LVD_FAR_STOPPED, 0, pc, 0);
    }
  } else if (cause == CAUSE_TIMER) {
    uint64_t t = now();
    if (watch_until && t >= watch_until) give_up(LVD_FAR_HUNG, 0, pc, 0);
    if (wake_at && t >= wake_at) wake_at = 0;
    set_timer();
  }
}

/* ---- images ---------------------------------------------------------------------------------- */

static lvd_status take_image(uint64_t *entry) {
  uint64_t address = window->address, length = window->length;
  *entry = window->entry;
  uint32_t sum = window->sum;
  if (length == 0 || length > shape.image_size) return LVD_E_ARGUMENT;
  if (address < LVD_VIRT_PROGRAM || address > LVD_VIRT_WINDOW ||
      length > LVD_VIRT_WINDOW - address || *entry < address || *entry >= address + length)
    return LVD_E_ARGUMENT;
  const unsigned char *from = (const unsigned char *)window + shape.image;
  unsigned char *to = (unsigned char *)(uintptr_t)address;
  memcpy(to, from, (size_t)length);
  /* Of the copy, which nobody changes any more. */
  if (lvd_window_sum(to, (size_t)length) != sum) return LVD_E_CORRUPT;
  __asm__ volatile("fence.i" : : : "memory");
  return LVD_OK;
}

static void await_command(void) {
  for (;;) {
    uint32_t command = lvd_load_acquire_u32(&window->command);
    if (command != done) {
      done = command;
      return;
    }
    sleep_until(0);
  }
}

static void await_window(void) {
  /* Whoever has made the machine has made the window before. */
  while (lvd_window_read(window, LVD_WINDOW_MOST, &shape)) sleep_until(0);
}

void lvd_loader(void) {
  running = false;
  watched = (const char *)0;
  watch_until = wake_at = 0;
  begin_interrupts();
  await_window();
  if (lvd_load_relaxed_u32(&window->state) == LVD_FAR_NONE) {
    window->low = LVD_VIRT_PROGRAM;
    window->high = LVD_VIRT_WINDOW;
    report(LVD_FAR_READY, 0);
  }
  for (;;) {
    await_command();
    uint64_t entry = 0;
    lvd_status status = LVD_E_ARGUMENT;
    bool stop = window->verb == LVD_WINDOW_STOP;
    if (window->verb == LVD_WINDOW_RUN) status = take_image(&entry);
    lvd_store_relaxed_u32(&window->state, stop               ? LVD_FAR_STOPPED
                                          : status != LVD_OK ? LVD_FAR_REFUSED
                                                             : LVD_FAR_RUNS);
    window->status = status;
    lvd_store_release_u32(&window->answered, done);
    lvd_fence_seq_cst();
    ring();
    if (stop || status != LVD_OK) continue;
    running = true;
    int (*program)(const lvd_far_board *) = (int (*)(const lvd_far_board *))(uintptr_t)entry;
    int result = program(&board);
    running = false;
    watch((const char *)0);
    report(LVD_FAR_ENDED, (uint32_t)result);
  }
}
