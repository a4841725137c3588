/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Contexts: initialization, and notification of sanitizers. The switch itself is in context_*.S. */
#include "context.h"

#include <stdint.h>
#include <string.h>

#ifdef LVD_PORTABLE_CONTEXT
#include <stdlib.h>
#include <ucontext.h>
#endif

#if defined(LVD_CONTEXT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
static _Thread_local lvd_os_context *coming_from;
#elif defined(LVD_CONTEXT_TSAN)
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif

/* ---- initialization, and the plain switch ---------------------------------------------------- */

#ifdef LVD_PORTABLE_CONTEXT

/* makecontext passes ints, so a pointer is passed in two halves. */
static void start(unsigned entry_high, unsigned entry_low, unsigned high, unsigned low) {
  void (*entry)(void *) =
      (void (*)(void *))(uintptr_t)((uint64_t)entry_high << 32 | (uint64_t)entry_low);
  entry((void *)(uintptr_t)((uint64_t)high << 32 | (uint64_t)low));
}

static void swap(lvd_os_context *from, lvd_os_context *to) {
  ucontext_t here;
  from->sp = &here;
  swapcontext(&here, to->sp);
}

static void prepare(lvd_os_context *c, void *low, size_t size, void (*entry)(void *),
                    void *argument) {
  /* At the upper end of the stack, which is overwritten last. */
  ucontext_t *u = (ucontext_t *)(((uintptr_t)low + size - sizeof *u) & ~(uintptr_t)63);
  getcontext(u);
  u->uc_stack.ss_sp = low;
  u->uc_stack.ss_size = (size_t)((char *)u - (char *)low);
  u->uc_link = NULL;
  uint64_t e = (uint64_t)(uintptr_t)entry, a = (uint64_t)(uintptr_t)argument;
  makecontext(u, (void (*)(void))(uintptr_t)start, 4, (unsigned)(e >> 32), (unsigned)e,
              (unsigned)(a >> 32), (unsigned)a);
  c->sp = u;
}

#else

/* Entry of a new context: takes entry and argument from where prepare has stored them. */
void lvd_context_begin(void);

#if defined(LVD_CONTEXT_ASAN) || defined(LVD_CONTEXT_TSAN)
void lvd_context_swap(void **from, void *to);
static void swap(lvd_os_context *from, lvd_os_context *to) { lvd_context_swap(&from->sp, to->sp); }
#endif

/* The words that lvd_context_swap pops, lowest address first. */
static void prepare(lvd_os_context *c, void *low, size_t size, void (*entry)(void *),
                    void *argument) {
  uintptr_t *top = (uintptr_t *)(((uintptr_t)low + size) & ~(uintptr_t)15);
#if defined(__x86_64__)
  enum { FRAME = 9, ENTRY = 3, ARGUMENT = 2, RETURN = 6 }; /* r12, r13 */
#elif defined(__aarch64__)
  enum { FRAME = 20, ENTRY = 0, ARGUMENT = 1, RETURN = 11 }; /* x19, x20, x30 */
#else
  enum { FRAME = 208 / sizeof(uintptr_t), ENTRY = 1, ARGUMENT = 2, RETURN = 0 }; /* s0, s1, ra */
#endif
  uintptr_t *sp = top - FRAME;
  memset(sp, 0, FRAME * sizeof *sp);
  sp[ENTRY] = (uintptr_t)entry;
  sp[ARGUMENT] = (uintptr_t)argument;
  sp[RETURN] = (uintptr_t)lvd_context_begin;
  c->sp = sp;
}

#endif

/* ---- with sanitizers ------------------------------------------------------------------------- */

#if defined(LVD_CONTEXT_ASAN)

void lvd_os_context_of_thread(lvd_os_context *c) { memset(c, 0, sizeof *c); }

/* First function on a new stack: completes the switch for the sanitizer. */
typedef struct beginning {
  void (*entry)(void *);
  void *argument;
} beginning;

static void arrived(lvd_os_context *self) {
  lvd_os_context *from = coming_from;
  const void *bottom;
  size_t size;
  __sanitizer_finish_switch_fiber(self ? self->fake : NULL, &bottom, &size);
  if (from && !from->bottom) {
    from->bottom = bottom;
    from->size = size;
  }
}

static void begin(void *argument) {
  beginning b = *(beginning *)argument;
  arrived(NULL);
  b.entry(b.argument);
}

void lvd_os_context_make(lvd_os_context *c, void *low, size_t size, void (*entry)(void *),
                         void *argument) {
  __asan_unpoison_memory_region(low, size); /* of frames that never returned */
  beginning *b = (beginning *)(((uintptr_t)low + size - sizeof *b) & ~(uintptr_t)63);
  *b = (beginning){entry, argument};
  c->bottom = low;
  c->size = size;
  c->fake = NULL;
  prepare(c, low, (size_t)((char *)b - (char *)low), begin, b);
}

void lvd_os_context_switch(lvd_os_context *from, lvd_os_context *to, bool last) {
  coming_from = from;
  __sanitizer_start_switch_fiber(last ? NULL : &from->fake, to->bottom, to->size);
  swap(from, to);
  arrived(from);
}

void lvd_os_context_after_jump(lvd_os_context *thread) {
  /* Simulates a switch back, since the jump has discarded frames. */
  void *fake;
  __sanitizer_start_switch_fiber(&fake, thread->bottom, thread->size);
  __sanitizer_finish_switch_fiber(thread->fake, NULL, NULL);
  /* The jump began on another stack, so frames of this stack that it discarded are still
   * poisoned. */
  char *here = __builtin_frame_address(0), *low = (char *)thread->bottom;
  if (low && here > low) __asan_unpoison_memory_region(low, (size_t)(here - low));
}

void lvd_os_context_free(lvd_os_context *c) { (void)c; }

#elif defined(LVD_CONTEXT_TSAN)

void lvd_os_context_of_thread(lvd_os_context *c) { c->fiber = __tsan_get_current_fiber(); }

void lvd_os_context_make(lvd_os_context *c, void *low, size_t size, void (*entry)(void *),
                         void *argument) {
  /* A new fiber state: that of the former context keeps frames that never returned, and would
   * overflow. */
  lvd_os_context_free(c);
  c->fiber = __tsan_create_fiber(0);
  prepare(c, low, size, entry, argument);
}

void lvd_os_context_switch(lvd_os_context *from, lvd_os_context *to, bool last) {
  (void)last;
  __tsan_switch_to_fiber(to->fiber, 0);
  swap(from, to);
}

void lvd_os_context_after_jump(lvd_os_context *thread) { __tsan_switch_to_fiber(thread->fiber, 0); }

void lvd_os_context_free(lvd_os_context *c) {
  if (c->fiber) __tsan_destroy_fiber(c->fiber);
  c->fiber = NULL;
}

#else

void lvd_os_context_of_thread(lvd_os_context *c) { c->sp = NULL; }

void lvd_os_context_make(lvd_os_context *c, void *low, size_t size, void (*entry)(void *),
                         void *argument) {
  prepare(c, low, size, entry, argument);
}

#ifdef LVD_PORTABLE_CONTEXT
void lvd_os_context_switch(lvd_os_context *from, lvd_os_context *to, bool last) {
  (void)last;
  swap(from, to);
}
#endif

void lvd_os_context_after_jump(lvd_os_context *thread) { (void)thread; }
void lvd_os_context_free(lvd_os_context *c) { (void)c; }

#endif
