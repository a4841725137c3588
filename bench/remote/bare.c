/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A minimal processor behind a window, on QEMU's virt machine: two words and a serial line. It checks nothing
 * and never ends; c/bare.c is its host. */
#include "bare.h"

#define MEMORY 0x80000000u

enum { UART = 0x10000000, PLIC = 0x0c000000, UART_IRQ = 10, MIE_EXTERNAL = 1 << 11 };

#define BYTE(at) (*(volatile uint8_t *)(uintptr_t)(at))
#define WORD(at) (*(volatile uint32_t *)(uintptr_t)(at))

__attribute__((naked, section(".text.start"))) void _start(void) {
  __asm__ volatile("la sp, lvd_stack_top\n j bare_main");
}

static void load(bare *b) {
  const unsigned char *image = (const unsigned char *)(uintptr_t)(MEMORY + BARE_IMAGE);
  unsigned char *to = (unsigned char *)(uintptr_t)(MEMORY + 2 * BARE_IMAGE);
  if (bare_sum(image, b->length) != b->sum) return;
  for (uint32_t i = 0; i < b->length; i++) to[i] = image[i];
  __asm__ volatile("fence.i" : : : "memory");
  b->result = (uint32_t)((int (*)(void))to)();
}

static void sleep(void) {
  while (!(BYTE(UART + 5) & 1)) __asm__ volatile("wfi" : : : "memory");
  uint32_t irq = WORD(PLIC + 0x200004);
  (void)BYTE(UART);
  if (irq) WORD(PLIC + 0x200004) = irq;
}

void bare_main(void);
void bare_main(void) {
  bare *b = (bare *)(uintptr_t)(MEMORY + BARE_WORDS);
  BYTE(UART + 1) = 1;
  BYTE(UART + 2) = 1;
  WORD(PLIC + 4 * UART_IRQ) = 1;
  WORD(PLIC + 0x2000) = 1u << UART_IRQ;
  WORD(PLIC + 0x200000) = 0;
  __asm__ volatile("csrw mie, %0" : : "r"(MIE_EXTERNAL) : "memory");
  b->back = BARE_READY;
  for (uint32_t last = 0;;) {
    if (b->mode == BARE_SLEEPS) sleep();
    uint32_t now = b->there;
    if (now == last) continue;
    __asm__ volatile("fence rw, rw" : : : "memory");
    if (b->mode == BARE_LOADS) load(b);
    __asm__ volatile("fence rw, w" : : : "memory");
    b->back = last = now;
    if (b->mode == BARE_SLEEPS) BYTE(UART) = '!';
  }
}
